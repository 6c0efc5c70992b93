"""Heartbeats: every node says in which view it is, so that those who lag behind are noticed.

    tick                      HEARTBEAT(view, anything accepted?) to all nodes of the view; who is
                              cut off sends it to everybody, as those who went on may be unknown
    a packet names the view   its sender is not silent, and the packet counts
    in force
    an earlier view           its sender lags behind: send it the view
    a later view              this node lags behind: a heartbeat shows that to the other
    another view, from a      it may be in a cluster of its own
    stranger

Where every side of a partition goes on, a node of another side is told of this one instead.
"""

from __future__ import annotations

from typing import Any, Protocol

from ordercast.core.ids import ProcessId
from ordercast.membership.agreement_headers import Heartbeat, InstallView
from ordercast.membership.agreement_part import Cluster, OwnNode, Part
from ordercast.membership.agreement_table import INSIDE, Role, Standing
from ordercast.membership.node_view import NodeView, ViewId


class OwnAcceptor(Protocol):
    """The acceptor at the same node."""

    @property
    def has_accepted(self) -> bool:
        """Was anything accepted here that may come after the view?"""


class OwnDeparture(Protocol):
    """This node is about to go."""

    def confirm(self, cluster: Cluster, src: ProcessId) -> None:
        """src has the view that is without this node."""

    def end(self, cluster: Cluster) -> None:
        """Somebody has a later view than that."""


class OwnClaims(Protocol):
    """Views that may have been decided."""

    def hear(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        """In which view src is, and whether it has accepted anything."""


class OtherSides(Protocol):
    """Nodes that were lost, and sides of a partition."""

    def is_lost(self, p: ProcessId) -> bool:
        """Was it excluded, and may live?"""

    def tell_of_this_side(self, cluster: Cluster, p: ProcessId) -> None:
        """To a node of another side."""

    def notice_split(self, cluster: Cluster, src: ProcessId, view: ViewId) -> None:
        """src is in another view."""


class Heartbeats(Part):
    """Which view other nodes have, as their packets tell."""

    lent = Part.lent | {"acceptor", "departure", "claims", "sides"}

    def __init__(self) -> None:
        self.cut_off_for = 0  # ticks

    def connect(
        self,
        own: OwnNode,
        acceptor: OwnAcceptor,
        departure: OwnDeparture,
        claims: OwnClaims,
        sides: OtherSides,
    ) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.acceptor = acceptor
        self.departure = departure
        self.claims = claims
        self.sides = sides

    def beat(self, cluster: Cluster) -> None:
        """One tick."""
        own = self.own
        heard_by = own.pids
        if own.standing is Standing.CUT_OFF:  # whoever went on may be unknown here
            self.cut_off_for += 1
            heard_by = tuple(dict.fromkeys((*own.pids, *own.connected)))
        else:
            self.cut_off_for = 0
        own.send(cluster, heard_by, Heartbeat(own.in_force.id, self.acceptor.has_accepted))

    def on_heartbeat(self, cluster: Cluster, src: ProcessId, beat: Heartbeat) -> None:
        if self.own.standing is Standing.LEAVING:
            self.departure.confirm(cluster, src)
        else:
            self.claims.hear(cluster, src, beat)

    def is_of_this_view(self, cluster: Cluster, src: ProcessId, role: Role, header: Any) -> bool:
        """Is this about the view that is in force here? If one of us lags behind, mend that."""
        own, here = self.own, self.own.in_force.id
        view: ViewId = header.view
        if view <= here and (own.votes or view == here):
            own.detector.heard(src)
        if view == here:
            return True
        if own.standing is Standing.LEAVING and view > here:
            self.departure.end(cluster)
        elif role & (INSIDE | Role.FORMER) or isinstance(header, Heartbeat):
            self._mend(cluster, src, role, view)
        if isinstance(header, Heartbeat):
            self.claims.hear(cluster, src, header)
            if role is Role.STRANGER and own.votes and own.standing is Standing.IN:
                self.sides.notice_split(cluster, src, view)
        return False

    def _mend(self, cluster: Cluster, src: ProcessId, role: Role, view: ViewId) -> None:
        own, in_force = self.own, self.own.in_force
        inside = bool(role & INSIDE)
        if not own.votes:
            if view == in_force.parent and inside:
                own.send(cluster, (src,), InstallView(in_force))
            elif not inside or self.sides.is_lost(src):
                self.sides.tell_of_this_side(cluster, src)
        elif view < in_force.id:
            own.send(cluster, (src,), InstallView(in_force))
        elif inside or role & Role.FORMER:  # it will send what we lack
            own.send(cluster, (src,), Heartbeat(in_force.id, self.acceptor.has_accepted))

    def confirm_to(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """src has this view, which is not later than ours: if it leaves with it, it wants to know
        that we have it."""
        in_force = self.own.in_force
        if view.id == in_force.id and src not in in_force.pids:
            self.own.send(cluster, (src,), Heartbeat(in_force.id))
