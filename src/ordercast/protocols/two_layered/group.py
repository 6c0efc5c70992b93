"""Causal order in a large group of subgroups: vectors as long as a subgroup, not as the group.

Source      002 (Taguchi, Enokido, Takizawa), sections 2.2 to 4.
Guarantees  causal order (so FIFO too) within one closed group; on request atomic delivery.
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       n - 1 packets; l + k + 3 integers in a header, in k subgroups of l members; three hops
            between subgroups; small words that tell what all have.

    p_is sends m              m.seq := seq;  seq := seq + 1;  RSQ_i := RSQ_i + 1;
                              m.rsq := rsq with rsq_s = seq;  m.RSQ := RSQ;  broadcast m in G_i
    m from u at p_it          wait until m.seq = rsq_u and rsq_w >= m.rsq_w for w != u;
                              accept m:  rsq_u := rsq_u + 1;  RSQ := max(RSQ, m.RSQ);  deliver m
    p_i0 accepted m           M.GSQ := GSQ;  GSQ := GSQ + 1;  M.RSQ := m.RSQ with M.RSQ_i = GSQ;
    of a local process        send M to all gateways
    M from i at p_j0          wait until M.GSQ = RSQ_i and RSQ_h >= M.RSQ_h for h != i;
                              accept M:  RSQ_i := RSQ_i + 1;  broadcast m_j with M.RSQ in G_j

p_i0 is the gateway of subgroup G_i, column 0 of its vectors. GSQ is the gateway's own entry RSQ_i.
All counters begin at 1 and name the number expected next. `layer` has the wait, for both layers;
`confirming` tells when all have a message; `recovering` makes losses good.

m_1 precedes m_2 in G_i if m_1.rsq < m_2.rsq and m_1.RSQ < m_2.RSQ (ordering rule 1). Two messages
that no such pair orders are concurrent; the converse fails (Theorem 4): of two concurrent messages
of one subgroup the gateway numbers one first. That costs waiting, never order.

Departures from the source
  D1  The source accepts m in the order of its sender alone, and moves vectors and forwards then. A
      gateway could forward an answer before the question. Each layer accepts, delivers and
      forwards in causal order.                                           (test_two_layered_D1_...)
  D2  The prose sets M.RSQ_i to GSQ before the increment, its example after. After: M.RSQ_i must be
      above M.GSQ, as m.rsq_s is above m.seq.                             (test_two_layered_D2_...)
  D3  A gateway is a member, too. What it says itself is a local message of column 0 and a global
      one at once.                                                        (test_two_layered_D3_...)
  D4  The source lets every message confirm, and needs everyone to speak. Who has nothing to say
      sends a confirmation alone, and only to its gateway, which tells the subgroup what all of the
      group have: l small packets, where l * l would be.                  (test_two_layered_D4_...)
  D5  A loss of the last message shows in no gap. Who does not know that all have all repeats its
      confirmation until it does.                                         (test_two_layered_D5_...)
  D6  M.RSQ is what the source process knew, not what its gateway has. Gateways confirm with N what
      they accepted, and what their whole subgroup has.                   (test_two_layered_D6_...)
  D7  What is stored is forgotten when the application of every member has taken it.
                                                                          (test_two_layered_D7_...)
  D8  The source says nothing of crashes. Each view has its own subgroups and gateways, and all
      counters begin again with it. Survivors hand round what any of them has accepted, and deliver
      it by the sum of m.RSQ, which rises along every chain of causes. So a crash of a gateway
      leaves no number to guess, and none is used twice.                  (test_two_layered_D8_...)
  D9  Of what only waits nothing is handed round: whoever accepted a message has all that it
      comes after, so what survivors accepted misses nothing.             (test_two_layered_D9_...)
  D10  Acknowledged is, in the source, that a pre-acknowledged message which follows m came from
      every process. Here each says, by its gateway, that it knows m to be pre-acknowledged: the
      same without waiting for everybody to send.                        (test_two_layered_D10_...)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.core.waiting import NOBODY, Awaited, Holdings, Waiting, WaitingFrame, first_named
from ordercast.errors import PeerError
from ordercast.machinery.subgroups import NOBODY_ANYWHERE, Layout, layout_of
from ordercast.protocols.two_layered.confirming import ConfirmingProtocol
from ordercast.protocols.two_layered.headers import (
    Column,
    Found,
    Global,
    GlobalConfirmation,
    GlobalFound,
    GlobalLost,
    GlobalStatus,
    Local,
    Lost,
    Vector,
)
from ordercast.protocols.two_layered.layer import Id, Layer, M
from ordercast.protocols.two_layered.recovering import GLOBAL, LOCAL, Recovery

CLOSED = "a guest is in no subgroup, and no gateway would pass on what it says"


class TwoLayered(ConfirmingProtocol):
    """A broadcast two-layered group (B-TG)."""

    declaration = Declaration(
        name="two_layered",
        order="causal",
        scope="group",
        network="N0",
        header="3+m",
        packets="n-1",
        control="4n",
        exact=False,
        silence="confirmations of every member, until all have all",
        source="002, sections 2.2 to 4",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "causal.group",
        ),
        crash="without its gateway a subgroup hears only itself, until the view changes",
        closed=CLOSED,
    )  # fmt: skip

    # Not what makes losses good: somebody has waited for that long enough.
    wide_headers = (Global, GlobalConfirmation, GlobalStatus)

    def stand(self, layout: Layout, i: Column, u: Column) -> None:
        super().stand(layout, i, u)
        self.RSQ = [1] * len(layout.gateways)  # at a local process: known of each subgroup
        self.frames = [0] * len(layout.place)  # per member: its last frame accepted here
        self.recovery = Recovery(u, len(self.local.rsq), self.options)

    # p_is sends m
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.S += 1
        if self.main is None:
            self.RSQ[self.i] += 1
            self.broadcast(g, self.me, self.S, tuple(self.RSQ), m)
        else:  # D3
            seq = self.broadcast(g, self.me, self.S, self.with_GSQ(tuple(self.main.rsq)), m)
            self.forward(g, 0, seq)
        self.advance(g)

    def broadcast(self, g: GroupId, sp: ProcessId, n: int, RSQ: Vector, m: bytes) -> int:
        """m.seq := seq;  seq := seq + 1;  m.rsq := rsq;  broadcast m in G_i, and accept it"""
        seq = self.local.count()
        rsq = tuple(self.local.rsq)
        message = Local(seq, sp, n, rsq, RSQ)
        self.local.keep(seq, rsq, message, m)
        self.to(self.near, g, message, m)
        self.accepted(self.u, seq, sp, n)
        return seq

    # m from u at p_it
    @on(Local)
    def on_LOCAL(self, p: ProcessId, g: GroupId, message: Local, m: bytes) -> None:
        self.arrive_local(g, self.column_of(p), message, m)

    @on(Found)
    def on_FOUND(self, p: ProcessId, g: GroupId, found: Found, m: bytes) -> None:
        self.column_of(p)
        if not 0 <= found.u < len(self.local.rsq):
            raise PeerError(f"there is no column {found.u}")
        self.arrive_local(g, found.u, found.message, m)

    def arrive_local(self, g: GroupId, u: Column, message: Local, m: bytes) -> None:
        """wait until m.seq = rsq_u and rsq_w >= m.rsq_w for w != u;  accept m"""
        self.check_local(u, message)
        for w, seq in self.local.arrive(u, message.seq, message.rsq, message, m):
            accepted = self.local.store[w][seq][1]
            if self.main is not None:
                self.forward(g, w, seq)
            else:
                self.RSQ = list(map(max, self.RSQ, accepted.RSQ))
            self.accepted(w, seq, accepted.sp, accepted.n)
        self.advance(g)

    def check_local(self, u: Column, message: Local) -> None:
        sp, sender = message.sp, self.layout.subgroups[self.i][u]
        from_far = u == 0 and self.layout.site.get(sp, self.i) != self.i
        if sp != sender and not from_far:
            raise PeerError(f"process {sender} cannot broadcast a message of process {sp}")
        if u != 0 and message.n != message.seq:
            raise PeerError(f"frame {message.n} of process {sp} has the number {message.seq}")
        if len(message.RSQ) != len(self.layout.gateways) or min(message.RSQ) < 1:
            raise PeerError(f"an RSQ of {len(message.RSQ)} entries is none of this view")

    def accepted(self, u: Column, seq: int, sp: ProcessId, n: int) -> None:
        """In causal order, so the frames of a process come one after the other."""
        place = self.layout.place[sp]
        if n != self.frames[place] + 1:
            blamed = self.layout.subgroups[self.i][u]
            self.out.faults.append((blamed, f"frame {n} of {sp} after {self.frames[place]}"))
            return
        self.frames[place] = n
        self.queue.append((u, seq))
        self.untold += len(self.stages) > 1

    # p_i0 accepted m of a local process
    def forward(self, g: GroupId, u: Column, seq: int) -> None:
        """M.GSQ := GSQ;  GSQ := GSQ + 1;  M.RSQ := m.RSQ with M.RSQ_i = GSQ;  send M"""
        assert self.main is not None
        _, message, payload = self.local.store[u][seq]
        RSQ = self.with_GSQ(message.RSQ)
        M = Global(self.main.count(), message.sp, message.n, RSQ)
        self.main.keep(M.GSQ, RSQ, M, payload)
        self.pair(u, seq, self.i, M.GSQ)
        self.to(self.far, g, M, payload)

    def with_GSQ(self, RSQ: Vector) -> Vector:
        """RSQ with the entry of this subgroup that its next global message has."""
        assert self.main is not None
        return (*RSQ[: self.i], self.main.seq + 1, *RSQ[self.i + 1 :])  # D2

    def pair(self, u: Column, seq: int, i: Column, GSQ: int) -> None:
        """The two numbers of one message."""
        for tally in self.tallies:
            tally.pair(u, seq, i, GSQ)

    # M from i at p_j0
    @on(Global)
    def on_GLOBAL(self, p: ProcessId, g: GroupId, M: Global, m: bytes) -> None:
        i, _ = self.subgroup_of(p)
        self.arrive_global(g, i, M, m)

    @on(GlobalFound)
    def on_GLOBAL_FOUND(self, p: ProcessId, g: GroupId, found: GlobalFound, m: bytes) -> None:
        _, main = self.subgroup_of(p)
        if not 0 <= found.i < len(main.rsq) or found.i == self.i:
            raise PeerError(f"there is no other subgroup {found.i}")
        self.arrive_global(g, found.i, found.message, m)

    def arrive_global(self, g: GroupId, i: Column, M: Global, m: bytes) -> None:
        """wait until M.GSQ = RSQ_i and RSQ_h >= M.RSQ_h for h != i;  accept M;  broadcast m_j"""
        assert self.main is not None
        if self.layout.site.get(M.SP) != i:
            raise PeerError(f"subgroup {i} has no process {M.SP}")
        for h, GSQ in self.main.arrive(i, M.GSQ, M.RSQ, M, m):
            _, accepted, payload = self.main.store[h][GSQ]
            before = self.frames[self.layout.place[accepted.SP]]
            if accepted.n != before + 1:  # what this process broadcasts, it answers for
                told = f"frame {accepted.n} of {accepted.SP} after {before}"
                self.out.faults.append((self.layout.gateways[h], told))
                continue
            seq = self.broadcast(g, accepted.SP, accepted.n, accepted.RSQ, payload)
            self.pair(0, seq, h, GSQ)
        self.advance(g)

    # -- losses -----------------------------------------------------------------------------------

    def watch(self, g: GroupId) -> None:
        super().watch(g)
        self.watch_gaps(g)

    def watch_gaps(self, g: GroupId) -> None:
        """What is lost is asked for after a while."""
        if LOCAL not in self.running and not self.local.complete():
            self.start_timer(g, LOCAL, self.recovery.patience(LOCAL))
        if self.main and GLOBAL not in self.running and not self.main.complete():
            self.start_timer(g, GLOBAL, self.recovery.patience(GLOBAL))

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if not self.layout.subgroups:
            return
        if name == "copies":
            self.recovery.copies = 0
        elif name == LOCAL:
            for u, to, numbers in self.requests(g, LOCAL, self.local):
                self.to((self.layout.subgroups[self.i][to],), g, Lost(u, numbers))
            self.watch_gaps(g)
        elif name == GLOBAL and self.main is not None:
            for i, to, numbers in self.requests(g, GLOBAL, self.main):
                self.to((self.layout.gateways[to],), g, GlobalLost(i, numbers))
            self.watch_gaps(g)

    def requests(
        self, g: GroupId, name: str, layer: Layer[M]
    ) -> Iterator[tuple[Column, Column, tuple[int, ...]]]:
        """(whose messages, whom to ask, which)"""
        for u, to, wanted in self.recovery.requests(name, layer):
            self.note("nack", g, self.me, 0, f"{len(wanted)} of column {u} from {to}")
            yield u, to, wanted

    @on(Lost)
    def on_LOST(self, p: ProcessId, g: GroupId, lost: Lost, m: bytes) -> None:
        self.column_of(p)
        for message, payload in self.stored(g, self.local, lost.u, lost.numbers):
            self.to((p,), g, Found(lost.u, message), payload)

    @on(GlobalLost)
    def on_GLOBAL_LOST(self, p: ProcessId, g: GroupId, lost: GlobalLost, m: bytes) -> None:
        _, main = self.subgroup_of(p)
        for message, payload in self.stored(g, main, lost.i, lost.numbers):
            self.to((p,), g, GlobalFound(lost.i, message), payload)

    def stored(
        self, g: GroupId, layer: Layer[M], column: Column, numbers: tuple[int, ...]
    ) -> Iterator[tuple[M, bytes]]:
        """Of these messages what is here, as far as the limit allows."""
        for number, message, payload in self.recovery.stored(layer, column, numbers):
            self.note("retransmit", g, self.me, 0, f"number {number} of column {column}")
            yield message, payload
        if self.recovery.copies:
            self.start_timer(g, "copies", self.options.gap_ms)

    # -- views ------------------------------------------------------------------------------------

    def on_view(self, view: View) -> None:
        g = view.group
        assert not view.guests, CLOSED
        if sent := self.sent_before + self.S:
            self.out.stable.append((g, sent))
        stays, inside = bool(self.layout.subgroups), self.me in view.members
        self.sent_before = sent if stays and inside else 0
        self.handed = deque(NOBODY for _ in self.handed if stays)
        self.S = 0
        if inside:
            subgroups = view.subgroups or self.subgroups(view.members)
            layout = layout_of(view.members, subgroups)
            self.stand(layout, layout.site[self.me], layout.column[self.me])
        else:  # our last view: nothing after it is for us
            self.views[g] = View(g, view.number, (), self.me, view.era)
            self.stand(NOBODY_ANYWHERE, 0, 0)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """D9: what was accepted here. D8: with the sum of m.RSQ."""
        return tuple(
            Kept(message.sp, message.n, (sum(message.RSQ),), payload)
            for message, payload in self.local.accepted()
        )

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        """D8: in the subgroup of the source a message has the RSQ of the source, elsewhere that of
        its gateway, which is not less. Who holds what follows it holds the lesser one, too."""
        return min(one, other)

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        if frame.origin not in senders or frame.n < 1 or len(frame.stamp) != 1:
            return False
        place = self.layout.place.get(frame.origin)
        if place is None:
            return True
        if frame.origin == self.me:
            return frame.n <= self.S
        return frame.n <= self.frames[place] + self.options.max_held

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """Whatever its level, what was accepted is delivered: all survivors have it now."""
        for u, seq in self.queue:
            _, message, payload = self.local.store[u][seq]
            self.hand_over(g, message.sp, message.n, payload)
        self.queue.clear()
        senders = self.views[g].senders
        for frame in sorted(union, key=lambda kept: (kept.stamp, kept.origin, kept.n)):
            if self.plausible(g, senders, frame):
                place = self.layout.place[frame.origin]
                if frame.n == self.frames[place] + 1:
                    self.frames[place] = frame.n
                    self.hand_over(g, frame.origin, frame.n, frame.payload)

    def hand_over(self, g: GroupId, q: ProcessId, n: int, payload: bytes) -> None:
        """A frame that the flush has made stable."""
        self.out.deliveries.append((g, q, n, 0, payload))
        if self.options.driver_consumes:
            self.handed.append(NOBODY)

    # -- what is here -----------------------------------------------------------------------------

    def has_delivered(self, g: GroupId, q: ProcessId, n: int) -> bool:
        place = self.layout.place.get(q)
        return place is not None and n <= self.frames[place]

    def holdings(self, g: GroupId) -> Holdings:
        return Holdings(len(list(self.waiting_frames())), sum(1 for _ in self.local.accepted()))

    def waiting_frames(self) -> list[WaitingFrame]:
        return [waiting.frame for waiting in self.held_back()]

    def held_back(self) -> list[Waiting]:
        return [waiting for g in self.views for waiting in self.waiting(g)]

    def waiting(self, g: GroupId) -> Iterator[Waiting]:
        """What waits for other messages, in either layer; and what waits for its level."""
        for id, message, payload in self.local.waiting():
            awaits = first_named(self.missing(g, id))
            yield Waiting(g, message.sp, message.n, awaits, payload)
        if self.main is not None:
            for id, M, payload in self.main.waiting():
                yield Waiting(g, M.SP, M.n, first_named(self.missing_global(g, id)), payload)
        for u, seq in self.queue:
            _, message, payload = self.local.store[u][seq]
            unknown = Awaited("confirmation", g, message.sp, message.n)
            yield Waiting(g, message.sp, message.n, (unknown,), payload)

    def missing(self, g: GroupId, id: Id) -> Iterator[Awaited]:
        """What a local message waits for."""
        u, seq = id
        if seq > self.local.rsq[u]:
            yield self.named(g, u, seq - 1)
        for w, number in self.local.awaited_of_others(u, seq):
            yield self.named(g, w, number)

    def named(self, g: GroupId, u: Column, seq: int) -> Awaited:
        """Of a local process the frame; what a gateway passes on may be anybody's."""
        return Awaited("relay" if u == 0 else "frame", g, self.layout.subgroups[self.i][u], seq)

    def missing_global(self, g: GroupId, id: Id) -> Iterator[Awaited]:
        """What a global message waits for."""
        i, GSQ = id
        assert self.main is not None
        if self.main.rsq[i] < GSQ:
            yield Awaited("relay", g, self.layout.gateways[i], GSQ - 1)
        for h, number in self.main.awaited_of_others(i, GSQ):
            yield Awaited("relay", g, self.layout.gateways[h], number)
