"""The entrance: how nodes come into the cluster, this one and others.

    at a node outside      JOIN to one of the contacts, in turn, until a view names this node
    JOIN(n) at a node      that leads: consider n;  another: INTRODUCE(n) to the one that leads
    consider n             REACH(n) to all voters here that have not said REACHED(n); again, as
                           soon as a view begins
    REACH(n)               REACHED(n), at once or when there is a connection to n
    n is admitted          when all voters here reach it, no former life of it is heard, and it has
                           waited: a side that comes back does so together, and a name that was
                           excluded often waits longer (`flapping`)
    PROPOSE, outside       ACCEPTED, without a vote: it shows that this node lives

The first view is believed from a node that is in it, or leaves with it, if one of the contacts is
there, too.
"""

from __future__ import annotations

from collections.abc import Collection

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import (
    InstallView,
    Introduce,
    JoinView,
    ProposeView,
    Reach,
    Reached,
    ViewAccepted,
)
from ordercast.membership.agreement_part import Cluster, OwnNode, Part, Transitions
from ordercast.membership.applicants import MAX_APPLICANTS, Applicant, Applicants
from ordercast.membership.flapping import Flapping
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.membership.plausible import MAX_NUMBER

GATHER_TICKS = 4  # so long the coordinator waits for the rest of a side that comes back


