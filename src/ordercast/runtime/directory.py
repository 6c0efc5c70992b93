"""Who is in the cluster, by number and by name."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import ProcessId
from ordercast.runtime.control import NodeEntry


class Directory:
    """All nodes that are in, and the names of all that ever were: their messages may still come.

    What it keeps of nodes that are gone is bounded by the leader's `max_starts`.
    """

    def __init__(self) -> None:
        self.live: dict[ProcessId, NodeEntry] = {}
        self.names: dict[ProcessId, str] = {}  # as applications see them
        self.identities: dict[ProcessId, str] = {}  # as traces see them

    def add(self, node: NodeEntry) -> None:
        """A node came in."""
        self.live[node.pid] = node
        self.names[node.pid] = node.name
        self.identities[node.pid] = node.identity

    def remove(self, pid: ProcessId) -> NodeEntry | None:
        """A node is gone; None if it was not in."""
        return self.live.pop(pid, None)

    def named(self, name: str) -> NodeEntry | None:
        """The live node of that name."""
        return next((node for node in self.live.values() if node.name == name), None)

    def find(self, name: str, incarnation: int) -> NodeEntry | None:
        """The live node of that identity."""
        node = self.named(name)
        return node if node is not None and node.incarnation == incarnation else None

    def names_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The names of these nodes, in the same order."""
        return tuple(self.names[pid] for pid in pids)

    def identities_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The same as traces write them."""
        return tuple(self.identities[pid] for pid in pids)
