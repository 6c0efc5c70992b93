"""Protocols that keep their promise across groups: one machine serves all groups of a domain.

Groups *hang together* if they share a member, directly or through other groups. Their views change
together: at a cut all of them stand still, everything unstable is delivered, and the numbers of all
of them begin again. So a number named in a header always belongs to the era of its reader, whatever
group it is of, and nothing learned of foreign groups outlives a cut.

    Cut(flushes, views)    deliver what is left of all unions, in this protocol's order;
                           put all views in force;  take the packets that overtook them

What is not stable is kept (`Stability`, for each group). A multicast leaves when the send rule lets
it (`SendRule`), for which members tell each other what they hold:

    AskHeld(n) from q      once all frames of q up to n are here, delivered or not: send Held(n)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ordercast.core.events import Cut, Kept, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.parts import Part
from ordercast.machinery.send_rule import SendRule
from ordercast.machinery.stability import Ack, Stability, Stable


class AskHeld(msgspec.Struct, frozen=True, array_like=True):
    """To one member: say so when you hold all my frames up to n."""

    n: int


class Held(msgspec.Struct, frozen=True, array_like=True):
    """Your frames up to n are held here, delivered or not."""

    n: int


class DomainProtocol(OrderingProtocol):
    """One machine for all groups of a process that share an order and a protocol."""

    origins_answer = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.stability: dict[GroupId, Stability] = {}  # groups of which this process is a sender
        self.received: dict[GroupId, dict[ProcessId, NumberSet]] = {}  # delivered or held back
        self.send_rule = SendRule(self.options.resilience)
        self.promised: dict[tuple[GroupId, ProcessId], int] = {}  # AskHeld that waits for frames

    def parts(self) -> tuple[Part, ...]:
        """The parts of this page that must know of views and timers."""
        return ()

    # -- sending ----------------------------------------------------------------------------------

    def _multicast(self, multicast: Multicast) -> None:
        self.send_rule.deferred.append(multicast)
        self._send_deferred()

    def _send_deferred(self) -> None:
        rule, sent = self.send_rule, self.stability
        while rule.deferred:
            exposed = rule.exposed(sent, rule.deferred[0].group)
            if exposed:
                for h in exposed:
                    if rule.must_ask(sent[h]):
                        self.send(self.others[h][0], h, AskHeld(sent[h].S))
                return
            super()._multicast(rule.deferred.popleft())

    def held_up(self) -> Iterator[Waiting]:
        return self.send_rule.held_up(self.stability, self.me)

    @on(AskHeld)
    def on_ASK_HELD(self, q: ProcessId, g: GroupId, ask: AskHeld, m: bytes) -> None:
        self.stability[g].check_sender(q)
        if ask.n > self.mark(g, q) + self.options.max_held:
            raise PeerError(f"it asks for frame {ask.n}, far above {self.mark(g, q)}")
        self.promised[g, q] = max(ask.n, self.promised.get((g, q), 0))
        self.keep_promise(g, q)

    def keep_promise(self, g: GroupId, q: ProcessId) -> None:
        """A page calls this after a frame of q was held or delivered in g."""
        if self.promised and (n := self.promised.get((g, q))) is not None and self.mark(g, q) >= n:
            del self.promised[g, q]
            self.send(q, g, Held(n))

    @on(Held)
    def on_HELD(self, p: ProcessId, g: GroupId, held: Held, m: bytes) -> None:
        if p not in self.others[g]:
            raise PeerError(f"process {p} is no member, and holds nothing")
        if held.n > self.stability[g].S:
            raise PeerError(f"it holds frame {held.n}, but only {self.stability[g].S} were sent")
        self.held_at(g, p, held.n)

    def count_holders(self, g: GroupId, durability: int) -> None:
        self.send_rule.durability[g] = durability

    def held_at(self, g: GroupId, p: ProcessId, n: int) -> None:
        if self.send_rule.held_at(self.stability, g, p, n):
            self._send_deferred()

    # -- delivering -------------------------------------------------------------------------------

    def deliver(
        self, g: GroupId, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...] = ()
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""
        self.stability[g].deliver(self, q, n, m, stamp)

    def on_consumed(self, g: GroupId, frames: int) -> None:
        if g in self.stability:
            self.stability[g].on_consumed(self, frames)

    @on(Ack)
    def on_ACK(self, p: ProcessId, g: GroupId, ack: Ack, m: bytes) -> None:
        self.stability[g].on_ack(self, p, ack.n)
        if p in self.others[g]:  # who consumed a frame has held it
            self.held_at(g, p, ack.n)

    @on(Stable)
    def on_STABLE(self, q: ProcessId, g: GroupId, stable: Stable, m: bytes) -> None:
        self.stability[g].learn_stable(q, stable.n)

    def on_timer(self, g: GroupId, name: str) -> None:
        if g in self.stability:
            self.stability[g].on_timer(self, name)
        for part in self.parts():
            part.on_timer(self, g, name)

    # -- what is here -----------------------------------------------------------------------------

    def mark(self, g: GroupId, q: ProcessId) -> int:
        """All frames of q up to this one have come here."""
        return self.received[g][q].mark

    @abstractmethod
    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        """Every frame that is here and not delivered, of all groups."""

    def waiting_frames(self) -> list[WaitingFrame]:
        return [(g, frame.origin, frame.n, frame.payload) for g, frame in self.all_waiting()]

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        waiting = (frame for h, frame in self.all_waiting() if h == g)
        return (*self.stability[g].unstable(), *waiting)

    def has_delivered(self, g: GroupId, q: ProcessId, n: int) -> bool:
        return g in self.stability and self.stability[g].has_delivered(q, n)

    def holdings(self, g: GroupId) -> Holdings:
        if g not in self.stability:
            return Holdings(0, 0)
        kept = self.stability[g].kept_frames()
        return Holdings(len(self.unstable(g)) - kept, kept)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        assert self.stability.keys() == self.received.keys(), "one account for each group"
        for g, record in self.stability.items():
            record.invariants()
            for q, taken in record.taken.items():
                came = q == self.me or taken.mark <= self.mark(g, q)
                assert came, "only what has come was consumed"
        held = all(n > self.mark(g, q) for (g, q), n in self.promised.items())
        assert held, "who asked is told as soon as all is here"
        self.send_rule.invariants(self.stability)

    # -- the cut ----------------------------------------------------------------------------------

    def cut(self, cut: Cut) -> None:
        """Settle what all groups left; then begin all of them, then look at packets."""
        unions = {f.group: self.fitting(f.group, f.union) for f in cut.flushes}
        self.settle(unions, cut.views)
        super().cut(Cut((), cut.views))
        self._send_deferred()

    @abstractmethod
    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        """All groups stand still: deliver, in this protocol's order, what it can of the unions.

        Every survivor of g must deliver the same frames of g. A frame that is here already may be
        among them. The views are those that follow.
        """

    def fitting(self, g: GroupId, union: Sequence[Kept]) -> list[Kept]:
        """The union by sender and number, without what some member made up."""
        senders = self.views[g].senders
        return sorted(frame for frame in union if self.plausible(g, senders, frame))

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        q, n = frame.origin, frame.n
        if q not in senders or n < 1 or not self.well_stamped(g, senders, frame):
            return False
        return self.me not in senders or self.stability[g].may_exist(q, n, self.mark(g, q))

    @abstractmethod
    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """Does the frame carry what this protocol's order needs?"""

    def report_mark(self, g: GroupId) -> int:
        return max((part.highest_number() for part in self.parts()), default=0)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        raise AssertionError("groups that hang together end together: they need a Cut")

    def on_view(self, view: View) -> None:
        g = view.group
        record = Stability(view, self.me, self.options.max_held)
        record.follow(self, self.stability.get(g))
        self.promised = {key: n for key, n in self.promised.items() if key[0] != g}
        if record.sends:
            self.stability[g] = record
            self.received[g] = {q: NumberSet(self.options.max_held) for q in view.senders}
            self.send_rule.begin(g)
            for part in self.parts():
                part.begin(self, view)
        else:  # our last view: nothing after it is for us
            self.views[g] = View(g, view.number, (), self.me, view.era)
            self.forget_group(g)

    def forget_group(self, g: GroupId) -> None:
        """This process is out of g. Pages drop what they keep of it, too."""
        self.stability.pop(g, None)
        self.received.pop(g, None)
        self.send_rule.forget_group(g)
        for part in self.parts():
            part.forget_group(g)
        self.early = [packet for packet in self.early if packet.group != g]
        self.member_of.discard(g)
