"""Basic multicast.

Source      001 (Coulouris et al.), slide "Basic Multicast".
Guarantees  a correct member delivers the message if the sender does not crash in the middle.
            No order. No agreement: a sender that crashes half-way is heard by some only.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets and two integers in every header.

    B-multicast(g, m)    for each process p in g: send(p, m)
    receive(m) at p      B-deliver(m)

Departures from the source
  D1  The sender delivers its own message at once and sends itself no packet.   (test_basic_D1_...)
  D2  Frames are numbered per sender, so that a repeated packet is recognised.  (test_basic_D2_...)
  D3  The slide's acknowledgements come from all members for every message and swamp the sender.
      Here one acknowledgement answers many frames; they serve stability only.  (test_basic_D3_...)
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
from ordercast.machinery.acknowledged import AcknowledgedProtocol


class BasicData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender; the sender's frames up to `stable` are delivered by all."""

    n: int
    stable: int


class Basic(AcknowledgedProtocol):
    """B-multicast."""

    declaration = Declaration(
        name="basic",
        order="none",
        scope="group",
        network="N1",
        header="2",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, Basic Multicast",
        promises=("no_duplication", "no_creation", "membership", "validity"),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.received: dict[ProcessId, NumberSet] = {}  # frames delivered here, per sender

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.received = {q: NumberSet(self.options.max_held) for q in view.senders}

    # B-multicast(g, m)
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        self.b_multicast(g, BasicData(n, self.stability[g].own_stable()), m)
        self.received[self.me].add(n)
        self.deliver(g, self.me, n, m)  # D1

    # receive(m) at p
    @on(BasicData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: BasicData, m: bytes) -> None:
        self.stability[g].learn_stable(q, data.stable)
        if self.received[q].add(data.n):  # D2
            self.deliver(g, q, data.n, m)

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[q].mark

    def held_back(self) -> list[Waiting]:
        return []  # nothing ever waits

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        for kept in self.fitting(g, union):
            if self.received[kept.origin].add(kept.n):
                self.deliver(g, kept.origin, kept.n, kept.payload)
