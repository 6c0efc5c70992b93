"""Machines that break one rule of the agreement each. The judge of random runs must catch them."""

from __future__ import annotations

from msgspec.structs import replace

from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import Ballot, EndView
from ordercast.membership.node_view import ViewId


class RestartedCounts(Agreement):
    """A restarted node counts for its old vote, though it has forgotten what it accepted."""

    def _may_recover(self):
        here = self.here()
        names = {node.name for node in self._admitted()}
        voters = [n for n in self.view.nodes if n.pid in self.view.voters]
        present = sum(1 for n in voters if n.pid in here or n.name in names)
        return 2 * present > len(voters)


class ViewAccounted(Agreement):
    """All of my view are accounted for: but somebody came later, of whom I never heard."""

    def _may_recover(self):
        names = {n.name for n in self.view.nodes if n.pid in self.here()}
        names.update(node.name for node in self._admitted())
        return names.issuperset(n.name for n in self.view.nodes)


class AnySideRecovers(Agreement):
    def _may_recover(self):
        return True


class NeverRecovers(Agreement):
    def _may_recover(self):
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

    def _may_decide(self):
        present = [p for p in self.view.voters if p in self.here()]
        return 2 * len(present) >= len(self.view.voters)

    def _next_view(self, attempt):
        view = super()._next_view(attempt)
        attempt.recovers = False
        before = self.view.id
        id = ViewId(before.generation, before.fork, before.number + 1)
        return None if view is None else replace(view, id=id, anew=False)

    def _is_decided(self, attempt, proposal):
        accepted = [p for p in self.view.voters if p in attempt.accepted_by]
        return 2 * len(accepted) >= len(self.view.voters)

    def _is_hopeless(self, attempt):
        return False

    def _attempt_invariants(self, attempt):
        pass


class NewMajorityOnly(HalfDecides):
    """The voters of the next view decide it, not those of the view that ends."""

    def _may_decide(self):
        return True

    def _is_decided(self, attempt, proposal):
        return proposal.won_by(attempt.accepted_by)


class AcceptedIgnored(Agreement):
    """What others have accepted is not proposed again."""

    def _accepted_before(self, attempt):
        return None


class PromiseBroken(Agreement):
    """A proposal is accepted under a ballot that is lower than the promised one."""

    def _on_propose(self, cluster, src, propose):
        self.promised = Ballot(0, -1)
        super()._on_propose(cluster, src, propose)

    def _attempt_invariants(self, attempt):
        pass


class BallotUsedTwice(Agreement):
    """The coordinator proposes under ballot 0 again and again."""

    def _begin_attempt(self, cluster):
        self.spent = False
        super()._begin_attempt(cluster)


class PhantomsComeIn(Agreement):
    """Nobody looks whether there is a connection to an applicant."""

    def _consider(self, cluster, node):
        applicant = self.applicants.ask(node, self.ticks, self.connected)
        if applicant is not None:
            applicant.reached_by = set(self.pids)
        super()._consider(cluster, node)


class EverybodyVotesAtOnce(Agreement):
    """Newcomers may take the majority along."""

    def _voters(self, nodes, stay, attempt):
        return tuple(n.pid for n in nodes if n.voter)


class SidesHaveOneId(Agreement):
    """Where every side goes on, their views have the same id."""

    def _next_id(self, attempt):
        return ViewId(0, 0, self.view.id.number + 1)


class NoFence(Agreement):
    """Views of a lower generation go on beside those of a higher."""

    def _consider_view(self, cluster, src, view):
        if view.id.generation == self.view.id.generation:
            super()._consider_view(cluster, src, view)


class BelievesAtOnce(Agreement):
    """A view is in force because one node says so."""

    def _claim(self, cluster, src, view):
        self._follow(cluster, src, view)


class LeavesAtOnce(Agreement):
    """Who leaves does not wait until others have the view."""

    def _hand_on_the_view(self, cluster):
        self.confirmed = set(self.view.pids)
        super()._hand_on_the_view(cluster)


class OneAccuserIsEnough(Agreement):
    def _on_suspect(self, cluster, src, suspect):
        self.detector.told(suspect.pid)
        self._act(cluster)


class FollowsAnybody(Agreement):
    """Who hears the coordinator follows another all the same."""

    def _may_lead(self, p):
        return True


class NobodyIsRemovedForDisputes(Agreement):
    def _settle_disputes(self):
        pass


class SuspectsForEver(Agreement):
    def _trust_again(self):
        pass


class PromisesUnknownViews(Agreement):
    """It promises for a view that it is not in."""

    def _is_of_this_view(self, cluster, src, role, header):
        known = super()._is_of_this_view(cluster, src, role, header)
        return known or isinstance(header, EndView)


class BallotsWithoutBound(Agreement):
    def _is_far_above(self, ballot):
        return False


class OneOverrules(Agreement):
    """One node that has promised a higher ballot ends the attempt, and drives ballots up."""

    def _on_overruled(self, cluster, src, word):
        if self.attempt is not None:
            self.overruled, self.attempt = word.promised.n, None
