"""The proposer: a node that leads tries to decide what comes after the view.

    the coordinator, once      PROPOSE(0, next view): ballot 0 is its own, nobody need be asked
    otherwise                  END(b) to all who are here, with b above all that is known
    a majority has reported    PROPOSE what was accepted under the highest ballot, if a majority may
                               have accepted it; if nothing was, the next view (`reconfiguration`)
    a majority has accepted    it is decided: INSTALL to all
    OVERRULED by so many that  the attempt ends; the next ballot is above as many promises as
    the rest is no majority    must be won, so that one node alone does not drive ballots up

A recovery, and a view of one side of a partition, must be accepted by all who are asked. An attempt
ends when it cannot succeed any more, when a higher ballot is promised here, and after some time.
"""

from __future__ import annotations

from typing import Protocol

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import (
    Ballot,
    EndView,
    InstallView,
    Overruled,
    ProposeView,
    ViewAccepted,
    ViewReport,
)
from ordercast.membership.agreement_part import Cluster, OwnNode, Part, Transitions
from ordercast.membership.agreement_table import INVOLVED, Phase
from ordercast.membership.attempt import Attempt
from ordercast.membership.node_view import NodeView
from ordercast.membership.plausible import MAX_BALLOTS


class OwnAcceptor(Protocol):
    """The acceptor at the same node, as its proposer sees it."""

    @property
    def promised(self) -> Ballot:
        """No lower ballot counts here."""


class NextViews(Protocol):
    """What the next view should be."""

    def has_a_goal(self) -> bool:
        """Should anything change?"""

    def may_decide(self) -> bool:
        """Are enough here?"""

    def may_recover(self) -> bool:
        """May those here go on without a majority?"""

    def next_view(self, attempt: Attempt) -> NodeView | None:
        """Those here, without those who go, with those who come; None: that cannot be."""

    def last_view(self, attempt: Attempt, into: ProcessId) -> NodeView:
        """The last one of this side, which goes over to that of another node."""


class OwnEntrance(Protocol):
    """Who asks to be let in."""

    def is_applicant(self, p: ProcessId) -> bool:
        """Does it?"""


