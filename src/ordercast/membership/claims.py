"""Claims: views that others say were decided, and which of them are believed.

    INSTALL(v) from q           in force at once, if v was accepted here, and q is a node of the
                                view; otherwise q claims it, if q may say so
    q claims v                  listen: does q say it again; who of those who must have decided v
                                denies it? A voter denies v while its heartbeats name an earlier
                                view, and say that it has accepted nothing
    a claim is believed         when it was repeated in a later tick, all voters that are heard have
                                spoken, or had the time to, and those who do not deny it are a
                                majority; for a recovery: nobody denies it
    it gets old, or v is past   forget it

So no single word moves a node. Claims come from other nodes: their number is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import Heartbeat
from ordercast.membership.agreement_part import Cluster, OwnNode, Part, Transitions
from ordercast.membership.agreement_table import INVOLVED
from ordercast.membership.node_view import NodeView, won
from ordercast.membership.plausible import MAX_RECOVERIES, MAX_VIEWS

MAX_CLAIMS = 64  # views that are looked into


class Claim(PlainState):
    """Somebody says that this view was decided, and this node has not accepted it. So it listens:
    does the claimant say it again; who of the voters that must have decided it denies it, and who
    has said nothing yet?"""

    def __init__(
        self,
        src: ProcessId,
        view: NodeView,
        now: int,
        electors: tuple[ProcessId, ...],
        heard: Iterable[ProcessId],
    ) -> None:
        self.src = src
        self.view = view
        self.since = now
        self.repeated = False  # in a later tick
        self.electors = electors
        self.unspoken = set(heard)
        self.deniers: set[ProcessId] = set()

    def hear(self, p: ProcessId, denies: bool) -> None:
        """A word of p, later than the claim."""
        self.unspoken.discard(p)
        if denies and p == self.src:
            self.repeated = False
        if denies and p in self.electors:
            self.deniers.add(p)
        else:
            self.deniers.discard(p)

    def is_possible(self, by_all: bool) -> bool:
        """May those who do not deny it have decided it?"""
        if by_all:
            return not self.deniers
        return won(set(self.electors) - self.deniers, self.electors)


class OwnAcceptor(Protocol):
    """What was accepted at the same node."""

    @property
    def has_accepted(self) -> bool:
        """Was anything accepted here that may come after the view?"""

    def is_accepted(self, view: NodeView) -> bool:
        """Was this view accepted here last?"""


class OtherSides(Protocol):
    """Nodes that were lost, and sides of a partition."""

    def is_lost(self, p: ProcessId) -> bool:
        """Was it excluded, and may live?"""

    def sight(self, cluster: Cluster, coordinator: ProcessId, size: int) -> None:
        """There is a side with so many nodes."""


class OwnBeats(Protocol):
    """The heartbeats of the same node."""

    @property
    def cut_off_for(self) -> int:
        """For so many ticks it has been cut off."""


class Claims(Part):
    """Which views may have been decided, of which this node has accepted none."""

    lent = Part.lent | {"transitions", "acceptor", "sides", "beats"}

    def __init__(self) -> None:
        self.of: dict[ProcessId, Claim] = {}  # of each claimant the last

    def connect(
        self,
        own: OwnNode,
        transitions: Transitions,
        acceptor: OwnAcceptor,
        sides: OtherSides,
        beats: OwnBeats,
    ) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.transitions = transitions
        self.acceptor = acceptor
        self.sides = sides
        self.beats = beats

    def begin_view(self) -> None:
        """Claims were about what comes after the view before."""
        self.of = {}

    def consider(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """src says that this view was decided, which is later than the one in force."""
        before = self.own.in_force.id
        if view.number > before.number + MAX_VIEWS:
            raise PeerError(f"view {view.number} is far above {before.number}")
        if view.id.generation > before.generation + MAX_RECOVERIES:
            raise PeerError(f"generation {view.id.generation} is far above {before.generation}")
        if not self.own.votes and view.parent != before:
            self.sides.sight(cluster, view.coordinator, len(view.nodes))
        elif self.acceptor.is_accepted(view) and src in self.own.pids:
            self.transitions.follow(cluster, src, view)
        elif self._may_claim(src, view):
            self._claim(cluster, src, view)

    def _may_claim(self, src: ProcessId, view: NodeView) -> bool:
        """Who may say what was decided: nodes of the view in force, which are in that one, too, or
        leave with it; nodes that were excluded, if they come with a later generation. Who has been
        cut off for long listens to others, too: all that it knew may be gone. With an electorate,
        only to those."""
        before = self.own.in_force
        if src not in view.pids and src not in view.left:
            return False
        if src in before.pids:
            if view.parent == before.id:
                self.own.check_next(view)
            return True
        if self.sides.is_lost(src):
            return view.id.lineage > before.id.lineage
        electorate = before.electorate
        patient = self.beats.cut_off_for > self.own.patience
        return patient and (not electorate or self.own.connected.get(src) in electorate)

    def _claim(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """Hear what others say about it first."""
        for claim in self.of.values():
            claim.hear(src, view.id < claim.view.id)
        known = self.of.get(src)
        if known is None or known.view != view:
            if known is None and len(self.of) >= MAX_CLAIMS:
                return
            self.of[src] = self._new_claim(src, view)
        elif self.own.ticks > known.since:
            known.repeated = True
        self.look_into(cluster)

    def _new_claim(self, src: ProcessId, view: NodeView) -> Claim:
        own = self.own
        recovered = view.id.lineage > own.in_force.id.lineage
        electors = view.voters if recovered else own.electors
        heard = [p for p in electors if p in own.here() and p not in (own.me, src)]
        claim = Claim(src, view, own.ticks, electors, heard)
        claim.hear(own.me, not self.acceptor.has_accepted)
        return claim

    def hear(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        """A heartbeat says which view src is in, and whether it has accepted anything."""
        if self.of:
            for claim in self.of.values():
                claim.hear(src, beat.view < claim.view.id and not beat.accepted)
            self.look_into(cluster)

    def look_into(self, cluster: Cluster) -> None:
        """When it was repeated, and all who are heard have spoken, or were given the time to."""
        own = self.own
        for src, claim in tuple(self.of.items()):
            if own.view is None or own.standing not in INVOLVED:
                return
            age = own.ticks - claim.since
            recovered = claim.view.id.lineage > own.view.id.lineage
            claim.unspoken.difference_update(own.suspected)
            if claim.view.id <= own.view.id or age > own.patience:
                self.of.pop(src, None)
            elif claim.unspoken and age < own.options.timeout_ticks:
                pass
            elif claim.repeated and claim.is_possible(by_all=recovered):
                self.transitions.follow(cluster, src, claim.view)

    def invariants(self) -> None:
        """What others say is bounded."""
        assert len(self.of) <= MAX_CLAIMS, "claims are bounded"
