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
from ordercast.membership.standing import Drain, Migrate
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.runtime.holdings import holdings_of
from ordercast.stack.placed import KnownGroup

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

    def _known(self) -> dict[GroupId, KnownGroup]:
        return self._presence.engine.stack.known_groups()

    def _group_row(self, group: KnownGroup) -> GroupRow:
        names, entry, sequencer = self._presence.directory.names, group.entry, group.sequencer
        return GroupRow(
            entry.name, entry.order, entry.protocol,
            tuple(names[pid] for pid in group.members), tuple(names[pid] for pid in group.guests),
            "" if sequencer is None else names[sequencer],
        )  # fmt: skip

    def sequencer_of(self, entry: GroupEntry) -> ProcessId | None:
        """Who numbers the messages of this group; None: nobody does."""
        group = self._known().get(entry.gid)
        return None if group is None else group.sequencer

    def groups_of(self, pid: ProcessId) -> list[GroupEntry]:
        """The groups whose messages that node numbers."""
        return [group.entry for group in self._known().values() if group.sequencer == pid]

    def sequencers(self) -> list[SequencerRow]:
        """The dedicated ones and all that number something; without dedicated ones, all nodes."""
        stack = self._presence.engine.stack
        nodes = () if stack.node_view is None else stack.node_view.nodes
        numbered = Counter(group.sequencer for group in self._known().values())
        everybody = not any(node.sequencer for node in nodes)
        return [
            SequencerRow(n.name, n.address, n.sequencer, count, stack.load_of(n.pid))
            for n in nodes
            if (count := numbered[n.pid]) or n.sequencer or everybody
        ]

    def stats(self) -> dict[str, int]:
        """What this node keeps for the groups whose messages it numbers."""
        stack = self._presence.engine.stack
        kept = [holdings_of(stack, entry.gid) for entry in self.groups_of(stack.me)]
        done = [m.tally for m in stack.domains.values() if isinstance(m, SequencingService)]
        return {
            "groups": len(kept),
            "history": sum(one["history"] for one in kept),
            "frames_held": max((one["frames_held"] for one in kept), default=0),
            "max_held": self._presence.options.max_held,
            "numbered": sum(tally.numbered for tally in done),
            "forwarded": sum(tally.forwarded for tally in done),
            "transfers_in": sum(tally.transfers_in for tally in done),
            "transfers_out": sum(tally.transfers_out for tally in done),
        }

    # -- wishes -----------------------------------------------------------------------------------
    # Both are fulfilled when they return True. False: another node coordinates now; ask that one.

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
        is_done = await self._until(
            lambda: not any(map(_is_movable, self.groups_of(pid))), Drain(pid)
        )
        if is_done:
            for entry in self.groups_of(pid):
                self._check_movable(entry)
        return is_done

    async def _until(self, is_so: Callable[[], bool], wish: Migrate | Drain) -> bool:
        """Say the wish until it is so: while another hand-over is under way it is not heard."""
        while self._presence.nodeship.coordinates and self._presence.error is None:
            if is_so():
                return True
            self._say(wish)
            await asyncio.sleep(LOOK_SECONDS)
        return False

    def _say(self, wish: Migrate | Drain) -> None:
        self._presence.engine.step([wish])

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