class Proposer(Part):
    """The attempts of this node to decide what comes after the view, one at a time."""

    lent = Part.lent | {"transitions", "acceptor", "next_views", "entrance"}

    def __init__(self) -> None:
        self.attempt: Attempt | None = None
        self.spent = False  # ballot 0 was used
        self.overruled = 0  # the next ballot must be above it

    def connect(
        self,
        own: OwnNode,
        transitions: Transitions,
        acceptor: OwnAcceptor,
        next_views: NextViews,
        entrance: OwnEntrance,
    ) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.transitions = transitions
        self.acceptor = acceptor
        self.next_views = next_views
        self.entrance = entrance

    def begin_view(self) -> None:
        """Nothing was tried yet."""
        self.attempt, self.spent, self.overruled = None, False, 0

    def stop(self) -> None:
        """This node leads nobody any more."""
        self.attempt = None

    def give_way(self, ballot: Ballot) -> None:
        """This ballot was promised here."""
        if self.attempt is not None and self.attempt.ballot < ballot:
            self.attempt = None

    def grow_older(self) -> None:
        """One tick."""
        if self.attempt is not None:
            self.attempt.age += 1
            if self.attempt.age > self.own.patience or not self.own.leads:
                self.attempt = None

    def ask_again(self, cluster: Cluster) -> None:
        """A node that had an earlier view, when it was asked, could not answer: the view may have
        come later, from a coordinator that has left with it."""
        attempt = self.attempt
        if attempt is None:
            return
        silent = attempt.asked - attempt.answered - attempt.overruled_by.keys() - {self.own.me}
        if silent:
            self.own.send(cluster, tuple(sorted(silent)), self._question(attempt))

    def _question(self, attempt: Attempt) -> EndView | ProposeView:
        view = self.own.in_force.id
        if attempt.phase is Phase.ENDING:
            return EndView(view, attempt.ballot)
        assert attempt.proposal is not None
        return ProposeView(view, attempt.ballot, attempt.proposal)

    @property
    def is_trying(self) -> bool:
        """Is an attempt under way?"""
        return self.attempt is not None

    def proposes(self, p: ProcessId) -> bool:
        """Is there a proposal of this node that names p?"""
        proposal = None if self.attempt is None else self.attempt.proposal
        return proposal is not None and p in proposal.pids

    # -- an attempt begins, and fails -------------------------------------------------------------

    def act(self, cluster: Cluster) -> None:
        """Begin an attempt, if it is this node's task, and anything should change."""
        if self.attempt is not None and self._is_hopeless(self.attempt):
            self.attempt = None
        if not self.own.leads or self.attempt is not None:
            return
        if self.next_views.has_a_goal() and self.next_views.may_decide():
            self._begin_attempt(cluster)

    def _begin_attempt(self, cluster: Cluster) -> None:
        view, me = self.own.in_force, self.own.me
        if view.coordinator == me and not self.spent and self.acceptor.promised.n == 0:
            self.spent = True
            self.attempt = Attempt(Ballot(0, me), Phase.PROPOSING)
            self.attempt.reports[me] = ViewReport(view.id, self.attempt.ballot)
            self._propose(cluster)
        else:
            ballot = self._higher_ballot()
            self.attempt = Attempt(ballot, Phase.ENDING)
            self.attempt.asked = set(self.own.here())
            self.own.send(cluster, self.own.here(), self._question(self.attempt))

    def _higher_ballot(self) -> Ballot:
        return Ballot(max(self.acceptor.promised.n, self.overruled) + 1, self.own.me)

    def _is_hopeless(self, attempt: Attempt) -> bool:
        """It can no longer get all answers that it needs."""
        here = set(self.own.here())
        missing = {p for p in attempt.asked - attempt.answered if not self._may_answer(p)}
        if attempt.recovers or not self.own.votes:
            return bool(missing or attempt.overruled_by)
        able = attempt.answered | (here - attempt.overruled_by.keys())
        return not self.own.in_force.won_by(able) and not self.next_views.may_recover()

    def _may_answer(self, p: ProcessId) -> bool:
        own = self.own
        return p == own.me or (p in own.connected and p not in own.suspected)

    def on_overruled(self, cluster: Cluster, src: ProcessId, word: Overruled) -> None:
        attempt = self.attempt
        if attempt is None:
            return
        if word.promised < attempt.ballot:
            if attempt.phase is Phase.ENDING and word.promised.n >= 0:
                self._lift(cluster, src, attempt, word.promised)
            return
        attempt.overruled_by[src] = min(word.promised.n, attempt.ballot.n + MAX_BALLOTS)
        if self._is_hopeless(attempt):
            self.overruled = max(self.overruled, self._next_ballot(attempt))
            self.attempt = None

    def _lift(self, cluster: Cluster, src: ProcessId, attempt: Attempt, promised: Ballot) -> None:
        """src is far below this attempt: bring it up step by step."""
        n = min(attempt.ballot.n, promised.n + MAX_BALLOTS)
        self.own.send(cluster, (src,), EndView(self.own.in_force.id, Ballot(n, self.own.me)))

    def _next_ballot(self, attempt: Attempt) -> int:
        """Above so many promises that the rest wins: one node alone does not drive ballots up."""
        promises = sorted(attempt.overruled_by.values())
        for n in promises:
            rest = [p for p in self.own.here() if attempt.overruled_by.get(p, 0) <= n]
            if self.own.votes and not attempt.recovers and self.own.in_force.won_by(rest):
                return n
        return promises[-1]

    # -- reports ----------------------------------------------------------------------------------

    def is_in_time(self, phase: Phase, header: ViewReport | ViewAccepted) -> bool:
        """Is it an answer in this phase of the attempt?"""
        attempt = self.attempt
        if attempt is None or attempt.phase is not phase or header.ballot.by != self.own.me:
            return False
        return header.ballot <= attempt.ballot

    def on_report(self, cluster: Cluster, src: ProcessId, report: ViewReport) -> None:
        attempt, own = self.attempt, self.own
        assert attempt is not None
        self._check_report(report)
        if report.ballot < attempt.ballot:
            self._lift(cluster, src, attempt, report.ballot)
            return
        attempt.reports[src] = report
        reporters = set(attempt.reports)
        enough = own.votes and own.in_force.won_by(reporters)
        if enough or (reporters >= attempt.asked and self.next_views.may_decide()):
            self._propose(cluster)

    def _check_report(self, report: ViewReport) -> None:
        if (report.accepted is None) != (report.proposal is None):
            raise PeerError("a report of half a proposal")
        if report.accepted is not None and report.proposal is not None:
            if not 0 <= report.accepted.n <= report.ballot.n:
                raise PeerError(f"ballot {report.accepted.n} was accepted before it was promised")
            self.own.check_next(report.proposal)

    def _accepted_before(self, attempt: Attempt) -> NodeView | None:
        """What others may have decided already must be proposed unchanged."""
        reports = attempt.reports
        if self.own.votes and not self.own.in_force.won_by(reports.keys()):
            return None
        found = [r for r in reports.values() if r.proposal is not None]
        found.sort(key=lambda report: report.accepted or Ballot(0, 0))
        for report in reversed(found):
            assert report.proposal is not None
            if self._may_be_decided(report.proposal, reports):
                return report.proposal
        return None

    def _may_be_decided(self, view: NodeView, reports: dict[ProcessId, ViewReport]) -> bool:
        """If it was, nobody who had part in that has accepted another since."""
        before = self.own.in_force
        if not self.own.votes:  # if not, that side may have gone on with it; so do we, without it
            here = self.own.here()
            return all(p in here or self.entrance.is_applicant(p) for p in view.pids)
        others = {p for p, report in reports.items() if report.proposal != view}
        if view.id.generation > before.id.generation:
            return not others.intersection(view.voters)
        return before.won_by(set(before.voters) - others)

    # -- a proposal -------------------------------------------------------------------------------

    def _propose(self, cluster: Cluster) -> None:
        attempt = self.attempt
        assert attempt is not None
        attempt.phase = Phase.PROPOSING
        before = self._accepted_before(attempt)
        attempt.is_new = before is None
        attempt.proposal = before or self.next_views.next_view(attempt)
        if attempt.proposal is None:
            self.attempt = None
            return
        attempt.asked = {*self.own.here(), *attempt.proposal.pids}
        everybody = tuple(dict.fromkeys((*self.own.here(), *attempt.proposal.pids)))
        self.own.send(cluster, everybody, self._question(attempt))

    def dissolve(self, cluster: Cluster, into: ProcessId) -> None:
        """One more view of those here; when all groups have ended in it, they go over."""
        attempt = self.attempt = Attempt(self._higher_ballot(), Phase.PROPOSING)
        attempt.asked = set(self.own.here())
        attempt.proposal = self.next_views.last_view(attempt, into)
        self.own.send(cluster, attempt.proposal.pids, self._question(attempt))

    def on_accepted(self, cluster: Cluster, src: ProcessId, word: ViewAccepted) -> None:
        attempt = self.attempt
        assert attempt is not None and attempt.proposal is not None
        if word.ballot != attempt.ballot:
            return
        attempt.accepted_by.add(src)
        if self._is_decided(attempt, attempt.proposal):
            self._decided(cluster, attempt.proposal)

    def _is_decided(self, attempt: Attempt, proposal: NodeView) -> bool:
        """A majority of the view decides. Of a new proposal a majority of its own voters must have
        it, too: then those who leave take nothing along that others lack."""
        if not self.own.votes:
            return attempt.accepted_by >= set(proposal.pids)
        if attempt.recovers:
            return attempt.accepted_by >= set(proposal.voters)
        is_shared = not attempt.is_new or proposal.won_by(attempt.accepted_by)
        return self.own.in_force.won_by(attempt.accepted_by) and is_shared

    def _decided(self, cluster: Cluster, view: NodeView) -> None:
        me = self.own.me
        told = tuple(dict.fromkeys((*self.own.pids, *view.pids)))
        self.own.send(cluster, tuple(p for p in told if p != me), InstallView(view))
        self.transitions.follow(cluster, me, view)

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Of an attempt that is under way."""
        attempt, view = self.attempt, self.own.view
        if attempt is None or view is None or self.own.standing not in INVOLVED:
            return
        assert attempt.ballot.by == self.own.me, "an attempt is one's own"
        assert attempt.ballot <= self.acceptor.promised, "who leads has promised that to itself"
        proposal, here = attempt.proposal, view.id
        if proposal is not None and self.own.votes and proposal.id.generation == here.generation:
            asked_enough = attempt.ballot.n == 0 or view.won_by(attempt.reports.keys())
            assert asked_enough, "a proposal follows from the reports of a majority"
