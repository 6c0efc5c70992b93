"""Causal Blocks: messages that wait their turn by block number alone, over all groups together.

    send(m) to g             BC := BC + 1;  m.b := BC;  multicast m to the others in g;  m waits
    receive(m) from q in g   m is represented in the block matrix of g, and waits
    whenever a block of some group was completed
                             Bmin := min over own groups of CBV
                             deliver what waits, by (m.b, sender), while m.b <= Bmin + ahead;
                             before each: BC := max(BC, m.b)

Pages say how far ahead. Own messages wait like the others: no group may overtake them.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Protocol

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.waiting import Waiting, first_named
from ordercast.machinery.parts import Part, Verbs
from ordercast.machinery.silence import CompletedBlocks, Null
from ordercast.machinery.stability import Stability
from ordercast.machinery.vouching import VOUCHED, Unvouched, vouched


class BlockData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, in block b; its frames up to `stable` are delivered by all."""

    n: int
    b: int
    stable: int


class DomainVerbs(Verbs, Protocol):
    """A machine of a domain, as this part sees it."""

    views: dict[GroupId, View]
    stability: dict[GroupId, Stability]
    received: dict[GroupId, dict[ProcessId, NumberSet]]

    def deliver(
        self, g: GroupId, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...] = ()
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""

    def keep_promise(self, g: GroupId, q: ProcessId) -> None:
        """A frame of q was held or delivered in g."""


class BlockOrder(Part):
    """What waits at one process, in all its groups, and the blocks that must be complete first."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead  # a message may be delivered so many blocks above the complete ones
        self.blocks = CompletedBlocks()
        self.waiting: list[tuple[int, ProcessId, GroupId, Kept]] = []  # a heap by (b, sender)

    # send(m) to g
    def send(self, machine: DomainVerbs, g: GroupId, m: bytes) -> None:
        """BC := BC + 1;  m.b := BC;  multicast m to the others in g;  m waits"""
        record = machine.stability[g]
        n, b = record.next_number(), self.blocks.next_block(g)
        machine.b_multicast(g, BlockData(n, b, record.own_stable()), m)
        self._wait(g, Kept(machine.me, n, (b, VOUCHED), m))
        self.blocks.learn_number(machine, b)
        self.deliver_in_order(machine)

    # receive(m) from q in g
    def receive(
        self, machine: DomainVerbs, q: ProcessId, g: GroupId, data: BlockData, m: bytes
    ) -> None:
        """m is represented in the block matrix of g, and waits"""
        machine.stability[g].learn_stable(q, data.stable)
        if self.blocks.in_turn(machine.received[g][q], g, q, data.n, data.b):
            self._wait(g, Kept(q, data.n, (data.b, 0), m))
            machine.keep_promise(g, q)
            self.blocks.hear(machine, g, q, data.b)
            self.deliver_in_order(machine)

    def receive_null(self, machine: DomainVerbs, j: ProcessId, g: GroupId, null: Null) -> None:
        """j was heard in g up to block b"""
        machine.stability[g].check_sender(j)
        self.blocks.hear_null(machine, g, j, null.b)
        self.deliver_in_order(machine)

    def _wait(self, g: GroupId, frame: Kept) -> None:
        heappush(self.waiting, (frame.stamp[0], frame.origin, g, frame))

    # whenever a block of some group was completed
    def deliver_in_order(self, machine: DomainVerbs) -> None:
        """deliver what waits, by (m.b, sender), while m.b <= Bmin + ahead"""
        last = self.blocks.Bmin + self.ahead
        while self.waiting and self.waiting[0][0] <= last:
            b, _, g, frame = heappop(self.waiting)
            self.blocks.CA2(b)
            self._hand_over(machine, g, frame)

    def _hand_over(self, machine: DomainVerbs, g: GroupId, frame: Kept) -> None:
        self.blocks.R[g][frame.origin] = frame.n
        machine.deliver(g, frame.origin, frame.n, frame.payload, vouched(frame).stamp)

    # -- why it waits -----------------------------------------------------------------------------

    def held_back(self) -> list[Waiting]:
        """Every message, and who must speak before the block that it needs is complete."""
        return [
            Waiting(g, q, frame.n, first_named(self.blocks.silent_anywhere(b - self.ahead)),
                    frame.payload)
            for b, q, g, frame in sorted(self.waiting)
        ]  # fmt: skip

    def frames(self) -> Iterator[tuple[GroupId, Kept]]:
        """All messages that wait, in no order."""
        return ((g, frame) for _, _, g, frame in self.waiting)

    # -- the cut ----------------------------------------------------------------------------------

    def settle(
        self, machine: DomainVerbs, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]
    ) -> None:
        """Deliver by number what is left. The number names no cause: every smaller one may be."""
        lost = Unvouched(machine.views, views, lambda frame, p: frame.stamp[0] - 1)
        for g, frame in self.blocks.settled(unions, lost):
            self._hand_over(machine, g, frame)
        self.blocks.end_era()
        self.waiting.clear()

    def highest_number(self) -> int:
        return self.blocks.highest_number()

    def on_timer(self, machine: Verbs, g: GroupId, name: str) -> None:
        self.blocks.on_timer(machine, g, name)

    def begin(self, machine: Verbs, view: View) -> None:
        self.blocks.begin(machine, view)

    def forget_group(self, g: GroupId) -> None:
        self.blocks.forget_group(g)
        self.waiting = sorted(entry for entry in self.waiting if entry[2] != g)
