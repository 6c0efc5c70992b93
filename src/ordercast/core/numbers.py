"""Two small records of numbers that every protocol needs."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

MAX_COUNT = 2**53  # no honest counter comes this far


def next_view_number(before: int, leader: ProcessId, stride: int, leap: int = 1) -> int:
    """The number of the next view of a group.

    Where two sides of a partition may go on, each numbers views of its own: with a stride the
    leader's number is part of it, so that no two sides ever give the same one.
    """
    return before + leap if stride == 1 else (before // stride + 1) * stride + leader % stride


class NumberSet(PlainState):
    """A set of numbers 1, 2, 3, ... that is nearly an interval: a mark, and what came early."""

    def __init__(self, limit: int) -> None:
        self.mark = 0  # all numbers up to here are in the set
        self.early: set[int] = set()  # members above mark + 1
        self.limit = limit  # how far above the mark a number may lie

    def add(self, n: int) -> bool:
        """Put n in; False if it was there already."""
        if n == self.mark + 1:
            self.mark = n
            while self.early and self.mark + 1 in self.early:
                self.mark += 1
                self.early.discard(self.mark)
            return True
        if n <= self.mark or n in self.early:
            return False
        if n > self.mark + self.limit:
            raise PeerError(f"number {n} lies more than {self.limit} above {self.mark}")
        self.early.add(n)
        return True

    def __contains__(self, n: int) -> bool:
        return n <= self.mark or n in self.early


class SlowestMark(PlainState):
    """A rising mark per member, and the lowest of them without looking at all each time."""

    def __init__(self, members: Iterable[ProcessId], start: int = 0) -> None:
        self.marks: dict[ProcessId, int] = dict.fromkeys(members, start)
        self.lowest = start  # min of the marks; of no marks, the last one there was
        self.slowest = len(self.marks)  # how many members stand at `lowest`

    def raise_to(self, p: ProcessId, mark: int) -> bool:
        """Raise p's mark; True if the lowest mark rose. An old mark changes nothing."""
        old = self.marks.get(p)
        if old is None or mark <= old:
            return False
        self.marks[p] = mark
        if old > self.lowest:
            return False
        self.slowest -= 1
        return self.slowest == 0 and self._settle()

    def forget(self, p: ProcessId) -> bool:
        """A member is gone; True if the lowest mark rose because of it."""
        mark = self.marks.pop(p, None)
        if mark is None or mark > self.lowest or not self.marks:
            return False
        self.slowest -= 1
        return self.slowest == 0 and self._settle()

    def invariants(self) -> None:
        """What must always hold."""
        assert not self.marks or self.lowest == min(self.marks.values()), "the lowest mark is known"

    def _settle(self) -> bool:
        before = self.lowest
        self.lowest = min(self.marks.values())
        self.slowest = sum(1 for mark in self.marks.values() if mark == self.lowest)
        return self.lowest > before
