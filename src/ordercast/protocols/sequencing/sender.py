"""The sender: what one process sends to its groups of one order, in which order, and when.

A sender is never blocked. Where the order is causal, its frames are under way to one sequencer at a
time: any number of them, to any groups that this one numbers. A frame for another sequencer waits
until all of them are *safe*: delivered here, answered, or settled by a change. Otherwise the two
sequencers could give numbers that contradict each other (E-K11).
"""

from __future__ import annotations

from typing import Protocol

from ordercast.core.changing import Place, Places
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.headers import Answer, Asked, Request, Spread
from ordercast.protocols.sequencing.outbox import Outbox, Own
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import NOWHERE


class OwnSequencer(Protocol):
    """The sequencer at the same process, as a sender sees it."""

    def requested(self, p: ProcessId, asked: Asked) -> None:
        """Number this frame of p."""


class OwnMember(Protocol):
    """The member at the same process, as a sender sees it."""

    def keep_body(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """The body of a frame came from its sender."""

    def has_passed(self, h: GroupId, place: Place) -> bool:
        """Have all members of h consumed what is at this place?"""


class Sender(Part):
    """Own frames, and C_p: what has been seen here, which comes before the next of them."""

    lent = Part.lent | {"sequencer", "member"}

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.context: dict[GroupId, Place] = {}  # C_p: what has been seen here
        self.pumping = False  # inside `pump`

    def connect(self, env: Environment, sequencer: OwnSequencer, member: OwnMember) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.sequencer = sequencer
        self.member = member

    # multicast(G, m) at p: n := n + 1 in G
    def multicast(self, g: GroupId, m: bytes) -> None:
        """The application sends a frame."""
        self.outbox.add(g, m)
        self.pump()

    def pump(self) -> None:
        """DO-MULTICAST for every frame that may leave now. One that is numbered here may be
        answered at once, and call this again: that is left to the loop."""
        if self.pumping:
            return
        self.pumping = True
        try:
            while (own := self.outbox.next()) is not None and self._pump_one(own):
                pass
        finally:
            self.pumping = False

    def _pump_one(self, own: Own) -> bool:
        view = self.views.get(own.group)
        if view is None or not self._may_leave(view):
            return False
        outbox = self.outbox
        outbox.unsent.popleft()
        after = outbox.after(own.group) if self.causal else ()
        context = self._seen() if self.causal else ()
        first = outbox.first(own.group)
        if self.options.bodies_apart and self.me in view.members:
            own.request = Spread(view.leader, own.n, first, context, after)
        else:
            own.request = Request(own.n, first, context, after)
        outbox.left(own, view.leader)
        self._ask(own, view)
        if self.options.lossy and (own.group, "retry") not in self.timers.running:
            self.timers.start(own.group, "retry", self.timers.waits(own.group).requests.wait)
        return True

    def _may_leave(self, view: View) -> bool:
        target = self.outbox.target
        return not self.causal or target is None or target == view.leader

    def _seen(self) -> Places:
        """C_p, without what is known to have passed everywhere: nobody need wait for that."""
        passed = self.member.has_passed
        for h in [h for h, place in self.context.items() if passed(h, place)]:
            del self.context[h]
        return tuple((h, era, N) for h, (era, N) in self.context.items())

    def _ask(self, own: Own, view: View) -> None:
        assert own.request is not None
        g, era = view.group, view.era
        if isinstance(own.request, Spread):
            to = tuple(p for p in dict.fromkeys((view.leader, *view.members)) if p != self.me)
            if to:
                self.out.transmits.append((to, g, era, own.request, own.payload))
            self.member.keep_body(g, self.me, own.n, own.payload)
        elif view.leader != self.me:
            self.out.transmits.append(((view.leader,), g, era, own.request, own.payload))
        if view.leader == self.me:
            self.sequencer.requested(self.me, (g, era, own.request, own.payload))

    def repeat_requests(self, g: GroupId) -> None:
        """On a network that loses: nothing was heard of these for a while."""
        view = self.views.get(g)
        if view is None:
            return
        waits, outbox = self.timers.waits(g), self.outbox
        line = (outbox.own[g, n] for n in outbox.of_group.get(g, ()))
        left = [own for own in line if own.request is not None]
        if waits.is_request_lost(left[0].n if left else 0) and view.leader != self.me:
            for own in left[: self.options.fetch_batch]:
                self.note("retransmit", g, self.me, own.n, "request")
                self._ask(own, view)
        if g in outbox.under_way:
            self.timers.start(g, "retry", waits.requests.wait)

    # -- what becomes of own frames ---------------------------------------------------------------

    def on_ANSWER(self, p: ProcessId, packet: Receive) -> None:
        """The sequencer says where frames of a guest are."""
        answer: Answer = packet.header  # type: ignore[assignment]
        if not answer.stable <= answer.n <= self.outbox.count.get(packet.group, 0):
            raise PeerError(f"frame {answer.n} has a place, which was not sent")
        self.answered(packet.group, packet.era, answer)

    def answered(self, g: GroupId, era: int, answer: Answer) -> None:
        """As a guest of g: frames have places that no crash takes away, and some are consumed."""
        self.placed(g, answer.n, (era, answer.N))
        self.out.ordered.append((g, answer.n - self.outbox.began.get(g, 0)))
        self.consumed(g, answer.stable)

    def era_ended(self, g: GroupId) -> None:
        """As a guest of g. Own frames that are safe were numbered in it, or before: all members
        that are left have them. Nobody says so any more: who numbered them counts anew."""
        n = self.outbox.all_safe(g)
        if n > self.outbox.began.get(g, 0):
            self.out.ordered.append((g, n - self.outbox.began.get(g, 0)))
            self.consumed(g, n)

    def placed(self, g: GroupId, n: int, place: Place) -> None:
        """Own frames to g up to n have their places, and a crash does not take them away."""
        if self.causal:
            self.saw(g, place)
        if self.outbox.safe(g, n):
            self.pump()

    def consumed(self, g: GroupId, n: int) -> None:
        """Own frames to g up to n were consumed by all: the application has room for others."""
        outbox, began = self.outbox, self.outbox.began.get(g, 0)
        if n > max(began, outbox.consumed.get(g, 0)):
            outbox.consumed[g] = n
            self.out.stable.append((g, n - began))

    # C_p := merge of C_p, context and its place
    def saw(self, h: GroupId, place: Place) -> None:
        """The context only rises: a change that settled own frames may have named the era after
        the one that is still being delivered here."""
        if place > self.context.get(h, NOWHERE):
            self.context[h] = place

    def check(self) -> None:
        """What must always hold of a sender."""
        self.outbox.check()
        if self.causal:
            leaders = {self.views[g].leader for g in self.outbox.under_way}
            assert leaders <= {self.outbox.target}, "frames are under way to one sequencer"
