"""Faults in the Causal Blocks machinery, and in the protocols that need little else."""

from __future__ import annotations

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options
from ordercast.machinery.blocks import BlockMatrix
from ordercast.machinery.parts import Verbs
from ordercast.machinery.silence import CompletedBlocks
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.fast import Fast
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.slow import Slow


class OwnColumn(CompletedBlocks):
    """A block matrix with a column of this process, in which only its own messages stand."""

    def __init__(self, me: ProcessId) -> None:
        super().__init__()
        self.me = me

    def begin(self, machine: Verbs, view: View) -> None:
        super().begin(machine, view)
        self.BM[view.group] = BlockMatrix(view.members, view.start)

    def next_block(self, g: GroupId) -> int:
        b = super().next_block(g)
        self.BM[g].hear(self.me, b)
        return b


class SilentBlocks(CompletedBlocks):
    """Trusts that everybody will speak again, and says nothing itself."""

    def start_timer(self, machine: Verbs, g: GroupId) -> None:
        return


class BlocksInAnyOrder(CompletedBlocks):
    """Takes a frame as it comes; what it overtook may still be under way."""

    def in_turn(self, received: NumberSet, g: GroupId, q: ProcessId, n: int, b: int) -> bool:
        return received.add(n)


class WaitsForItself(Slow):
    """Counts its own column of the block matrix."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order.blocks = OwnColumn(me)


class SilentSlow(Slow):
    """Trusts that everybody will speak again, and says nothing itself."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order.blocks = SilentBlocks()


class SlowOnAReorderingNetwork(Slow):
    """Says that it needs no first-in first-out links."""

    declaration = msgspec.structs.replace(Slow.declaration, network="N1")

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order.blocks = BlocksInAnyOrder()


class FastPOnAReorderingNetwork(FastP):
    """Says that it needs no first-in first-out links."""

    declaration = msgspec.structs.replace(FastP.declaration, network="N1")

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = BlocksInAnyOrder()


class SlowCalledTotal(Slow):
    """Delivers m when block m.b - 1 is complete, as Slow does, and calls that a total order."""

    declaration = msgspec.structs.replace(
        Slow.declaration, promises=BlockTotal.declaration.promises
    )


class JoinsAtZero(BlockTotal):
    """A joiner counts from 0, below what the others delivered. They see that, and refuse it."""

    def on_view(self, view: View) -> None:
        joins = view.group not in self.order.blocks.BM
        super().on_view(view)
        if joins:
            self.order.blocks.BC = 0


class JoinsAtZeroUnseen(JoinsAtZero):
    """... and nobody looks whether the numbers of a sender rise."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order.blocks = BlocksInAnyOrder()


ANYWHERE: GroupId = 0  # in the place of the group: GLDV has one entry per process


class FastAsPrinted(Fast):
    """GLDV keyed by process: a number may belong to a message that is never delivered here."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.waiting: list[tuple[GroupId, Kept]] = []

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        self.waiting.append((g, frame))
        while ready := [w for w in self.waiting if self.first_missing(w[1].stamp, 1) is None]:
            self.waiting.remove(ready[0])
            self.deliver_in_turn(*ready[0])

    def DC(self, h: GroupId, j: ProcessId, b: int) -> bool:
        shares = any(j in view.members for view in self.views.values())
        return b <= self.L[ANYWHERE, j] or not shares

    def hand_over(self, g: GroupId, frame: Kept) -> None:
        self.L.raise_to((ANYWHERE, frame.origin), frame.stamp[0])
        self.blocks.R[g][frame.origin] = frame.n
        self.deliver(g, frame.origin, frame.n, frame.payload, frame.stamp)
