"""Nodes, the views of a cluster, and which part of a view may go on alone.

A *node view* is the ordered list of the nodes of a cluster, with those of them that vote. Its first
voter is the coordinator. Every view's successor is decided once, by its own voters: more than half
of them, or exactly half with the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

import msgspec

from ordercast.core.ids import Identity, ProcessId
from ordercast.core.whereabouts import Whereabouts


class ViewId(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Which view: compared from left to right."""

    generation: int = 0  # rises when a cluster is recovered without a majority
    fork: ProcessId = 0  # who recovered it: two that do so at once differ
    number: int = 0
    side: ProcessId = 0  # where every side of a partition goes on: who made it,
    attempt: int = 0  # and in which attempt

    @property
    def lineage(self) -> tuple[int, ProcessId]:
        """Which recovery it comes from. Of two, the cluster goes on with the higher one."""
        return self.generation, self.fork

    def __str__(self) -> str:
        return f"{self.number}" if not self.generation else f"{self.number}/{self.generation}"


class NodeEntry(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """One node of the cluster."""

    pid: ProcessId
    name: str
    incarnation: int
    address: str = ""  # where others reach it
    former: tuple[str, ...] = ()  # names of the side of a partition with which it comes back
    sequencer: bool = False  # a daemon: it offers to number messages of groups that it is not in
    site: str = ""  # where it is; nodes of a site are near each other, and form a subgroup
    gateway: bool = False  # it offers to be the gateway of its site
    voter: bool = True  # it may count in votes
    remembers: bool = False  # a process that was in before: it still has its state

    @property
    def identity(self) -> str:
        """As in traces: alice#2."""
        return str(Identity(self.name, self.incarnation))

    @property
    def whereabouts(self) -> Whereabouts:
        """As protocols with subgroups need it."""
        return Whereabouts(self.site, self.gateway)


class NodeView(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """The nodes of the cluster, agreed, the oldest first."""

    id: ViewId
    nodes: tuple[NodeEntry, ...]
    voters: tuple[ProcessId, ...]  # in the order of the nodes; all, where every side goes on
    term: int  # the number of the view since which nobody has gone
    electorate: tuple[str, ...] = ()  # names of all voters that there may be; empty: no such list
    into: ProcessId = -1  # the side of that node takes over this one: it ends in order
    parent: ViewId = ViewId()  # the view before it
    left: tuple[ProcessId, ...] = ()  # were in that one, and left in order
    forgotten: tuple[str, ...] = ()  # identities that an operator declared to be gone
    anew: bool = False  # packets may have been lost before it: all groups begin a new era

    @property
    def number(self) -> int:
        """For people, and for traces."""
        return self.id.number

    @cached_property
    def pids(self) -> tuple[ProcessId, ...]:
        """Their small numbers, in order."""
        return tuple(node.pid for node in self.nodes)

    @property
    def coordinator(self) -> ProcessId:
        """The first voter."""
        return self.voters[0] if self.voters else self.nodes[0].pid

    def won_by(self, side: Collection[ProcessId]) -> bool:
        """May this part of the view decide what comes after it?"""
        return won(side, self.voters)

    def excluded_from(self, before: NodeView | None) -> tuple[NodeEntry, ...]:
        """Nodes of the view before that are not in this one, and did not leave. A node that missed
        a view does not know who left in it: then nobody counts as excluded."""
        if before is None or self.parent != before.id:
            return ()
        gone = {*before.pids}.difference(self.pids, self.left)
        return tuple(node for node in before.nodes if node.pid in gone)

    def missing(self, side: Collection[ProcessId]) -> tuple[ProcessId, ...]:
        """Voters that are not on this side."""
        return tuple(p for p in self.voters if p not in side)


def won(side: Collection[ProcessId], voters: Iterable[ProcessId]) -> bool:
    """More than half of the voters, or half of them with the first."""
    voters = tuple(voters)
    here = sum(1 for p in voters if p in side)
    if 2 * here == len(voters):
        return bool(voters) and voters[0] in side
    return 2 * here > len(voters)
