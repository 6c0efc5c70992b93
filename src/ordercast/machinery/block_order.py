"""Causal Blocks: messages that wait their turn by block number alone.

    send(m) to g             BC := BC + 1;  m.b := BC;  multicast m to the others in g;  m waits
    receive(m) from q in g   m is represented in the block matrix of g, and waits
    whenever a block of some group was completed
                             Bmin := min over own groups of CBV
                             deliver what waits, by (m.b, sender), while needed(m.b) <= Bmin;
                             before each: BC := max(BC, m.b)

Pages say what is needed. Own messages wait like the others: no group may overtake them.
"""

from __future__ import annotations

from abc import abstractmethod
from heapq import heappop, heappush

import msgspec

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame, first_named
from ordercast.machinery.blocks import MAX_BLOCK
from ordercast.machinery.vouching import VOUCHED, VouchingProtocol


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

    @abstractmethod
    def needed(self, b: int) -> int:
        """The block that must be complete in all own groups before number b is delivered."""

    # send(m) to g
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n, b = self.next_number(g), self.next_block(g)
        self.b_multicast(g, BlockData(n, b, self.own_stable(g)), m)
        self.wait(g, Kept(self.me, n, (b, VOUCHED), m))
        self.learn_number(b)
        self.deliver_in_order()

    # receive(m) from q in g
    @on(BlockData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: BlockData, m: bytes) -> None:
        self.learn_stable(g, q, data.stable)
        if self.in_turn(g, q, data.n, data.b):
            self.wait(g, Kept(q, data.n, (data.b, 0), m))
            self.keep_promise(g, q)
            self.hear(g, q, data.b)
            self.deliver_in_order()

    def progress(self, g: GroupId, j: ProcessId) -> None:
        self.deliver_in_order()

    # whenever a block of some group was completed
    def deliver_in_order(self) -> None:
        """deliver what waits, by (m.b, sender), while needed(m.b) <= Bmin"""
        Bmin = self.Bmin
        while self.waiting and self.needed(self.waiting[0][0]) <= Bmin:
            b, _, g, frame = heappop(self.waiting)
            self.CA2(b)
            self.hand_over(g, frame)

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
