"""How views of groups are numbered; and two small records of numbers that every protocol needs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

MAX_COUNT = 2**53  # no honest counter comes this far


MAX_ERA = 2**32 - 1  # eras travel in four bytes

FORK_VIEWS = 10**8  # between the first numbers of two recoveries of the same generation
FORKS = 900  # ... of which so many differ
GENERATION_VIEWS = 10**11  # between the first numbers of two generations: above all of the forks
MAX_GENERATION = MAX_COUNT // GENERATION_VIEWS - 1  # no cluster is recovered more often


class ViewNumbers(msgspec.Struct, frozen=True):
    """The numbers that views of groups have in one lineage of a cluster.

    Nobody may give a number that others gave, of whom it has not heard. Where two sides of a
    partition may go on, each numbers views of its own: with a stride the leader's number is part
    of it. Where a cluster was recovered without a majority, others may have gone on for as long as
    eras last: whoever goes on begins above all that they can have given.

    A view number rises by one step at most with every era. So the era limits it, also for a peer
    that lies.
    """

    low: int = 0  # the lowest number that is given in this lineage
    stride: int = 1  # more than 1 where every side of a partition goes on

    @classmethod
    def of(cls, generation: int, fork: ProcessId, stride: int) -> ViewNumbers:
        """Of the cluster that was recovered so often, last by that process."""
        lane = fork % FORKS if generation else 0
        return cls(generation * GENERATION_VIEWS + lane * FORK_VIEWS, stride)

    def after(self, before: int, leader: ProcessId) -> int:
        """The number of the next view of a group."""
        if self.stride == 1:
            return max(before + 1, self.low)
        return (before // self.stride + 1) * self.stride + leader % self.stride

    def below(self, era: int) -> int:
        """A view of a later era has a higher number than this, whatever group it is of."""
        return self.low + era * self.stride

    def highest(self, era: int) -> int:
        """No view of this era has a higher number."""
        return self.below(era) + self.stride - 1


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
