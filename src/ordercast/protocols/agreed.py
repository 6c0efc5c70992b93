"""Total order by agreement: all propose a number, the highest proposal wins.

Source      001 (Coulouris et al.), slides "Total Ordering (5)" and "(6)" (ISIS). The figure is
            lost; the variables P and A have survived.
Guarantees  total, FIFO and causal order within one group.
Needs       reliable links that keep the order of a pair (N2).
Costs       3(n - 1) packets and three integers in the header of the body. A message waits three
            hops, and for every member.

    TO-multicast(g, m) by p      P := max(A, P) + 1;  B-multicast(g, <MSG, m, P>)
    <MSG, m, Pp> from p at q     P := max(A, P) + 1;  queue m under max((P, q), (Pp, p)), undecided;
                                 send(p, <PROPOSED, m, P>)
    all have proposed, at p      (a, w) := max over members q of (P of q, q);
                                 B-multicast(g, <AGREED, m, a, w>)
    <AGREED, m, a, w>            A := max(A, a);  queue m under (a, w), decided
    the first of the queue       while it is decided: TO-deliver it
    is decided

A is the largest agreed number seen here, P the largest proposed here.

Departures from the source
  D1  Agreed numbers are not unique: two messages may get the same. Messages are ordered by
      (a, w), w being the member that proposed a; nobody proposes a number twice.
                                                                               (test_agreed_D1_...)
  D2  A crash leaves messages undecided for ever. The view change settles them. First comes what
      some survivor has delivered, by its key; then the rest, by the agreed key or the highest
      proposal that any survivor knows, and never before an earlier message of the same sender.
      Ordering *all* by the highest known proposal diverges: a survivor that never proposed for m
      may have delivered higher keys.                                          (test_agreed_D2_...)
  D3  MSG carries the sender's own proposal. It exceeds the keys of all that the sender has
      delivered, so the rest of D2 comes in causal order, too.                 (test_agreed_D3_...)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import MAX_NAMED, Awaited, Waiting, WaitingFrame, first_named
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import AcknowledgedProtocol
from ordercast.machinery.placing import Id, Key, PlacingQueue

# In a flush a frame has the stamp (number, proposer, state):
UNDECIDED, DECIDED, DELIVERED = 0, 1, 2  # how far it came at the survivor that reports it


class Msg(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, which proposes P; all have delivered its frames up to `stable`."""

    n: int
    P: int
    stable: int


class Proposed(msgspec.Struct, frozen=True, array_like=True):
    """To a sender: the number P for your frame n."""

    n: int
    P: int


class Agreed(msgspec.Struct, frozen=True, array_like=True):
    """The place of my frame n is (a, w)."""

    n: int
    a: int
    w: ProcessId


