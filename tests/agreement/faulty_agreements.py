"""Machines that break one rule of the agreement each. The judge of random runs must catch them."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.membership.acceptor import Acceptor
from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import Ballot, EndView
from ordercast.membership.claims import Claims
from ordercast.membership.departure import Departure
from ordercast.membership.entrance import Entrance
from ordercast.membership.heartbeats import Heartbeats
from ordercast.membership.node_view import ViewId
from ordercast.membership.proposer import Proposer
from ordercast.membership.reconfiguration import Reconfiguration
from ordercast.membership.suspicions import Suspicions


class RestartedCounts(Agreement):
    """A restarted node counts for its old vote, though it has forgotten what it accepted."""

    class reconfiguration_part(Reconfiguration):
        def may_recover(self):
            here, view = self.own.here(), self.own.view
            names = {node.name for node in self.entrance.admitted()}
            voters = [n for n in view.nodes if n.pid in view.voters]
            present = sum(1 for n in voters if n.pid in here or n.name in names)
            return 2 * present > len(voters)


class ViewAccounted(Agreement):
    """All of my view are accounted for: but somebody came later, of whom I never heard."""

    class reconfiguration_part(Reconfiguration):
        def may_recover(self):
            view = self.own.view
            names = {n.name for n in view.nodes if n.pid in self.own.here()}
            names.update(node.name for node in self.entrance.admitted())
            return names.issuperset(n.name for n in view.nodes)


class AnySideRecovers(Agreement):
    class reconfiguration_part(Reconfiguration):
        def may_recover(self):
            return True


class RecoversWhenReportersAreLost(Agreement):
    """Whoever has the reports of a majority proposes, and recovers if too few are left by then."""

    class reconfiguration_part(Reconfiguration):
        def next_view(self, attempt):
            self.may_recover = lambda: True
            try:
                return super().next_view(attempt)
            finally:
                del self.may_recover


class NeverRecovers(Agreement):
    class reconfiguration_part(Reconfiguration):
        def may_recover(self):
            return False


class NobodyRemembers(Agreement):
    """A node without a vote recovers the cluster."""

    def acting(self):
        return self.here()[0]

    @property
    def electors(self):
        return self.pids


class HalfDecides(Agreement):
    """Half of the voters, without the first, and half with it."""

    class reconfiguration_part(Reconfiguration):
        def may_recover(self):
            view = self.own.view
            present = [p for p in view.voters if p in self.own.here()]
            return 2 * len(present) >= len(view.voters)

        def next_view(self, attempt):
            view = super().next_view(attempt)
            attempt.recovers = False
            before = self.own.view.id
            id = ViewId(before.generation, before.fork, before.number + 1)
            return None if view is None else replace(view, id=id, anew=False)

    class proposer_part(Proposer):
        def _is_decided(self, attempt, proposal):
            voters = self.own.view.voters
            accepted = [p for p in voters if p in attempt.accepted_by]
            return 2 * len(accepted) >= len(voters)

        def _is_hopeless(self, attempt):
            return False

        def invariants(self):
            pass


class NewMajorityOnly(HalfDecides):
    """The voters of the next view decide it, not those of the view that ends."""

    class reconfiguration_part(HalfDecides.reconfiguration_part):
        def may_recover(self):
            return True

    class proposer_part(HalfDecides.proposer_part):
        def _is_decided(self, attempt, proposal):
            return proposal.won_by(attempt.accepted_by)


class AcceptedIgnored(Agreement):
    """What others have accepted is not proposed again."""

    class proposer_part(Proposer):
        def _accepted_before(self, attempt):
            return None


class PromiseBroken(Agreement):
    """A proposal is accepted under a ballot that is lower than the promised one."""

    class acceptor_part(Acceptor):
        def on_propose(self, cluster, src, propose):
            self.promised = Ballot(0, -1)
            super().on_propose(cluster, src, propose)

    class proposer_part(Proposer):
        def invariants(self):
            pass


class BallotUsedTwice(Agreement):
    """The coordinator proposes under ballot 0 again and again."""

    class proposer_part(Proposer):
        def _begin_attempt(self, cluster):
            self.spent = False
            super()._begin_attempt(cluster)


class PhantomsComeIn(Agreement):
    """Nobody looks whether there is a connection to an applicant."""

    class entrance_part(Entrance):
        def _consider(self, cluster, node):
            applicant = self.applicants.ask(node, self.own.ticks, self.own.connected)
            if applicant is not None:
                applicant.reached_by = set(self.own.pids)
            super()._consider(cluster, node)


class EverybodyVotesAtOnce(Agreement):
    """Newcomers may take the majority along."""

    class reconfiguration_part(Reconfiguration):
        def _voters(self, nodes, stay, attempt):
            return tuple(n.pid for n in nodes if n.voter)


class SidesHaveOneId(Agreement):
    """Where every side goes on, their views have the same id."""

    class reconfiguration_part(Reconfiguration):
        def _next_id(self, attempt):
            return ViewId(0, 0, self.own.view.id.number + 1)


class NoFence(Agreement):
    """Views of a lower generation go on beside those of a higher."""

    class claims_part(Claims):
        def consider(self, cluster, src, view):
            if view.id.generation == self.own.view.id.generation:
                super().consider(cluster, src, view)


class BelievesAtOnce(Agreement):
    """A view is in force because one node says so."""

    class claims_part(Claims):
        def _claim(self, cluster, src, view):
            self.transitions.follow(cluster, src, view)


class LeavesAtOnce(Agreement):
    """Who leaves does not wait until others have the view."""

    class departure_part(Departure):
        def hand_on_the_view(self, cluster):
            self.confirmed = set(self.own.view.pids)
            super().hand_on_the_view(cluster)


class OneAccuserIsEnough(Agreement):
    class suspicions_part(Suspicions):
        def on_suspect(self, cluster, src, suspect):
            self.own.detector.told(suspect.pid)
            self.own.act(cluster)


class FollowsAnybody(Agreement):
    """Who hears the coordinator follows another all the same."""

    class acceptor_part(Acceptor):
        def _may_lead(self, p):
            return True


class NobodyIsRemovedForDisputes(Agreement):
    class suspicions_part(Suspicions):
        def settle_disputes(self):
            pass


class SuspectsForEver(Agreement):
    class suspicions_part(Suspicions):
        def trust_again(self):
            pass


class PromisesUnknownViews(Agreement):
    """It promises for a view that it is not in."""

    class heartbeats_part(Heartbeats):
        def is_of_this_view(self, cluster, src, role, header):
            known = super().is_of_this_view(cluster, src, role, header)
            return known or isinstance(header, EndView)


class BallotsWithoutBound(Agreement):
    class acceptor_part(Acceptor):
        def _is_far_above(self, ballot):
            return False


class OneOverrules(Agreement):
    """One node that has promised a higher ballot ends the attempt, and drives ballots up."""

    class proposer_part(Proposer):
        def on_overruled(self, cluster, src, word):
            if self.attempt is not None:
                self.overruled, self.attempt = word.promised.n, None
