"""The nodes of the cluster by number and by name, and the names of former ones."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import ProcessId
from ordercast.membership.node_view import NodeEntry

MAX_PAST = 4096  # names of nodes that were in the cluster and are gone; and of those never in it


class NodeDirectory:
    """All nodes that are in or about to be, and the names of those that were.

    Their messages may still come; and no number and no incarnation is given twice. Of nodes that
    are gone the last `MAX_PAST` names are kept. Should one of the others come again it begins
    above `floor`, so above all that it may have had. Whoever was let in and never came into a
    view leaves nothing behind but its name, for a while.
    """

    def __init__(self) -> None:
        self.live: dict[ProcessId, NodeEntry] = {}
        self.names: dict[ProcessId, str] = {}  # as applications see them
        self.identities: dict[ProcessId, str] = {}  # as traces see them
        self.incarnations: dict[str, int] = {}  # the last one of each name that was in a view
        self.floor = 0  # no name that was in a view, and is forgotten, had a higher incarnation
        self.expected: dict[str, int] = {}  # incarnations of names that were only let in
        self._given_up: dict[ProcessId, None] = {}  # were let in, and never in a view
        self.highest: ProcessId = -1  # no node that is known here has a higher number

    def add(self, node: NodeEntry) -> None:
        """A node may come in."""
        self._know(node)
        self.expected.pop(node.name, None)
        self.expected[node.name] = node.incarnation
        while len(self.expected) > MAX_PAST:
            del self.expected[next(iter(self.expected))]

    def meet(self, node: NodeEntry) -> None:
        """A node is in the view."""
        self._know(node)
        self.remember(node.name, node.incarnation)

    def hear_of(self, node: NodeEntry) -> None:
        """A node is on another side of the cluster, and may come over."""
        if node.pid not in self.live:
            self.add(node)
            self.give_up(node.pid)

    def _know(self, node: NodeEntry) -> None:
        self._given_up.pop(node.pid, None)
        self.live[node.pid] = node
        self.names[node.pid] = node.name
        self.identities[node.pid] = node.identity
        self.highest = max(self.highest, node.pid)

    def remember(self, name: str, incarnation: int) -> None:
        """There was such a node in a view."""
        self.incarnations[name] = max(incarnation, self.incarnations.pop(name, 0))
        if len(self.incarnations) > MAX_PAST + len(self.live):
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        here = {node.name for node in self.live.values()}
        oldest = next((name for name in self.incarnations if name not in here), None)
        if oldest is not None:
            self.floor = max(self.floor, self.incarnations.pop(oldest))

    def last_incarnation(self, name: str) -> int:
        """The last one that a node of this name was given, as far as is known; 0: none."""
        return max(self.incarnations.get(name, self.floor), self.expected.get(name, 0))

    @property
    def past(self) -> tuple[tuple[str, int], ...]:
        """Names that were in a view and are not here, with their last incarnations."""
        here = {node.name for node in self.live.values()}
        return tuple(pair for pair in self.incarnations.items() if pair[0] not in here)

    def remove(self, pid: ProcessId) -> NodeEntry | None:
        """A node is gone; None if it was not in."""
        return self.live.pop(pid, None)

    def give_up(self, pid: ProcessId) -> None:
        """A node that was let in did not come. No message can be its; logs may name it still."""
        self.live.pop(pid, None)
        self._given_up[pid] = None
        while len(self._given_up) > MAX_PAST:
            oldest = next(iter(self._given_up))
            del self._given_up[oldest]
            self.names.pop(oldest, None)
            self.identities.pop(oldest, None)

    def named(self, name: str) -> NodeEntry | None:
        """The live node of that name."""
        return next((node for node in self.live.values() if node.name == name), None)

    def is_elsewhere(self, pid: ProcessId, site: str) -> bool:
        """Is that node at another site than this one? A node without a site is not."""
        node = self.live.get(pid)
        return node is not None and node.site != site and bool(site and node.site)

    def names_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The names of these nodes, in the same order."""
        return tuple(self.names[pid] for pid in pids)

    def identities_of(self, pids: Iterable[ProcessId]) -> tuple[str, ...]:
        """The same as traces write them."""
        return tuple(self.identities[pid] for pid in pids)
