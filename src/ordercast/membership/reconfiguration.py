"""Reconfiguration: what the next view should be, as the node that leads sees it.

Who is in it     those here, without those who want to go, with those who were admitted.
Who votes        the names of the electorate, where there is such a list; otherwise the oldest
                 nodes, up to `max_voters`, that do not decline. Those who stay and are here always
                 win the next list alone, so newcomers cannot take the majority along.
When             somebody is gone, comes, or wants to go; packets may be lost, and the view is to
                 begin anew; or something was accepted that may have been decided.
Without          nobody goes on, with two exceptions. If all names of the electorate are here,
a majority       restarted or not, nobody else can be alive who could have gone on. And an operator
                 may declare that the others are gone (`forget`). Then a voter that remembers the
                 view goes on from it, in the next generation.

If all who vote want to go, the one that leads is the last: it lets the others go first.
A view that began anew is not begun again at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from ordercast.core.ids import ProcessId
from ordercast.core.numbers import MAX_GENERATION
from ordercast.membership.agreement_headers import Forget, LeaveView, Renew
from ordercast.membership.agreement_part import Cluster, OwnNode, Part
from ordercast.membership.agreement_table import Standing
from ordercast.membership.attempt import Attempt
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId, won


class OwnAcceptor(Protocol):
    """The acceptor at the same node."""

    @property
    def has_accepted(self) -> bool:
        """Was anything accepted here that may come after the view?"""


class OwnEntrance(Protocol):
    """Who asks the same node to be let in."""

    def admitted(self) -> list[NodeEntry]:
        """Applicants that may come in now."""


class Reconfiguration(Part):
    """What was asked for since the view began, and the view that would follow."""

    lent = Part.lent | {"acceptor", "entrance"}

    def __init__(self) -> None:
        self.renewing = False  # packets may be lost since the view began
        self.leavers: set[ProcessId] = set()
        self.forgotten: dict[ProcessId, int] = {}  # by an operator; since which tick

    def connect(self, own: OwnNode, acceptor: OwnAcceptor, entrance: OwnEntrance) -> None:
        """Lend it what it does not own."""
        self.own = own
        self.acceptor = acceptor
        self.entrance = entrance

    def begin_view(self) -> None:
        """Nothing was asked for yet."""
        self.renewing, self.leavers, self.forgotten = False, set(), {}

    def expire(self) -> None:
        """An operator's word, when it does not hold any more, or nothing came of it."""
        now, here = self.own.ticks, self.own.here()
        self.forgotten = {
            p: t
            for p, t in self.forgotten.items()
            if p not in here and now - t <= self.own.patience
        }

    # -- what is asked for ------------------------------------------------------------------------

    def renew(self) -> None:
        """Packets may be lost: the view should begin anew."""
        self.renewing = True

    def ask_to_renew(self, cluster: Cluster, acting: ProcessId) -> None:
        """Another node leads."""
        if self.renewing and self.own.standing is Standing.IN:
            self.own.send(cluster, (acting,), Renew(self.own.in_force.id))

    def on_renew(self, cluster: Cluster, src: ProcessId, renew: Renew) -> None:
        if self.own.leads:
            self.renewing = True
            self.own.act(cluster)

    def on_leave(self, cluster: Cluster, src: ProcessId, leave: LeaveView) -> None:
        if self.own.leads:
            self.let_go(cluster, src)
            self.own.act(cluster)

    def let_go(self, cluster: Cluster, p: ProcessId) -> None:
        """It wants to leave, and may do so when it has nothing to do any more."""
        if cluster.may_leave(p):
            self.leavers.add(p)

    def on_forget(self, cluster: Cluster, src: ProcessId, forget: Forget) -> None:
        own = self.own
        if own.leads:
            here = own.here()
            gone = forget.pids or own.pids
            self.forgotten.update((p, own.ticks) for p in own.pids if p in gone and p not in here)
            own.act(cluster)

    # -- should anything change, and may those here decide it? ------------------------------------

    def has_a_goal(self) -> bool:
        """Is anybody gone; does anybody come, or go; must the view begin anew, or be completed?"""
        gone = len(self.own.here()) < len(self.own.pids)
        wanted = bool(self._leaving_now()) or bool(self.entrance.admitted())
        return gone or wanted or self._may_renew() or self.acceptor.has_accepted

    def _may_renew(self) -> bool:
        """A view that began anew is not begun again at once."""
        lasted = self.own.ticks - self.own.view_since >= self.own.options.timeout_ticks
        return self.renewing and (lasted or not self.own.in_force.anew)

    def _leaving_now(self) -> set[ProcessId]:
        """Those who want to go. If no voter would stay, this node does, until it is alone."""
        view, here = self.own.in_force, self.own.here()
        list_ = view.electorate
        going = self.leavers.intersection(here)
        stay = [n for n in view.nodes if n.pid in here and n.pid not in going]
        voters = [n for n in stay if n.voter and (not list_ or n.name in list_)]
        return going if (voters if self.own.votes else stay) else going - {self.own.me}

    def may_decide(self) -> bool:
        """Is there a majority; or all of an electorate; or an operator's word?"""
        own = self.own
        return not own.votes or own.in_force.won_by(own.here()) or self.may_recover()

    def may_recover(self) -> bool:
        """Nobody else can be alive who could have gone on; or an operator says so. One voter, at
        least, remembers the view: this one."""
        view, here = self.own.in_force, self.own.here()
        if view.id.generation >= MAX_GENERATION:
            return False
        if self.forgotten:
            return won(here, [p for p in view.voters if p not in self.forgotten])
        return bool(view.electorate) and self._all_names_are_here()

    def _all_names_are_here(self) -> bool:
        view, here = self.own.in_force, self.own.here()
        names = {node.name for node in view.nodes if node.pid in here}
        names.update(node.name for node in self.entrance.admitted())
        return names.issuperset(view.electorate)

    # -- the view that follows --------------------------------------------------------------------

    def next_view(self, attempt: Attempt) -> NodeView | None:
        """Those here, without those who go, with those who come. None: they may not decide it."""
        view, votes = self.own.in_force, self.own.votes
        here = set(self.own.here())
        attempt.recovers = votes and not view.won_by(here)
        if attempt.recovers and not self.may_recover():
            return None  # some who reported are lost since: that is no reason to recover
        leavers = set() if attempt.recovers else self._leaving_now()
        stay = [n for n in view.nodes if n.pid in here and n.pid not in leavers]
        # An operator's word adds nobody: who comes may be gone again, and all must accept.
        joining = [] if attempt.recovers and self.forgotten else self.entrance.admitted()
        nodes = (*stay, *joining)
        voters = self._voters(nodes, [n.pid for n in stay], attempt)
        if not nodes or (votes and not voters):
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

    def last_view(self, attempt: Attempt, into: ProcessId) -> NodeView:
        """Those here: they go over to the side of that node."""
        view, here = self.own.in_force, self.own.here()
        nodes = tuple(n for n in view.nodes if n.pid in here)
        voters = tuple(p for p in view.voters if p in here)
        id, number = self._next_id(attempt), view.id.number + 1
        return NodeView(id, nodes, voters, number, view.electorate, into, parent=view.id, anew=True)

    def _next_id(self, attempt: Attempt) -> ViewId:
        """Where every side goes on, no two attempts give a view the same id."""
        before = self.own.in_force.id
        number = before.number + 1
        if attempt.recovers:
            return ViewId(before.generation + 1, self.own.me, number)
        if self.own.votes:
            return ViewId(before.generation, before.fork, number)
        return ViewId(before.generation, before.fork, number, self.own.me, attempt.ballot.n)

    def _voters(
        self, nodes: Iterable[NodeEntry], stay: Collection[ProcessId], attempt: Attempt
    ) -> tuple[ProcessId, ...]:
        """Those who stay win the list alone: newcomers cannot take the majority along."""
        if not self.own.votes:
            return tuple(n.pid for n in nodes)
        voters = self._eligible(nodes)
        if attempt.recovers:
            return _in_order(nodes, voters)
        earned = [p for p in voters if p in stay]
        newcomers = [p for p in voters if p not in stay]
        while newcomers and not won(earned, _in_order(nodes, (*earned, *newcomers))):
            newcomers.pop()
        return _in_order(nodes, (*earned, *newcomers))

    def _eligible(self, nodes: Iterable[NodeEntry]) -> list[ProcessId]:
        """The electorate; without one those who vote already, and others up to a number."""
        view = self.own.in_force
        able = [n for n in nodes if n.voter]
        if view.electorate:
            return [n.pid for n in able if n.name in view.electorate]
        old = [n.pid for n in able if n.pid in view.voters]
        new = [n.pid for n in able if n.pid not in view.voters]
        return old + new[: max(0, self.own.options.max_voters - len(old))]


def _in_order(nodes: Iterable[NodeEntry], pids: Collection[ProcessId]) -> tuple[ProcessId, ...]:
    return tuple(n.pid for n in nodes if n.pid in pids)
