"""Suspicions: which nodes of the view are taken for dead, and which are heard and have to go.

    the detector suspects p     SUSPECT(p) to all who vote, and to p, in every tick
    SUSPECT(p) from q           the two are at odds (`disputes`). The one that leads waits no
                                longer, if p is silent there, too, and has more than one accuser
    a dispute is ripe           the one that leads removes one node: it is *judged*. If more than
                                half do not hear the one that leads, all take it for dead
    p does not answer what      the one that leads gives it up: it is judged, too
    everybody waits for
    p is heard again            it is trusted, unless it was judged, or an attempt is under way;
                                packets may be lost, so the view begins anew

One accuser alone never removes another node. Who is cut off counts on everybody that it hears.
"""

from __future__ import annotations

from typing import Protocol

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import Suspect
from ordercast.membership.agreement_part import Cluster, OwnNode, Part
from ordercast.membership.agreement_table import Standing
from ordercast.membership.disputes import Disputes


class OwnProposer(Protocol):
    """The proposer at the same node."""

    @property
    def is_trying(self) -> bool:
        """Is an attempt under way?"""


class NextViews(Protocol):
    """What the next view should be."""

    def renew(self) -> None:
        """Packets may be lost: the view should begin anew."""


class Suspicions(Part):
    """Who is at odds with whom, and who has to go though it is heard."""

    lent = Part.lent | {"proposer", "next_views"}

    def __init__(self, timeout_ticks: int) -> None:
        self.judged: dict[ProcessId, int] = {}  # removed though they are heard; since which tick
        self.disputes = Disputes(timeout_ticks)

    def connect(self, own: OwnNode, proposer: OwnProposer, next_views: NextViews) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.proposer = proposer
        self.next_views = next_views

    def begin_view(self) -> None:
        """Nobody has said anything in it yet."""
        self.judged, self.disputes = {}, Disputes(self.own.options.timeout_ticks)

    def expire(self) -> None:
        """What others said, and did not say again."""
        now = self.own.ticks
        self.disputes.expire(now)
        self.judged = {p: t for p, t in self.judged.items() if now - t <= self.own.patience}

    def trust_again(self) -> None:
        """A link broke, and both ends live. Nobody is excluded who is heard again before anything
        was decided; but packets may be lost. Who is cut off counts on everybody that it hears."""
        own = self.own
        for p in tuple(own.suspected):
            heard = own.detector.silent_for(p) == 0 and p in own.connected
            judged = p in self.judged and own.standing is Standing.IN
            if heard and not judged and not self.proposer.is_trying:
                own.detector.trust(p)
                self.judged.pop(p, None)
                self.next_views.renew()

    def accuse(self, cluster: Cluster) -> None:
        """Tell all who vote, and the suspected themselves."""
        own = self.own
        if own.standing is Standing.IN:
            for p in own.pids:
                if p in own.suspected:
                    to = dict.fromkeys((*own.electors, p))
                    word = Suspect(own.in_force.id, p)
                    own.send(cluster, tuple(q for q in to if q != own.me), word)

    def on_suspect(self, cluster: Cluster, src: ProcessId, suspect: Suspect) -> None:
        """src does not hear p."""
        own, p = self.own, suspect.pid
        if p not in own.pids:
            raise PeerError(f"it accuses {p}, which is not in the view")
        if p == src or p in own.suspected or src in own.suspected:
            return
        self.disputes.accuse(src, p, own.ticks)
        silent_here = own.leads and p != own.me and own.detector.silent_for(p) > 1
        if silent_here and len(self.disputes.accusers(p)) > 1:  # why wait any longer?
            own.detector.told(p)
            own.act(cluster)

    def settle_disputes(self) -> None:
        """The one that leads removes one node at a time. If more than half do not hear the one that
        leads, all take it for dead: otherwise who hears it would wait for it for ever."""
        acting, here = self.own.acting(), self.own.here()
        if acting == self.own.me:
            goes = self.disputes.who_goes(here, acting)
        else:
            others = [p for p in here if p != acting]
            goes = acting if self.disputes.is_given_up(acting, others) else None
        if goes is not None:
            self._judge(goes)

    def give_up(self, cluster: Cluster, unanswering: tuple[ProcessId, ...]) -> None:
        """These are heard, and everybody waits in vain for what only they can say."""
        own = self.own
        given_up = [p for p in unanswering if p in own.pids and p not in own.suspected]
        for p in given_up if own.leads and own.standing is Standing.IN else ():
            self._judge(p)
        if given_up:
            own.act(cluster)

    def _judge(self, p: ProcessId) -> None:
        """It goes, though it is heard."""
        self.own.detector.told(p)
        self.judged[p] = self.own.ticks
