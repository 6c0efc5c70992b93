"""The groups of the cluster by name: what the coordinator answers to who wants into one.

A group is made by the first who enters it. All open groups are in the coordinator's stack; after a
succession the new coordinator has them from the flush, with their numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.durability import in_words
from ordercast.core.ids import GroupId, check_name
from ordercast.core.protocol import DeliveryLevel, OrderingProtocol
from ordercast.membership.nodes import GroupEntry
from ordercast.protocols.registry import PROTOCOLS, choose
from ordercast.runtime.control import Control, Enter, Entered, NotEntered, Visit
from ordercast.runtime.holdings import holdings_of

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence


class GroupNames:
    """Which group a name means, while this node coordinates."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._told: dict[str, GroupId] = {}  # what was answered here; counts before all else
        self._made: dict[GroupId, GroupEntry] = {}  # placed by the first who comes in

    def answer(self, question: Enter | Visit) -> Control:
        """Where that group is, or why there is none."""
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
            return NotEntered(enter.request, entry.promise, "")
        return Entered(enter.request, entry)

    def _group(self, enter: Enter) -> GroupEntry | str:
        """The group of that name, made if need be; or why it cannot be made."""
        entry = self._find(enter.group)
        if entry is None:
            limit = self._presence.options.max_groups
            gid = self.highest + 1
            if gid > limit:
                return f"the cluster has max_groups={limit} groups"
            chosen = choose(enter.order, enter.protocol)
            entry = GroupEntry(
                gid, enter.group, enter.order, chosen.declaration.name, chosen.header_version,
                enter.durability, level_of(chosen, enter.delivery_level),
            )  # fmt: skip
            if chosen.together is None:
                self._presence.engine.open(entry)
            else:
                self._made[gid] = entry
                self._presence.engine.stack.top_group = gid
        self._told[entry.name] = entry.gid
        self._presence.groups.names[entry.gid] = entry.name
        return entry

    def _find(self, name: str) -> GroupEntry | None:
        told = self._told.get(name, -1)
        entry = self._presence.engine.stack.known_entry(told) or self._made.get(told)
        return entry or next((e for e in self._entries().values() if e.name == name), None)

    def _entries(self) -> dict[GroupId, GroupEntry]:
        known = self._presence.engine.stack.known_groups()
        self._made = {gid: entry for gid, entry in self._made.items() if gid not in known}
        return {**self._made, **{gid: group.entry for gid, group in known.items()}}

    @property
    def highest(self) -> GroupId:
        """No group has a higher number, as far as is known here."""
        stack = self._presence.engine.stack
        return max(stack.top_group, *stack.entries, 0, 0)

    def _open_group(self, name: str) -> GroupEntry | str:
        """The group of that name, if others may send to it; or why they cannot."""
        entry = self._find(name)
        if entry is None:
            names = (e.name for e in self._entries().values())
            known = ", ".join(map(repr, names))
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

    def stats(self) -> dict[str, object]:
        """The limits of the whole cluster, and what is kept for groups that it may not be in."""
        presence = self._presence
        stack = presence.engine.stack
        holdings = [holdings_of(stack, gid) for gid in stack.protocols]
        return {
            "starts": presence.coordination.starts,
            "max_starts": presence.options.max_starts,
            "groups": len(stack.known_groups()),
            "max_groups": presence.options.max_groups,
            "frames_held": max((held["frames_held"] for held in holdings), default=0),
            "max_held": presence.options.max_held,
            "history": sum(held["history"] for held in holdings),
            "views_wait_for": self._awaited(),
        }

    def _awaited(self) -> dict[str, list[str]]:
        """Groups whose next view is under way, and whose reports it lacks."""
        stack, directory = self._presence.engine.stack, self._presence.directory
        awaited = {entry.name: stack.waits_for(gid) for gid, entry in stack.entries.items()}
        return {name: list(directory.identities_of(who)) for name, who in awaited.items() if who}

    def described(self) -> list[dict[str, object]]:
        """Every group that is open here and its members."""
        stack, names = self._presence.engine.stack, self._presence.directory.names_of
        found: list[dict[str, object]] = []
        for group in stack.known_groups().values():
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
    """What a join asked for, in words."""
    named = f"protocol {enter.protocol!r}" if enter.protocol else ""
    level = f"delivery_level {enter.delivery_level!r}" if enter.delivery_level else ""
    how = ", ".join(filter(None, (named, in_words(enter.durability), level)))
    return f"order {enter.order!r}" + (f" ({how})" if how else "")


def level_of(protocol: type[OrderingProtocol], asked: DeliveryLevel | None) -> DeliveryLevel | None:
    """Of a new group of that protocol; `ValueError` if it has no levels."""
    if protocol.has_subgroups:
        return asked or "causal"
    if asked is None:
        return None
    having = [name for name, page in PROTOCOLS.items() if page.has_subgroups]
    raise ValueError(
        f"delivery_level={asked!r} with protocol {protocol.declaration.name!r}: only "
        f"{', '.join(map(repr, having))} has levels; join with protocol={having[0]!r}, or say no "
        "level"
    )


def _fits(group: GroupEntry, enter: Enter) -> bool:
    return (
        group.order == enter.order
        and enter.protocol in (None, group.protocol)
        and enter.durability in (None, group.durability)
        and enter.delivery_level in (None, group.delivery_level)
    )


def _open_alternative(order: str) -> str:
    declared = (protocol.declaration for protocol in PROTOCOLS.values())
    names = [d.name for d in declared if order in d.orders and not d.closed]
    return (
        f"; or make a group with order {order!r} and a protocol that lets others send: "
        f"{', '.join(names)}"
    )
