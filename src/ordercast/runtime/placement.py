"""Which node numbers the messages of which group, for people: two tables, and two wishes.

Both tables are complete at the coordinator, which decides about all groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import GroupId
from ordercast.errors import UsageError
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.holdings import holdings_of

if TYPE_CHECKING:
    from ordercast.runtime.site import Site

MOVABLE = ("sequencing", "sequencing_hybrid", "sequencing_causal", "sequencing_global")
"""Protocols whose sequencer can be another node at any time."""

MAX_SHOWN = 10  # names in the text of an error


class SequencerRow(msgspec.Struct, frozen=True):
    """A node that numbers messages, or would."""

    name: str
    address: str
    dedicated: bool  # it was started as a sequencer
    groups: int  # that it numbers
    load: float  # in the unit by which groups are placed


class GroupRow(msgspec.Struct, frozen=True):
    """A group, and who numbers its messages."""

    name: str
    order: str
    protocol: str
    members: tuple[str, ...]
    guests: tuple[str, ...]
    sequencer: str  # empty: nobody numbers them


Row = SequencerRow | GroupRow
TABLES: dict[str, type[Row]] = {"groups": GroupRow, "sequencers": SequencerRow}


class Placement:
    """The tables of one node, and what it does about them."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def rows(self, table: str) -> list[Row]:
        """One of the tables, by name of its rows."""
        rows: list[Row] = [*(self.groups() if table == "groups" else self.sequencers())]
        return sorted(rows, key=lambda row: row.name)

    # -- tables -----------------------------------------------------------------------------------

    def groups(self) -> list[GroupRow]:
        """Every group."""
        return [self._group_row(entry) for entry in self._site.engine.stack.entries.values()]

    def _group_row(self, entry: GroupEntry) -> GroupRow:
        site = self._site
        view = site.engine.stack.view(entry.gid)
        names = site.directory.names
        members = () if view is None else view.members
        guests = () if view is None else view.guests
        sequenced = view is not None and PROTOCOLS[entry.protocol].declaration.sequenced
        return GroupRow(
            entry.name, entry.order, entry.protocol,
            tuple(names[pid] for pid in members), tuple(names[pid] for pid in guests),
            names[view.leader] if view is not None and sequenced else "",
        )  # fmt: skip

    def sequencers(self) -> list[SequencerRow]:
        """The dedicated ones and all that number something; without dedicated ones, all nodes."""
        nodes = self._nodes()
        numbered: dict[str, int] = {}
        for group in self.groups():
            numbered[group.sequencer] = numbered.get(group.sequencer, 0) + 1
        everybody = not any(node.sequencer for node in nodes)
        return [
            SequencerRow(n.name, n.address, n.sequencer, count, float(count))
            for n in nodes
            if (count := numbered.get(n.name, 0)) or n.sequencer or everybody
        ]

    def _nodes(self) -> tuple[NodeEntry, ...]:
        view = self._site.engine.stack.node_view
        return () if view is None else view.nodes

    def stats(self) -> dict[str, int]:
        """What this node keeps for the groups whose messages it numbers."""
        stack = self._site.engine.stack
        kept = [holdings_of(stack, gid) for gid in stack.entries if self._numbers(gid)]
        return {
            "groups": len(kept),
            "history": sum(one["history"] for one in kept),
            "frames_held": max((one["frames_held"] for one in kept), default=0),
            "max_held": self._site.options.max_held,
        }

    def _numbers(self, gid: GroupId) -> bool:
        stack = self._site.engine.stack
        view = stack.view(gid)
        declared = PROTOCOLS[stack.entries[gid].protocol].declaration
        return view is not None and view.leader == stack.me and declared.sequenced

    # -- wishes -----------------------------------------------------------------------------------

    async def migrate(self, group: str, to: str) -> None:
        """That node numbers the messages of the group; returns when it does."""
        entry = self._group(group)
        self._sequencer(to)
        if self._group_row(entry).sequencer != to:
            self._check_movable(entry)

    async def drain(self, name: str) -> None:
        """That node numbers nothing; returns when its groups are with others."""
        self._sequencer(name)
        if len(self.sequencers()) == 1:
            raise UsageError(
                f"{name!r} is the only sequencer: start another one, which can take its groups"
            )
        for entry in self._site.engine.stack.entries.values():
            if self._group_row(entry).sequencer == name:
                self._check_movable(entry)

    def _check_movable(self, entry: GroupEntry) -> None:
        if entry.protocol not in MOVABLE:
            raise UsageError(
                f"group {entry.name!r} has protocol {entry.protocol!r}, whose sequencer stays "
                f"where it is; groups with protocol {', '.join(MOVABLE)} can be moved"
            )

    def _group(self, name: str) -> GroupEntry:
        entries = self._site.engine.stack.entries.values()
        found = next((entry for entry in entries if entry.name == name), None)
        if found is None:
            raise UsageError(f"no group {name!r}: {_there_are(entry.name for entry in entries)}")
        return found

    def _sequencer(self, name: str) -> SequencerRow:
        rows = self.sequencers()
        found = next((row for row in rows if row.name == name), None)
        if found is None:
            raise UsageError(f"no sequencer {name!r}: {_there_are(row.name for row in rows)}")
        return found


def _there_are(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    return f"there is {', '.join(map(repr, shown[:MAX_SHOWN]))}{more}" if shown else "there is none"
