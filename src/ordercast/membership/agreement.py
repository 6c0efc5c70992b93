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

Which packet does what, and who may say it, is a table: `agreement_table`.

Who votes: the names of `electorate`, where there is such a list; otherwise the oldest nodes, up to
`max_voters`, that do not decline. Those who stay and are here always win the next list alone, so
newcomers cannot take the majority along. A newcomer is let in when every voter has a connection to
it.

Who is removed: whom the coordinator does not hear; and of nodes that do not hear each other, those
that are at odds with the most others (`Disputes`). One accuser alone never removes another node.

What is believed: a view that was accepted here, if a node of the view says that it was decided. Of
any other view a node first hears what those say who must have decided it: their heartbeats tell
whether they have accepted anything (`Claim`). So no single word moves a node.

Without a majority a node is *cut off*. It goes on when enough are heard again, in a new view. With
an electorate there is another way: if all its names are here, restarted or not, nobody else can be
alive who could have gone on; a voter that remembers the last view goes on from it, in the next
*generation*. An operator's word does the same (`forget`). Views compare by generation first: who
comes from a lower one is told that it is out, and enters anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError, UsageError
from ordercast.membership.agreement_headers import (
    Ballot,
    EndView,
    Forget,
    Heartbeat,
    InstallView,
    Introduce,
    JoinView,
    LeaveView,
    Offer,
    Overruled,
    ProposeView,
    Reach,
    Reached,
    Renew,
    Sighted,
    Suspect,
    ViewAccepted,
    ViewReport,
    Welcome,
)
from ordercast.membership.agreement_parts import (
    MAX_APPLICANTS,
    MAX_CLAIMS,
    Applicants,
    Claim,
    Disputes,
)
from ordercast.membership.agreement_table import TABLE, TRANSITIONS, Phase, Role, Standing
from ordercast.membership.detector import detector
from ordercast.membership.flapping import Flapping
from ordercast.membership.news import Blocked, Dissolved, Installed, News, Out, Resumed, Split
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId, won
from ordercast.membership.options import ClusterOptions
from ordercast.membership.plausible import (
    MAX_BALLOTS,
    MAX_NUMBER,
    MAX_VIEWS,
    check_succession,
    check_view,
)

PATIENCE = 3  # timeouts that an attempt may take
GATHER_TICKS = 4  # so long the coordinator waits for the rest of a side that comes back
SEEK_EVERY = 2  # ticks between two words to nodes that were lost
HOST_TICKS = 8  # so long a side that was offered company stays
SPLIT_AFTER = 2  # times the patience: so long another cluster may be one that lags behind
MAX_LOST = 256  # nodes that were excluded and are looked for


class Attempt(PlainState):
    """One try to decide what comes after the view."""

    def __init__(self, ballot: Ballot, phase: Phase) -> None:
        self.ballot = ballot
        self.phase = phase
        self.asked: set[ProcessId] = set()  # who was sent the last packet of it
        self.reports: dict[ProcessId, ViewReport] = {}
        self.proposal: NodeView | None = None
        self.is_new = False  # the proposal was made in this attempt
        self.accepted_by: set[ProcessId] = set()
        self.overruled_by: dict[ProcessId, int] = {}  # and the ballot that each has promised
        self.recovers = False  # without a majority: all who are here must accept
        self.age = 0  # ticks

    @property
    def answered(self) -> set[ProcessId]:
        """In this phase."""
        return set(self.reports) if self.phase is Phase.ENDING else self.accepted_by


