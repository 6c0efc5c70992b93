"""Faults in the Relative protocol, most of them as printed."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify

import msgspec

from faulty_machines.blocks import BlocksInAnyOrder, SilentBlocks
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.machinery.changes import ChangingVector
from ordercast.machinery.parts import Verbs
from ordercast.machinery.silence import CompletedBlocks
from ordercast.protocols.relative import Held, Relative


class WholeVector(ChangingVector[ProcessId]):
    """Tells all its entries each time, zeros too."""

    def __init__(self, members: Iterable[ProcessId]) -> None:
        super().__init__()
        self.members = tuple(members)

    def tell(self, g: GroupId) -> dict[ProcessId, int]:
        return {j: self[j] for j in self.members}


class DeliversFromAbove(Relative):
    """Figures 6 and 7: delivers if m.ldv >= LDV."""

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.LDV[view.group] = WholeVector(view.members)
        self.LDV[view.group].begin(view.group)

    def C01(self, x: GroupId, j: ProcessId, b: int) -> bool:
        return b >= self.LDV[x][j]


class CountersPerGroup(CompletedBlocks):
    """BC[x] for every group x."""

    def __init__(self) -> None:
        super().__init__()
        self.counters: dict[GroupId, int] = {}

    def next_block(self, g: GroupId) -> int:
        self.BC = self.counters.get(g, 0)
        self.counters[g] = b = super().next_block(g)
        return b

    def raise_to(self, x: GroupId, b: int) -> None:
        """Number b was delivered or promised in x."""
        self.counters[x] = max(self.counters.get(x, 0), b)

    def say_null(self, machine: Verbs, g: GroupId) -> None:
        super().say_null(machine, g)
        self.raise_to(g, self.spoke[g])


class ACounterPerGroup(Relative):
    """BC[x] for every group x."""

    blocks: CountersPerGroup

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = CountersPerGroup()

    def deliver_in_turn(self, x: GroupId, frame: Kept) -> None:
        super().deliver_in_turn(x, frame)
        self.blocks.raise_to(x, frame.stamp[0])


class AssignsTheNumberOfItsGroup(Relative):
    """GBN[x] := m.b, also when m.b is smaller."""

    def deliver_in_turn(self, x: GroupId, frame: Kept) -> None:
        super().deliver_in_turn(x, frame)
        self.GBN.entries[x] = frame.stamp[0]
        for changes in self.GBN.untold.values():
            changes[x] = frame.stamp[0]


class LooksAtOneBlock(Relative):
    """C02: block m.gbn[y] is complete, and *its* messages are delivered."""

    def C02(self, x: GroupId, y: GroupId, b: int) -> bool:
        if y == x or y not in self.blocks.BM:
            return True
        self.clear(y)
        here = {number for number, q, n in self.undelivered[y] if n > self.blocks.R[y][q]}
        return b <= self.blocks.BM[y].CBV and b not in here

    def woken(self, y: GroupId) -> list[Held]:
        waiters = self.waiters[y]
        ready = [(b, held) for b, held in waiters if self.C02(held[0], y, b)]
        waiters[:] = [waiter for waiter in waiters if waiter not in ready]
        heapify(waiters)
        return [held for _, held in ready]


class LeavesOutWhatAnotherTold(Relative):
    """A group number that a frame of another has told in x is no news there.

    It is to the sender of that frame: it knew the number, and had not waited for the block.
    """

    def deliver_in_turn(self, x: GroupId, frame: Kept) -> None:
        super().deliver_in_turn(x, frame)
        stamp = frame.stamp
        for at in range(stamp[1], len(stamp), 2):
            self.GBN.was_told(x, stamp[at], stamp[at + 1])


class TellsNothingOfOtherGroups(Relative):
    """Figure 5: no gbn."""

    def on_multicast(self, x: GroupId, m: bytes) -> None:
        self.GBN.tell(x)
        super().on_multicast(x, m)


class NotesNothingOnDelivery(Relative):
    """Figure 7: a delivered message is marked, and that is all."""

    def hand_over(self, x: GroupId, frame: Kept) -> None:
        before = dict(self.LDV[x].entries)
        super().hand_over(x, frame)
        if frame.origin != self.me:
            self.LDV[x].entries = before
            self.LDV[x].untold[x].pop(frame.origin, None)


class SilentRelative(Relative):
    """Trusts that everybody will speak again, and says nothing itself."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = SilentBlocks()


class RelativeOnAReorderingNetwork(Relative):
    """Says that it needs no first-in first-out links."""

    declaration = msgspec.structs.replace(Relative.declaration, network="N1")

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = BlocksInAnyOrder()
