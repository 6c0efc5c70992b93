"""Nodes come and go in order: no group changes by it.

a node asks to be let in     the coordinator announces the next view: NODES to all
NODES at p                   the view begins;  ACK
a majority has it            it alone counts in votes; before, those before it count, too
"""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import (
    Attempt,
    Depart,
    Join,
    Nodes,
    NodesAck,
)
from ordercast.membership.knowledge import ballot_of
from ordercast.membership.nodes import NodeEntry, NodeView, deciding
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
        if node.pid in self.pids:
            assert self.node_view is not None
            self._tell((node.pid,), self._nodes(self.node_view))
            return
        if not self.coordinates:
            if self.pids and self.pids[0] not in (self.me, node.pid):
                self._tell((self.pids[0],), Join(node))
            return
        self._forget_former_lives(node)
        self.joiners.setdefault(node.pid, (node, self.ticks))
        self._admit_joiners()

    def _forget_former_lives(self, node: NodeEntry) -> None:
        """It crashed while it waited. Let in with the others, its dead would have votes."""
        for other, _ in tuple(self.joiners.values()):
            if other.name == node.name and other.incarnation < node.incarnation:
                del self.joiners[other.pid]

    def _admit_joiners(self) -> None:
        assert self.node_view is not None
        names = {node.name for node, _ in self.joiners.values()}
        names.update(node.name for node in self.node_view.nodes)  # a late one need not wait
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
        self.departed.update(set(self.pids).difference(view.pids))
        self.ballots.append(ballot_of(view))
        self._put_in_force(view)
        self.acks = {self.me}
        if told:
            self._tell(told, self._nodes(view))
        self._confirm()

    def _nodes(self, view: NodeView) -> Nodes:
        """A newcomer must look for those, too, who were lost before it came."""
        return Nodes(view, tuple(self.ballots), self.installed, tuple(self.lost.values()))

    def _on_nodes(self, q: ProcessId, nodes: Nodes) -> None:
        if self.out_of_it or not self._is_news(nodes.view):
            return
        view, now = nodes.view, self.node_view
        if self.me not in view.pids:
            if self.going and not self.stopped:
                self._leave_for_good(Out(view.number, q))
        elif now is None or (q == now.coordinator and not self.stopped):
            self._finish_if_begun(nodes.installed)
            if self._is_news(view):
                self._adopt(nodes)
            if not self.retired and not self.stopped:  # this is a vote, too
                self._tell((q,), NodesAck(view.number))
            self.repeat_wishes()
        elif self.blocked is not None:
            # Its coordinator is gone, and this came too late to be counted. But it may be in
            # force, and with those who are in it there may be enough.
            self._finish_if_begun(nodes.installed)
            if self.installed == nodes.installed and not self.out_of_it and self._is_news(view):
                self._adopt(nodes)

    def _is_news(self, view: NodeView) -> bool:
        return self.node_view is None or view.number > self.node_view.number

    def _finish_if_begun(self, attempt: Attempt | None) -> None:
        """A view came after this attempt. If it is ready here, somebody has begun it."""
        if self.prepared is not None and self.prepared.attempt == attempt:
            self._install()

    def _adopt(self, nodes: Nodes) -> None:
        self.installed = nodes.installed
        self.ballots = list(dict.fromkeys((*self.ballots, *nodes.ballots)))
        # No attempt lies between these and the view: who is not in it has left in order. Who is
        # only in a view that was prepared later, from a newer one than this, has not.
        older = [ballot for ballot in self.ballots if ballot.number < nodes.view.number]
        self.departed |= {p for ballot in older for p in ballot.nodes}.difference(nodes.view.pids)
        self.lost.update((node.pid, node) for node in nodes.lost)
        self._put_in_force(nodes.view)

    def _on_ack(self, q: ProcessId, ack: NodesAck) -> None:
        view = self.node_view
        if view is not None and view.coordinator == self.me and ack.number == view.number:
            repeated = q in self.acks
            self.acks.add(q)
            self._confirm()
            self._note_held()
            if repeated:  # it does not know yet, or came after that was told
                self._tell((q,), NodesAck(self.held))
        elif view is not None and q == view.coordinator and ack.number <= view.number:
            self.held = max(self.held, ack.number)  # it has counted
            self._seek_the_lost()

    def _confirm(self) -> None:
        before = [b for b in self.ballots if b != self._ballot()]
        if before and all(b.won_by(self.acks) for b in before):
            self._count_from_now_on()
            # At once: if this node dies now, the others must know by which view they vote.
            others = tuple(p for p in self.pids if p != self.me)
            self._tell(others, self._heartbeat())

    def _say_goodbye(self) -> None:
        if self.node_view is None or self.stopped:
            return
        others = tuple(p for p in self._alive() if p != self.me)
        if not others:  # or all of them have said good-bye, too
            self._leave_for_good(Out(self.node_view.number, self.me))
            return
        if not self.retired and not self.owes_nothing():
            return  # it would take along what some have not got; asked again with the next tick
        # Those who go on do so without this node's vote: from now on it must not vote on any side.
        self.retired = True
        first = self.acting()
        if first != self.me:  # whoever coordinates: this node may suspect it wrongly
            others = tuple(dict.fromkeys((first, self.pids[0])))
        self._tell(others, Depart(tuple(self.ballots)))  # all of them: one succeeds it

    def _on_depart(self, q: ProcessId, depart: Depart) -> None:
        if q not in self.pids:
            return
        if self.coordinates:
            assert self.node_view is not None
            self._announce(self.node_view.without((q,)))
            self.release_node(q)
        elif self.retired:  # both go: then one after it is the one to tell
            if q not in self.detector.suspected:
                self._note_departure(q, depart)
                self._say_goodbye()
        elif self.ending is not None or self.stopped or q == self.acting():
            if q not in self.departed:
                self.refused = ()  # without it there may be enough
            self._note_departure(q, depart)
            self._pursue()

    def _note_departure(self, q: ProcessId, depart: Depart) -> None:
        self.departed.add(q)
        own = self.ballots
        self.ballots = [*own, *(b for b in deciding(depart.ballots, own[0].number) if b not in own)]
        self.detector.told(q)
