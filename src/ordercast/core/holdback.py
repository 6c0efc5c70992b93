"""The hold-back queue: messages that came too early.

Its meaning is simple: as if, after every change, all waiting messages were looked at again until
a whole pass delivers nothing. Doing that costs time for every message that does *not* move. Here
a message waits under the one thing it misses, and only the arrival of that thing looks at it again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from ordercast.core.state import PlainState
from ordercast.errors import PeerError

K = TypeVar("K", bound=Hashable)  # what is awaited: a number, a (member, number) pair
T = TypeVar("T")  # what waits


class HoldBackQueue(PlainState, Generic[K, T]):
    """Messages indexed by what they wait for."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # a peer that makes us hold more than this breaks the rules
        self.size = 0
        self.waiting: dict[K, list[T]] = {}  # in arrival order under each key

    def hold(self, awaited: K, item: T) -> None:
        """Keep `item` until `awaited` has come."""
        if self.size >= self.limit:
            raise PeerError(f"more than {self.limit} messages held back (option max_held)")
        self.size += 1
        self.waiting.setdefault(awaited, []).append(item)

    def release(self, arrived: K) -> list[T]:
        """What waited for `arrived`, in arrival order. It may still miss something else."""
        items = self.waiting.pop(arrived, None)
        if items is None:
            return []
        self.size -= len(items)
        return items

    def clear(self) -> None:
        """Forget everything: a view ended."""
        self.waiting.clear()
        self.size = 0

    def __iter__(self) -> Iterator[tuple[K, T]]:
        for awaited, items in self.waiting.items():
            for item in items:
                yield awaited, item

    def __len__(self) -> int:
        return self.size
