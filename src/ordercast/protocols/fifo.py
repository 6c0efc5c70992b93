"""FIFO order by sequence numbers.

Source      001 (Coulouris et al.), slides "FIFO Ordering (1)" and "(2)".
Guarantees  messages of one sender are delivered in the order in which it sent them, in one group.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets and two integers in every header.

    FO-multicast(g, m) by p    S := S + 1;  B-multicast(g, <m, S>)
    B-deliver(<m, n>) from q   hold back <m, n>;  wait until n = R[q] + 1;
                               FO-deliver(m);  R[q] := n

Departures from the source
  D1  The slides say "R: the latest message delivered" but not what happens to n <= R[q]: it is a
      repeat, and is dropped.                                                   (test_fifo_D1_...)
  D2  The slides admit that this holds for groups that do not overlap. The protocol says so: its
      scope is the group.                                                       (test_fifo_D2_...)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame
from ordercast.machinery.acknowledged import AcknowledgedProtocol


class FifoData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender; the sender's frames up to `stable` are delivered by all."""

    n: int
    stable: int


class Fifo(AcknowledgedProtocol):
    """FO-multicast."""

    declaration = Declaration(
        name="fifo",
        order="fifo",
        scope="group",
        network="N1",
        header="2",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, FIFO Ordering (2)",
        promises=("no_duplication", "no_creation", "membership", "validity", "fifo.group"),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.R: dict[ProcessId, int] = {}  # the latest frame delivered, per sender
        self.received: dict[ProcessId, NumberSet] = {}  # delivered or held back, per sender
        self.held: HoldBackQueue[tuple[ProcessId, int], Kept] = HoldBackQueue()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.R = dict.fromkeys(view.senders, 0)
        self.received = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.held.clear()  # frames wait under (q, n - 1), the frame before

    # FO-multicast(g, m) by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        S = self.stability[g].next_number()
        self.b_multicast(g, FifoData(S, self.stability[g].own_stable()), m)
        self.R[self.me] = S
        self.deliver(g, self.me, S, m)

    # B-deliver(<m, n>) from q
    @on(FifoData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: FifoData, m: bytes) -> None:
        self.stability[g].learn_stable(q, data.stable)
        if self.received[q].add(data.n):  # D1
            self.hold_back(g, Kept(q, data.n, (), m))

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        """hold back <m, n>; wait until n = R[q] + 1; FO-deliver(m); R[q] := n"""
        ready = [frame]
        for frame in ready:  # grows while delivering one frame releases the next
            q, n = frame.origin, frame.n
            if n != self.R[q] + 1:
                self.held.hold((q, n - 1), frame)
                continue
            self.R[q] = n
            self.deliver(g, q, n, frame.payload)
            ready += self.held.release((q, n))

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return (*super().unstable(g), *(frame for _, frame in self.held))

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[q].mark

    def held_back(self) -> list[Waiting]:
        (g,) = self.views
        return [
            Waiting(g, q, frame.n, (Awaited("frame", g, q, n),), frame.payload)
            for (q, n), frame in self.held
        ]

    def waiting_frames(self) -> list[WaitingFrame]:
        (g,) = self.views
        return [(g, frame.origin, frame.n, frame.payload) for _, frame in self.held]

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.held.clear()
        for frame in self.fitting(g, union):  # by sender, then number
            if frame.n == self.R[frame.origin] + 1:  # else behind a frame that nobody alive has
                self.hold_back(g, frame)
