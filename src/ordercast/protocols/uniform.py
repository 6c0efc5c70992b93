"""Uniform reliable multicast, by a majority of holders.

Source      001 (Coulouris et al.), slides "Reliable Multicast (2)" and "Uniform Agreement". The
            slides define uniform agreement; the majority rule is the usual way to get it.
Guarantees  what *any* member delivers, even one that crashes at once, every correct member
            delivers, as long as fewer than half of the members of a view crash. No order.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n(n - 1) packets and three integers in every header. Delivery takes two hops, at the
            sender too.

    U-multicast(g, m) by p       holders[m] := {p};  B-multicast(g, m)
    B-deliver(m) at q from r     the first copy: holders[m] := {q};  B-multicast(g, m)
                                 holders[m] := holders[m] + {r}
    |holders[m]| > |view| / 2    U-deliver(m)

Departures from the source
  D1  The slides relay and then deliver. That is uniform only if packets survive the crash of the
      process that sent them; a host that dies takes along what is in its buffers. Here nobody
      delivers before a majority holds m, so some holder lives to relay it.   (test_uniform_D1_...)
  D2  Only members of the view count, and numbers restart with each view. At a view change the
      survivors deliver everything that any of them holds.                    (test_uniform_D2_...)
  D3  msgReceived of the slides only grows. Here it is a mark per sender plus what came early, and
      frames are kept only until they are stable.                             (test_uniform_D3_...)
  D4  The first copy of the slides may come from anybody, so a member could invent messages of the
      others. Here a relay says that its sender holds m, and no more: its body is kept apart until
      the origin's own packet comes, or the origin has crashed: the driver says so, or a view
      changes without it. In a view change all deliver the same of the bodies that were relayed,
      but what one of them had from the origin itself goes first. So a false member can invent
      messages of an origin that has crashed, and of no other. Two bodies of one frame are noted
      as a conflict, with both names, and who relays another body holds nothing.
                                                                              (test_uniform_D4_...)
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
from ordercast.core.waiting import NOBODY, Awaited, Waiting
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import AcknowledgedProtocol
from ordercast.machinery.unconfirmed import Unconfirmed, better, stamped, well_stamped


class UniformData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of `origin`, sent or relayed; all have delivered its frames up to `stable`."""

    origin: ProcessId
    n: int
    stable: int


class Uniform(AcknowledgedProtocol):
    """U-multicast."""

    declaration = Declaration(
        name="uniform",
        order="none",
        scope="group",
        network="N1",
        header="3",
        packets="n(n-1)",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, Uniform Agreement",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "agreement.uniform",
        ),
        crash="what a process delivers before it crashes, all survivors deliver, "
        "as long as fewer than half of a view crash",
    )  # fmt: skip

    hears_of_crashes = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.received: dict[ProcessId, NumberSet] = {}  # per origin, from the origin itself
        self.relayed: dict[GroupId, Unconfirmed] = {}  # of the one group: D4
        self.crashed: set[ProcessId] = set()  # in this view, as far as a driver says it
        self.pending: dict[ProcessId, dict[int, Kept]] = {}  # received, not delivered, per origin
        self.holders: dict[tuple[ProcessId, int], set[ProcessId]] = {}  # of what is pending
        self.majority = 0  # so many members are more than half of the view

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.received = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.relayed = {view.group: Unconfirmed(view.group)}
        self.crashed = set()
        self.pending = {q: {} for q in view.senders}
        self.holders = {}
        self.majority = len(view.members) // 2 + 1

    # U-multicast(g, m) by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        self.b_multicast(g, UniformData(self.me, n, self.stability[g].own_stable()), m)
        self.received[self.me].add(n)
        if g in self.member_of:
            self.hold(g, Kept(self.me, n, (), m), self.me)
        else:  # a guest keeps its frame, and holds nothing for the members
            self.deliver(g, self.me, n, m)

    # B-deliver(m) at q from r
    @on(UniformData)
    def on_DATA(self, r: ProcessId, g: GroupId, data: UniformData, m: bytes) -> None:
        self.stability[g].check_sender(r)
        p, n = data.origin, data.n
        if p not in self.received:
            raise PeerError(f"a relay names process {p}, which is not in the view")
        if p == self.me and n > self.stability[g].S:
            raise PeerError(f"a relay of frame {n}, which was not sent")
        if n in self.received[p]:
            self.on_copy(g, r, p, n, m)
        elif r == p or p in self.crashed:
            self.take(g, r, data, m)
        elif self.stability[g].may_exist(p, n, self.received[p].mark):
            self.relayed[g].keep(self, p, n, r, m)  # D4
        if r == p:
            self.stability[g].learn_stable(p, data.stable)

    def take(self, g: GroupId, r: ProcessId, data: UniformData, m: bytes) -> None:
        """The first copy that counts: r holds m, and so does everybody who relayed the same."""
        p, n = data.origin, data.n
        if len(self.pending[p]) >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} frames without a majority")
        if self.received[p].add(n):
            self.b_multicast(g, data, m)
            relays = self.relayed[g].confirm(self, p, n, m)
            self.hold(g, Kept(p, n, (), m), self.me, r, *relays)

    def on_copy(self, g: GroupId, r: ProcessId, p: ProcessId, n: int, m: bytes) -> None:
        """Frame n of p is here: does r hold the same?"""
        frame = self.pending[p].get(n)
        known = self.stability[g].body(p, n) if frame is None else frame.payload
        if self.relayed[g].compare(self, p, n, r, m, known) and frame is not None:
            self.hold(g, frame, r)

    def on_crash(self, g: GroupId, p: ProcessId) -> None:
        self.crashed.add(p)
        for n, m in self.relayed[g].bodies(p):
            self.take(g, self.me, UniformData(p, n, 0), m)

    def hold(self, g: GroupId, frame: Kept, *who: ProcessId) -> None:
        """holders[m] := holders[m] + {p};  |holders[m]| > |view| / 2: U-deliver(m)"""
        q, n = frame.origin, frame.n
        self.pending[q][n] = frame
        holders = self.holders.setdefault((q, n), set())
        holders.update(p for p in who if p in self.views[g].members)  # D2
        if len(holders) >= self.majority:  # D1
            self._deliver_pending(g, frame)

    def _deliver_pending(self, g: GroupId, frame: Kept) -> None:
        self.pending[frame.origin].pop(frame.n, None)
        self.holders.pop((frame.origin, frame.n), None)
        self.deliver(g, frame.origin, frame.n, frame.payload)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        waiting = (frame for frames in self.pending.values() for frame in frames.values())
        return (*super().unstable(g), *waiting, *self.relayed[g].kept())

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[q].mark

    better = staticmethod(better)
    stamped = staticmethod(stamped)

    def gives_way(self, g: GroupId, kept: Kept, end: FrameAt) -> bool:
        return self.relayed[g].gives_way(self, kept, end)

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return well_stamped(frame)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        for frame in self.fitting(g, union):
            q, n = frame.origin, frame.n
            if self.received[q].add(n) or n in self.pending[q]:
                self.relayed[g].confirm(self, q, n, frame.payload)
                self._deliver_pending(g, frame)

    def held_back(self) -> list[Waiting]:
        pending = [
            Waiting(g, q, n, (Awaited("copies", g, NOBODY, self._copies_missing(q, n)),), f.payload)
            for g in self.views
            for q, frames in self.pending.items()
            for n, f in sorted(frames.items())
        ]
        relayed = (waiting for apart in self.relayed.values() for waiting in apart.waiting())
        return [*pending, *relayed]

    def _copies_missing(self, q: ProcessId, n: int) -> int:
        return self.majority - len(self.holders[q, n])
