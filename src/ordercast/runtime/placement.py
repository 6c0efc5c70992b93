"""Which node numbers the messages of which group: two tables, and requests of administrators.

Both tables are complete at the coordinator, which decides about all groups.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import GroupId, Identity, ProcessId
from ordercast.core.waiting import NOBODY
from ordercast.errors import UsageError
from ordercast.process.commands import Drain, Migrate, Refound
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.frame_counts import FrameCounts
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row as DirectoryRow

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

MOVABLE = tuple(name for name, page in PROTOCOLS.items() if page.together is not None)
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
    drained: bool = False  # it gets no groups, until `undrain`


class GroupRow(msgspec.Struct, frozen=True):
    """A group, and the node that numbers its messages."""

    name: str
    order: str
    protocol: str
    members: tuple[str, ...]
    guests: tuple[str, ...]
    sequencer: str  # empty: nobody numbers them
    waits_for: tuple[str, ...] = ()  # an empty group: absent nodes that may have newer state


Row = SequencerRow | GroupRow
PlacementCommand = Migrate | Drain | Refound
TABLES: dict[str, type[Row]] = {"groups": GroupRow, "sequencers": SequencerRow}


class Placement:
    """The tables of one node, and what it does about them."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence

    def rows(self, table: str) -> list[Row]:
        """One of the tables, by name of its rows."""
        rows: list[Row] = [*(self.groups() if table == "groups" else self.sequencers())]
        return sorted(rows, key=lambda row: row.name)

    # -- tables -----------------------------------------------------------------------------------

    def groups(self) -> list[GroupRow]:
        """Every group."""
        return [self._group_row(group) for group in self._known().values()]

    def _known(self) -> Mapping[GroupId, DirectoryRow]:
        return self._presence.engine.stack.rows

    def _group_row(self, row: DirectoryRow) -> GroupRow:
        names, entry = self._presence.directory.names, row.entry
        sequencer = self._numbered_by(row)
        return GroupRow(
            entry.name, entry.order, entry.protocol,
            tuple(names[pid] for pid in row.members), tuple(names[pid] for pid in row.guests),
            "" if sequencer is None else names[sequencer], self._awaited(entry.gid),
        )  # fmt: skip

    def _awaited(self, gid: GroupId) -> tuple[str, ...]:
        awaited = self._presence.engine.stack.awaited(gid)
        return tuple(str(Identity(absent.name, absent.incarnation)) for absent in awaited)

    @staticmethod
    def _numbered_by(row: DirectoryRow) -> ProcessId | None:
        is_numbered = PROTOCOLS[row.entry.protocol].declaration.sequenced
        return row.leader if is_numbered and row.leader != NOBODY else None

    def sequencer_of(self, entry: GroupEntry) -> ProcessId | None:
        """The node that numbers the messages of this group; None if no node does."""
        row = self._known().get(entry.gid)
        return None if row is None else self._numbered_by(row)

    def groups_of(self, pid: ProcessId) -> list[GroupEntry]:
        """The groups whose messages that node numbers."""
        return [row.entry for row in self._known().values() if self._numbered_by(row) == pid]

    def sequencers(self) -> list[SequencerRow]:
        """The dedicated ones and all that number something; without dedicated ones, all nodes."""
        stack = self._presence.engine.stack
        nodes = () if stack.node_view is None else stack.node_view.nodes
        numbered = Counter(self._numbered_by(row) for row in self._known().values())
        everybody = not any(node.sequencer for node in nodes)
        return [
            SequencerRow(
                n.name, n.address, n.sequencer, count, stack.load_of(n.pid), stack.is_drained(n.pid)
            )
            for n in nodes
            if (count := numbered[n.pid]) or n.sequencer or everybody
        ]

    def stats(self, counts: FrameCounts) -> dict[str, int]:
        """What this node keeps for the groups whose messages it numbers."""
        stack = self._presence.engine.stack
        here = [entry.gid for entry in self.groups_of(stack.me)]
        ours = [counts.of(gid) for gid in here if gid in stack.groups.machines]
        tallies = [machine.tally() for machine in stack.groups.every()]
        return {
            "groups": len(ours),
            "history": sum(one["history"] for one in ours),
            "frames_held": max((one["frames_held"] for one in ours), default=0),
            "max_held": self._presence.options.max_held,
            "numbered": sum(tally.numbered for tally in tallies),
            "transfers_in": sum(tally.taken_over for tally in tallies),
            "transfers_out": sum(tally.handed_on for tally in tallies),
        }

    # -- commands ---------------------------------------------------------------------------------
    # Each is fulfilled when it returns True. False: another node coordinates now; ask that one.

    async def migrate(self, group: str, to: str) -> bool:
        """That node numbers the messages of the group."""
        entry, pid = self._group(group), self._sequencer(to)
        if self.sequencer_of(entry) != pid:
            self._check_movable(entry)

        def is_there() -> bool:
            if pid not in self._presence.engine.stack.pids:
                raise UsageError(f"{to!r} has left the cluster")
            return self.sequencer_of(entry) == pid

        return await self._until(is_there, Migrate(entry.gid, pid))

    async def drain(self, name: str) -> bool:
        """That node numbers nothing: others have its groups."""
        pid = self._sequencer(name)
        if len(self.sequencers()) == 1:
            raise UsageError(
                f"{name!r} is the only sequencer: start another one, which can take its groups"
            )
        stack = self._presence.engine.stack

        def is_empty() -> bool:
            return stack.is_drained(pid) and not any(map(_is_movable, self.groups_of(pid)))

        is_done = await self._until(is_empty, Drain(pid))
        if is_done:
            for entry in self.groups_of(pid):
                self._check_movable(entry)
        return is_done

    async def undrain(self, name: str) -> bool:
        """That node may number messages again."""
        pid, stack = self._sequencer(name), self._presence.engine.stack
        return await self._until(lambda: not stack.is_drained(pid), Drain(pid, drained=False))

    async def refound(self, name: str) -> bool:
        """An empty group waits for nobody: who asks to be in begins it with what it has."""
        entry = self._group(name)
        if self._known()[entry.gid].members:
            raise UsageError(f"group {name!r} has members: it waits for nobody")
        stack = self._presence.engine.stack
        return await self._until(lambda: not stack.awaited(entry.gid), Refound(entry.gid))

    async def _until(self, is_so: Callable[[], bool], command: PlacementCommand) -> bool:
        """Say the wish until it is so: while another hand-over is under way it is not heard."""
        while self._presence.cluster_membership.coordinates and self._presence.error is None:
            if is_so():
                return True
            self._say(command)
            await asyncio.sleep(LOOK_SECONDS)
        return False

    def _say(self, command: PlacementCommand) -> None:
        self._presence.engine.step([command])

    def _check_movable(self, entry: GroupEntry) -> None:
        if not _is_movable(entry):
            raise UsageError(
                f"group {entry.name!r} has protocol {entry.protocol!r}, whose sequencer stays "
                f"where it is; groups with protocol {', '.join(MOVABLE)} can be moved"
            )

    def _group(self, name: str) -> GroupEntry:
        entries = [group.entry for group in self._known().values()]
        found = next((entry for entry in entries if entry.name == name), None)
        if found is None:
            raise UsageError(f"no group {name!r}: {_there_are(entry.name for entry in entries)}")
        return found

    def _sequencer(self, name: str) -> ProcessId:
        names = [row.name for row in self.sequencers()]
        node = self._presence.directory.named(name)
        if name not in names or node is None:
            raise UsageError(f"no sequencer {name!r}: {_there_are(names)}")
        return node.pid


def _is_movable(entry: GroupEntry) -> bool:
    return entry.protocol in MOVABLE


def _there_are(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - MAX_SHOWN} more" if len(shown) > MAX_SHOWN else ""
    return f"there is {', '.join(map(repr, shown[:MAX_SHOWN]))}{more}" if shown else "there is none"
