"""The groups of the cluster by name: what the coordinator answers to nodes that want to join one.

The first member creates a group. Every node has the directory of all groups, so the next
coordinator knows them, with their numbers. A number that was only answered ends with the
coordinator: the next one may give it to another group, and nodes that asked before ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.durability import in_words
from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel, OrderingProtocol
from ordercast.protocols.registry import PROTOCOLS, choose
from ordercast.runtime.control import Control, Enter, Entered, NotEntered, Visit
from ordercast.runtime.frame_counts import FrameCounts
from ordercast.views.groups import GroupEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


class GroupNames:
    """Finds the group of a name, or creates it, while this node coordinates."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    def answer(self, question: Enter | Visit) -> Control:
        """The group that was asked for, or why there is none."""
        if isinstance(question, Enter):
            return self._enter(question)
        entry = self._open_group(question.group)
        if isinstance(entry, str):
            return NotEntered(question.request, "", entry)
        return Entered(question.request, entry)

    def _enter(self, enter: Enter) -> Control:
        try:
            check_name("group", enter.group)
            entry = self._group(enter)
        except ValueError as reason:  # a name that is none, a protocol only the other side knows
            entry = str(reason)
        if isinstance(entry, str):
            return NotEntered(enter.request, "", entry)
        if not _fits(entry, enter):
            return NotEntered(enter.request, _have(entry, enter), "")
        return Entered(enter.request, entry)

    def _group(self, enter: Enter) -> GroupEntry | str:
        """The group of that name, made if need be; or why it cannot be made."""
        stack = self._presence.engine.stack
        entry = stack.of_name(enter.group)
        if entry is None:
            limit = self._presence.options.max_groups
            if stack.known_groups() >= limit:
                return f"the cluster is full: it has max_groups={limit} groups"
            gid = stack.free_number()
            chosen = choose(enter.order, enter.protocol)
            entry = GroupEntry(
                gid, enter.group, enter.order, chosen.declaration.name, chosen.header_version,
                enter.durability, level_of(chosen, enter.delivery_level), enter.slow or "wait",
            )  # fmt: skip
            stack.offer(entry)
        self._presence.groups.names[entry.gid] = entry.name
        return entry

    def _open_group(self, name: str) -> GroupEntry | str:
        """The group of that name, if others may send to it; or why they cannot."""
        stack = self._presence.engine.stack
        entry = stack.of_name(name)
        if entry is None:
            known = ", ".join(repr(row.entry.name) for row in stack.rows.values())
            there_is = f"there is {known}" if known else "there is none yet"
            return f"no group {name!r} to send to: {there_is}; a group is made by its first member"
        declared = PROTOCOLS[entry.protocol].declaration
        if not declared.closed:
            return entry
        return (
            f"only members can send to group {name!r}: its protocol {declared.name!r} is for "
            f"closed groups, as {declared.closed}. Join it{_open_alternative(entry.order)}"
        )

    # -- for the status ---------------------------------------------------------------------------

    def stats(self, counts: FrameCounts) -> dict[str, object]:
        """The limits of the whole cluster, and what is kept for groups that it may not be in."""
        presence = self._presence
        stack = presence.engine.stack
        of_groups = [counts.of(gid) for gid in stack.groups.machines]
        return {
            "starts": presence.coordination.starts,
            "groups": len(stack.rows),
            "max_groups": presence.options.max_groups,
            "frames_held": max((held["frames_held"] for held in of_groups), default=0),
            "max_held": presence.options.max_held,
            "history": sum(held["history"] for held in of_groups),
            "views_wait_for": self._awaited(),
        }

    def _awaited(self) -> dict[str, list[str]]:
        """Groups whose next view is under way, with the nodes for which it waits."""
        stack = self._presence.engine.stack
        who = list(self._presence.directory.identities_of(stack.waits_for()))
        return {row.entry.name: who for row in stack.changes.now.goal.values()} if who else {}

    def described(self) -> list[dict[str, object]]:
        """Every group that is open here and its members."""
        stack, names = self._presence.engine.stack, self._presence.directory.names_of
        found: list[dict[str, object]] = []
        for group in stack.rows.values():
            found.append(
                {
                    "name": group.entry.name,
                    "order": group.entry.order,
                    "protocol": group.entry.protocol,
                    "members": list(names(group.members)),
                    "guests": list(names(group.guests)),
                }
            )
        return found


def wanted(enter: Enter) -> str:
    """What a join asks for, in words."""
    named = f"protocol {enter.protocol!r}" if enter.protocol else ""
    level = f"delivery_level {enter.delivery_level!r}" if enter.delivery_level else ""
    slow = f"slow {enter.slow!r}" if enter.slow else ""
    how = ", ".join(filter(None, (named, in_words(enter.durability), level, slow)))
    return f"order {enter.order!r}" + (f" ({how})" if how else "")


def level_of(protocol: type[OrderingProtocol], asked: DeliveryLevel | None) -> DeliveryLevel | None:
    """The level of a new group of that protocol; `ValueError` if the protocol has no levels."""
    if protocol.has_subgroups:
        return asked or "causal"
    if asked is None:
        return None
    having = [name for name, page in PROTOCOLS.items() if page.has_subgroups]
    raise ValueError(
        f"delivery_level={asked!r} with protocol {protocol.declaration.name!r}: only "
        f"{', '.join(map(repr, having))} has levels; join with protocol={having[0]!r}, or without "
        "delivery_level"
    )


def _fits(group: GroupEntry, enter: Enter) -> bool:
    return (
        group.order == enter.order
        and enter.protocol in (None, group.protocol)
        and enter.durability in (None, group.durability)
        and enter.delivery_level in (None, group.delivery_level)
        and enter.slow in (None, group.slow)
    )


def _have(group: GroupEntry, enter: Enter) -> str:
    """What the group is, in words; its policy for slow members only if that is what differs."""
    differs = enter.slow not in (None, group.slow) and group.slow == "wait"
    return f"{group.promise}, slow 'wait'" if differs else group.promise


def _open_alternative(order: str) -> str:
    declared = (protocol.declaration for protocol in PROTOCOLS.values())
    names = [d.name for d in declared if order in d.orders and not d.closed]
    return (
        f"; or make a group with order {order!r} and a protocol that lets others send: "
        f"{', '.join(names)}"
    )
