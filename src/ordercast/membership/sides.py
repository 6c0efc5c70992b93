"""Sides: nodes that were lost are looked for; sides of a partition that meet become one.

    where a majority decides    the view to all that were excluded, as they may not know it. A node
                                that is in another cluster for long is a *split*, and told to people
    where every side goes on    SIGHTED(coordinator, size) to all that are not in the view
    SIGHTED at a node           that does not lead: to the one that leads;
      that leads                the other side is smaller: tell it of this one;
                                it is larger, or as large with an older coordinator: OFFER
    OFFER at a node that leads  WELCOME; this side goes over to no other for a while
    WELCOME, as was asked for   one more view of this side, which goes over when its groups ended

A side counts for as many nodes as have said so: one that says that it speaks for many does not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.agreement_headers import Heartbeat, InstallView, Offer, Sighted, Welcome
from ordercast.membership.agreement_part import Cluster, OwnNode, Part, Transitions
from ordercast.membership.agreement_table import Role, Standing
from ordercast.membership.news import Dissolved, Split
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId

SEEK_EVERY = 2  # ticks between two words to nodes that were lost
HOST_TICKS = 8  # so long a side that was offered company stays
SPLIT_AFTER = 2  # times the patience: so long another cluster may be one that lags behind
MAX_LOST = 256  # nodes that were excluded and are looked for


class OwnProposer(Protocol):
    """The proposer at the same node."""

    @property
    def is_trying(self) -> bool:
        """Is an attempt under way?"""

    def dissolve(self, cluster: Cluster, into: ProcessId) -> None:
        """Propose a last view of this side."""


class Sides(Part):
    """Who was lost, and which other sides were heard of."""

    lent = Part.lent | {"transitions", "proposer"}

    def __init__(self) -> None:
        self.lost: dict[ProcessId, NodeEntry] = {}  # excluded; they may live
        self.apart: dict[ProcessId, int] = {}  # in another cluster; since which tick, -1: told
        self.sighted: dict[ProcessId, tuple[ProcessId, int]] = {}  # coordinator of its side; when
        self.offered_to: ProcessId = -1  # the side that was asked whether this one may come
        self.host_until = 0  # tick until which this side does not go over to another

    def connect(self, own: OwnNode, transitions: Transitions, proposer: OwnProposer) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.transitions = transitions
        self.proposer = proposer

    def begin_view(self, view: NodeView, excluded: Collection[NodeEntry]) -> None:
        """These are looked for from now on; who is back is not."""
        self.sighted = {}
        names = {node.name for node in view.nodes}
        self.lost.update((node.pid, node) for node in excluded)
        kept = [(p, n) for p, n in self.lost.items() if n.name not in names]
        self.lost = dict(kept[-MAX_LOST:])

    def expire(self) -> None:
        """What was said of other sides, and not said again."""
        now = self.own.ticks
        self.sighted = {
            p: word for p, word in self.sighted.items() if now - word[1] <= 2 * SEEK_EVERY
        }

    def is_lost(self, p: ProcessId) -> bool:
        """Was it excluded, and may live?"""
        return p in self.lost

    def meet(self, nodes: Collection[NodeEntry]) -> None:
        """Nodes of another side, which none of this one has met: all that both knew are gone."""
        view = self.own.view
        if view is None or self.own.votes:
            return
        names = {node.name for node in view.nodes}
        met = [(node.pid, node) for node in nodes if node.name not in names]
        self.lost = dict([*self.lost.items(), *met][-MAX_LOST:])

    def connected(self, cluster: Cluster, p: ProcessId) -> None:
        """There is a connection to p: if it was lost, the network is whole again.

        As many of a side as the other one has must have spoken: who first waits for its turn to
        look holds the merge up.
        """
        own = self.own
        if not own.votes and own.view is not None and p in self.lost and p not in own.pids:
            self.tell_of_this_side(cluster, p)

    def broken(self, p: ProcessId) -> None:
        """The connection to p broke."""
        self.apart.pop(p, None)

    # -- those who were lost ----------------------------------------------------------------------

    def seek_the_lost(self, cluster: Cluster) -> None:
        """They may live, and not know that the others went on."""
        own = self.own
        if own.ticks % SEEK_EVERY != 0:
            return
        if own.votes:
            own.send(cluster, tuple(self.lost), InstallView(own.in_force))
            strangers = [p for p in own.connected if own.role_of(p) is Role.STRANGER]
            if own.leads and strangers:
                own.send(cluster, strangers, Heartbeat(own.in_force.id))
            return
        for p in dict.fromkeys((*self.lost, *own.connected)):  # another may run where it was
            if p not in own.pids:
                self.tell_of_this_side(cluster, p)

    def tell_of_this_side(self, cluster: Cluster, p: ProcessId) -> None:
        """To a node of another side."""
        view = self.own.in_force
        self.own.send(cluster, (p,), Sighted(view.coordinator, len(view.nodes)))

    def notice_split(self, cluster: Cluster, src: ProcessId, view: ViewId) -> None:
        """If one of us only lags behind, that is mended soon."""
        own = self.own
        if len(self.apart) < MAX_LOST:
            since = self.apart.setdefault(src, own.ticks)
            if 0 <= since < own.ticks - SPLIT_AFTER * own.patience:
                self.apart[src] = -1
                cluster.tell(Split(src, own.connected.get(src, ""), view))

    # -- two sides meet ---------------------------------------------------------------------------

    def on_sighted(self, cluster: Cluster, src: ProcessId, word: Sighted) -> None:
        if word.size < 1:
            raise PeerError(f"a side of {word.size} nodes")
        if src in self.own.pids:
            if not self.own.leads:  # once passed on is enough
                return
        elif len(self.sighted) < MAX_LOST:
            self.sighted[src] = (word.coordinator, self.own.ticks)
        self.sight(cluster, word.coordinator, word.size)

    def sight(self, cluster: Cluster, coordinator: ProcessId, size: int) -> None:
        """The larger side stays; of equal ones that with the older coordinator. One that says that
        it speaks for many does not count as many."""
        own = self.own
        if own.view is None or coordinator in own.pids:
            return
        speak = sum(1 for named, _ in self.sighted.values() if named == coordinator)
        if not own.leads:
            own.send(cluster, (own.acting(),), Sighted(coordinator, size))
        elif (min(size, speak), -coordinator) < (len(own.pids), -own.view.coordinator):
            self.tell_of_this_side(cluster, coordinator)
        elif own.ticks >= self.host_until:
            self.offered_to = coordinator
            own.send(cluster, (coordinator,), Offer())

    def on_offer(self, cluster: Cluster, src: ProcessId, offer: Offer) -> None:
        if self.own.leads and src not in self.own.pids:  # else it went to another side just now
            self.host_until = self.own.ticks + HOST_TICKS
            self.own.send(cluster, (src,), Welcome())

    def on_welcome(self, cluster: Cluster, src: ProcessId, welcome: Welcome) -> None:
        if src != self.offered_to or not self.own.leads or src in self.own.pids:
            return  # nobody goes over unasked
        self.offered_to = -1
        if self.own.ticks >= self.host_until and not self.proposer.is_trying:
            self.proposer.dissolve(cluster, src)

    def dissolved(self, cluster: Cluster) -> None:
        """All groups of this side have ended."""
        view = self.own.view
        if view is not None and view.into >= 0 and self.own.standing is not Standing.OUT:
            names = tuple(node.name for node in view.nodes)
            self.transitions.go_out(cluster, Dissolved(view.into, names))

    def invariants(self) -> None:
        """Those who were lost are many after a long partition."""
        assert len(self.lost) <= MAX_LOST, "those who were lost are bounded"
