"""Causal order by vector timestamps.

Source      001 (Coulouris et al.), slides "Causal Ordering (2)" and "(3)".
Guarantees  causal order (so FIFO too) within one group, open or closed.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets and one integer per sender in every header.

    CO-multicast(g, m)           V[i] := V[i] + 1;  B-multicast(g, <m, V>)
    B-deliver(<m, Vj>) from pj   hold back <m, Vj>;
                                 wait until Vj[j] = V[j] + 1 and Vj[k] <= V[k] for k != j;
                                 CO-deliver(m);  V[j] := V[j] + 1

Departures from the source
  D1  The slide also tests the sender's own copy, where the wait cannot end: V[i] was already
      raised. A sender delivers its own message at once and sends itself no copy.
                                                                               (test_vector_D1_...)
  D2  The slide says V counts messages *received*. A received message that is held back has caused
      nothing yet: V counts messages delivered.                                (test_vector_D2_...)
  D3  A repeat (Vj[j] <= V[j], or one that is held back already) is dropped.   (test_vector_D3_...)
  D4  Vectors restart at 0 in each view; a packet of another view never meets them.
                                                                               (test_vector_D4_...)
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
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame, first_named
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import AcknowledgedProtocol

Place = int  # of a member in the view: the index into a vector


class Stamped(msgspec.Struct, frozen=True, array_like=True):
    """The sender's vector, its own entry raised; all have delivered its frames up to `stable`."""

    V: tuple[int, ...]
    stable: int


class CausalVector(AcknowledgedProtocol):
    """CO-multicast."""

    declaration = Declaration(
        name="vector",
        order="causal",
        scope="group",
        network="N1",
        header="n+1",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, Causal Ordering (3)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "causal.group",
        ),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.index: dict[ProcessId, Place] = {}  # where each member stands in a vector
        self.V: list[int] = []  # messages delivered from each member
        self.received: dict[ProcessId, NumberSet] = {}  # delivered or held back, per sender
        self.held: HoldBackQueue[tuple[Place, int], Kept] = HoldBackQueue()  # under what is awaited

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.index = {p: place for place, p in enumerate(view.senders)}
        self.V = [0] * len(view.senders)  # D4
        self.received = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.held.clear()

    # CO-multicast(g, m)
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        i = self.index[self.me]
        self.V[i] = n = self.stability[g].next_number()
        V = tuple(self.V)
        self.b_multicast(g, Stamped(V, self.stability[g].own_stable()), m)
        self.deliver(g, self.me, n, m, V)  # D1

    # B-deliver(<m, Vj>) from pj
    @on(Stamped)
    def on_STAMPED(self, pj: ProcessId, g: GroupId, stamped: Stamped, m: bytes) -> None:
        self.stability[g].learn_stable(pj, stamped.stable)
        if len(stamped.V) != len(self.V):
            raise PeerError(f"a vector of {len(stamped.V)} entries in a view of {len(self.V)}")
        n = stamped.V[self.index[pj]]
        if self.received[pj].add(n):  # D3
            self.hold_back(g, Kept(pj, n, stamped.V, m))

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        """hold back <m, Vj>; wait until it may be delivered; CO-deliver(m); V[j] := V[j] + 1"""
        ready = [frame]
        for frame in ready:  # grows while delivering one frame releases others
            j = self.index[frame.origin]
            awaited = self.awaited(j, frame.stamp)
            if awaited is not None:
                self.held.hold(awaited, frame)
                continue
            self.V[j] += 1
            self.deliver(g, frame.origin, frame.n, frame.payload, frame.stamp)
            ready += self.held.release((j, self.V[j]))

    def awaited(self, j: Place, Vj: tuple[int, ...]) -> tuple[Place, int] | None:
        """What <m, Vj> waits for first: Vj[j] = V[j] + 1 and Vj[k] <= V[k] for k != j."""
        V = self.V
        if Vj[j] != V[j] + 1:
            return j, Vj[j] - 1
        for k, number in enumerate(Vj):
            if number > V[k] and k != j:
                return k, number
        return None

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return (*super().unstable(g), *(frame for _, frame in self.held))

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        V = frame.stamp
        return len(V) == len(senders) and V[senders.index(frame.origin)] == frame.n

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[q].mark

    def held_back(self) -> list[Waiting]:
        return [self._waiting(frame) for _, frame in self.held]

    def _waiting(self, frame: Kept) -> Waiting:
        (g,) = self.views
        missing = (
            Awaited("frame", g, k, frame.stamp[place] - (k == frame.origin))
            for k, place in self.index.items()
            if frame.stamp[place] - (k == frame.origin) > self.V[place]
        )
        return Waiting(g, frame.origin, frame.n, first_named(missing), frame.payload)

    def waiting_frames(self) -> list[WaitingFrame]:
        (g,) = self.views
        return [(g, frame.origin, frame.n, frame.payload) for _, frame in self.held]

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.held.clear()
        for frame in self.fitting(g, union):
            if frame.n > self.V[self.index[frame.origin]]:
                self.hold_back(g, frame)
        self.held.clear()  # what is left depends on a message that nobody alive has