class AgreedOrder(AcknowledgedProtocol):
    """TO-multicast by agreement."""

    declaration = Declaration(
        name="agreed",
        order="total",
        scope="group",
        network="N2",
        header="3",
        packets="3(n-1)",
        control="2(n-1)",
        exact=False,
        silence="nothing",
        source="001, Total Ordering (5) and (6)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless",
        ),
        crash="nothing more is delivered until the view changes; the survivors then deliver all",
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.A = 0  # the largest agreed number seen here
        self.P = 0  # the largest number proposed here
        self.received: dict[ProcessId, NumberSet] = {}  # bodies that came, per sender
        self.delivered: dict[ProcessId, NumberSet] = {}  # ... and were delivered
        self.queue = PlacingQueue()  # by the agreed key, or the highest proposal known here
        self.proposals: dict[int, dict[ProcessId, int]] = {}  # for own frames, undecided

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.A = self.P = 0
        self.received = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.delivered = {q: NumberSet(self.options.max_held) for q in view.senders}
        self.queue = PlacingQueue()
        self.proposals = {}

    # TO-multicast(g, m) by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        self.received[self.me].add(n)
        if g in self.member_of:
            self.P = max(self.A, self.P) + 1
            self.proposals[n] = {self.me: self.P}
            self.queue.put((self.me, n), (self.P, self.me), m)
        else:  # a guest proposes nothing; it only keeps its frame
            self.proposals[n] = {}
            self.deliver(g, self.me, n, m, (0, self.me, UNDECIDED))
        own = self.proposals[n].get(self.me, 0)
        self.b_multicast(g, Msg(n, own, self.stability[g].own_stable()), m)
        self.decide_if_all_proposed(g, n)

    # <MSG, m, Pp> from p at q
    @on(Msg)
    def on_MSG(self, p: ProcessId, g: GroupId, msg: Msg, m: bytes) -> None:
        self.stability[g].learn_stable(p, msg.stable)
        n = msg.n
        if n > self.delivered[p].mark + self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} frames without an agreed number")
        if p in self.views[g].members:
            self.check_number(g, msg.P)
        elif msg.P:
            raise PeerError(f"a guest proposes the number {msg.P}")
        if self.received[p].add(n):
            self.P = max(self.A, self.P) + 1
            self.queue.put((p, n), max((self.P, self.me), (msg.P, p)), m)
            self.send(p, g, Proposed(n, self.P))

    @on(Proposed)
    def on_PROPOSED(self, q: ProcessId, g: GroupId, proposed: Proposed, m: bytes) -> None:
        n, P = proposed.n, proposed.P
        if q not in self.views[g].members:
            raise PeerError(f"process {q} is not a member of the view")
        if not 1 <= n <= self.stability[g].S:
            raise PeerError(f"a number for frame {n}, which was not sent")
        self.check_number(g, P)
        if n in self.proposals:
            if self.proposals[n].setdefault(q, P) != P:
                raise PeerError(f"a second number for frame {n}")
            self.decide_if_all_proposed(g, n)

    def decide_if_all_proposed(self, g: GroupId, n: int) -> None:
        """all have proposed: (a, w) := max over members q of (P of q, q);  multicast AGREED"""
        proposals = self.proposals[n]
        if not self.views[g].members:  # nobody is there who could deliver it
            del self.proposals[n]
        elif len(proposals) == len(self.views[g].members):
            a, w = max((P, q) for q, P in proposals.items())  # D1
            del self.proposals[n]
            self.b_multicast(g, Agreed(n, a, w))
            if g in self.member_of:
                self.settle(g, (self.me, n), (a, w))

    # <AGREED, m, a, w>
    @on(Agreed)
    def on_AGREED(self, p: ProcessId, g: GroupId, agreed: Agreed, m: bytes) -> None:
        self.stability[g].check_sender(p)
        n, key = agreed.n, (agreed.a, agreed.w)
        self.check_number(g, agreed.a)
        if agreed.w not in self.views[g].members:
            raise PeerError(f"process {agreed.w} proposed, which is not in the view")
        if n not in self.received[p]:  # all have proposed, so it came to all
            raise PeerError(f"frame {n} is agreed on, but did not come here")
        self.settle(g, (p, n), key)

    def settle(self, g: GroupId, id: Id, key: Key) -> None:
        """A := max(A, a);  queue m under (a, w), decided;  deliver what is first and decided"""
        if not self.queue.is_open(id):  # a repeat
            return
        if key < self.queue.keys[id]:
            raise PeerError(f"frame {id[1]} is agreed to be at {key}, below a proposal")
        self.A = max(self.A, key[0])
        self.queue.fix(id, key)
        for (q, n), place, m in self.queue.take_first():
            self.delivered[q].add(n)
            self.deliver(g, q, n, m, (*place, DELIVERED))

    def check_number(self, g: GroupId, number: int) -> None:
        """No number exceeds the count of frames sent; few of those are unknown to a member."""
        most = max(self.A, self.P) + self.options.max_held * len(self.views[g].senders)
        if number < 1 or (number > most and g in self.member_of):
            raise PeerError(f"the number {number} cannot have been proposed")

    # -- views ------------------------------------------------------------------------------------

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        queue = self.queue
        states = {id: UNDECIDED if queue.is_open(id) else DECIDED for id in queue.keys}
        queued = (Kept(*id, (*key, states[id]), queue.bodies[id]) for id, key in queue.keys.items())
        return (*super().unstable(g), *queued)

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[q].mark

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        if len(frame.stamp) != 3:
            return False
        number, proposer, state = frame.stamp
        return number >= 0 and proposer in senders and state in (UNDECIDED, DECIDED, DELIVERED)

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        """Delivered before decided before undecided; then the higher proposal."""
        return max(one, other, key=lambda kept: (kept.stamp[2:], kept.stamp))

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """D2. All survivors have the same union, so all make the same order of it."""
        frames: dict[Id, Kept] = {}
        for kept in self.fitting(g, union):  # by sender, then number
            id = (kept.origin, kept.n)
            frames[id] = self.better(frames[id], kept) if id in frames else kept
        for frame in self.settled_order(frames):
            if self.delivered[frame.origin].add(frame.n):
                self.deliver(g, frame.origin, frame.n, frame.payload, frame.stamp)

    def settled_order(self, frames: dict[Id, Kept]) -> list[Kept]:
        """First what a survivor delivered; then what has no gap before it, by the keys known."""
        order: list[tuple[bool, Key, Id]] = []
        last: dict[ProcessId, tuple[int, Key]] = {}  # of each sender: the frame before, its key
        for (p, n), frame in frames.items():
            before, floor = last.get(p, (self.delivered[p].mark, (0, 0)))
            number, proposer, state = frame.stamp
            if n > before + 1:  # nobody alive can fill the gap
                continue
            key = (number, proposer)
            if state != DELIVERED:
                key = max(key, floor)
            last[p] = (max(n, before), key)
            order.append((state != DELIVERED, key, (p, n)))
        return [frames[id] for _, _, id in sorted(order)]

    def held_back(self) -> list[Waiting]:
        return [waiting for g in self.views for waiting in self._waiting(g)]

    def waiting_frames(self) -> list[WaitingFrame]:
        return [(g, *id, m) for g in self.views for id, m in self.queue.bodies.items()]

    def _waiting(self, g: GroupId) -> Iterator[Waiting]:
        """Each waits for its own place, and for the place of all before it that have none."""
        awaits: tuple[Awaited, ...] = ()
        for id in self.queue.in_order():
            if self.queue.is_open(id) and len(awaits) < MAX_NAMED:
                awaits = first_named((*awaits, *self._awaited(g, id)))
            yield Waiting(g, *id, awaits, self.queue.bodies[id])

    def _awaited(self, g: GroupId, id: Id) -> list[Awaited]:
        if id[0] != self.me:
            return [Awaited("agreement", g, *id)]
        missing = [q for q in self.views[g].members if q not in self.proposals[id[1]]]
        return [Awaited("proposal", g, q, id[1]) for q in missing]
