"""The parts of a node's status that a diagnosis needs. See `ordercast.runtime.answers`."""

from __future__ import annotations

from typing import Any

import msgspec


class NodeSeen(msgspec.Struct, frozen=True):
    """A node in another node's list."""

    name: str
    address: str
    incarnation: int = 0

    @property
    def identity(self) -> str:
        """As in traces: alice#2."""
        return f"{self.name}#{self.incarnation}"


class GroupSeen(msgspec.Struct, frozen=True):
    """A group that a node is in, or leads."""

    name: str
    order: str
    protocol: str
    members: list[str] = []


class StallsSeen(msgspec.Struct, frozen=True):
    """How long a node's event loop stood still."""

    longest_ms: float = 0.0
    seconds_ago: float = 0.0
    notable: float = 0


class LeadSeen(msgspec.Struct, frozen=True):
    """The limits that the coordinator guards."""

    starts: int = 0
    groups: int = 0
    max_groups: int = 0


class RecorderSeen(msgspec.Struct, frozen=True):
    """How its trace gets to the disk."""

    failing: str = ""  # why it does not
    lost: int = 0


class ClusterSeen(msgspec.Struct, frozen=True):
    """Another cluster of the same name."""

    coordinator: str
    address: str
    nodes: int = 0


class MemberSeen(msgspec.Struct, frozen=True):
    """A group, as one of its members or guests sees it."""

    slow_members: dict[str, float] = {}


class PulsesSeen(msgspec.Struct, frozen=True):
    """The pulses that a node hears of others."""

    port: int | None = None
    never_heard_from: list[str] = []
    standing_still: dict[str, float] = {}


class NodeViewSeen(msgspec.Struct, frozen=True):
    """The last node view of a node."""

    number: int = 0
    voters: list[str] = []  # identities
    electorate: list[str] = []  # names of all voters that there may be, if somebody listed them


class StatsSeen(msgspec.Struct, frozen=True):
    """The figures that matter here."""

    node_view: NodeViewSeen = NodeViewSeen()
    blocked: list[str] = []  # names that are missing for a majority
    suspicions: list[str] = []  # identities of which nothing is heard
    nodes: int = 0
    max_nodes: int = 0
    loop_stalls: StallsSeen = StallsSeen()
    leads: LeadSeen | None = None
    recorder: RecorderSeen = RecorderSeen()
    other_clusters: list[ClusterSeen] = []
    groups: dict[str, MemberSeen] = {}
    guest_of: dict[str, MemberSeen] = {}
    pulses: PulsesSeen = PulsesSeen()


class Report(msgspec.Struct, frozen=True):
    """What one node says about itself and its cluster."""

    state: str
    name: str = ""
    incarnation: int = 0
    address: str = ""
    leads: bool = False
    coordinator: str = ""  # identity of the node that leads
    run: str | None = ""  # name of the run in its trace: that of the cluster, unless it was given
    out_reason: str = ""  # why it is out of its cluster
    version: str = ""
    heartbeat_ms: int = 0
    suspect_ms: int = 0
    shared_options: dict[str, Any] = {}
    nodes: list[NodeSeen] = []
    groups: list[GroupSeen] = []
    stats: StatsSeen = StatsSeen()

    @property
    def identity(self) -> str:
        """As in traces: alice#2."""
        return f"{self.name}#{self.incarnation}"

    @property
    def side(self) -> tuple[str, str]:
        """The coordinator and its address: two nodes that name the same are in one cluster."""
        known = {node.identity: node.address for node in self.nodes}
        return self.coordinator, known.get(self.coordinator, "")

    @property
    def coordinates(self) -> bool:
        """Is this the node that lets others in?"""
        return self.leads or self.coordinator == self.identity
