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

Who votes: the names of `electorate`, where there is such a list; otherwise the oldest nodes, up to
`max_voters`, that do not decline. Those who stay and are here always win the next list alone, so
newcomers cannot take the majority along. A newcomer is let in when every voter has a connection to
it.

Without a majority a node is *cut off*. It goes on when enough are heard again, in a new view. With
an electorate there is another way: if all its names are here, restarted or not, nobody else can be
alive who could have gone on; those who remember the last view go on from it, in the next
*generation*. An operator's word does the same (`forget`). Views compare by generation first: who
comes from a lower one is told that it is out, and enters anew.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from typing import Any, Literal, Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import (
    Ballot,
    EndView,
    Forget,
    Heartbeat,
    InstallView,
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
from ordercast.membership.detector import detector
from ordercast.membership.flapping import Flapping
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId, won

Policy = Literal["primary", "merge"]

PATIENCE = 3  # timeouts that an attempt may take
GATHER_TICKS = 4  # so long the coordinator waits for the rest of a side that comes back
SEEK_EVERY = 2  # ticks between two words to nodes that were lost
HOST_TICKS = 8  # so long a side that was offered company stays
MAX_LOST = 256  # nodes that were excluded and are looked for
MAX_JOINERS = 1024  # that ask to be let in
MAX_BALLOTS = 1024  # a ballot is at most so far above the one before


class ClusterOptions(msgspec.Struct, frozen=True):
    """The delays and votes of a cluster. A tick is one heartbeat."""

    heartbeat_ms: int = 250
    suspect_ms: int = 2000
    detector: Literal["heartbeat", "accrual"] = "heartbeat"
    partition: Policy = "primary"
    balance: bool = True  # groups move by themselves to where they are numbered best
    electorate: tuple[str, ...] = ()  # names of all voters; the first node of a cluster says it
    max_voters: int = 5  # without such a list, so many of the oldest nodes vote

    @property
    def timeout_ticks(self) -> int:
        """Silence of so many ticks is suspicious."""
        return max(2, -(-self.suspect_ms // self.heartbeat_ms))


class Standing(enum.IntEnum):
    """How a node stands in its cluster."""

    OUTSIDE = 1  # it asks to be let in
    IN = 2
    CUT_OFF = 3  # it is in a view, and hears too few of its voters
    OUT = 4  # the others went on without it, or it has left: the end of this incarnation


class Phase(enum.IntEnum):
    """Of an attempt to decide the next view."""

    ENDING = 1  # promises are asked for
    PROPOSING = 2  # a proposal is out


# -- what a driver is told ------------------------------------------------------------------------


class Installed(msgspec.Struct, frozen=True):
    """A node view is in force."""

    view: NodeView
    excluded: tuple[ProcessId, ...] = ()  # were in the one before, and did not leave


class Blocked(msgspec.Struct, frozen=True):
    """This side is no majority: nothing is sent or delivered until the missing are back."""

    view: int
    missing: tuple[ProcessId, ...]


class Resumed(msgspec.Struct, frozen=True):
    """Enough are back."""


class Out(msgspec.Struct, frozen=True):
    """The others went on without this node, or it has left."""

    view: int
    by: ProcessId
    fenced: bool = False  # a later generation of the cluster goes on: this one was given up


class Dissolved(msgspec.Struct, frozen=True):
    """This side has ended in order; its nodes go over to the side of that node."""

    into: ProcessId
    former: tuple[str, ...]  # names of the nodes of this side


News = Installed | Blocked | Resumed | Out | Dissolved


class Attempt(PlainState):
    """One try to decide what comes after the view."""

    def __init__(self, ballot: Ballot, phase: Phase) -> None:
        self.ballot = ballot
        self.phase = phase
        self.reports: dict[ProcessId, ViewReport] = {}
        self.proposal: NodeView | None = None
        self.accepted_by: set[ProcessId] = set()
        self.recovers = False  # without a majority: all who are here must accept
        self.age = 0  # ticks


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


class Agreement(PlainState):
    """One node's part in the views of its cluster."""

    def __init__(self, node: NodeEntry, options: ClusterOptions) -> None:
        self.node = node
        self.me = node.pid
        self.options = options
        self.standing = Standing.OUTSIDE
        self.view: NodeView | None = None
        self.promised = Ballot(0, 0)  # no lower ballot counts, for what comes after the view
        self.accepted: tuple[Ballot, NodeView] | None = None
        self.attempt: Attempt | None = None
        self.spent = False  # ballot 0 was used
        self.detector = detector(options.detector, options.timeout_ticks)
        self.flapping = Flapping()
        self.ticks = 0
        self.contacts: tuple[ProcessId, ...] = ()  # while it is outside
        self.connected: dict[ProcessId, str] = {}  # nodes to which there is a connection: names
        self.cut_off_for = 0  # ticks
        self.owed: dict[ProcessId, ProcessId] = {}  # not reached yet -> who asked
        self.going = False  # this node wants to leave
        self.renewing = False  # packets may be lost since the view began
        self.pending: dict[ProcessId, EndView] = {}  # from those who lead too early, as seen here
        self.forgotten: set[ProcessId] = set()  # by an operator
        self.lost: dict[ProcessId, NodeEntry] = {}  # excluded; they may live
        # as the coordinator
        self.joiners: dict[ProcessId, tuple[NodeEntry, int]] = {}  # and since which tick they ask
        self.asked_at: dict[ProcessId, int] = {}  # the tick at which a joiner last asked
        self.reached: dict[ProcessId, set[ProcessId]] = {}  # which voters reach a joiner
        self.leavers: set[ProcessId] = set()
        self.accusers: dict[ProcessId, dict[ProcessId, int]] = {}  # who does not hear it; for long?
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
    def suspected(self) -> set[ProcessId]:
        """Nodes that are believed to be dead."""
        return self.detector.suspected

    def here(self) -> tuple[ProcessId, ...]:
        """The nodes of the view that are not suspected."""
        return tuple(p for p in self.pids if p == self.me or p not in self.suspected)

    def acting(self) -> ProcessId:
        """Who leads: the first voter that is not suspected; without votes, the first node."""
        assert self.view is not None
        here = self.here()
        leaders = [p for p in self.view.voters if p in here] if self.votes else []
        return leaders[0] if leaders else here[0]

    @property
    def leads(self) -> bool:
        """Is it this node's task?"""
        return self.standing in (Standing.IN, Standing.CUT_OFF) and self.acting() == self.me

    # -- the driver -------------------------------------------------------------------------------

    def found(self, cluster: Cluster) -> None:
        """Begin a cluster of this node alone."""
        electorate = self.options.electorate
        voters = (self.me,) if self.node.voter else ()
        view = NodeView(ViewId(0, 0, 1), (self.node,), voters, 1, electorate)
        self._install(cluster, view)

    def seek(self, cluster: Cluster, contacts: tuple[ProcessId, ...]) -> None:
        """Join the cluster of these nodes: any of them will do."""
        self.contacts = contacts
        self._ask_to_join(cluster)

    def leave(self, cluster: Cluster) -> None:
        """Take this node out of the cluster. It is in no group any more."""
        self.going = True
        self._act(cluster)

    def connect(self, cluster: Cluster, p: ProcessId, name: str) -> None:
        """There is a connection to p."""
        self.connected[p] = name
        asked_by = self.owed.pop(p, None)
        if asked_by is not None:
            self._answer_reached(cluster, asked_by, p)

    def broken(self, cluster: Cluster, p: ProcessId) -> None:
        """The connection to p broke."""
        self.connected.pop(p, None)
        self._drop_joiner(p)
        self.owed.pop(p, None)
        self.detector.broken(p)
        self._act(cluster)

    def forget(self, cluster: Cluster, pids: tuple[ProcessId, ...]) -> None:
        """An operator declares that these are gone; none: all that are not here."""
        if self.standing in (Standing.IN, Standing.CUT_OFF):
            self._send(cluster, (self.acting(),), Forget(pids))

    def tick(self, cluster: Cluster) -> None:
        """One heartbeat."""
        self.ticks += 1
        self.flapping.tick()
        if self.standing is Standing.OUTSIDE:
            self._ask_to_join(cluster)
        elif self.standing is not Standing.OUT:
            assert self.view is not None
            heard_by = self.pids
            if self.standing is Standing.CUT_OFF:  # whoever went on may be unknown here
                self.cut_off_for += 1
                heard_by = tuple(dict.fromkeys((*self.pids, *self.connected)))
            else:
                self.cut_off_for = 0
            self._send(cluster, heard_by, Heartbeat(self.view.id))
            if self.ticks % SEEK_EVERY == 0:
                self._seek_the_lost(cluster)
            self._trust_again()
            self._forget_silent_joiners()
            self.detector.tick()
            if self.attempt is not None:
                self.attempt.age += 1
                if self.attempt.age > PATIENCE * self.options.timeout_ticks:
                    self.attempt = None
            self._complain(cluster)
            self._act(cluster)

    def _trust_again(self) -> None:
        """Who is cut off counts on everybody that it hears; and nobody is excluded who is heard
        before anything was decided."""
        if self.standing is Standing.CUT_OFF:
            for p in tuple(self.suspected):
                if self.detector.silent_for(p) == 0 and p in self.connected:
                    self.detector.trust(p)

    def _forget_silent_joiners(self) -> None:
        """They asked elsewhere, and are in; or they are dead."""
        limit = self.ticks - 2 * self.options.timeout_ticks
        for pid in [pid for pid in self.joiners if self.asked_at.get(pid, 0) < limit]:
            self._drop_joiner(pid)

    def _drop_joiner(self, pid: ProcessId) -> None:
        for table in (self.joiners, self.asked_at, self.reached):
            table.pop(pid, None)

    def _complain(self, cluster: Cluster) -> None:
        acting = self.acting()
        if acting != self.me:
            for p in self.pids:
                if p in self.suspected:
                    self._send(cluster, (acting,), Suspect(p))
            if self.going:
                self._send(cluster, (acting,), LeaveView())
            if self.renewing and self.standing is Standing.IN:
                assert self.view is not None
                self._send(cluster, (acting,), Renew(self.view.id))

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, cluster: Cluster, src: ProcessId, header: msgspec.Struct) -> None:
        """A packet about node views."""
        if self.standing is not Standing.OUT:
            if src in self.pids and not self._is_of_another_side(src, header):
                self.detector.heard(src)
            HANDLERS[type(header)](self, cluster, src, header)

    def _is_of_another_side(self, src: ProcessId, header: Any) -> bool:
        return isinstance(header, Sighted | Offer | Welcome)

    def _send(self, cluster: Cluster, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        """To all of these; this node hears itself at once."""
        others = tuple(p for p in to if p != self.me)
        if others:
            cluster.send(others, header)
        if self.me in to and not isinstance(header, Heartbeat):
            self.receive(cluster, self.me, header)

    def _of_this_view(self, cluster: Cluster, src: ProcessId, view: ViewId) -> bool:
        """Is this about the view that is in force here? If one of us lags behind, mend that."""
        if self.view is None:
            return False
        if view == self.view.id:
            return True
        if src in self.pids or src in self.lost:
            self._mend(cluster, src, view)
        return False

    def _mend(self, cluster: Cluster, src: ProcessId, view: ViewId) -> None:
        assert self.view is not None
        if not self.votes:
            if src not in self.pids or src in self.lost:
                self._tell_of_this_side(cluster, src)
        elif view < self.view.id:
            self._send(cluster, (src,), InstallView(self.view))
        else:
            self._send(cluster, (src,), Heartbeat(self.view.id))  # it will send what we lack

    def _on_heartbeat(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        view = self.view
        if view is not None and beat.view != view.id:
            known = src in self.pids or src in self.lost
            if known or beat.view < view.id:
                self._mend(cluster, src, beat.view)

    # -- who is gone ------------------------------------------------------------------------------

    def _on_suspect(self, cluster: Cluster, src: ProcessId, suspect: Suspect) -> None:
        """src does not hear p. One accuser alone does not remove a node that others hear."""
        p = suspect.pid
        if src not in self.pids or p not in self.pids or p == self.me or not self.leads:
            return
        if p in self.suspected or src in self.suspected:
            return
        accusers = self.accusers.setdefault(p, {})
        accusers[src] = accusers.get(src, 0) + 1
        if self.detector.silent_for(p) > 1 and len(accusers) > 1:
            self.detector.told(p)
        elif accusers[src] > self.options.timeout_ticks:
            self.detector.told(self._at_odds(src, p))
        self._act(cluster)

    def _at_odds(self, accuser: ProcessId, accused: ProcessId) -> ProcessId:
        """For long enough these two have not heard each other, or one says so: who goes?"""
        if len(self.accusers[accused]) > 1:
            return accused
        if accused in self.accusers.get(accuser, {}):
            return max(accuser, accused, key=self.pids.index)  # the younger
        return accuser

    def _on_renew(self, cluster: Cluster, src: ProcessId, renew: Renew) -> None:
        if self.view is not None and renew.view == self.view.id and self.leads:
            self.renewing = True
            self._act(cluster)

    def _on_leave(self, cluster: Cluster, src: ProcessId, leave: LeaveView) -> None:
        if src in self.pids and self.leads:
            if cluster.may_leave(src):
                self.leavers.add(src)
            self._act(cluster)

    def _on_forget(self, cluster: Cluster, src: ProcessId, forget: Forget) -> None:
        if src not in self.pids or not self.leads:
            return
        here = self.here()
        gone = forget.pids or tuple(p for p in self.pids if p not in here)
        self.forgotten.update(p for p in gone if p not in here)
        self._act(cluster)

    # -- who comes --------------------------------------------------------------------------------

    def _ask_to_join(self, cluster: Cluster) -> None:
        if self.contacts:
            to = self.contacts[self.ticks % len(self.contacts)]
            self._send(cluster, (to,), JoinView(self.node))

    def _on_join(self, cluster: Cluster, src: ProcessId, join: JoinView) -> None:
        node = join.node
        if self.view is None:
            return
        if node.pid in self.pids:
            self._send(cluster, (node.pid,), InstallView(self.view))
        elif not self.leads:
            if src == node.pid:  # once passed on is enough
                self._send(cluster, (self.acting(),), join)
        elif src == node.pid or src in self.pids:
            self._consider(cluster, node)

    def _consider(self, cluster: Cluster, node: NodeEntry) -> None:
        assert self.view is not None
        for other, _ in tuple(self.joiners.values()):
            if other.name == node.name and other.incarnation < node.incarnation:
                self._drop_joiner(other.pid)  # it crashed while it waited
        if node.pid not in self.joiners and len(self.joiners) < MAX_JOINERS:
            self.joiners[node.pid] = (node, self.ticks)
        if node.pid not in self.joiners:
            return
        self.asked_at[node.pid] = self.ticks
        self.reached.setdefault(node.pid, set())
        voters = [p for p in self.here() if p in self.view.voters] if self.votes else self.here()
        missing = [p for p in voters if p not in self.reached[node.pid]]
        self._send(cluster, missing, Reach(node.pid))
        self._act(cluster)

    def _on_reach(self, cluster: Cluster, src: ProcessId, reach: Reach) -> None:
        if src not in self.pids:
            return
        if reach.pid in self.connected or src == self.me:
            self._answer_reached(cluster, src, reach.pid)
        elif len(self.owed) < MAX_JOINERS:
            self.owed[reach.pid] = src

    def _answer_reached(self, cluster: Cluster, to: ProcessId, pid: ProcessId) -> None:
        if self.standing in (Standing.IN, Standing.CUT_OFF):
            self._send(cluster, (to,), Reached(pid))

    def _on_reached(self, cluster: Cluster, src: ProcessId, reached: Reached) -> None:
        if src in self.pids and reached.pid in self.joiners:
            self.reached.setdefault(reached.pid, set()).add(src)
            self._act(cluster)

    def _admitted(self) -> list[NodeEntry]:
        """Joiners that may come in now: all voters here reach them."""
        assert self.view is not None
        voters = set(self.here())
        if self.votes:
            voters &= set(self.view.voters)
        names = {node.name for node, _ in self.joiners.values()}
        names.update(node.name for node in self.view.nodes)
        here = self.here()
        taken = {node.name for node in self.view.nodes if node.pid in here}
        return [
            node
            for node, since in self.joiners.values()
            if node.name not in taken  # a former life of it is heard
            and voters <= self.reached.get(node.pid, set()) | {self.me}
            and (self.ticks - since >= GATHER_TICKS or names.issuperset(node.former))
            and (node.former or self.flapping.may_enter(node.name))
        ]

    # -- an attempt -------------------------------------------------------------------------------

    def _act(self, cluster: Cluster) -> None:
        """Lead, if that is this node's task, and anything should change."""
        if self.standing not in (Standing.IN, Standing.CUT_OFF):
            return
        self._look_whether_cut_off(cluster)
        if self.pending:
            self._answer_pending(cluster)
        if self.going and self.leads:
            if len(self.pids) == 1:
                self._go_out(cluster, Out(self.view.number, self.me))  # type: ignore[union-attr]
                return
            if cluster.may_leave(self.me):
                self.leavers.add(self.me)
        if not self.leads or self.attempt is not None or not self._has_a_goal():
            return
        assert self.view is not None
        if self.view.coordinator == self.me and not self.spent and self._may_decide():
            self.spent = True
            self.attempt = Attempt(Ballot(0, self.me), Phase.PROPOSING)
            self.attempt.reports[self.me] = ViewReport(self.view.id, self.attempt.ballot)
            self._propose(cluster)
        elif self._may_decide():
            ballot = Ballot(self.promised.n + 1, self.me)
            self.attempt = Attempt(ballot, Phase.ENDING)
            self._send(cluster, self.here(), EndView(self.view.id, ballot))

    def _has_a_goal(self) -> bool:
        here = self.here()
        gone = len(here) < len(self.pids)
        wanted = bool(self.leavers.intersection(here)) or bool(self._admitted())
        return gone or wanted or self.renewing or self.accepted is not None

    def _may_decide(self) -> bool:
        """Is there a majority; or all of an electorate; or an operator's word?"""
        assert self.view is not None
        return not self.votes or self.view.won_by(self.here()) or self._may_recover()

    def _may_recover(self) -> bool:
        """Nobody else can be alive who could have gone on."""
        assert self.view is not None
        here = self.here()
        if self.forgotten:
            voters = [p for p in self.view.voters if p not in self.forgotten]
            return not voters or won(here, voters)
        if not self.view.electorate:
            return False
        names = {node.name for node in self.view.nodes if node.pid in here}
        names.update(node.name for node in self._admitted())
        return names.issuperset(self.view.electorate)

    def _on_end(self, cluster: Cluster, src: ProcessId, end: EndView) -> None:
        if not self._of_this_view(cluster, src, end.view):
            return
        assert self.view is not None
        self._check_ballot(src, end.ballot)
        if not self._may_lead(src):  # it will be clear soon whether it is right
            self.pending[src] = end
            return
        if end.ballot <= self.promised:
            self._send(cluster, (src,), Overruled(self.view.id, self.promised))
            return
        self._promise(end.ballot)
        accepted, proposal = self.accepted or (None, None)
        self._send(cluster, (src,), ViewReport(end.view, end.ballot, accepted, proposal))

    def _may_lead(self, p: ProcessId) -> bool:
        """Are all voters before it suspected here, too? Otherwise one node could remove those that
        everybody else hears."""
        assert self.view is not None
        if not self.votes or p not in self.view.voters:
            return True
        older = self.view.voters[: self.view.voters.index(p)]
        return all(q != self.me and q in self.suspected for q in older)

    def _answer_pending(self, cluster: Cluster) -> None:
        for src, end in tuple(self.pending.items()):
            if self._may_lead(src):
                self.pending.pop(src, None)
                self._on_end(cluster, src, end)

    def _check_ballot(self, src: ProcessId, ballot: Ballot) -> None:
        """Only who votes may lead, in its own name, and not far above what was promised."""
        if src not in self.pids or ballot.by != src:
            raise PeerError(f"a ballot of {ballot.by}, from one that may not lead")
        if ballot.n > self.promised.n + MAX_BALLOTS:
            raise PeerError(f"ballot {ballot.n} is far above {self.promised.n}")

    def _promise(self, ballot: Ballot) -> None:
        self.promised = ballot
        if self.attempt is not None and self.attempt.ballot < ballot:
            self.attempt = None

    def _on_report(self, cluster: Cluster, src: ProcessId, report: ViewReport) -> None:
        attempt = self.attempt
        if attempt is None or attempt.phase is not Phase.ENDING or report.ballot != attempt.ballot:
            return
        assert self.view is not None
        if src not in self.pids or report.view != self.view.id:
            return
        attempt.reports[src] = report
        reporters = set(attempt.reports)
        if self.votes and not self.view.won_by(reporters):
            if not (self._may_recover() and reporters >= set(self.here())):
                return
        elif not self.votes and not reporters >= set(self.here()):
            return
        attempt.phase = Phase.PROPOSING
        self._propose(cluster)

    def _propose(self, cluster: Cluster) -> None:
        attempt = self.attempt
        assert attempt is not None and self.view is not None
        attempt.proposal = self._accepted_before(attempt) or self._next_view(attempt)
        if attempt.proposal is None:
            self.attempt = None
            return
        everybody = tuple(dict.fromkeys((*self.here(), *attempt.proposal.pids)))
        proposal = ProposeView(self.view.id, attempt.ballot, attempt.proposal)
        self._send(cluster, everybody, proposal)

    def _accepted_before(self, attempt: Attempt) -> NodeView | None:
        """What others may have decided already must be proposed unchanged."""
        assert self.view is not None
        found = [r for r in attempt.reports.values() if r.accepted is not None]
        if not found or (self.votes and not self.view.won_by(set(attempt.reports))):
            return None
        best = max(found, key=lambda report: report.accepted or Ballot(0, 0)).proposal
        assert best is not None
        if not self.votes and not set(best.pids) <= {*self.here(), *self.joiners}:
            return None  # that side may have gone on with it; so do we, without it
        return best

    def _next_view(self, attempt: Attempt) -> NodeView | None:
        """Those here, without those who go, with those who come."""
        view = self.view
        assert view is not None
        here = set(self.here())
        majority = not self.votes or view.won_by(here)
        attempt.recovers = not majority
        stay = [n for n in view.nodes if n.pid in here and n.pid not in self.leavers]
        joining = self._admitted() if majority or view.electorate else []
        nodes = (*stay, *joining)
        voters = self._voters(nodes, [n.pid for n in stay], attempt)
        if not nodes or (self.votes and not voters):
            return None
        number = view.id.number + 1
        id = ViewId(view.id.generation, view.id.fork, number)
        if attempt.recovers:
            id = ViewId(view.id.generation + 1, self.me, number)
        elif not self.votes:
            id = self._side_id(attempt.ballot)
        gone = len(stay) < len(view.nodes)
        first = voters[0] if voters else nodes[0].pid
        keeps_term = not (gone or self.renewing or attempt.recovers) and first == view.coordinator
        forgotten = tuple(n.identity for n in view.nodes if n.pid in self.forgotten)
        left = tuple(p for p in view.pids if p in self.leavers and p in here)
        return NodeView(
            id, nodes, voters, view.term if keeps_term else number, view.electorate,
            parent=view.id, left=left, forgotten=forgotten,
        )  # fmt: skip

    def _side_id(self, ballot: Ballot) -> ViewId:
        """Where every side goes on, no two attempts give a view the same id."""
        assert self.view is not None
        before = self.view.id
        side = self.me * MAX_BALLOTS**2 + ballot.n
        return ViewId(before.generation, before.fork, before.number + 1, side)

    def _voters(
        self, nodes: Iterable[NodeEntry], stay: Collection[ProcessId], attempt: Attempt
    ) -> tuple[ProcessId, ...]:
        """Those who stay win the list alone: newcomers cannot take the majority along."""
        view = self.view
        assert view is not None
        able = [n for n in nodes if n.voter]
        if view.electorate:
            voters = [n.pid for n in able if n.name in view.electorate]
        else:
            old = [n.pid for n in able if n.pid in view.voters]
            new = [n.pid for n in able if n.pid not in view.voters]
            voters = old + new[: max(0, self.options.max_voters - len(old))]
        if attempt.recovers or not self.votes:
            return tuple(voters)
        earned = [p for p in voters if p in view.voters or p in stay]
        newcomers = [p for p in voters if p not in earned]
        while newcomers and not won(earned, self._in_order(nodes, (*earned, *newcomers))):
            newcomers.pop()
        return self._in_order(nodes, (*earned, *newcomers))

    @staticmethod
    def _in_order(nodes: Iterable[NodeEntry], pids: Collection[ProcessId]) -> tuple[ProcessId, ...]:
        return tuple(n.pid for n in nodes if n.pid in pids)

    def _on_propose(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        _check_view(propose.next)
        if self.view is None:
            if self.me in propose.next.pids:  # a newcomer shows that it lives
                self._send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))
            return
        if not self._of_this_view(cluster, src, propose.view):
            return
        self._check_ballot(src, propose.ballot)
        if propose.ballot.n == 0 and src != self.view.coordinator:
            raise PeerError("only the coordinator has ballot 0")
        if propose.ballot < self.promised:
            self._send(cluster, (src,), Overruled(self.view.id, self.promised))
            return
        self._check_next(propose.next)
        self._promise(propose.ballot)
        self.accepted = (propose.ballot, propose.next)
        self._send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))

    def _check_next(self, view: NodeView) -> None:
        assert self.view is not None
        if view.parent != self.view.id or view.id.number != self.view.id.number + 1:
            raise PeerError(f"view {view.id} does not come after {self.view.id}")
        if view.id.generation > self.view.id.generation + 1:
            raise PeerError(f"generation {view.id.generation} comes too early")

    def _on_accepted(self, cluster: Cluster, src: ProcessId, word: ViewAccepted) -> None:
        attempt = self.attempt
        if attempt is None or attempt.phase is not Phase.PROPOSING:
            return
        if word.ballot != attempt.ballot or attempt.proposal is None:
            return
        attempt.accepted_by.add(src)
        if self._is_decided(attempt, attempt.proposal):
            self._decided(cluster, attempt.proposal)

    def _is_decided(self, attempt: Attempt, proposal: NodeView) -> bool:
        assert self.view is not None
        if not self.votes:
            return attempt.accepted_by >= set(proposal.pids)
        if attempt.recovers:
            return attempt.accepted_by >= set(proposal.voters)
        return self.view.won_by(attempt.accepted_by)

    def _decided(self, cluster: Cluster, view: NodeView) -> None:
        told = tuple(dict.fromkeys((*self.pids, *view.pids)))
        self._send(cluster, tuple(p for p in told if p != self.me), InstallView(view))
        self._on_install(cluster, self.me, InstallView(view))

    def _on_overruled(self, cluster: Cluster, src: ProcessId, word: Overruled) -> None:
        if self.view is None or word.view != self.view.id or src not in self.pids:
            return
        if word.promised.n > self.promised.n + MAX_BALLOTS:
            raise PeerError(f"ballot {word.promised.n} is far above {self.promised.n}")
        if self.attempt is not None and self.attempt.ballot < word.promised:
            self.attempt = None
            self.promised = max(self.promised, word.promised)

    # -- a view begins ----------------------------------------------------------------------------

    def _on_install(self, cluster: Cluster, src: ProcessId, install: InstallView) -> None:
        view = install.next
        _check_view(view)
        if self.view is None:
            if self.me in view.pids:
                self._install(cluster, view)
            elif self.going or src in self.contacts:
                pass  # not let in yet
            return
        if view.id <= self.view.id or not self._believes(src):
            return
        if not self.votes and view.parent != self.view.id:
            self._sight(cluster, view.coordinator, len(view.nodes))
        elif self.me in view.pids:
            self._install(cluster, view)
        else:
            fenced = view.id.generation > self.view.id.generation
            self._go_out(cluster, Out(view.number, src, fenced))

    def _believes(self, src: ProcessId) -> bool:
        """Who may say what was decided: nodes of the view, or of one before. Who has been cut off
        for long believes others, too: all that it knew may be gone. With an electorate, only
        those."""
        if src in self.pids or src in self.lost:
            return True
        assert self.view is not None
        electorate = self.view.electorate
        patient = self.cut_off_for > PATIENCE * self.options.timeout_ticks
        return patient and (not electorate or self.connected.get(src) in electorate)

    def _install(self, cluster: Cluster, view: NodeView) -> None:
        before = self.view
        self.view = view
        was_cut_off = self.standing is Standing.CUT_OFF
        self.standing = Standing.IN
        self.promised, self.accepted = Ballot(0, view.coordinator), None
        self.attempt, self.spent = None, False
        follows = before is not None and view.parent == before.id
        gone = () if before is None else tuple(n for n in before.nodes if n.pid not in view.pids)
        # Who missed a view does not know who left in it: then nobody counts as excluded.
        excluded = tuple(n for n in gone if follows and n.pid not in view.left)
        self.leavers, self.pending = set(), {}
        self.accusers, self.forgotten, self.contacts = {}, set(), ()
        self.renewing = False
        names = {node.name for node in view.nodes}
        for node in excluded:
            self.lost[node.pid] = node
            self.flapping.excluded(node.name)
        kept = [(p, n) for p, n in self.lost.items() if n.name not in names]
        self.lost = dict(kept[-MAX_LOST:])
        for pid in view.pids:
            self._drop_joiner(pid)
        self.detector.watch(p for p in view.pids if p != self.me)
        if was_cut_off:
            cluster.tell(Resumed())
        cluster.tell(Installed(view, tuple(n.pid for n in excluded)))
        cluster.begin_view(view, excluded)
        if view.into >= 0:
            return
        self._act(cluster)

    def _look_whether_cut_off(self, cluster: Cluster) -> None:
        view = self.view
        assert view is not None
        if not self.votes:
            return
        if view.won_by(self.here()):
            if self.standing is Standing.CUT_OFF:
                self.standing, self.renewing = Standing.IN, True
        elif self.standing is Standing.IN:
            self.standing = Standing.CUT_OFF
            cluster.tell(Blocked(view.number, view.missing(self.here())))

    def _go_out(self, cluster: Cluster, news: Out | Dissolved) -> None:
        self.standing, self.attempt = Standing.OUT, None
        cluster.tell(news)

    # -- those who were lost ----------------------------------------------------------------------

    def _seek_the_lost(self, cluster: Cluster) -> None:
        """They may live, and not know that the others went on."""
        assert self.view is not None
        if self.votes:
            self._send(cluster, tuple(self.lost), InstallView(self.view))
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
        if self.votes:
            raise PeerError("it speaks of another side, where only one may go on")
        self._sight(cluster, word.coordinator, word.size)

    def _sight(self, cluster: Cluster, coordinator: ProcessId, size: int) -> None:
        """The larger side stays; of equal ones that with the older coordinator."""
        if self.view is None or coordinator in self.pids:
            return
        if not self.leads:
            self._send(cluster, (self.acting(),), Sighted(coordinator, size))
        elif (size, -coordinator) < (len(self.pids), -self.view.coordinator):
            self._tell_of_this_side(cluster, coordinator)
        elif self.ticks >= self.host_until:
            self.offered_to = coordinator
            self._send(cluster, (coordinator,), Offer())

    def _on_offer(self, cluster: Cluster, src: ProcessId, offer: Offer) -> None:
        if self.leads and src not in self.pids and not self.votes:
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
        self.attempt = Attempt(Ballot(self.promised.n + 1, self.me), Phase.PROPOSING)
        id = self._side_id(self.attempt.ballot)
        self.attempt.proposal = NodeView(
            id, nodes, voters, number, view.electorate, into, parent=view.id
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
        view = self.view
        assert (view is None) == (self.standing is Standing.OUTSIDE) or self.standing is (
            Standing.OUT
        ), "who is in has a view"
        if view is None or self.standing is Standing.OUT:
            return
        assert self.me in view.pids, "the view names this node"
        assert set(view.voters) <= set(view.pids), "voters are nodes"
        assert self.accepted is None or self.accepted[0] <= self.promised, "accepted is promised"
        assert self.accepted is None or self.accepted[1].parent == view.id, "of this view"
        if self.attempt is not None:
            assert self.attempt.ballot.by == self.me, "an attempt is one's own"


def _check_view(view: NodeView) -> None:
    """What no honest node proposes."""
    pids = view.pids
    if not pids or len(set(pids)) != len(pids):
        raise PeerError("a view without a node, or with one twice")
    if not set(view.voters) <= set(pids) or len(set(view.voters)) != len(view.voters):
        raise PeerError("a view with voters that are not in it")
    if len({node.name for node in view.nodes}) != len(pids):
        raise PeerError("a view with two lives of one node")


HANDLERS: dict[type, Any] = {
    Heartbeat: Agreement._on_heartbeat,
    Suspect: Agreement._on_suspect,
    Renew: Agreement._on_renew,
    JoinView: Agreement._on_join,
    Reach: Agreement._on_reach,
    Reached: Agreement._on_reached,
    LeaveView: Agreement._on_leave,
    Forget: Agreement._on_forget,
    EndView: Agreement._on_end,
    ViewReport: Agreement._on_report,
    ProposeView: Agreement._on_propose,
    ViewAccepted: Agreement._on_accepted,
    InstallView: Agreement._on_install,
    Overruled: Agreement._on_overruled,
    Sighted: Agreement._on_sighted,
    Offer: Agreement._on_offer,
    Welcome: Agreement._on_welcome,
}
