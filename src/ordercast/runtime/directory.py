"""Who is in the cluster, by number and by name, and who ever was."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import ProcessId
from ordercast.membership.nodes import NodeEntry


class Directory:
    """All nodes that are in or about to be, and the names of all that ever were.

    Their messages may still come; and no number and no incarnation is given twice. What is kept of
    nodes that are gone is bounded by `max_starts`.
    """

    def __init__(self) -> None:
        self.live: dict[ProcessId, NodeEntry] = {}
        self.names: dict[ProcessId, str] = {}  # as applications see them
        self.identities: dict[ProcessId, str] = {}  # as traces see them
        self.incarnations: dict[str, int] = {}  # the last one of each name

    def add(self, node: NodeEntry) -> None:
        """A node came in, or is about to."""
        self.live[node.pid] = node
        self.names[node.pid] = node.name
        self.identities[node.pid] = node.identity
        self.remember(node.name, node.incarnation)

    def remember(self, name: str, incarnation: int) -> None:
        """There was such a node."""
        self.incarnations[name] = max(incarnation, self.incarnations.get(name, 0))

    def remove(self, pid: ProcessId) -> NodeEntry | None:
        """A node is gone; None if it was not in."""
        return self.live.pop(pid, None)

    @property
    def highest(self) -> ProcessId:
        """No node that is known here has a higher number."""
        return max(self.names, default=-1)

    def named(self, name: str) -> NodeEntry | None:
        """The live node of that name."""
        return next((node for node in self.live.values() if node.name == name), None)

    def is_elsewhere(self, pid: ProcessId, site: str) -> bool:
        """Is that node at another site than this one? Who does not say, is not."""
        node = self.live.get(pid)
        return node is not None and node.site != site and bool(site and node.site)

    def names_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The names of these nodes, in the same order."""
        return tuple(self.names[pid] for pid in pids)

    def identities_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The same as traces write them."""
        return tuple(self.identities[pid] for pid in pids)
