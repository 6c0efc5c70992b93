"""Causal Blocks: messages that wait their turn by block number alone."""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush

import msgspec

from ordercast.core.blocks import MAX_BLOCK
from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.core.vouching import VouchingProtocol
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame, first_named


class BlockData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, in block b; its frames up to `stable` are delivered by all."""

    n: int
    b: int
    stable: int


class BlockOrderProtocol(VouchingProtocol):
    """A protocol that delivers in the order of block numbers, over all groups together."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.waiting: list[tuple[int, ProcessId, GroupId, Kept]] = []  # a heap by (b, sender)

    @property
    def Bmin(self) -> int:
        """The highest block that is complete in every own group."""
        return min((matrix.CBV for matrix in self.BM.values()), default=MAX_BLOCK)

    def wait(self, g: GroupId, frame: Kept) -> None:
        """The message waits for its turn."""
        heappush(self.waiting, (frame.stamp[0], frame.origin, g, frame))

    def first(self) -> tuple[GroupId, Kept]:
        """Take out the message whose turn it is."""
        _, _, g, frame = heappop(self.waiting)
        return g, frame

    @abstractmethod
    def needed(self, b: int) -> int:
        """The block that must be complete in all own groups before number b is delivered."""

    def deliverable(self) -> bool:
        """Is there a message waiting whose turn it is?"""
        return bool(self.waiting) and self.needed(self.waiting[0][0]) <= self.Bmin

    def may_depend_on(self, frame: Kept, p: ProcessId) -> int:
        return frame.stamp[0] - 1

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return (*super().unstable(g), *(frame for _, _, h, frame in self.waiting if h == g))

    def held_back(self) -> list[Waiting]:
        return [
            Waiting(g, q, frame.n, self.awaits(self.needed(b)), frame.payload)
            for b, q, g, frame in sorted(self.waiting)
        ]

    def waiting_frames(self) -> list[WaitingFrame]:
        return [(g, q, frame.n, frame.payload) for _, q, g, frame in self.waiting]

    def awaits(self, B: int) -> tuple[Awaited, ...]:
        """Who must speak, and where, before block B is complete in all own groups."""
        return first_named(awaited for g in self.BM for awaited in self.silent(g, B))

    def end_era(self) -> None:
        super().end_era()
        self.waiting.clear()

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.waiting = sorted(entry for entry in self.waiting if entry[2] != g)
