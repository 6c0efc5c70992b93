"""Nodes, the views of a cluster, and which part of a view may go on alone.

A *node view* is the ordered list of the nodes of a cluster. Its first node is the coordinator.

Which side of a partition goes on (`primary`)? The rule is *dynamic voting*: more than half of the
last view that is known to be in force, or exactly half with its first node; and the same of every
later view that somebody prepared, because that one may be in force elsewhere.

    V5 = {L, a, b, c, d}. L excludes b, all of V6 = {L, a, c, d} have prepared it, L installs it,
    and the network parts L, a from the rest. Judged by V5 alone, b, c, d would go on: they are
    three of five. But c and d prepared V6, and they are half of it, without L. L and a go on.

A view before one that was announced need not be won if only who announced it is missing: that one
counts the later view, too, and cannot go on without a majority of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from ordercast.core.durability import Durability, in_words
from ordercast.core.ids import GroupId, Identity, ProcessId
from ordercast.core.protocol import DeliveryLevel
from ordercast.core.whereabouts import Whereabouts

LEAP = 256  # a coordinator or a sequencer may have made so many views that nobody else saw


def first_unused(number: int) -> int:
    """The first number that the coordinator of this view does not use: it announces views that
    nobody else may see, and has the numbers up to there for them."""
    return (number // LEAP + 1) * LEAP


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

    @property
    def identity(self) -> str:
        """As in traces: alice#2."""
        return str(Identity(self.name, self.incarnation))

    @property
    def whereabouts(self) -> Whereabouts:
        """As protocols with subgroups need it."""
        return Whereabouts(self.site, self.gateway)


class GroupEntry(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """One group of the cluster. Its number is the channel of its packets."""

    gid: GroupId
    name: str
    order: str
    protocol: str
    header_version: int  # of that protocol's headers: both sides must read the same
    durability: Durability = None  # how many must hold what is delivered
    delivery_level: DeliveryLevel | None = None  # None: the protocol has none

    @property
    def promise(self) -> str:
        """How a mismatch is told to people."""
        level = "" if self.delivery_level is None else f"delivery_level {self.delivery_level!r}"
        parts = (f"protocol {self.protocol!r}", in_words(self.durability), level)
        return f"order {self.order!r} ({', '.join(filter(None, parts))})"


class Ballot(msgspec.Struct, frozen=True, array_like=True):
    """A node view as it counts in a vote: its number, who made it, and its nodes in order."""

    number: int
    coordinator: ProcessId
    nodes: tuple[ProcessId, ...]

    def won_by(self, side: Collection[ProcessId]) -> bool:
        """May this part of the view go on?"""
        there = sum(1 for p in self.nodes if p in side)
        if 2 * there == len(self.nodes):
            return not self.nodes or self.nodes[0] in side
        return 2 * there > len(self.nodes)

    def without(self, departed: Collection[ProcessId]) -> Ballot:
        """Those who left in order do not count."""
        nodes = tuple(p for p in self.nodes if p not in departed)
        return Ballot(self.number, self.coordinator, nodes)

    def missing(self, side: Collection[ProcessId]) -> tuple[ProcessId, ...]:
        """Who is not on this side."""
        return tuple(p for p in self.nodes if p not in side)


class NodeView(msgspec.Struct, frozen=True, array_like=True):
    """The nodes of the cluster, agreed, in order."""

    number: int
    nodes: tuple[NodeEntry, ...]

    @property
    def pids(self) -> tuple[ProcessId, ...]:
        """Their small numbers, in order."""
        return tuple(node.pid for node in self.nodes)

    @property
    def coordinator(self) -> ProcessId:
        """The first node."""
        return self.nodes[0].pid

    def with_nodes(self, joined: Iterable[NodeEntry]) -> NodeView:
        """The next view: these come in, at the end."""
        return NodeView(self.number + 1, (*self.nodes, *joined))

    def without(self, left: Collection[ProcessId]) -> NodeView:
        """The next view: these are gone."""
        return NodeView(self.number + 1, tuple(n for n in self.nodes if n.pid not in left))


def deciding(ballots: Iterable[Ballot], in_force: int) -> list[Ballot]:
    """The views by which a side is judged: the last one in force, and all that may be since."""
    return [ballot for ballot in ballots if ballot.number >= in_force]
