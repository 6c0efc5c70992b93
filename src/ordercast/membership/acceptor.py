"""The acceptor: what a node has promised and accepted, for what comes after its view.

    END(b) from q         ahead of its time, if an elector before q is heard here: kept;
                          OVERRULED(promised), unless b > promised, and not far above it;
                          otherwise promised := b;  REPORT(b, accepted)
    PROPOSE(b, v) from q  OVERRULED(promised), if b < promised, or b is far above it;
                          kept, unless b was promised to q, or q may lead;
                          otherwise promised := b;  accepted := (b, v);  ACCEPTED(b)
    something changes     look again at what was kept

The coordinator of the view has ballot 0, and nobody else. A ballot counts in the name of the node
that asks for it. One node that sees others as dead removes nobody: as long as an acceptor hears an
elector that is older, it follows no other. A node that hears a majority accepts no recovery.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import (
    Ballot,
    EndView,
    Overruled,
    ProposeView,
    ViewAccepted,
    ViewReport,
)
from ordercast.membership.agreement_part import Cluster, OwnNode, Part
from ordercast.membership.agreement_table import INVOLVED
from ordercast.membership.node_view import NodeView
from ordercast.membership.plausible import MAX_BALLOTS, MAX_NUMBER


class OwnProposer(Protocol):
    """The proposer at the same node, as its acceptor sees it."""

    def give_way(self, ballot: Ballot) -> None:
        """This ballot was promised: an attempt under a lower one has failed."""


class Acceptor(Part):
    """Promises, and what was accepted under them. Both end with the view."""

    lent = Part.lent | {"proposer"}

    def __init__(self) -> None:
        self.promised = Ballot(0, 0)  # no lower ballot counts, for what comes after the view
        self.accepted: tuple[Ballot, NodeView] | None = None
        self.pending: dict[ProcessId, EndView | ProposeView] = {}  # led too early, as seen here

    def connect(self, own: OwnNode, proposer: OwnProposer) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.proposer = proposer

    def begin_view(self, view: NodeView) -> None:
        """Nothing is promised for what comes after it."""
        self.promised, self.accepted, self.pending = Ballot(0, view.coordinator), None, {}

    @property
    def has_accepted(self) -> bool:
        """Was anything accepted here that may come after the view?"""
        return self.accepted is not None

    def is_accepted(self, view: NodeView) -> bool:
        """Was this view accepted here last?"""
        return self.accepted is not None and self.accepted[1] == view

    # -- promises ---------------------------------------------------------------------------------

    def on_end(self, cluster: Cluster, src: ProcessId, end: EndView) -> None:
        view = self.own.in_force
        self._check_ballot(src, end.ballot)
        if end.ballot.n < 1:
            raise PeerError(f"ballot {end.ballot.n} is never asked for")
        if not self._may_lead(src):  # it will be clear soon whether it is right
            self.pending[src] = end
        elif end.ballot < self.promised or self._is_far_above(end.ballot):
            self.own.send(cluster, (src,), Overruled(view.id, self.promised))
        else:
            self._promise(end.ballot)
            accepted, proposal = self.accepted or (None, None)
            report = ViewReport(end.view, end.ballot, accepted, proposal)
            self.own.send(cluster, (src,), report)

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
        self.proposer.give_way(ballot)

    def _may_lead(self, p: ProcessId) -> bool:
        """Are all electors before it suspected here, too? Otherwise one node could remove those
        that everybody else hears."""
        electors, suspected = self.own.electors, self.own.suspected
        older = electors[: electors.index(p)]
        return all(q != self.own.me and q in suspected for q in older)

    # -- what came too early ----------------------------------------------------------------------

    def answer_pending(self, cluster: Cluster) -> None:
        """Those who led too early may be right by now."""
        for src, header in tuple(self.pending.items()):
            if src in self.own.electors and self._may_lead(src):
                self.pending.pop(src, None)
                self._receive_pending(cluster, src, header)

    def _receive_pending(self, cluster: Cluster, src: ProcessId, header: msgspec.Struct) -> None:
        """Whatever it was that let us look at it again, a tick or a packet of another node: a fault
        in it is that of its sender, and no end of ours."""
        try:
            self.own.receive(cluster, src, header)
        except PeerError as fault:
            cluster.blame(src, str(fault))

    # -- proposals --------------------------------------------------------------------------------

    def on_propose(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        view, ballot = self.own.in_force, propose.ballot
        self._check_ballot(src, ballot)
        if ballot.n == 0 and src != view.coordinator:
            raise PeerError("only the coordinator has ballot 0")
        self.own.check_next(propose.next)
        if ballot < self.promised or self._is_far_above(ballot):
            self.own.send(cluster, (src,), Overruled(view.id, self.promised))
        elif not self._may_follow(src, propose):
            self.pending[src] = propose
        elif self._contradicts(propose):
            raise PeerError(f"two proposals under ballot {ballot.n}")
        else:
            self._accept(cluster, src, propose)

    def _may_follow(self, src: ProcessId, propose: ProposeView) -> bool:
        """What was promised to src holds. Otherwise it must be its task to lead; and nobody is
        recovered from who hears a majority."""
        view = self.own.in_force
        recovers = propose.next.id.generation > view.id.generation
        if recovers and src != self.own.me and view.won_by(self.own.here()):
            return False
        return propose.ballot == self.promised or self._may_lead(src)

    def _contradicts(self, propose: ProposeView) -> bool:
        ballot, view = self.accepted or (None, None)
        return ballot == propose.ballot and view != propose.next

    def _accept(self, cluster: Cluster, src: ProcessId, propose: ProposeView) -> None:
        self._promise(propose.ballot)
        self.accepted = (propose.ballot, propose.next)
        self.own.send(cluster, (src,), ViewAccepted(propose.view, propose.ballot))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Of a node that is in a view."""
        view = self.own.view
        if view is None or self.own.standing not in INVOLVED:
            return
        assert set(self.pending) <= set(view.pids), "only nodes of the view lead"
        assert self.accepted is None or self.accepted[0] <= self.promised, "accepted is promised"
        assert self.accepted is None or self.accepted[1].parent == view.id, "of this view"
