"""A queue whose messages get their place later, never before the place they have now.

A message stands under a key. As long as its place is *open* the key may rise, once, when the place
is fixed. So the first of the queue, if its place is fixed, comes before all others for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState

Id = tuple[ProcessId, int]  # (sender, n)
Key = tuple[int, ProcessId]  # (number, the process that proposed it)


class PlacingQueue(PlainState):
    """Messages by key."""

    def __init__(self) -> None:
        self.keys: dict[Id, Key] = {}
        self.bodies: dict[Id, bytes] = {}
        self.fixed: set[Id] = set()  # those whose place will not change
        self.heap: list[tuple[Key, Id]] = []  # an entry that differs from `keys` is void

    def put(self, id: Id, key: Key, m: bytes) -> None:
        """A new message; its place is open."""
        self.keys[id] = key
        self.bodies[id] = m
        heappush(self.heap, (key, id))

    def fix(self, id: Id, key: Key) -> None:
        """This is its place."""
        assert id in self.keys and id not in self.fixed and key >= self.keys[id]
        self.keys[id] = key
        self.fixed.add(id)
        heappush(self.heap, (key, id))

    def take_first(self) -> Iterator[tuple[Id, Key, bytes]]:
        """Take out the first message, while its place is fixed."""
        while self.heap:
            key, id = self.heap[0]
            counts = self.keys.get(id) == key
            if counts and id not in self.fixed:
                return
            heappop(self.heap)
            if counts:
                self.fixed.discard(id)
                del self.keys[id]
                yield id, key, self.bodies.pop(id)

    def is_open(self, id: Id) -> bool:
        """Is it here, without a fixed place?"""
        return id in self.keys and id not in self.fixed

    def in_order(self) -> list[Id]:
        """All messages, by key. Slow: to explain, not to deliver."""
        return [id for _, id in sorted((key, id) for id, key in self.keys.items())]
