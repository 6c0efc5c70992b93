"""The hold-back queue: messages that came too early.

Its meaning is simple: as if, after every change, all waiting messages were looked at again until
a whole pass delivers nothing. Doing that costs time for every message that does *not* move. Here
a message waits under the one thing it misses, and only the arrival of that thing looks at it again.

The queue has no limit of its own. How much one sender can make us hold is checked where its numbers
are (`NumberSet`): a common limit would be reached by many, and blame whoever comes last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from ordercast.core.state import PlainState

K = TypeVar("K", bound=Hashable)  # what is awaited: a number, a (member, number) pair
T = TypeVar("T")  # what waits


class HoldBackQueue(PlainState, Generic[K, T]):
    """Messages indexed by what they wait for."""

    def __init__(self) -> None:
        self.size = 0
        self.waiting: dict[K, list[T]] = {}  # in arrival order under each key

    def hold(self, awaited: K, item: T) -> None:
        """Keep `item` until `awaited` has come."""
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
