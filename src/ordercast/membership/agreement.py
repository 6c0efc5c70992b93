"""Who is in the cluster: every view of its nodes is decided once, by the voters of the one before.

Source      single-decree Paxos, one instance for each view; the quorum follows the views, as in
            dynamic voting (Jajodia and Mutchler 1990).
Guarantees  `primary`: every view has one successor. All nodes that install a view of one id install
            the same list. No two sides of a partition go on.
            `merge`: every side goes on; sides that meet again become one.
Needs       reliable FIFO links between nodes that can reach each other; heartbeats may be lost.
Costs       n - 1 heartbeats per node and tick. A view: three packets per node if the coordinator
            lives, five if another must lead.

    tick                        HEARTBEAT to all;  suspect who was silent for too long
    somebody is gone, comes,    the first voter that is not suspected leads. The coordinator has
    or wants to go              ballot 0 of its view for itself, and PROPOSEs at once;
                                others send END(ballot) first, and learn what was accepted
    END(b) at p                 promise b, unless a higher one is promised;  REPORT
    a majority has reported     PROPOSE what was accepted under the highest ballot; if nothing was,
                                the next view: those here, without those gone, with those who come
    PROPOSE(b) at p             accept it, unless a higher ballot is promised;  ACCEPTED
    a majority has accepted     it is decided: INSTALL to all

Which packet does what, and who may say it, is a table: `agreement_table`. Each part has its rules
at its head:

    acceptor          what was promised and accepted here, for what comes after the view
    proposer          attempts to decide that, one at a time
    reconfiguration   what the next view should be: who is in it, who votes, who may go on
    entrance          who asks to be let in, and how this node came in itself
    suspicions        who is taken for dead; who is heard, and has to go
    heartbeats        which view the others have; who lags behind
    claims            views that others say were decided, and which of them are believed
    departure         how this node leaves, and hands the last view on
    sides             nodes that were lost; sides of a partition that meet

Here is what they share: the view, how this node stands, whom it hears, and the tick.

Without a majority a node is *cut off*. It goes on when enough are heard again, in a new view; or
the cluster is recovered without a majority, in the next *generation* (`reconfiguration`). Views
compare by generation first: who comes from a lower one is told that it is out, and enters anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, ClassVar, Self

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError, UsageError
from ordercast.membership.acceptor import Acceptor
from ordercast.membership.agreement_headers import Forget, Heartbeat, InstallView
from ordercast.membership.agreement_part import Cluster
from ordercast.membership.agreement_table import INVOLVED, TABLE, TRANSITIONS, Role, Standing
from ordercast.membership.claims import Claims
from ordercast.membership.departure import Departure
from ordercast.membership.detector import detector
from ordercast.membership.entrance import Entrance
from ordercast.membership.heartbeats import Heartbeats
from ordercast.membership.news import Blocked, Dissolved, Installed, Out, Resumed
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.membership.options import ClusterOptions
from ordercast.membership.plausible import check_succession, check_view
from ordercast.membership.proposer import Proposer
from ordercast.membership.reconfiguration import Reconfiguration
from ordercast.membership.sides import Sides
from ordercast.membership.suspicions import Suspicions

PATIENCE = 3  # timeouts that an attempt may take


class Agreement(PlainState):
    """One node's part in the views of its cluster."""

    # What the parts are; a variant of the agreement replaces one of them.
    acceptor_part: ClassVar[type[Acceptor]] = Acceptor
    proposer_part: ClassVar[type[Proposer]] = Proposer
    reconfiguration_part: ClassVar[type[Reconfiguration]] = Reconfiguration
    entrance_part: ClassVar[type[Entrance]] = Entrance
    suspicions_part: ClassVar[type[Suspicions]] = Suspicions
    heartbeats_part: ClassVar[type[Heartbeats]] = Heartbeats
    claims_part: ClassVar[type[Claims]] = Claims
    departure_part: ClassVar[type[Departure]] = Departure
    sides_part: ClassVar[type[Sides]] = Sides

    def __init__(self, node: NodeEntry, options: ClusterOptions) -> None:
        self.node = node
        self.me = node.pid
        self.options = options
        self.patience = PATIENCE * options.timeout_ticks
        self.standing = Standing.OUTSIDE
        self.view: NodeView | None = None
        self.view_since = 0  # the tick at which it began
        self.ticks = 0
        self.connected: dict[ProcessId, str] = {}  # nodes to which there is a connection: names
        self.detector = detector(options.detector, options.timeout_ticks)
        self.acceptor = self.acceptor_part()
        self.proposer = self.proposer_part()
        self.reconfiguration = self.reconfiguration_part()
        self.entrance = self.entrance_part(options.timeout_ticks)
        self.suspicions = self.suspicions_part(options.timeout_ticks)
        self.heartbeats = self.heartbeats_part()
        self.claims = self.claims_part()
        self.departure = self.departure_part()
        self.sides = self.sides_part()
        self._connect()

    # -- the parts --------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Lend each part what it uses of the others: at the beginning, and after a copy."""
        acceptor, proposer, sides = self.acceptor, self.proposer, self.sides
        change, entrance = self.reconfiguration, self.entrance
        acceptor.connect(self, proposer)
        proposer.connect(self, self, acceptor, change, entrance)
        change.connect(self, acceptor, entrance)
        entrance.connect(self, self)
        self.suspicions.connect(self, proposer, change)
        self.heartbeats.connect(self, acceptor, self.departure, self.claims, sides)
        self.claims.connect(self, self, acceptor, sides, self.heartbeats)
        self.departure.connect(self, self)
        sides.connect(self, self, proposer)

    def copy(self) -> Self:
        """An independent twin, whose parts belong to it."""
        twin = super().copy()
        twin._connect()
        return twin

    # -- facts ------------------------------------------------------------------------------------

    @property
    def votes(self) -> bool:
        """Does a majority decide?"""
        return self.options.partition == "primary"

    @property
    def in_force(self) -> NodeView:
        """The view, where there must be one."""
        assert self.view is not None
        return self.view

    @property
    def pids(self) -> tuple[ProcessId, ...]:
        """The nodes of the view, the oldest first."""
        return () if self.view is None else self.view.pids

    @property
    def electors(self) -> tuple[ProcessId, ...]:
        """Who may lead, and decides: the voters; all nodes, where every side goes on."""
        if self.view is None:
            return ()
        return self.view.voters if self.votes else self.view.pids

    @property
    def suspected(self) -> set[ProcessId]:
        """Nodes that are believed to be dead."""
        return self.detector.suspected

    def here(self) -> tuple[ProcessId, ...]:
        """The nodes of the view that are not suspected."""
        if not self.suspected:
            return self.pids
        return tuple(p for p in self.pids if p == self.me or p not in self.suspected)

    def acting(self) -> ProcessId:
        """Who leads: the first elector that is not suspected."""
        here = self.here()
        return next((p for p in self.electors if p in here), self.in_force.coordinator)

    @property
    def leads(self) -> bool:
        """Is it this node's task?"""
        return self.standing in INVOLVED and self.acting() == self.me

    def role_of(self, p: ProcessId) -> Role:
        """What p is to this node."""
        if p in self.pids:
            return Role.VOTER if p in self.electors else Role.MEMBER
        if self.standing is Standing.OUTSIDE:
            return Role.CONTACT if self.entrance.is_contact(p) else Role.STRANGER
        if self.entrance.is_applicant(p) or self.proposer.proposes(p):
            return Role.APPLICANT
        return Role.FORMER if self.sides.is_lost(p) else Role.STRANGER

    def check_next(self, view: NodeView) -> None:
        """Does it follow from the view in force by the rules?"""
        check_view(view, self.votes)
        check_succession(self.in_force, view, self.votes)

    # -- the driver -------------------------------------------------------------------------------

    def found(self, cluster: Cluster) -> None:
        """Begin a cluster of this node alone."""
        electorate, name = self.options.electorate, self.node.name
        if self.votes and not self.node.voter:
            raise UsageError(f"{name} does not vote: a cluster begins with a node that does")
        if electorate and name not in electorate:
            names = ", ".join(electorate)
            raise UsageError(f"{name} is not among the voters ({names}): begin with one of them")
        view = NodeView(ViewId(0, 0, 1), (self.node,), (self.me,), 1, electorate)
        self.install(cluster, view)

    def seek(self, cluster: Cluster, contacts: tuple[ProcessId, ...]) -> None:
        """Join the cluster of these nodes: any of them will do."""
        self.entrance.seek(cluster, contacts)

    def leave(self, cluster: Cluster) -> None:
        """Take this node out of the cluster. It is in no group any more."""
        self.departure.go()
        if self.standing is Standing.IN:
            self._complain(cluster)
        self.act(cluster)

    def connect(self, cluster: Cluster, p: ProcessId, name: str) -> None:
        """There is a connection to p."""
        self.connected[p] = name
        self.entrance.connected(cluster, p)
        if self.standing is Standing.IN:
            self.sides.connected(cluster, p)

    def broken(self, cluster: Cluster, p: ProcessId) -> None:
        """The connection to p broke."""
        self.connected.pop(p, None)
        self.sides.broken(p)
        self.entrance.broken(p)
        self.detector.broken(p)
        self.act(cluster)

    def forget(self, cluster: Cluster, pids: tuple[ProcessId, ...]) -> None:
        """An operator declares that these are gone; none: all that are not here."""
        if self.standing in INVOLVED:
            self.send(cluster, (self.acting(),), Forget(self.in_force.id, pids))

    def tick(self, cluster: Cluster) -> None:
        """One heartbeat."""
        self.ticks += 1
        self.entrance.tick()
        if self.standing is Standing.OUTSIDE:
            self.entrance.ask_to_join(cluster)
        elif self.standing is Standing.LEAVING:
            self.departure.hand_on_the_view(cluster)
        elif self.standing is not Standing.OUT:
            self.heartbeats.beat(cluster)
            self.sides.seek_the_lost(cluster)
            self.suspicions.trust_again()
            self._expire()
            self.detector.tick()
            self.suspicions.settle_disputes()
            self._complain(cluster)
            self.claims.look_into(cluster)
            self.act(cluster)

    def _expire(self) -> None:
        """What others said, and did not say again."""
        self.entrance.expire()
        self.suspicions.expire()
        self.sides.expire()
        self.reconfiguration.expire()
        self.proposer.grow_older()

    def _complain(self, cluster: Cluster) -> None:
        """Say again what others have to know, or to do."""
        acting = self.acting()
        self.proposer.ask_again(cluster)
        self.suspicions.accuse(cluster)
        if acting != self.me:
            self.departure.ask_to_leave(cluster, acting)
            self.reconfiguration.ask_to_renew(cluster, acting)

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, cluster: Cluster, src: ProcessId, header: Any) -> None:
        """A packet about node views: see the table."""
        rule = TABLE.get(type(header))
        if rule is None:
            raise PeerError(f"{type(header).__name__} is no packet about node views")
        if self.standing not in rule.at:
            if self.standing is Standing.OUTSIDE and rule.outside is not None:
                attrgetter(rule.outside)(self)(cluster, src, header)
            return
        if rule.policy is not None and rule.policy != self.options.partition:
            raise PeerError(f"{rule.header.__name__}, where partitions are treated otherwise")
        role = self.role_of(src)
        if rule.names_view and not self.heartbeats.is_of_this_view(cluster, src, role, header):
            return
        if rule.phase is not None and not self.proposer.is_in_time(rule.phase, header):
            return
        if not role & rule.may_say:
            raise PeerError(f"a {role.name} may not say {rule.header.__name__}")
        attrgetter(rule.handler)(self)(cluster, src, header)

    def send(self, cluster: Cluster, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        """To all of these; this node hears itself at once."""
        others = tuple(p for p in to if p != self.me)
        if others:
            cluster.send(others, header)
        if self.me in to and not isinstance(header, Heartbeat):
            self.receive(cluster, self.me, header)

    def on_install(self, cluster: Cluster, src: ProcessId, install: InstallView) -> None:
        view = install.next
        check_view(view, self.votes)
        if self.view is None:
            self.entrance.enter(cluster, src, view)
        elif self.standing is Standing.LEAVING:
            if view.id >= self.view.id:
                self.departure.confirm(cluster, src)
        elif view.id <= self.view.id:
            self.heartbeats.confirm_to(cluster, src, view)
        else:
            self.claims.consider(cluster, src, view)

    # -- a view ends, and the next one begins -----------------------------------------------------

    def act(self, cluster: Cluster) -> None:
        """Lead, if that is this node's task, and anything should change."""
        if self.standing not in INVOLVED:
            return
        self._look_whether_cut_off(cluster)
        self.acceptor.answer_pending(cluster)
        if self.departure.going and self.leads:
            if len(self.pids) == 1:
                # Who left just before waits for a word of this node, and of nobody else.
                left = tuple(p for p in self.connected if p not in self.pids)
                self.send(cluster, left, Heartbeat(self.in_force.id))
                self.go_out(cluster, Out(self.in_force.number, self.me))
                return
            self.reconfiguration.let_go(cluster, self.me)
        self.proposer.act(cluster)

    def follow(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """It was decided."""
        before = self.in_force
        fenced = view.id.lineage > before.id.lineage
        news = Out(view.number, self.me if self.me in view.left else src, fenced)
        if self.me in view.pids:
            self.install(cluster, view)
        elif view.parent == before.id and self.votes:
            self._become(Standing.LEAVING)
            self.view, self.view_since = view, self.ticks
            self.claims.begin_view()
            self.detector.watch(view.pids)
            self.departure.begin(cluster, news, had_part=self.acceptor.is_accepted(view))
        else:
            self.go_out(cluster, news)

    def install(self, cluster: Cluster, view: NodeView) -> None:
        """It is in force here."""
        before = self.view
        self.view, self.view_since = view, self.ticks
        was_cut_off = self.standing is Standing.CUT_OFF
        self._become(Standing.IN)
        excluded = view.excluded_from(before)
        self._begin_view(view, excluded)
        self._watch(view)
        if was_cut_off:
            cluster.tell(Resumed())
        cluster.tell(Installed(view, tuple(n.pid for n in excluded)))
        cluster.begin_view(view, excluded)
        if view.into < 0:
            self.entrance.ask_again(cluster)
            self.act(cluster)

    def _watch(self, view: NodeView) -> None:
        """The others of the view. A newcomer had a connection to everybody when it asked to be let
        in: if there is none now it broke, and what is sent to that node from here on is lost."""
        others = [p for p in view.pids if p != self.me]
        self.detector.watch(others)
        for p in others:
            if p not in self.connected:
                self.detector.broken(p)

    def _begin_view(self, view: NodeView, excluded: tuple[NodeEntry, ...]) -> None:
        """What the parts know of the view before is void."""
        self.acceptor.begin_view(view)
        self.proposer.begin_view()
        self.reconfiguration.begin_view()
        self.entrance.begin_view(view, excluded)
        self.suspicions.begin_view()
        self.claims.begin_view()
        self.sides.begin_view(view, excluded)

    def _look_whether_cut_off(self, cluster: Cluster) -> None:
        view = self.in_force
        if not self.votes:
            return
        if view.won_by(self.here()):
            if self.standing is Standing.CUT_OFF:
                self._become(Standing.IN)
                self.reconfiguration.renew()
        elif self.standing is Standing.IN:
            self._become(Standing.CUT_OFF)
            cluster.tell(Blocked(view.number, view.missing(self.here())))

    def go_out(self, cluster: Cluster, news: Out | Dissolved) -> None:
        """The end of this incarnation."""
        self._become(Standing.OUT)
        cluster.tell(news)

    def _become(self, standing: Standing) -> None:
        """See the table. Who is not involved any more leads nobody."""
        assert (self.standing, standing) in TRANSITIONS, f"{self.standing.name} to {standing.name}"
        self.standing = standing
        if standing in (Standing.LEAVING, Standing.OUT):
            self.proposer.stop()

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        self._standing_invariants()
        for part in (self.entrance, self.sides, self.claims, self.acceptor, self.proposer):
            part.invariants()

    def _standing_invariants(self) -> None:
        view, standing = self.view, self.standing
        assert (view is None) == (standing is Standing.OUTSIDE) or standing is Standing.OUT, (
            "who is in has a view"
        )
        assert not self.proposer.is_trying or standing in INVOLVED, "who is not in leads nobody"
        if view is None or standing is Standing.OUT:
            return
        assert (self.me in view.pids) == (standing is not Standing.LEAVING), (
            "the view names this node"
        )
        assert set(view.voters) <= set(view.pids), "voters are nodes"
        assert self.suspected <= set(view.pids) - {self.me}, "suspected are others of the view"
        if self.votes and standing is not Standing.LEAVING:
            has_majority = view.won_by(self.here())
            assert has_majority or standing is Standing.CUT_OFF, "who has no majority is cut off"
