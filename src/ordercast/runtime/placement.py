"""Which node numbers the messages of which group, for people: two tables, and two wishes.

Both tables are complete at the coordinator, which decides about all groups.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import UsageError
from ordercast.membership.nodes import GroupEntry
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.holdings import holdings_of

if TYPE_CHECKING:
    from ordercast.runtime.site import Site

MOVABLE = ("sequencing", "sequencing_hybrid", "sequencing_causal", "sequencing_global")
"""Protocols whose sequencer can be another node at any time."""

LOOK_SECONDS = 0.02  # between two looks at whether a wish is fulfilled
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
        names, sequencer = site.directory.names, self.sequencer_of(entry)
        members = () if view is None else view.members
        guests = () if view is None else view.guests
        return GroupRow(
            entry.name, entry.order, entry.protocol,
            tuple(names[pid] for pid in members), tuple(names[pid] for pid in guests),
            "" if sequencer is None else names[sequencer],
        )  # fmt: skip

    def sequencer_of(self, entry: GroupEntry) -> ProcessId | None:
        """Who numbers the messages of this group; None: nobody does."""
        view = self._site.engine.stack.view(entry.gid)
        sequenced = PROTOCOLS[entry.protocol].declaration.sequenced
        return view.leader if view is not None and sequenced else None

    def groups_of(self, pid: ProcessId) -> list[GroupEntry]:
        """The groups whose messages that node numbers."""
        entries = self._site.engine.stack.entries.values()
        return [entry for entry in entries if self.sequencer_of(entry) == pid]

    def sequencers(self) -> list[SequencerRow]:
        """The dedicated ones and all that number something; without dedicated ones, all nodes."""
        view = self._site.engine.stack.node_view
        nodes = () if view is None else view.nodes
        numbered = Counter(map(self.sequencer_of, self._site.engine.stack.entries.values()))
        everybody = not any(node.sequencer for node in nodes)
        return [
            SequencerRow(n.name, n.address, n.sequencer, count, float(count))
            for n in nodes
            if (count := numbered[n.pid]) or n.sequencer or everybody
        ]

    def stats(self) -> dict[str, int]:
        """What this node keeps for the groups whose messages it numbers."""
        stack = self._site.engine.stack
        kept = [holdings_of(stack, entry.gid) for entry in self.groups_of(stack.me)]
        return {
            "groups": len(kept),
            "history": sum(one["history"] for one in kept),
            "frames_held": max((one["frames_held"] for one in kept), default=0),
            "max_held": self._site.options.max_held,
        }

    # -- wishes -----------------------------------------------------------------------------------
    # Both are fulfilled when they return True. False: another node coordinates now; ask that one.

    async def migrate(self, group: str, to: str) -> bool:
        """That node numbers the messages of the group."""
        entry, pid = self._group(group), self._sequencer(to)
        if self.sequencer_of(entry) != pid:
            self._check_movable(entry)
            self._begin_migration(entry.gid, pid)

        def is_there() -> bool:
            if pid not in self._site.engine.stack.pids:
                raise UsageError(f"{to!r} has left the cluster")
            return self.sequencer_of(entry) == pid

        return await self._until(is_there)

    async def drain(self, name: str) -> bool:
        """That node numbers nothing: others have its groups."""
        pid = self._sequencer(name)
        if len(self.sequencers()) == 1:
            raise UsageError(
                f"{name!r} is the only sequencer: start another one, which can take its groups"
            )
        self._begin_drain(pid)
        is_done = await self._until(lambda: not any(map(_is_movable, self.groups_of(pid))))
        if is_done:
            for entry in self.groups_of(pid):
                self._check_movable(entry)
        return is_done

    async def _until(self, is_so: Callable[[], bool]) -> bool:
        while self._site.nodeship.coordinates and self._site.error is None:
            if is_so():
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False

    def _begin_migration(self, gid: GroupId, to: ProcessId) -> None:
        """Tell the cluster."""
        raise UsageError("no group can be moved in this release")

    def _begin_drain(self, pid: ProcessId) -> None:
        """Tell the cluster."""
        for entry in self.groups_of(pid):
            self._check_movable(entry)

    def _check_movable(self, entry: GroupEntry) -> None:
        if not _is_movable(entry):
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

    def _sequencer(self, name: str) -> ProcessId:
        names = [row.name for row in self.sequencers()]
        node = self._site.directory.named(name)
        if name not in names or node is None:
            raise UsageError(f"no sequencer {name!r}: {_there_are(names)}")
        return node.pid


def _is_movable(entry: GroupEntry) -> bool:
    return entry.protocol in MOVABLE


def _there_are(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    return f"there is {', '.join(map(repr, shown[:MAX_SHOWN]))}{more}" if shown else "there is none"
