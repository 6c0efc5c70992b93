"""Total order by a sequencer, the body from the sender to all (BB).

Source      001 (Coulouris et al.), slides "Total Ordering (3)" and "(4)" (Amoeba's BB method).
Guarantees  total, FIFO and causal order within one group.
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       n packets with the body from the sender, n small ones from the sequencer; four
            integers in every header. A member needs two packets before it can deliver. Reports of
            consumption and their outcome: 2(n - 1) small packets for a lone message, fewer in a
            stream, whatever the delay of the network.

    TO-multicast(g, m) by p      B-multicast(g + sequencer, <m, id>)
    <m, id> at the sequencer     S := S + 1;  B-multicast(g, <"order", id, S>)
    <m, id> at a member          hold back <m, id>
    <"order", id, S>             wait until <m, id> is held back and S = R + 1;
                                 TO-deliver(m);  R := S

Departures from the source
  D1 to D6 as in `sequencer_pb`; the id is (sender, n).                     (test_sequencer_D1_...)
  D7  An order whose body does not come is fetched from the sequencer, which has every body it
      numbered.                                                          (test_sequencer_bb_D7_...)
  D8  A sender outside the group, a guest, sends its bodies to the members like any other, and is
      told how far they have come, as in `sequencer_pb`.                 (test_sequencer_bb_D8_...)
"""

from __future__ import annotations

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.machinery.bodies_apart import BodiesApart
from ordercast.machinery.numbering import Numbered


class Body(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender; the body follows."""

    n: int


class Order(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer: number N goes to frame n of `origin`, whose body comes from there."""

    N: int
    origin: ProcessId
    n: int
    stable: int


class SequencerBB(BodiesApart):
    """TO-multicast with the body from the sender."""

    declaration = Declaration(
        name="sequencer_bb",
        order="total",
        scope="group",
        network="N0",
        header="4",
        packets="2n",
        control="2(n-1)",
        exact=False,
        silence="STATUS of an idle sequencer",
        source="001, Total Ordering (3) and (4)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless",
        ),
        crash="a flush; the oldest member that lives numbers from then on",
        sequenced=True,
    )  # fmt: skip

    # TO-multicast(g, m) by p
    def request(self, g: GroupId, n: int, m: bytes) -> None:
        if self.leader not in self.others[g] and self.leader != self.me:
            self.send(self.leader, g, Body(n), m)
        self.b_multicast(g, Body(n), m)
        if self.book is not None:
            self.number(g, self.me, n, m)

    # <m, id> at the sequencer, <m, id> at a member
    @on(Body)
    def on_BODY(self, p: ProcessId, g: GroupId, body: Body, m: bytes) -> None:
        if self.book is not None:
            self.number(g, p, body.n, m)
        else:
            self.take_body(g, p, body.n, m)

    # <"order", id, S>
    @on(Order)
    def on_ORDER(self, src: ProcessId, g: GroupId, order: Order, m: bytes) -> None:
        self._check_sequencer(src)
        self.take_number(g, order.N, order.stable, Numbered(order.origin, order.n, b""))  # D7

    def announce(self, g: GroupId, N: int, entry: Numbered) -> None:
        assert self.book is not None
        self.b_multicast(g, Order(N, entry.origin, entry.n, self.book.stable))
