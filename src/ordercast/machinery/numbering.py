"""The sequencer's book: which number went to which frame, and who has consumed how far.

Kept by the one process that numbers a group; it sends nothing, it only remembers.

* A sender's frames get numbers in the order in which it sent them. A frame that overtook its
  predecessor waits here: numbering in order of arrival would break FIFO on a reordering network.
* A repeat is recognised by its frame number, and answered with the number it got the first time.
* An entry is forgotten when everybody has consumed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.numbers import SlowestMark
from ordercast.core.state import PlainState
from ordercast.errors import PeerError


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """The frame that stands under one number."""

    origin: ProcessId
    n: int
    payload: bytes


class Numbering(PlainState):
    """Numbers given in one era of one group."""

    def __init__(
        self, members: Iterable[ProcessId], start: int, done: Mapping[ProcessId, int], limit: int
    ) -> None:
        self.N = start  # last number given
        self.history: dict[int, Numbered] = {}  # number -> entry, until all consumed it
        self.number_of: dict[tuple[ProcessId, int], int] = {}  # (origin, n) -> its number
        self.last: dict[ProcessId, int] = dict(done)  # each origin's last; also of one that left
        self.ahead: dict[ProcessId, dict[int, bytes]] = {}  # frames whose predecessor lacks
        self.acks = SlowestMark(members, start)  # numbers consumed, per member
        self.told = 0  # all were told that numbers up to this one are stable
        self.limit = limit  # how far above the last one a frame of an origin may be

    @property
    def stable(self) -> int:
        """Everybody consumed all numbers up to this one."""
        return self.acks.lowest

    def in_order(self, origin: ProcessId, n: int, m: bytes) -> list[Numbered]:
        """The frames that may be numbered now that n has come: none, n, or n and successors."""
        last = self.last.get(origin, 0)
        if n <= last:
            return []
        ahead = self.ahead.get(origin)
        if n > last + 1:
            if n > last + self.limit:
                raise PeerError(f"frame {n} lies more than max_held above {last}")
            if ahead is None:
                ahead = self.ahead[origin] = {}
            ahead[n] = m
            return []
        frames = [Numbered(origin, n, m)]
        while ahead and (successor := ahead.pop(n + 1, None)) is not None:
            n += 1
            frames.append(Numbered(origin, n, successor))
        self.last[origin] = n
        return frames

    def enter(self, entry: Numbered) -> int:
        """Give the next number to this entry."""
        self.N = N = self.N + 1
        self.history[N] = entry
        self.number_of[entry.origin, entry.n] = N
        if not self.acks.marks:  # nobody is there who could consume it
            self.acks.lowest = N
        return N

    def acknowledged(self, p: ProcessId, R: int) -> bool:
        """p consumed all numbers up to R; True if that made something stable."""
        if R > self.N:
            raise PeerError(f"number {R} is acknowledged, but only {self.N} were given")
        return self.acks.raise_to(p, R)

    def behind(self, me: ProcessId) -> dict[ProcessId, int]:
        """The others who have not consumed all numbers, and how far each has come."""
        return {p: R for p, R in self.acks.marks.items() if p != me and self.N > R}

    def forget(self, p: ProcessId) -> None:
        """p is dead: nothing more is expected of it, and its waiting frames are void."""
        self.acks.forget(p)
        self.last.pop(p, None)
        self.ahead.pop(p, None)

    def prune(self) -> None:
        """Drop what all have consumed."""
        oldest = next(iter(self.history), self.stable + 1)
        for N in range(oldest, self.stable + 1):
            entry = self.history.pop(N)
            del self.number_of[entry.origin, entry.n]

    def invariants(self) -> None:
        """What must always hold."""
        assert self.told <= self.stable <= self.N, "what is stable has a number"
        assert all(self.stable <= R <= self.N for R in self.acks.marks.values()), "nobody has more"
        oldest = self.N - len(self.history) + 1
        assert next(iter(self.history), oldest) == oldest <= self.stable + 1, "no number lacks"
        assert len(self.number_of) == len(self.history), "a frame has one number"
        for p, ahead in self.ahead.items():
            last = self.last.get(p, 0)
            assert all(last + 1 < n <= last + self.limit for n in ahead), (
                "what is in turn is numbered"
            )
