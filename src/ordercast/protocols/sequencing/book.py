"""A sequencer's part of one group, for one era: the numbers that it gave, and who has them."""

from __future__ import annotations

import enum
from collections import deque

from ordercast.core.changing import LastFrames, Place
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.seat import Entry


class Numbering(enum.IntEnum):
    """Whether a sequencer gives numbers. Who numbers nothing has no book."""

    OPEN = 1
    STOPPED = 2  # a change is under way: requests are dropped, and repeated in the next era


class Book(PlainState):
    """One era of one group at its sequencer."""

    def __init__(
        self, me: ProcessId, view: View, base: int, last: LastFrames, others_needed: int
    ) -> None:
        self.numbering = Numbering.OPEN
        self.era = view.era
        self.members = view.members
        self.others = tuple(p for p in view.members if p != me)
        self.base = base  # the last number of the era before
        self.N = base  # the last number given
        self.last: dict[ProcessId, int] = dict(last)  # the last frame of each origin
        self.given: dict[ProcessId, int] = {}  # ... and its number, if it is of this era
        self.counted: dict[ProcessId, int] = dict(last)  # frames that are in a word on the load
        self.frames: dict[int, Entry] = {}  # not stable, by number
        self.held: dict[ProcessId, int] = dict.fromkeys(self.others, base)  # all up to this number
        # Consumed up to this; one below the base until the member has begun the era itself.
        self.done: dict[ProcessId, int] = dict.fromkeys(view.members, base - 1)
        self.commit = base
        self.stable = base
        self.safe = base  # enough others hold all numbers up to this one
        self.others_needed = min(others_needed, len(self.others))
        self.told = (base, base, base)  # the marks as the members know them
        self.fences: dict[GroupId, tuple[Place, int]] = {}  # place, first number that names it
        self.guests: deque[tuple[int, ProcessId, int]] = deque()  # (N, origin, n) to be answered
        self.unstable_of: dict[ProcessId, deque[tuple[int, int]]] = {}  # guests: (N, n)
        if not self.others_needed:
            self.safe = self.N

    def enter(self, entry: Entry) -> None:
        """The next number goes to this frame."""
        self.N = entry.N
        self.last[entry.origin] = entry.n
        self.given[entry.origin] = entry.N
        self.frames[entry.N] = entry
        if not self.others_needed:
            self.safe = entry.N
        if not self.members:  # nobody is there who could consume it
            self.stable = self.commit = entry.N
            self.frames.clear()

    def acknowledged(self, p: ProcessId, held: int, done: int) -> bool:
        """Member p has these; True if something became safe or stable by it."""
        if not done <= held <= self.N or done < self.base - 1:
            raise PeerError(f"numbers up to {held}, {done} are acknowledged; {self.N} were given")
        changed = False
        if held > self.held.get(p, held):
            self.held[p] = held
            changed = self._count_safe() or bool(self.guests)
        if done > self.done[p]:
            self.done[p] = done
            changed = self._count_stable() or changed
        return changed

    def _count_safe(self) -> bool:
        if not self.others_needed:
            return False
        safe = sorted(self.held.values())[-self.others_needed]
        if safe <= self.safe:
            return False
        self.safe = safe
        return True

    @property
    def settled(self) -> int:
        """No crash takes a number up to this one away. It is not enough that others hold it: if one
        before it, or that one's needs, are lost, the end of the era is before it, too."""
        return min(self.safe, self.commit)

    @property
    def copied(self) -> int:
        """A member beside the sequencer holds all numbers up to this one."""
        return max(self.held.values(), default=self.N)

    def all_passed(self, N: int) -> bool:
        """Has every member delivered this number, or begun the era if it is the base?"""
        return self.stable >= N and min(self.done.values(), default=N) >= N

    def _count_stable(self) -> bool:
        stable = min(self.done.values())
        if stable <= self.stable:
            return stable == self.base
        for N in range(self.stable + 1, stable + 1):
            self.frames.pop(N, None)
        self.stable = stable
        if self.fences:
            self.fences = {g: f for g, f in self.fences.items() if f[1] > stable}
        return True

    def take_counts(self) -> list[tuple[ProcessId, int]]:
        """Frames of each sender that were numbered since the last call."""
        counts = [(p, n - self.counted.get(p, 0)) for p, n in self.last.items()]
        self.counted = dict(self.last)
        return [(p, count) for p, count in counts if count]

    def guest_stable(self, p: ProcessId) -> int:
        """The last frame of this guest that all members have consumed."""
        line = self.unstable_of.get(p)
        n = 0
        while line and line[0][0] <= self.stable:
            n = line.popleft()[1]
        if line is not None and not line:
            del self.unstable_of[p]
        return n

    def check(self, view: View) -> None:
        """What must always hold of a sequencer."""
        assert self.era == view.era, "a book is of the era in force"
        assert self.members == view.members, "a book has the members of the view"
        assert self.stable <= self.commit <= self.N, "stable <= committed <= numbered"
        assert self.base <= self.stable, "numbers go on from the era before"
        unstable = set(range(self.stable + 1, self.N + 1))
        assert self.frames.keys() >= unstable, "an unstable frame is kept"
        assert len(self.frames) == len(unstable), "what is stable is forgotten"
        numbers = [frame.N for frame in self.frames.values()]
        assert [*self.frames] == numbers, "a number has one frame"
        assert self.safe <= self.N, "what is safe was numbered"
        assert self.done.keys() == set(self.members), "every member is counted"
        for p, done in self.done.items():
            assert done <= self.held.get(p, self.N) <= self.N, "consumed <= held <= numbered"
        for _, p, n in self.guests:
            assert n <= self.last[p], "only what was numbered is due"
