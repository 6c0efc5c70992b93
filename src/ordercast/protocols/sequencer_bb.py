"""Total order by a sequencer, the body from the sender to all (BB).

Source      001 (Coulouris et al.), slides "Total Ordering (3)" and "(4)" (Amoeba's BB method).
Guarantees  total, FIFO and causal order within one group.
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       n packets with the body from the sender, n small ones from the sequencer; four
            integers in every header. A member needs two packets before it can deliver.

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

from collections.abc import Iterator

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequencer import SequencedProtocol


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
        exact=False,
        silence="STATUS of an idle sequencer",
        source="001, Total Ordering (3) and (4)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless",
        ),
        crash="a flush; the next coordinator of the cluster numbers from then on",
        sequenced=True,
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.bodies: dict[tuple[ProcessId, int], bytes] = {}  # held back, without an order
        self.bodiless: dict[tuple[ProcessId, int], Order] = {}  # orders without a body

    def on_view(self, view: View) -> None:
        super().on_view(view)
        if not view.start:
            self.bodies, self.bodiless = {}, {}

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
            return
        order = self.bodiless.pop((p, body.n), None)
        if order is not None:
            self.place(g, order.N, order.stable, Numbered(p, body.n, m))
        elif body.n > self.done.get(p, 0):
            if len(self.bodies) >= self.options.max_held:
                self._drop_stale_bodies(g)
            self.bodies[p, body.n] = m

    def _drop_stale_bodies(self, g: GroupId) -> None:
        # A body that comes after its entry was fetched, or whose sender left, gets no order here.
        self.bodies = {
            (p, n): m
            for (p, n), m in self.bodies.items()
            if n > self.done.get(p, 0) and p in self.views[g].peers
        }
        if len(self.bodies) >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} bodies without an order")

    # <"order", id, S>
    @on(Order)
    def on_ORDER(self, src: ProcessId, g: GroupId, order: Order, m: bytes) -> None:
        self._check_sequencer(src)
        self.check_near(order.N)
        origin, n = order.origin, order.n
        body = self.requests.get(n) if origin == self.me else self.bodies.get((origin, n))
        if body is not None:
            self.place(g, order.N, order.stable, Numbered(origin, n, body))
            return
        if order.N > self.R and order.N not in self.arrived:
            self.bodiless[origin, n] = order
        self.learn(g, order.N, order.stable)  # D7: a gap as long as the body is not here

    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        self.bodies.pop((entry.origin, entry.n), None)
        self.bodiless.pop((entry.origin, entry.n), None)
        super().place(g, N, stable, entry)

    def holdings(self, g: GroupId) -> Holdings:
        here = super().holdings(g)
        return msgspec.structs.replace(here, held=here.held + len(self.bodies))

    def announce(self, g: GroupId, N: int, entry: Numbered) -> None:
        assert self.book is not None
        self.b_multicast(g, Order(N, entry.origin, entry.n, self.book.stable))

    def held_back(self) -> list[Waiting]:
        """Also orders without a body, and bodies without an order."""
        held = super().held_back()
        for g in self.views:
            held += self._bodiless(g)
            held += self.unordered(self._lone_bodies(g))
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames = super().waiting_frames()
        for g in self.views:
            frames += ((g, order.origin, order.n, b"") for order in self._lone_orders())
            frames += self._lone_bodies(g)
        return frames

    def _bodiless(self, g: GroupId) -> Iterator[Waiting]:
        gaps = self.first_gaps(g)
        for order in self._lone_orders():
            awaits = tuple(gap for N, gap in gaps if N <= order.N)
            yield Waiting(g, order.origin, order.n, awaits, b"")

    def _lone_orders(self) -> Iterator[Order]:
        return (order for order in self.bodiless.values() if self.is_gap(order.N))

    def _lone_bodies(self, g: GroupId) -> Iterator[WaitingFrame]:
        ordered = {(entry.origin, entry.n) for entry in self.arrived.values()}
        for (p, n), m in self.bodies.items():
            repeat = (p, n) in ordered or n <= self.done.get(p, 0)
            if not repeat and p in self.views[g].peers:
                yield g, p, n, m

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        """Where the order is here, its body is missing."""
        bodies = {
            order.N: Awaited("body", g, order.origin, order.n) for order in self.bodiless.values()
        }
        return {N: bodies.get(N, gap) for N, gap in super().gaps(g).items()}
