"""What the parts of the agreement at one node share.

A part owns its tables. Whatever else it uses is lent to it when the parts are connected, at the
beginning and after a copy: its own node, below, and the few questions that it may ask another part
of the same node, which stand above it as protocols (`OwnAcceptor`, `OwnProposer`, ...).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.membership.agreement_table import Role, Standing
from ordercast.membership.detector import Detector
from ordercast.membership.news import Dissolved, News, Out
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.membership.options import ClusterOptions


class Cluster(Protocol):
    """What the agreement asks of the node that it belongs to."""

    def send(self, to: tuple[ProcessId, ...], header: msgspec.Struct) -> None:
        """A packet of the cluster."""

    def tell(self, news: News) -> None:
        """How this node stands."""

    def begin_view(self, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        """A node view is in force; these were in the one before, and did not leave."""

    def may_leave(self, p: ProcessId) -> bool:
        """At the coordinator: does p number nothing any more?"""

    def blame(self, p: ProcessId, why: str) -> None:
        """A packet of p that was kept for later breaks the protocol."""


class OwnNode(Protocol):
    """How the own node stands, in which view, and whom it hears: what every part may ask."""

    me: ProcessId
    node: NodeEntry
    options: ClusterOptions
    patience: int  # ticks that an attempt may take
    standing: Standing
    view: NodeView | None
    view_since: int  # the tick at which it began
    ticks: int
    detector: Detector
    connected: dict[ProcessId, str]  # nodes to which there is a connection: names

    @property
    def votes(self) -> bool:
        """Does a majority decide?"""

    @property
    def in_force(self) -> NodeView:
        """The view, where there must be one."""

    @property
    def pids(self) -> tuple[ProcessId, ...]:
        """The nodes of the view, the oldest first."""

    @property
    def electors(self) -> tuple[ProcessId, ...]:
        """Who may lead, and decides."""

    @property
    def suspected(self) -> set[ProcessId]:
        """Nodes that are believed to be dead."""

    @property
    def leads(self) -> bool:
        """Is it this node's task?"""

    def here(self) -> tuple[ProcessId, ...]:
        """The nodes of the view that are not suspected."""

    def acting(self) -> ProcessId:
        """Who leads."""

    def role_of(self, p: ProcessId) -> Role:
        """What p is to this node."""

    def check_next(self, view: NodeView) -> None:
        """Raise a PeerError, if this view does not follow from the one in force by the rules."""

    def send(self, cluster: Cluster, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        """To all of these; this node hears itself at once."""

    def receive(self, cluster: Cluster, src: ProcessId, header: Any) -> None:
        """As if it came just now."""

    def act(self, cluster: Cluster) -> None:
        """Lead, if that is this node's task, and anything should change."""


class Transitions(Protocol):
    """What changes the view, or the standing, of the own node."""

    def install(self, cluster: Cluster, view: NodeView) -> None:
        """This view is in force now."""

    def follow(self, cluster: Cluster, src: ProcessId, view: NodeView) -> None:
        """This view was decided, as src says: be in it, or go."""

    def go_out(self, cluster: Cluster, news: Out | Dissolved) -> None:
        """The end of this incarnation."""


class Part(PlainState):
    """One part of the agreement. What it is lent is not its state."""

    lent: ClassVar[frozenset[str]] = frozenset({"own"})
    own: OwnNode

    def state(self) -> dict[str, Any]:
        """All that the part itself owns."""
        return {name: value for name, value in self.__dict__.items() if name not in self.lent}
