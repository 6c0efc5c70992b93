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
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.machinery.bodies_apart import BodiesApart
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequenced import SequencedProtocol
from ordercast.machinery.sequenced_waiting import first_of, unordered


class Body(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender; the body follows."""

    n: int


class Order(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer: number N goes to frame n of `origin`, whose body comes from there."""

    N: int
    origin: ProcessId
    n: int
    stable: int


class SequencerBB(SequencedProtocol):
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

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.apart = BodiesApart(self.options.max_held)  # in this era

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.apart = BodiesApart(self.options.max_held)

    # TO-multicast(g, m) by p
    def request(self, g: GroupId, n: int, m: bytes) -> None:
        if self.leader not in self.others[g] and self.leader != self.me:
            self.send(self.leader, g, Body(n), m)
        self.b_multicast(g, Body(n), m)
        if self.sequencer is not None:
            self.number(g, self.me, n, m)

    # <m, id> at the sequencer, <m, id> at a member
    @on(Body)
    def on_BODY(self, p: ProcessId, g: GroupId, body: Body, m: bytes) -> None:
        if self.sequencer is not None:
            self.number(g, p, body.n, m)
        elif (numbered := self.apart.paired(p, body.n, m)) is not None:
            N, entry = numbered
            self.place(g, N, self.queue.stable, entry)
        elif body.n > self.done.get(p, 0):
            self.apart.hold((p, body.n), m, self.done)

    # <"order", id, S>
    @on(Order)
    def on_ORDER(self, src: ProcessId, g: GroupId, order: Order, m: bytes) -> None:
        self.check_sequencer(src)
        if not self.delivers:
            return
        self.check_near(order.N)
        origin, n = order.origin, order.n
        self.check_sent(origin, n, order.N)
        own = origin == self.me
        body = self.sent.pending.get(n) if own else self.apart.bodies.get((origin, n))
        if body is not None:
            self.place(g, order.N, order.stable, Numbered(origin, n, body))
            return
        if order.N > self.queue.R and order.N not in self.queue.arrived:
            self.apart.await_body((origin, n), order.N)
        self.learn(g, order.N, order.stable)  # D7: a gap as long as the body is not here

    # B-multicast(g, <"order", id, S>)
    def announce(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        self.b_multicast(g, Order(N, entry.origin, entry.n, stable))

    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        self.apart.settled((entry.origin, entry.n))
        super().place(g, N, stable, entry)

    # -- always -----------------------------------------------------------------------------------

    def invariants(self) -> None:
        super().invariants()
        self.apart.invariants()

    # -- what waits, and why ----------------------------------------------------------------------

    def holdings(self, g: GroupId) -> Holdings:
        here = super().holdings(g)
        return msgspec.structs.replace(here, held=here.held + len(self.apart.bodies))

    def held_back(self) -> list[Waiting]:
        """Also numbers without a body, and bodies without a number."""
        held = super().held_back()
        for g in self.views:
            held += self.apart.without_body(g, self.queue, first_of(self.gaps(g)))
            bodies = self.apart.without_number(g, self.queue, self.done)
            held += unordered(self.leader, bodies)
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames = super().waiting_frames()
        for g in self.views:
            frames += self.apart.bodiless_frames(g, self.queue)
            frames += self.apart.without_number(g, self.queue, self.done)
        return frames

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        """Where the number is here, its body is missing."""
        return self.apart.named(g, super().gaps(g))
