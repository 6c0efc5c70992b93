"""Departure: this node leaves the cluster, or the next view is without it.

    it wants to leave           LEAVE to the one that leads, until the next view is without it
    the next view is without    INSTALL to all nodes of that view which have not shown that they
    it                          have it; out, when a majority of its voters has, or time is up;
                                or when all have it who can be reached, if it was not accepted here
    a later view                out: a majority of those who stay has decided it

A node that goes may have had a part in the decision, and others may lack it: so it stays until they
can do without it. One that was excluded has mostly had no part, and lost some of its links: nobody
gains anything if it waits for those.
"""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.membership.agreement_headers import InstallView, LeaveView
from ordercast.membership.agreement_part import Cluster, OwnNode, Part, Transitions
from ordercast.membership.news import Out


class Departure(Part):
    """Whether this node wants to leave, and who knows by now that it does."""

    lent = Part.lent | {"transitions"}

    def __init__(self) -> None:
        self.going = False  # this node wants to leave
        self.confirmed: set[ProcessId] = set()  # have the view that is without this node
        self.farewell: Out | None = None  # what is told when enough have it
        self.had_part = False  # the decision may need what was accepted here

    def connect(self, own: OwnNode, transitions: Transitions) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.transitions = transitions

    def go(self) -> None:
        """This node is in no group any more, and wants to leave."""
        self.going = True

    def ask_to_leave(self, cluster: Cluster, acting: ProcessId) -> None:
        """Another node leads."""
        if self.going:
            self.own.send(cluster, (acting,), LeaveView(self.own.in_force.id))

    def begin(self, cluster: Cluster, farewell: Out, *, had_part: bool) -> None:
        """The view, as this node knows it now, is without it."""
        self.farewell, self.had_part = farewell, had_part
        self.hand_on_the_view(cluster)

    def _has_handed_on(self) -> bool:
        own = self.own
        if own.in_force.won_by(self.confirmed):
            return True
        reached = {p for p in own.pids if p in own.connected and p not in own.suspected}
        return not self.had_part and reached <= self.confirmed

    def confirm(self, cluster: Cluster, src: ProcessId) -> None:
        """src has the view that is without this node."""
        self.confirmed.add(src)
        if self._has_handed_on():
            self.hand_on_the_view(cluster)

    def end(self, cluster: Cluster) -> None:
        """Those who stay need this node no more. They have shown that they have the view; or one
        of them has a later view, which a majority of those with this one has decided."""
        assert self.farewell is not None
        self.transitions.go_out(cluster, self.farewell)

    def hand_on_the_view(self, cluster: Cluster) -> None:
        """Who is not in the next view may have had a part in the decision: it stays until others
        can do without it."""
        view = self.own.in_force
        if self._has_handed_on() or self.own.ticks - self.own.view_since > self.own.patience:
            self.end(cluster)
        else:
            lacking = tuple(p for p in view.pids if p not in self.confirmed)
            self.own.send(cluster, lacking, InstallView(view))
