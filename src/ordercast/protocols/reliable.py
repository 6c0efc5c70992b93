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
  D3  The slide delivers the first copy, whoever brings it, so a member could invent messages of
      the others. Here a relay is hearsay: its body is kept apart until the origin's own packet
      comes, or the origin has crashed: the driver says so, or a view changes without it. In a view
      change all deliver the same of the bodies that were relayed, but what one of them had from
      the origin itself goes first. So a false member can invent messages of an origin that has
      crashed, and of no other. Two bodies of one frame are noted as a conflict, with both names.
                                                                             (test_reliable_D3_...)
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.changing import FrameAt
from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Waiting
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import AcknowledgedProtocol
from ordercast.machinery.unconfirmed import Unconfirmed, better, stamped, well_stamped


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

    hears_of_crashes = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.msgReceived: dict[ProcessId, NumberSet] = {}  # per origin, from the origin itself
        self.relayed: dict[GroupId, Unconfirmed] = {}  # of the one group: D3
        self.crashed: set[ProcessId] = set()  # in this view, as far as a driver says it

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.msgReceived = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.relayed = {view.group: Unconfirmed(view.group)}
        self.crashed = set()

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
        if src != p:
            self.on_relay(g, src, data, m)
            return
        if not self.on_copy(g, p, data, m):
            self.take(g, data, m)
        self.stability[g].learn_stable(p, data.stable)

    def take(self, g: GroupId, data: ReliableData, m: bytes) -> None:
        """if m not in msgReceived then ..."""
        if self.msgReceived[data.origin].add(data.n):
            self.b_multicast(g, data, m)  # D1: the output's transmits leave before its deliveries
            self.deliver(g, data.origin, data.n, m)
            self.relayed[g].confirm(self, data.origin, data.n, m)

    def on_relay(self, g: GroupId, r: ProcessId, data: ReliableData, m: bytes) -> None:
        """D3: r holds the frame. What its origin sent, only the origin says, while it lives."""
        p, n = data.origin, data.n
        if self.on_copy(g, r, data, m):
            return
        if p in self.crashed:
            self.take(g, data, m)
        elif self.stability[g].may_exist(p, n, self.msgReceived[p].mark):
            self.relayed[g].keep(self, p, n, r, m)

    def on_copy(self, g: GroupId, r: ProcessId, data: ReliableData, m: bytes) -> bool:
        """Is the frame here? Then r should have brought the same."""
        p, n = data.origin, data.n
        if n not in self.msgReceived[p]:
            return False
        self.relayed[g].compare(self, p, n, r, m, self.stability[g].body(p, n))
        return True

    def on_crash(self, g: GroupId, p: ProcessId) -> None:
        self.crashed.add(p)
        for n, m in self.relayed[g].bodies(p):
            self.take(g, ReliableData(p, n, 0), m)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return (*super().unstable(g), *self.relayed[g].kept())

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.msgReceived[q].mark

    def held_back(self) -> list[Waiting]:
        return [waiting for relayed in self.relayed.values() for waiting in relayed.waiting()]

    better = staticmethod(better)
    stamped = staticmethod(stamped)

    def gives_way(self, g: GroupId, kept: Kept, end: FrameAt) -> bool:
        return self.relayed[g].gives_way(self, kept, end)

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return well_stamped(frame)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        for kept in self.fitting(g, union):
            if self.msgReceived[kept.origin].add(kept.n):
                self.relayed[g].confirm(self, kept.origin, kept.n, kept.payload)
                self.deliver(g, kept.origin, kept.n, kept.payload)