class Cluster(Protocol):
    """What the agreement asks of the node that it belongs to."""

    def send(self, to: tuple[ProcessId, ...], header: msgspec.Struct) -> None:
        """A packet of the cluster."""

    def tell(self, news: News) -> None:
        """How this node stands."""

    def begin_view(self, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        """A node view is in force; these were in the one before, and did not leave."""

    def may_leave(self, p: ProcessId) -> bool:
        """At the coordinator: does p number nothing any more?"""

    def blame(self, p: ProcessId, why: str) -> None:
        """A packet of p that was kept for later breaks the protocol."""


class Agreement(PlainState):
    """One node's part in the views of its cluster."""

    def __init__(self, node: NodeEntry, options: ClusterOptions) -> None:
        self.node = node
        self.me = node.pid
        self.options = options
        self.patience = PATIENCE * options.timeout_ticks
        self.standing = Standing.OUTSIDE
        self.view: NodeView | None = None
        self.view_since = 0  # the tick at which it began
        self.promised = Ballot(0, 0)  # no lower ballot counts, for what comes after the view
        self.accepted: tuple[Ballot, NodeView] | None = None
        self.attempt: Attempt | None = None
        self.spent = False  # ballot 0 was used
        self.overruled = 0  # the next ballot must be above it
        self.detector = detector(options.detector, options.timeout_ticks)
        self.judged: dict[ProcessId, int] = {}  # removed though they are heard; since which tick
        self.disputes = Disputes(options.timeout_ticks)
        self.claims: dict[ProcessId, Claim] = {}  # views that others say were decided
        self.flapping = Flapping()
        self.ticks = 0
        self.contacts: tuple[ProcessId, ...] = ()  # while it is outside
        self.connected: dict[ProcessId, str] = {}  # nodes to which there is a connection: names
        self.cut_off_for = 0  # ticks
        self.owed: dict[ProcessId, tuple[ProcessId, int]] = {}  # not reached: who asked, and when
        self.going = False  # this node wants to leave
        self.confirmed: set[ProcessId] = set()  # have the view that is without this node
        self.farewell: Out | None = None  # what is told when enough have it
        self.renewing = False  # packets may be lost since the view began
        self.pending: dict[ProcessId, EndView | ProposeView] = {}  # led too early, as seen here
        self.lost: dict[ProcessId, NodeEntry] = {}  # excluded; they may live
        self.apart: dict[ProcessId, int] = {}  # in another cluster; since which tick, -1: told
        # as the coordinator
        self.forgotten: dict[ProcessId, int] = {}  # by an operator; since which tick
        self.applicants = Applicants(2 * options.timeout_ticks)
        self.leavers: set[ProcessId] = set()
        self.sighted: dict[ProcessId, tuple[ProcessId, int]] = {}  # coordinator of its side; when
        self.offered_to: ProcessId = -1  # the side that was asked whether this one may come
        self.host_until = 0  # tick until which this side does not go over to another

    # -- facts ------------------------------------------------------------------------------------

    @property
    def votes(self) -> bool:
        """Does a majority decide?"""
        return self.options.partition == "primary"

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
        return tuple(p for p in self.pids if p == self.me or p not in self.suspected)

    def acting(self) -> ProcessId:
        """Who leads: the first elector that is not suspected."""
        assert self.view is not None
        here = self.here()
        return next((p for p in self.electors if p in here), self.view.coordinator)

    @property
    def leads(self) -> bool:
        """Is it this node's task?"""
        return self.standing in (Standing.IN, Standing.CUT_OFF) and self.acting() == self.me

    def role_of(self, p: ProcessId) -> Role:
        """What p is to this node."""
        if p in self.pids:
            return Role.VOTER if p in self.electors else Role.MEMBER
        if self.standing is Standing.OUTSIDE:
            return Role.CONTACT if p in self.contacts else Role.STRANGER
        attempt = self.attempt
        proposal = None if attempt is None else attempt.proposal
        if p in self.applicants or (proposal is not None and p in proposal.pids):
            return Role.APPLICANT
        return Role.FORMER if p in self.lost else Role.STRANGER

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
        self._install(cluster, view)

    def seek(self, cluster: Cluster, contacts: tuple[ProcessId, ...]) -> None:
        """Join the cluster of these nodes: any of them will do."""
        self.contacts = contacts
        self._ask_to_join(cluster)

    def leave(self, cluster: Cluster) -> None:
        """Take this node out of the cluster. It is in no group any more."""
        self.going = True
        if self.standing is Standing.IN:
            self._complain(cluster)
        self._act(cluster)

    def connect(self, cluster: Cluster, p: ProcessId, name: str) -> None:
        """There is a connection to p."""
        self.connected[p] = name
        asked_by, _ = self.owed.pop(p, (None, 0))
        if asked_by is not None and self.view is not None and self.me in self.pids:
            self._send(cluster, (asked_by,), Reached(self.view.id, p))

    def broken(self, cluster: Cluster, p: ProcessId) -> None:
        """The connection to p broke."""
        self.connected.pop(p, None)
        self.apart.pop(p, None)
        self.applicants.drop(p)
        self.owed.pop(p, None)
        self.detector.broken(p)
        self._act(cluster)

    def give_up(self, cluster: Cluster, unanswering: tuple[ProcessId, ...]) -> None:
        """These are heard, and everybody waits in vain for what only they can say."""
        given_up = [p for p in unanswering if p in self.pids and p not in self.suspected]
        for p in given_up if self.leads and self.standing is Standing.IN else ():
            self.detector.told(p)
            self.judged[p] = self.ticks
        if given_up:
            self._act(cluster)

    def forget(self, cluster: Cluster, pids: tuple[ProcessId, ...]) -> None:
        """An operator declares that these are gone; none: all that are not here."""
        if self.standing in (Standing.IN, Standing.CUT_OFF):
            assert self.view is not None
            self._send(cluster, (self.acting(),), Forget(self.view.id, pids))

    def tick(self, cluster: Cluster) -> None:
        """One heartbeat."""
        self.ticks += 1
        self.flapping.tick()
        if self.standing is Standing.OUTSIDE:
            self._ask_to_join(cluster)
        elif self.standing is Standing.LEAVING:
            self._hand_on_the_view(cluster)
        elif self.standing is not Standing.OUT:
            self._beat(cluster)
            if self.ticks % SEEK_EVERY == 0:
                self._seek_the_lost(cluster)
            self._trust_again()
            self._expire()
            self.detector.tick()
            self._settle_disputes()
            self._complain(cluster)
            self._look_into_claims(cluster)
            self._act(cluster)

    def _beat(self, cluster: Cluster) -> None:
        assert self.view is not None
        heard_by = self.pids
        if self.standing is Standing.CUT_OFF:  # whoever went on may be unknown here
            self.cut_off_for += 1
            heard_by = tuple(dict.fromkeys((*self.pids, *self.connected)))
        else:
            self.cut_off_for = 0
        self._send(cluster, heard_by, Heartbeat(self.view.id, self.accepted is not None))

    def _trust_again(self) -> None:
        """A link broke, and both ends live. Nobody is excluded who is heard again before anything
        was decided; but packets may be lost. Who is cut off counts on everybody that it hears."""
        for p in tuple(self.suspected):
            heard = self.detector.silent_for(p) == 0 and p in self.connected
            judged = p in self.judged and self.standing is Standing.IN
            if heard and not judged and self.attempt is None:
                self.detector.trust(p)
                self.judged.pop(p, None)
                self.renewing = True

    def _expire(self) -> None:
        """What others said, and did not say again."""
        now = self.ticks
        self.applicants.expire(now)
        self.disputes.expire(now)
        self.owed = {p: w for p, w in self.owed.items() if now - w[1] <= self.applicants.patience}
        self.sighted = {
            p: word for p, word in self.sighted.items() if now - word[1] <= 2 * SEEK_EVERY
        }
        self.judged = {p: t for p, t in self.judged.items() if now - t <= self.patience}
        here = self.here()
        self.forgotten = {
            p: t for p, t in self.forgotten.items() if p not in here and now - t <= self.patience
        }
        if self.attempt is not None:
            self.attempt.age += 1
            if self.attempt.age > self.patience or not self.leads:
                self.attempt = None

    def _complain(self, cluster: Cluster) -> None:
        view, acting = self.view, self.acting()
        assert view is not None
        if self.standing is Standing.IN:
            for p in self.pids:
                if p in self.suspected:
                    to = dict.fromkeys((*self.electors, p))
                    self._send(cluster, tuple(q for q in to if q != self.me), Suspect(view.id, p))
        if acting != self.me:
            if self.going:
                self._send(cluster, (acting,), LeaveView(view.id))
            if self.renewing and self.standing is Standing.IN:
                self._send(cluster, (acting,), Renew(view.id))

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, cluster: Cluster, src: ProcessId, header: Any) -> None:
        """A packet about node views: see the table."""
        rule = TABLE.get(type(header))
        if rule is None:
            raise PeerError(f"{type(header).__name__} is no packet about node views")
        if self.standing not in rule.at:
            if self.standing is Standing.OUTSIDE and rule.outside is not None:
                getattr(self, rule.outside)(cluster, src, header)
            return
        if rule.policy is not None and rule.policy != self.options.partition:
            raise PeerError(f"{rule.header.__name__}, where partitions are treated otherwise")
        role = self.role_of(src)
        if rule.names_view and not self._is_of_this_view(cluster, src, role, header):
            return
        if rule.phase is not None and not self._is_in_time(rule.phase, header):
            return
        if not role & rule.may_say:
            raise PeerError(f"a {role.name} may not say {rule.header.__name__}")
        getattr(self, rule.handler)(cluster, src, header)

    def _send(self, cluster: Cluster, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        """To all of these; this node hears itself at once."""
        others = tuple(p for p in to if p != self.me)
        if others:
            cluster.send(others, header)
        if self.me in to and not isinstance(header, Heartbeat):
            self.receive(cluster, self.me, header)

    def _is_in_time(self, phase: Phase, header: ViewReport | ViewAccepted) -> bool:
        attempt = self.attempt
        if attempt is None or attempt.phase is not phase or header.ballot.by != self.me:
            return False
        return header.ballot <= attempt.ballot

    def _is_of_this_view(self, cluster: Cluster, src: ProcessId, role: Role, header: Any) -> bool:
        """Is this about the view that is in force here? If one of us lags behind, mend that."""
        assert self.view is not None
        view: ViewId = header.view
        if view <= self.view.id and (self.votes or view == self.view.id):
            self.detector.heard(src)
        if view == self.view.id:
            return True
        if self.standing is Standing.LEAVING and view > self.view.id:
            self._confirm(cluster, src)
        elif role & (Role.VOTER | Role.MEMBER | Role.FORMER) or isinstance(header, Heartbeat):
            self._mend(cluster, src, role, view)
        if isinstance(header, Heartbeat):
            self._hear_about_claims(cluster, src, header)
            if role is Role.STRANGER and self.votes and self.standing is Standing.IN:
                self._notice_split(cluster, src, view)
        return False

    def _notice_split(self, cluster: Cluster, src: ProcessId, view: ViewId) -> None:
        """If one of us only lags behind, that is mended soon."""
        if len(self.apart) < MAX_LOST:
            since = self.apart.setdefault(src, self.ticks)
            if 0 <= since < self.ticks - SPLIT_AFTER * self.patience:
                self.apart[src] = -1
                cluster.tell(Split(src, self.connected.get(src, ""), view))

    def _mend(self, cluster: Cluster, src: ProcessId, role: Role, view: ViewId) -> None:
        assert self.view is not None
        inside = bool(role & (Role.VOTER | Role.MEMBER))
        if not self.votes:
            if view == self.view.parent and inside:
                self._send(cluster, (src,), InstallView(self.view))
            elif not inside or src in self.lost:
                self._tell_of_this_side(cluster, src)
        elif view < self.view.id:
            self._send(cluster, (src,), InstallView(self.view))
        elif inside or role & Role.FORMER:  # it will send what we lack
            self._send(cluster, (src,), Heartbeat(self.view.id, self.accepted is not None))

    def _on_heartbeat(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        if self.standing is Standing.LEAVING:
            self._confirm(cluster, src)
        else:
            self._hear_about_claims(cluster, src, beat)

    # -- who is gone ------------------------------------------------------------------------------

    def _on_suspect(self, cluster: Cluster, src: ProcessId, suspect: Suspect) -> None:
        """src does not hear p."""
        p = suspect.pid
        if p not in self.pids:
            raise PeerError(f"it accuses {p}, which is not in the view")
        if p == src or p in self.suspected or src in self.suspected:
            return
        self.disputes.accuse(src, p, self.ticks)
        silent_here = self.leads and p != self.me and self.detector.silent_for(p) > 1
        if silent_here and len(self.disputes.accusers(p)) > 1:  # why wait any longer?
            self.detector.told(p)
            self._act(cluster)

    def _settle_disputes(self) -> None:
        """The one that leads removes one node at a time. If more than half do not hear the one that
        leads, all take it for dead: otherwise who hears it would wait for it for ever."""
        acting, here = self.acting(), self.here()
        if acting == self.me:
            goes = self.disputes.who_goes(here, self.me)
        else:
            others = [p for p in here if p != acting]
            goes = acting if self.disputes.is_given_up(acting, others) else None
        if goes is not None:
            self.detector.told(goes)
            self.judged[goes] = self.ticks

    def _on_renew(self, cluster: Cluster, src: ProcessId, renew: Renew) -> None:
        if self.leads:
            self.renewing = True
            self._act(cluster)

    def _may_renew(self) -> bool:
        """A view that began anew is not begun again at once."""
        assert self.view is not None
        lasted = self.ticks - self.view_since >= self.options.timeout_ticks
        return self.renewing and (lasted or not self.view.anew)

    def _on_leave(self, cluster: Cluster, src: ProcessId, leave: LeaveView) -> None:
        if self.leads:
            if cluster.may_leave(src):
                self.leavers.add(src)
            self._act(cluster)

    def _on_forget(self, cluster: Cluster, src: ProcessId, forget: Forget) -> None:
        if self.leads:
            here = self.here()
            gone = forget.pids or self.pids
            self.forgotten.update((p, self.ticks) for p in self.pids if p in gone and p not in here)
            self._act(cluster)

    # -- who comes --------------------------------------------------------------------------------

    def _ask_to_join(self, cluster: Cluster) -> None:
        if self.contacts:
            to = self.contacts[self.ticks % len(self.contacts)]
            self._send(cluster, (to,), JoinView(self.node))

    def _on_join(self, cluster: Cluster, src: ProcessId, join: JoinView) -> None:
        node = join.node
        assert self.view is not None
        if src != node.pid:
            raise PeerError(f"it asks in the name of {node.pid}")
        if src in self.pids:
            self._send(cluster, (src,), InstallView(self.view))
        elif self.leads:
            self._consider(cluster, node)
        else:
            self._send(cluster, (self.acting(),), Introduce(self.view.id, node))

    def _on_introduce(self, cluster: Cluster, src: ProcessId, introduce: Introduce) -> None:
        if self.leads and introduce.node.pid not in self.pids:
            self._consider(cluster, introduce.node)

    def _consider(self, cluster: Cluster, node: NodeEntry) -> None:
        assert self.view is not None
        applicant = self.applicants.ask(node, self.ticks, self.connected)
        if applicant is not None:
            here = self.here()
            voters = [p for p in self.electors if p in here]
            missing = [p for p in voters if p not in applicant.reached_by]
            self._send(cluster, missing, Reach(self.view.id, node.pid))
            self._act(cluster)

    def _on_reach(self, cluster: Cluster, src: ProcessId, reach: Reach) -> None:
        if reach.pid in self.connected:
            self._send(cluster, (src,), Reached(reach.view, reach.pid))
        elif len(self.owed) < MAX_APPLICANTS:
            self.owed[reach.pid] = (src, self.ticks)

    def _on_reached(self, cluster: Cluster, src: ProcessId, reached: Reached) -> None:
        if reached.pid in self.applicants:
            self.applicants.of[reached.pid].reached_by.add(src)
            self._act(cluster)

    def _admitted(self) -> list[NodeEntry]:
        """Applicants that may come in now: all voters here reach them."""
        assert self.view is not None
        here = self.here()
        voters = {p for p in self.electors if p in here}
        waiting = self.applicants.newest_lives()
        names = {applicant.node.name for applicant in waiting}
        names.update(node.name for node in self.view.nodes)
        taken = {node.name for node in self.view.nodes if node.pid in here}
        return [
            applicant.node
            for applicant in waiting
            if applicant.node.name not in taken  # a former life of it is heard
            and voters <= applicant.reached_by
            and self._has_waited(applicant.node, self.ticks - applicant.since, names)
        ]

    def _has_waited(self, node: NodeEntry, ticks: int, names: Collection[str]) -> bool:
        """A side that comes back does so together; who was excluded often waits longer."""
        if node.former and not self.votes:
            return ticks >= GATHER_TICKS or set(node.former) <= set(names)
        return self.flapping.may_enter(node.name)

    # -- an attempt -------------------------------------------------------------------------------

    def _act(self, cluster: Cluster) -> None:
        """Lead, if that is this node's task, and anything should change."""
        if self.standing not in (Standing.IN, Standing.CUT_OFF):
            return
        assert self.view is not None
        self._look_whether_cut_off(cluster)
        if self.pending:
            self._answer_pending(cluster)
        if self.going and self.leads:
            if len(self.pids) == 1:
                self._go_out(cluster, Out(self.view.number, self.me))
                return
            if cluster.may_leave(self.me):
                self.leavers.add(self.me)
        if self.attempt is not None and self._is_hopeless(self.attempt):
            self.attempt = None
        if self.leads and self.attempt is None and self._has_a_goal() and self._may_decide():
            self._begin_attempt(cluster)

    def _begin_attempt(self, cluster: Cluster) -> None:
        assert self.view is not None
        if self.view.coordinator == self.me and not self.spent and self.promised.n == 0:
            self.spent = True
            self.attempt = Attempt(Ballot(0, self.me), Phase.PROPOSING)
            self.attempt.reports[self.me] = ViewReport(self.view.id, self.attempt.ballot)
            self._propose(cluster)
        else:
            ballot = Ballot(max(self.promised.n, self.overruled) + 1, self.me)
            self.attempt = Attempt(ballot, Phase.ENDING)
            self.attempt.asked = set(self.here())
            self._send(cluster, self.here(), EndView(self.view.id, ballot))

    def _has_a_goal(self) -> bool:
        here = self.here()
        gone = len(here) < len(self.pids)
        wanted = bool(self._leaving_now()) or bool(self._admitted())
        return gone or wanted or self._may_renew() or self.accepted is not None

    def _leaving_now(self) -> set[ProcessId]:
        """Those who want to go; nobody, as long as no voter would stay."""
        assert self.view is not None
        here, list_ = self.here(), self.view.electorate
        going = self.leavers.intersection(here)
        stay = [n for n in self.view.nodes if n.pid in here and n.pid not in going]
        voters = [n for n in stay if n.voter and (not list_ or n.name in list_)]
        return going if (voters if self.votes else stay) else set()

    def _may_decide(self) -> bool:
        """Is there a majority; or all of an electorate; or an operator's word?"""
        assert self.view is not None
        return not self.votes or self.view.won_by(self.here()) or self._may_recover()

    def _may_recover(self) -> bool:
        """Nobody else can be alive who could have gone on; or an operator says so. One voter, at
        least, remembers the view: this one."""
        assert self.view is not None
        here = self.here()
        if self.forgotten:
            return won(here, [p for p in self.view.voters if p not in self.forgotten])
        return bool(self.view.electorate) and self._all_names_are_here()

    def _all_names_are_here(self) -> bool:
        assert self.view is not None
        here = self.here()
        names = {node.name for node in self.view.nodes if node.pid in here}
        names.update(node.name for node in self._admitted())
        return names.issuperset(self.view.electorate)

    def _is_hopeless(self, attempt: Attempt) -> bool:
        """It can no longer get all answers that it needs."""
        assert self.view is not None
        here = set(self.here())
        missing = {p for p in attempt.asked - attempt.answered if not self._may_answer(p)}
        if attempt.recovers or not self.votes:
            return bool(missing or attempt.overruled_by)
        able = attempt.answered | (here - attempt.overruled_by.keys())
        return not self.view.won_by(able) and not self._may_recover()

    def _may_answer(self, p: ProcessId) -> bool:
        return p == self.me or (p in self.connected and p not in self.suspected)

    def _on_end(self, cluster: Cluster, src: ProcessId, end: EndView) -> None:
        assert self.view is not None
        self._check_ballot(src, end.ballot)
        if end.ballot.n < 1:
            raise PeerError(f"ballot {end.ballot.n} is never asked for")
        if not self._may_lead(src):  # it will be clear soon whether it is right
            self.pending[src] = end
        elif not self.promised < end.ballot or self._is_far_above(end.ballot):
            self._send(cluster, (src,), Overruled(self.view.id, self.promised))
        else:
            self._promise(end.ballot)
            accepted, proposal = self.accepted or (None, None)
            self._send(cluster, (src,), ViewReport(end.view, end.ballot, accepted, proposal))

    def _may_lead(self, p: ProcessId) -> bool:
        """Are all electors before it suspected here, too? Otherwise one node could remove those
        that everybody else hears."""
        older = self.electors[: self.electors.index(p)]
        return all(q != self.me and q in self.suspected for q in older)

    def _answer_pending(self, cluster: Cluster) -> None:
        for src, header in tuple(self.pending.items()):
            if src in self.electors and self._may_lead(src):
                self.pending.pop(src, None)
                self._receive_pending(cluster, src, header)

    def _receive_pending(self, cluster: Cluster, src: ProcessId, header: msgspec.Struct) -> None:
        """Whatever it was that let us look at it again, a tick or a packet of another node: a fault
        in it is that of its sender, and no end of ours."""
        try:
            self.receive(cluster, src, header)
        except PeerError as fault:
            cluster.blame(src, str(fault))

    def _check_ballot(self, src: ProcessId, ballot: Ballot) -> None:
        """A ballot is asked for by the one that leads, in its own name."""
        if ballot.by != src:
            raise PeerError(f"a ballot of {ballot.by}")
        if not 0 <= ballot.n < MAX_NUMBER:
            raise PeerError(f"ballot {ballot.n} does not exist")

    def _is_far_above(self, ballot: Ballot) -> bool:
        """One word must not use up all numbers that there are."""
        return ballot.n > self.promised.n + MAX_BALLOTS

    def _promise(self, ballot: Ballot) -> None:
        self.promised = ballot
        if self.attempt is not None and self.attempt.ballot < ballot:
            self.attempt = None

    def _on_report(self, cluster: Cluster, src: ProcessId, report: ViewReport) -> None:
        attempt = self.attempt
        assert attempt is not None and self.view is not None
        self._check_report(report)
        if report.ballot < attempt.ballot:
            self._lift(cluster, src, report.ballot)
            return
        attempt.reports[src] = report
        reporters = set(attempt.reports)
        enough = self.votes and self.view.won_by(reporters)
        if enough or (reporters >= attempt.asked and self._may_decide()):
            self._propose(cluster)

    def _check_report(self, report: ViewReport) -> None:
        if (report.accepted is None) != (report.proposal is None):
            raise PeerError("a report of half a proposal")
        if report.accepted is not None and report.proposal is not None:
            if not 0 <= report.accepted.n <= report.ballot.n:
                raise PeerError(f"ballot {report.accepted.n} was accepted before it was promised")
            self._check_next(report.proposal)

    def _lift(self, cluster: Cluster, src: ProcessId, promised: Ballot) -> None:
        """src is far below this attempt: bring it up step by step."""
        assert self.attempt is not None and self.view is not None
        n = min(self.attempt.ballot.n, promised.n + MAX_BALLOTS)
        self._send(cluster, (src,), EndView(self.view.id, Ballot(n, self.me)))

    def _on_overruled(self, cluster: Cluster, src: ProcessId, word: Overruled) -> None:
        attempt = self.attempt
        if attempt is None:
            return
        if word.promised < attempt.ballot:
            if attempt.phase is Phase.ENDING and word.promised.n >= 0:
                self._lift(cluster, src, word.promised)
            return
        attempt.overruled_by[src] = min(word.promised.n, attempt.ballot.n + MAX_BALLOTS)
        if self._is_hopeless(attempt):
            self.overruled = max(self.overruled, self._next_ballot(attempt))
            self.attempt = None

    def _next_ballot(self, attempt: Attempt) -> int:
        """Above so many promises that the rest wins: one node alone does not drive ballots up."""
        assert self.view is not None
        promises = sorted(attempt.overruled_by.values())
        for n in promises:
            rest = [p for p in self.here() if attempt.overruled_by.get(p, 0) <= n]
            if self.votes and not attempt.recovers and self.view.won_by(rest):
                return n
        return promises[-1]

    def _propose(self, cluster: Cluster) -> None:
        attempt = self.attempt
        assert attempt is not None and self.view is not None
        attempt.phase = Phase.PROPOSING
        before = self._accepted_before(attempt)
        attempt.is_new = before is None
        attempt.proposal = before or self._next_view(attempt)
        if attempt.proposal is None:
            self.attempt = None
            return
        attempt.asked = {*self.here(), *attempt.proposal.pids}
        proposal = ProposeView(self.view.id, attempt.ballot, attempt.proposal)
        everybody = tuple(dict.fromkeys((*self.here(), *attempt.proposal.pids)))
        self._send(cluster, everybody, proposal)

    def _accepted_before(self, attempt: Attempt) -> NodeView | None:
        """What others may have decided already must be proposed unchanged."""
        assert self.view is not None
        reports = attempt.reports
        if self.votes and not self.view.won_by(reports.keys()):
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
        assert self.view is not None
        if not self.votes:  # if not, that side may have gone on with it; so do we, without it
            return set(view.pids) <= {*self.here(), *self.applicants.of}
        others = {p for p, report in reports.items() if report.proposal != view}
        if view.id.generation > self.view.id.generation:
            return not others.intersection(view.voters)
        return self.view.won_by(set(self.view.voters) - others)

    def _next_view(self, attempt: Attempt) -> NodeView | None:
        """Those here, without those who go, with those who come."""
        view = self.view
        assert view is not None
        here = set(self.here())
        attempt.recovers = self.votes and not view.won_by(here)
        leavers = set() if attempt.recovers else self._leaving_now()
        stay = [n for n in view.nodes if n.pid in here and n.pid not in leavers]
        # An operator's word adds nobody: who comes may be gone again, and all must accept.
        joining = [] if attempt.recovers and self.forgotten else self._admitted()
        nodes = (*stay, *joining)
        voters = self._voters(nodes, [n.pid for n in stay], attempt)
        if not nodes or (self.votes and not voters):
            return None
        gone = len(stay) < len(view.nodes)
        first = voters[0] if voters else nodes[0].pid
        anew = self.renewing or attempt.recovers
        keeps_term = not (gone or anew) and first == view.coordinator
        number = view.id.number + 1
        forgotten = tuple(n.identity for n in view.nodes if n.pid in self.forgotten)
        left = tuple(p for p in view.pids if p in leavers)
        return NodeView(
            self._next_id(attempt), nodes, voters, view.term if keeps_term else number,
            view.electorate, parent=view.id, left=left, forgotten=forgotten, anew=anew,
        )  # fmt: skip

    def _next_id(self, attempt: Attempt) -> ViewId:
        """Where every side goes on, no two attempts give a view the same id."""
        assert self.view is not None
        before = self.view.id
        number = before.number + 1
        if attempt.recovers:
            return ViewId(before.generation + 1, self.me, number)
        if self.votes:
            return ViewId(before.generation, before.fork, number)
        return ViewId(before.generation, before.fork, number, self.me, attempt.ballot.n)

    def _voters(
        self, nodes: Iterable[NodeEntry], stay: Collection[ProcessId], attempt: Attempt
    ) -> tuple[ProcessId, ...]:
        """Those who stay win the list alone: newcomers cannot take the majority along."""
        view = self.view
        assert view is not None
        if not self.votes:
            return tuple(n.pid for n in nodes)
        able = [n for n in nodes if n.voter]
        if view.electorate:
            voters = [n.pid for n in able if n.name in view.electorate]
        else:
            old = [n.pid for n in able if n.pid in view.voters]
            new = [n.pid for n in able if n.pid not in view.voters]
            voters = old + new[: max(0, self.options.max_voters - len(old))]
        if attempt.recovers:
            return self._in_order(nodes, voters)
        earned = [p for p in voters if p in stay]
        newcomers = [p for p in voters if p not in stay]
        while newcomers and not won(earned, self._in_order(nodes, (*earned, *newcomers))):
            newcomers.pop()
        return self._in_order(nodes, (*earned, *newcomers))

    @staticmethod
    def _in_order(nodes: Iterable[NodeEntry], pids: Collection[ProcessId]) -> tuple[ProcessId, ...]:
        return tuple(n.pid for n in nodes if n.pid in pids)

    def _show_that_it_lives(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        """A newcomer takes part, without a vote."""
        if self.me in propose.next.pids:
            self._send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))

    def _on_propose(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        assert self.view is not None
        ballot = propose.ballot
        self._check_ballot(src, ballot)
        if ballot.n == 0 and src != self.view.coordinator:
            raise PeerError("only the coordinator has ballot 0")
        self._check_next(propose.next)
        if ballot < self.promised or self._is_far_above(ballot):
            self._send(cluster, (src,), Overruled(self.view.id, self.promised))
        elif not self._may_follow(src, propose):
            self.pending[src] = propose
        elif self._contradicts(propose):
            raise PeerError(f"two proposals under ballot {ballot.n}")
        else:
            self._accept(cluster, src, propose)

    def _may_follow(self, src: ProcessId, propose: ProposeView) -> bool:
        """What was promised to src holds. Otherwise it must be its task to lead; and nobody is
        recovered from who hears a majority."""
        assert self.view is not None
        recovers = propose.next.id.generation > self.view.id.generation
        if recovers and src != self.me and self.view.won_by(self.here()):
            return False
        return propose.ballot == self.promised or self._may_lead(src)

    def _contradicts(self, propose: ProposeView) -> bool:
        ballot, view = self.accepted or (None, None)
        return ballot == propose.ballot and view != propose.next

    def _accept(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        self._promise(propose.ballot)
        self.accepted = (propose.ballot, propose.next)
        self._send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))

    def _check_next(self, view: NodeView) -> None:
        """Does it follow from the view in force by the rules?"""
        assert self.view is not None
        check_view(view, self.votes)
        check_succession(self.view, view, self.votes)

    def _on_accepted(self, cluster: Cluster, src: ProcessId, word: ViewAccepted) -> None:
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
        assert self.view is not None
        if not self.votes:
            return attempt.accepted_by >= set(proposal.pids)
        if attempt.recovers:
            return attempt.accepted_by >= set(proposal.voters)
        is_shared = not attempt.is_new or proposal.won_by(attempt.accepted_by)
        return self.view.won_by(attempt.accepted_by) and is_shared

    def _decided(self, cluster: Cluster, view: NodeView) -> None:
        told = tuple(dict.fromkeys((*self.pids, *view.pids)))
        self._send(cluster, tuple(p for p in told if p != self.me), InstallView(view))
        self._follow(cluster, self.me, view)

    # -- a view begins ----------------------------------------------------------------------------

    def _on_install(self, cluster: Cluster, src: ProcessId, install: InstallView) -> None:
        view = install.next
        check_view(view, self.votes)
        if self.view is None:
            self._enter(cluster, src, view)
        elif self.standing is Standing.LEAVING:
            if view.id >= self.view.id:
                self._confirm(cluster, src)
        elif view.id <= self.view.id:
            self._hear_that(cluster, src, view)
        else:
            self._consider_view(cluster, src, view)

    def _enter(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """The first view, from one of its nodes, or one that leaves with it; of those who were
        asked somebody is there, too."""
        if self.me not in view.pids:
            return  # not let in yet
        if self.node not in view.nodes:
            raise PeerError("a view with another entry of this node")
        if max(view.id.generation, view.number, view.term) > MAX_NUMBER:
            raise PeerError(f"view {view.id} is too high")
        there = {*view.pids, *view.left}
        if src in there and there.intersection(self.contacts):  # else ask others who is there
            self._install(cluster, view)

    def _hear_that(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """It has the view, or lags behind."""
        assert self.view is not None
        if view.id == self.view.id and src not in self.pids:  # one that leaves wants to know
            self._send(cluster, (src,), Heartbeat(self.view.id))

    def _consider_view(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        assert self.view is not None
        before = self.view.id
        if view.number > before.number + MAX_VIEWS:
            raise PeerError(f"view {view.number} is far above {before.number}")
        if view.id.generation > before.generation + MAX_VIEWS:
            raise PeerError(f"generation {view.id.generation} is far above {before.generation}")
        if not self.votes and view.parent != before:
            self._sight(cluster, view.coordinator, len(view.nodes))
        elif self.accepted is not None and self.accepted[1] == view and src in self.pids:
            self._follow(cluster, src, view)
        elif self._may_claim(src, view):
            self._claim(cluster, src, view)

    def _may_claim(self, src: ProcessId, view: NodeView) -> bool:
        """Who may say what was decided: nodes of the view in force, which are in that one, too, or
        leave with it; nodes that were excluded, if they come with a later generation. Who has been
        cut off for long listens to others, too: all that it knew may be gone. With an electorate,
        only to those."""
        assert self.view is not None
        if src not in view.pids and src not in view.left:
            return False
        if src in self.pids:
            if view.parent == self.view.id:
                self._check_next(view)
            return True
        if src in self.lost:
            return view.id.lineage > self.view.id.lineage
        electorate = self.view.electorate
        patient = self.cut_off_for > self.patience
        return patient and (not electorate or self.connected.get(src) in electorate)

    def _claim(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """Hear what others say about it first."""
        assert self.view is not None
        for claim in self.claims.values():
            claim.hear(src, view.id < claim.view.id)
        known = self.claims.get(src)
        if known is None or known.view != view:
            if known is None and len(self.claims) >= MAX_CLAIMS:
                return
            recovered = view.id.lineage > self.view.id.lineage
            electors = view.voters if recovered else self.electors
            heard = [p for p in electors if p in self.here() and p not in (self.me, src)]
            claim = self.claims[src] = Claim(src, view, self.ticks, electors, heard)
            claim.hear(self.me, self.accepted is None)
        elif self.ticks > known.since:
            known.repeated = True
        self._look_into_claims(cluster)

    def _hear_about_claims(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        if self.claims:
            for claim in self.claims.values():
                claim.hear(src, beat.view < claim.view.id and not beat.accepted)
            self._look_into_claims(cluster)

    def _look_into_claims(self, cluster: Cluster) -> None:
        """When it was repeated, and all who are heard have spoken, or were given the time to."""
        for src, claim in tuple(self.claims.items()):
            if self.view is None or self.standing not in (Standing.IN, Standing.CUT_OFF):
                return
            age = self.ticks - claim.since
            recovered = claim.view.id.lineage > self.view.id.lineage
            claim.unspoken.difference_update(self.suspected)
            if claim.view.id <= self.view.id or age > self.patience:
                self.claims.pop(src, None)
            elif claim.unspoken and age < self.options.timeout_ticks:
                pass
            elif claim.repeated and claim.is_possible(by_all=recovered):
                self._follow(cluster, src, claim.view)

    def _follow(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """It was decided."""
        assert self.view is not None
        fenced = view.id.lineage > self.view.id.lineage
        news = Out(view.number, self.me if self.me in view.left else src, fenced)
        if self.me in view.pids:
            self._install(cluster, view)
        elif view.parent == self.view.id and self.votes:
            self._become(Standing.LEAVING)
            self.farewell = news
            self.view, self.view_since, self.claims = view, self.ticks, {}
            self.detector.watch(view.pids)
            self._hand_on_the_view(cluster)
        else:
            self._go_out(cluster, news)

    def _has_handed_on(self) -> bool:
        assert self.view is not None
        return self.view.won_by(self.confirmed)

    def _confirm(self, cluster: Cluster, src: ProcessId) -> None:
        """src has the view that is without this node, or a later one."""
        self.confirmed.add(src)
        if self._has_handed_on():
            self._hand_on_the_view(cluster)

    def _hand_on_the_view(self, cluster: Cluster) -> None:
        """Who is not in the next view may have had a part in the decision: it stays until others
        can do without it."""
        view, farewell = self.view, self.farewell
        assert view is not None and farewell is not None
        if self._has_handed_on() or self.ticks - self.view_since > self.patience:
            self._go_out(cluster, farewell)
        else:
            lacking = tuple(p for p in view.pids if p not in self.confirmed)
            self._send(cluster, lacking, InstallView(view))

    def _install(self, cluster: Cluster, view: NodeView) -> None:
        before = self.view
        self.view, self.view_since = view, self.ticks
        was_cut_off = self.standing is Standing.CUT_OFF
        self._become(Standing.IN)
        self.promised, self.accepted = Ballot(0, view.coordinator), None
        self.attempt, self.spent, self.overruled = None, False, 0
        follows = before is not None and view.parent == before.id
        gone = () if before is None else tuple(n for n in before.nodes if n.pid not in view.pids)
        # Who missed a view does not know who left in it: then nobody counts as excluded.
        excluded = tuple(n for n in gone if follows and n.pid not in view.left)
        self.leavers, self.pending, self.forgotten, self.contacts = set(), {}, {}, ()
        self.disputes = Disputes(self.options.timeout_ticks)
        self.claims, self.judged, self.owed, self.sighted = {}, {}, {}, {}
        self.renewing = False
        names = {node.name for node in view.nodes}
        for node in excluded:
            self.lost[node.pid] = node
            self.flapping.excluded(node.name)
        kept = [(p, n) for p, n in self.lost.items() if n.name not in names]
        self.lost = dict(kept[-MAX_LOST:])
        for pid in view.pids:
            self.applicants.drop(pid)
        for applicant in self.applicants.of.values():
            applicant.reached_by = set()  # of the voters of this view
        self.detector.watch(p for p in view.pids if p != self.me)
        if was_cut_off:
            cluster.tell(Resumed())
        cluster.tell(Installed(view, tuple(n.pid for n in excluded)))
        cluster.begin_view(view, excluded)
        if view.into < 0:
            self._act(cluster)

    def _look_whether_cut_off(self, cluster: Cluster) -> None:
        view = self.view
        assert view is not None
        if not self.votes:
            return
        if view.won_by(self.here()):
            if self.standing is Standing.CUT_OFF:
                self._become(Standing.IN)
                self.renewing = True
        elif self.standing is Standing.IN:
            self._become(Standing.CUT_OFF)
            cluster.tell(Blocked(view.number, view.missing(self.here())))

    def _go_out(self, cluster: Cluster, news: Out | Dissolved) -> None:
        self._become(Standing.OUT)
        cluster.tell(news)

    def _become(self, standing: Standing) -> None:
        """See the table. Who is not involved any more leads nobody."""
        assert (self.standing, standing) in TRANSITIONS, f"{self.standing.name} to {standing.name}"
        self.standing = standing
        if standing in (Standing.LEAVING, Standing.OUT):
            self.attempt = None

    # -- those who were lost ----------------------------------------------------------------------

    def _seek_the_lost(self, cluster: Cluster) -> None:
        """They may live, and not know that the others went on."""
        assert self.view is not None
        if self.votes:
            self._send(cluster, tuple(self.lost), InstallView(self.view))
            strangers = [p for p in self.connected if self.role_of(p) is Role.STRANGER]
            if self.leads and strangers:
                self._send(cluster, strangers, Heartbeat(self.view.id))
            return
        for p in dict.fromkeys((*self.lost, *self.connected)):  # another may run where it was
            if p not in self.pids:
                self._tell_of_this_side(cluster, p)

    def _tell_of_this_side(self, cluster: Cluster, p: ProcessId) -> None:
        assert self.view is not None
        word = Sighted(self.view.coordinator, len(self.view.nodes))
        self._send(cluster, (p,), word)

    # -- two sides meet ---------------------------------------------------------------------------

    def _on_sighted(self, cluster: Cluster, src: ProcessId, word: Sighted) -> None:
        if word.size < 1:
            raise PeerError(f"a side of {word.size} nodes")
        if src in self.pids:
            if not self.leads:  # once passed on is enough
                return
        elif len(self.sighted) < MAX_LOST:
            self.sighted[src] = (word.coordinator, self.ticks)
        self._sight(cluster, word.coordinator, word.size)

    def _sight(self, cluster: Cluster, coordinator: ProcessId, size: int) -> None:
        """The larger side stays; of equal ones that with the older coordinator. One that says that
        it speaks for many does not count as many."""
        if self.view is None or coordinator in self.pids:
            return
        speak = sum(1 for named, _ in self.sighted.values() if named == coordinator)
        if not self.leads:
            self._send(cluster, (self.acting(),), Sighted(coordinator, size))
        elif (min(size, speak), -coordinator) < (len(self.pids), -self.view.coordinator):
            self._tell_of_this_side(cluster, coordinator)
        elif self.ticks >= self.host_until:
            self.offered_to = coordinator
            self._send(cluster, (coordinator,), Offer())

    def _on_offer(self, cluster: Cluster, src: ProcessId, offer: Offer) -> None:
        if self.leads and src not in self.pids:  # else it went to another side just now
            self.host_until = self.ticks + HOST_TICKS
            self._send(cluster, (src,), Welcome())

    def _on_welcome(self, cluster: Cluster, src: ProcessId, welcome: Welcome) -> None:
        if src != self.offered_to or not self.leads or src in self.pids:
            return  # nobody goes over unasked
        self.offered_to = -1
        if self.ticks >= self.host_until and self.attempt is None:
            self._dissolve(cluster, src)

    def _dissolve(self, cluster: Cluster, into: ProcessId) -> None:
        """One more view of those here; when all groups have ended in it, they go over."""
        view = self.view
        assert view is not None
        here = set(self.here())
        nodes = tuple(n for n in view.nodes if n.pid in here)
        voters = tuple(p for p in view.voters if p in here)
        number = view.id.number + 1
        ballot = Ballot(max(self.promised.n, self.overruled) + 1, self.me)
        self.attempt = Attempt(ballot, Phase.PROPOSING)
        id = self._next_id(self.attempt)
        self.attempt.asked = here
        self.attempt.proposal = NodeView(
            id, nodes, voters, number, view.electorate, into, parent=view.id, anew=True
        )
        proposal = ProposeView(view.id, self.attempt.ballot, self.attempt.proposal)
        self._send(cluster, tuple(n.pid for n in nodes), proposal)

    def dissolved(self, cluster: Cluster) -> None:
        """All groups of this side have ended."""
        view = self.view
        if view is not None and view.into >= 0 and self.standing is not Standing.OUT:
            names = tuple(node.name for node in view.nodes)
            self._go_out(cluster, Dissolved(view.into, names))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        view, standing = self.view, self.standing
        assert (view is None) == (standing is Standing.OUTSIDE) or standing is Standing.OUT, (
            "who is in has a view"
        )
        assert self.attempt is None or standing in (Standing.IN, Standing.CUT_OFF), (
            "who is not in leads nobody"
        )
        assert len(self.applicants.of) <= MAX_APPLICANTS, "applicants are bounded"
        assert len(self.owed) <= MAX_APPLICANTS, "connections that were asked for are bounded"
        assert len(self.lost) <= MAX_LOST, "those who were lost are bounded"
        assert len(self.claims) <= MAX_CLAIMS, "claims are bounded"
        if view is None or standing is Standing.OUT:
            return
        assert (self.me in view.pids) == (standing is not Standing.LEAVING), (
            "the view names this node"
        )
        assert set(view.voters) <= set(view.pids), "voters are nodes"
        assert self.suspected <= set(view.pids) - {self.me}, "suspected are others of the view"
        if standing is Standing.LEAVING:
            return
        if self.votes:
            has_majority = view.won_by(self.here())
            assert has_majority or standing is Standing.CUT_OFF, "who has no majority is cut off"
        assert set(self.pending) <= set(view.pids), "only nodes of the view lead"
        assert self.accepted is None or self.accepted[0] <= self.promised, "accepted is promised"
        assert self.accepted is None or self.accepted[1].parent == view.id, "of this view"
        if self.attempt is not None:
            self._attempt_invariants(self.attempt)

    def _attempt_invariants(self, attempt: Attempt) -> None:
        assert self.view is not None
        assert attempt.ballot.by == self.me, "an attempt is one's own"
        assert attempt.ballot <= self.promised, "who leads has promised that to itself"
        proposal, here = attempt.proposal, self.view.id
        if proposal is not None and self.votes and proposal.id.generation == here.generation:
            asked_enough = attempt.ballot.n == 0 or self.view.won_by(attempt.reports.keys())
            assert asked_enough, "a proposal follows from the reports of a majority"