class Entrance(Part):
    """Who asks to be let in, and whom this node asks."""

    lent = Part.lent | {"transitions"}

    def __init__(self, timeout_ticks: int) -> None:
        self.contacts: tuple[ProcessId, ...] = ()  # while this node is outside
        self.applicants = Applicants(2 * timeout_ticks)
        self.owed: dict[ProcessId, tuple[ProcessId, int]] = {}  # not reached: who asked, and when
        self.flapping = Flapping()

    def connect(self, own: OwnNode, transitions: Transitions) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.transitions = transitions

    def begin_view(self, view: NodeView, excluded: Collection[NodeEntry]) -> None:
        """Others may lead now, and other voters must reach those who apply."""
        self.contacts, self.owed = (), {}
        for node in excluded:
            self.flapping.excluded(node.name)
        for pid in view.pids:
            self.applicants.drop(pid)
        for applicant in self.applicants.of.values():
            applicant.reached_by = set()  # of the voters of this view

    def expire(self) -> None:
        """What others asked for, and did not ask for again."""
        now, patience = self.own.ticks, self.applicants.patience
        self.applicants.expire(now)
        self.owed = {p: word for p, word in self.owed.items() if now - word[1] <= patience}

    def tick(self) -> None:
        """One tick less to wait, for names that were excluded often."""
        self.flapping.tick()

    def is_contact(self, p: ProcessId) -> bool:
        """Does this node ask it to be let in?"""
        return p in self.contacts

    def is_applicant(self, p: ProcessId) -> bool:
        """Does it ask to be let in?"""
        return p in self.applicants

    # -- this node comes in -----------------------------------------------------------------------

    def seek(self, cluster: Cluster, contacts: tuple[ProcessId, ...]) -> None:
        """Any of these will do."""
        self.contacts = contacts
        self.ask_to_join(cluster)

    def ask_to_join(self, cluster: Cluster) -> None:
        """One contact after the other."""
        if self.contacts:
            to = self.contacts[self.own.ticks % len(self.contacts)]
            self.own.send(cluster, (to,), JoinView(self.own.node))

    def show_that_it_lives(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        """A newcomer takes part, without a vote."""
        if self.own.me in propose.next.pids:
            self.own.send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))

    def enter(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """The first view, from one of its nodes, or one that leaves with it; of those who were
        asked somebody is there, too."""
        if self.own.me not in view.pids:
            return  # not let in yet
        if self.own.node not in view.nodes:
            raise PeerError("a view with another entry of this node")
        if max(view.id.generation, view.number, view.term) > MAX_NUMBER:
            raise PeerError(f"view {view.id} is too high")
        there = {*view.pids, *view.left}
        if src in there and there.intersection(self.contacts):  # else ask others who is there
            self.transitions.install(cluster, view)

    # -- others ask -------------------------------------------------------------------------------

    def on_join(self, cluster: Cluster, src: ProcessId, join: JoinView) -> None:
        node, own = join.node, self.own
        view = own.in_force
        if src != node.pid:
            raise PeerError(f"it asks in the name of {node.pid}")
        if src in own.pids:
            own.send(cluster, (src,), InstallView(view))
        elif own.leads:
            self._consider(cluster, node)
        else:
            own.send(cluster, (own.acting(),), Introduce(view.id, node))

    def on_introduce(self, cluster: Cluster, src: ProcessId, introduce: Introduce) -> None:
        if self.own.leads and introduce.node.pid not in self.own.pids:
            self._consider(cluster, introduce.node)

    def _consider(self, cluster: Cluster, node: NodeEntry) -> None:
        own = self.own
        applicant = self.applicants.ask(node, own.ticks, own.connected)
        if applicant is not None:
            self._ask_voters(cluster, applicant)
            own.act(cluster)

    def ask_again(self, cluster: Cluster) -> None:
        """A view began: its voters have not said yet whom of the applicants they reach. Without
        this question the applicants would wait until they ask again, a heartbeat later."""
        if self.own.leads:
            for applicant in self.applicants.newest_lives():
                self._ask_voters(cluster, applicant)

    def _ask_voters(self, cluster: Cluster, applicant: Applicant) -> None:
        """Those here that have not said yet that they reach it."""
        own = self.own
        here = own.here()
        missing = [p for p in own.electors if p in here and p not in applicant.reached_by]
        own.send(cluster, missing, Reach(own.in_force.id, applicant.node.pid))

    # -- connections to those who ask -------------------------------------------------------------

    def on_reach(self, cluster: Cluster, src: ProcessId, reach: Reach) -> None:
        if reach.pid in self.own.connected:
            self.own.send(cluster, (src,), Reached(reach.view, reach.pid))
        elif len(self.owed) < MAX_APPLICANTS:
            self.owed[reach.pid] = (src, self.own.ticks)

    def connected(self, cluster: Cluster, p: ProcessId) -> None:
        """There is a connection to p: somebody may have asked for it."""
        asked_by, _ = self.owed.pop(p, (None, 0))
        view = self.own.view
        if asked_by is not None and view is not None and self.own.me in view.pids:
            self.own.send(cluster, (asked_by,), Reached(view.id, p))

    def broken(self, p: ProcessId) -> None:
        """The connection to p broke."""
        self.applicants.drop(p)
        self.owed.pop(p, None)

    def on_reached(self, cluster: Cluster, src: ProcessId, reached: Reached) -> None:
        if reached.pid in self.applicants:
            self.applicants.of[reached.pid].reached_by.add(src)
            self.own.act(cluster)

    # -- who may come in --------------------------------------------------------------------------

    def admitted(self) -> list[NodeEntry]:
        """Applicants that may come in now: all voters here reach them."""
        view, here = self.own.in_force, self.own.here()
        voters = {p for p in self.own.electors if p in here}
        reached = [a for a in self.applicants.newest_lives() if voters <= a.reached_by]
        names = {applicant.node.name for applicant in reached}
        names.update(node.name for node in view.nodes)
        taken = {node.name for node in view.nodes if node.pid in here}
        return [
            applicant.node
            for applicant in reached
            if applicant.node.name not in taken  # a former life of it is heard
            and self._has_waited(applicant.node, self.own.ticks - applicant.since, names)
        ]

    def _has_waited(self, node: NodeEntry, ticks: int, names: Collection[str]) -> bool:
        """A side that comes back does so together; who was excluded often waits longer."""
        if node.former and not self.own.votes:
            return ticks >= GATHER_TICKS or set(node.former) <= set(names)
        return self.flapping.may_enter(node.name)

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """What others say is bounded."""
        assert len(self.applicants.of) <= MAX_APPLICANTS, "applicants are bounded"
        assert len(self.owed) <= MAX_APPLICANTS, "connections that were asked for are bounded"
