"""Reliable multicast over basic multicast.

Source      001 (Coulouris et al.), slides "Reliable Multicast (1)" and "(2)".
Guarantees  integrity, validity, agreement: what a correct member delivers, all do. No order.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n(n - 1) packets and three integers in every header.

    R-multicast(g, m) by p    B-multicast(g, m)
    B-deliver(m) at q         if m not in msgReceived then
                                  msgReceived := msgReceived + {m}
                                  if q != p then B-multicast(g, m)
                                  R-deliver(m)

Departures from the source
  D1  The slide sends "with threads", so R-deliver may run before the relays have left; a process
      could deliver, crash, and leave nobody with m. Relays are handed to the channel first, at
      the sender too. Still not uniform if a crash destroys packets in flight.
                                                                             (test_reliable_D1_...)
  D2  msgReceived only grows in the slide. Here it is a mark per sender plus what came early, and
      frames are kept for a flush only until they are stable.                (test_reliable_D2_...)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Waiting
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import AcknowledgedProtocol


class ReliableData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of `origin`, sent or relayed; all have delivered its frames up to `stable`."""

    origin: ProcessId
    n: int
    stable: int


class Reliable(AcknowledgedProtocol):
    """R-multicast."""

    declaration = Declaration(
        name="reliable",
        order="none",
        scope="group",
        network="N1",
        header="3",
        packets="n(n-1)",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, Reliable Multicast (2)",
        promises=("no_duplication", "no_creation", "membership", "validity", "agreement"),
        crash="what one surviving member delivers, every surviving member delivers",
    )

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.msgReceived: dict[ProcessId, NumberSet] = {}  # per origin

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.msgReceived = {q: NumberSet(self.options.max_held) for q in view.senders}

    # R-multicast(g, m) by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        self.b_multicast(g, ReliableData(self.me, n, self.stability[g].own_stable()), m)
        self.msgReceived[self.me].add(n)
        self.deliver(g, self.me, n, m)

    # B-deliver(m) at q
    @on(ReliableData)
    def on_DATA(self, src: ProcessId, g: GroupId, data: ReliableData, m: bytes) -> None:
        self.stability[g].check_sender(src)
        p = data.origin
        if p not in self.msgReceived:
            raise PeerError(f"a relay names process {p}, which is not in the view")
        if p == self.me and data.n > self.stability[g].S:
            raise PeerError(f"a relay of our frame {data.n}, which was never sent")
        if self.msgReceived[p].add(data.n):
            self.b_multicast(g, data, m)  # D1: the output's transmits leave before its deliveries
            self.deliver(g, p, data.n, m)
        if src == p:
            self.stability[g].learn_stable(p, data.stable)

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.msgReceived[q].mark

    def held_back(self) -> list[Waiting]:
        return []  # nothing ever waits

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        for kept in self.fitting(g, union):
            if self.msgReceived[kept.origin].add(kept.n):
                self.deliver(g, kept.origin, kept.n, kept.payload)
