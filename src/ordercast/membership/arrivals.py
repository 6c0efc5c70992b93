"""Nodes come and go in order: no group changes by it.

a node asks to be let in     the coordinator announces the next view: NODES to all
NODES at p                   the view begins;  ACK
a majority has it            it alone counts in votes; before, those before it count, too
"""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import (
    Depart,
    Join,
    Nodes,
    NodesAck,
)
from ordercast.membership.nodes import NodeEntry, NodeView
from ordercast.membership.sides import Sides
from ordercast.membership.standing import (
    Out,
)

GATHER_TICKS = 4  # so long the coordinator waits for the rest of a side that comes back


class Arrivals(Sides):
    """The coordinator lets nodes in and out; whoever is asked instead passes it on."""

    def _ask_to_join(self) -> None:
        if self.contacts:
            to = self.contacts[self.ticks % len(self.contacts)]
            self._tell((to,), Join(self.node))

    def _on_join(self, node: NodeEntry) -> None:
        if not self.coordinates:
            if self.pids and self.pids[0] not in (self.me, node.pid):
                self._tell((self.pids[0],), Join(node))
            return
        if node.pid in self.pids:
            assert self.node_view is not None
            self._tell((node.pid,), Nodes(self.node_view, tuple(self.ballots)))
            return
        self.joiners.setdefault(node.pid, (node, self.ticks))
        self._admit_joiners()

    def _admit_joiners(self) -> None:
        assert self.node_view is not None
        names = {node.name for node, _ in self.joiners.values()}
        ready = [
            node
            for node, since in self.joiners.values()
            if self.ticks - since >= GATHER_TICKS or names.issuperset(node.former)
        ]
        ready = [n for n in ready if n.former or self.flapping.may_enter(n.name)]
        for node in ready:
            del self.joiners[node.pid]
        if ready:
            self._announce(self.node_view.with_nodes(ready))

    def _announce(self, view: NodeView) -> None:
        """The next view, by which no group changes. It counts in votes once a majority has it."""
        told = tuple(dict.fromkeys(p for p in (*self.pids, *view.pids) if p != self.me))
        self._put_in_force(view)
        self.ballots.append(self._ballot())
        self.acks = {self.me}
        if told:
            self._tell(told, Nodes(view, tuple(self.ballots)))
        self._confirm()

    def _on_nodes(self, q: ProcessId, nodes: Nodes) -> None:
        view, now = nodes.view, self.node_view
        if self.stopped or self.out_of_it or (now is not None and view.number <= now.number):
            return
        if self.me not in view.pids:
            if self.going:
                self._leave_for_good(Out(view.number, q))
            return
        if now is not None and q != now.coordinator:
            return  # it asked two sides, and the other one let it in, too
        self._put_in_force(view)
        self.ballots = list(dict.fromkeys((*self.ballots, *nodes.ballots)))
        self._tell((q,), NodesAck(view.number))
        self.repeat_wishes()

    def _on_ack(self, q: ProcessId, ack: NodesAck) -> None:
        if self.coordinates and self.node_view is not None and ack.number == self.node_view.number:
            self.acks.add(q)
            self._confirm()

    def _confirm(self) -> None:
        if all(ballot.won_by(self.acks) for ballot in self.ballots[:-1]):
            self.ballots = self.ballots[-1:]

    def _say_goodbye(self) -> None:
        if self.node_view is None or self.out_of_it:
            return
        others = tuple(p for p in self.pids if p != self.me)
        if not others:
            self._leave_for_good(Out(self.node_view.number, self.me))
        else:  # the coordinator's successor must lead its groups: all are told
            self._tell(others if self.pids[0] == self.me else (self.pids[0],), Depart())

    def _on_depart(self, q: ProcessId) -> None:
        if q not in self.pids or self.stopped:
            return
        if self.coordinates:
            assert self.node_view is not None
            self._announce(self.node_view.without((q,)))
            self.release_node(q)
        elif q == self.pids[0]:
            self.departed.add(q)
            self.detector.told(q)
            self._pursue()
