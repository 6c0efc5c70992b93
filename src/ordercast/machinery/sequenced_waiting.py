"""A group with a sequencer: what waits at a member and at the sequencer, and why. It only looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.waiting import (
    MAX_NAMED,
    Awaited,
    Holdings,
    Waiting,
    WaitingFrame,
    first_missing,
)
from ordercast.machinery.numbering import Numbered, Numbering


class ExplainedMember(OrderingProtocol):
    """The part of a member that answers why a frame is held back."""

    leader: ProcessId
    R: int
    top: int
    arrived: dict[int, Numbered]
    kept: dict[int, Numbered]
    requests: dict[int, bytes]
    numbered: int

    def unnumbered(self) -> list[int]:
        """Own frames that, as far as is known here, have no number."""
        return [n for n in self.requests if n > self.numbered]

    def holdings(self, g: GroupId) -> Holdings:
        return Holdings(len(self.arrived), len(self.kept))

    def held_back(self) -> list[Waiting]:
        """Numbered frames behind a gap, and our own that have no number yet."""
        return [
            waiting
            for g in self.views
            for waiting in (*self._behind(g), *self.unordered(self._asked(g)))
        ]

    def waiting_frames(self) -> list[WaitingFrame]:
        return [frame for g in self.views for frame in (*self._numbered(g), *self._asked(g))]

    def _behind(self, g: GroupId) -> Iterator[Waiting]:
        gaps = self.first_gaps(g)
        for N, e in sorted(self.arrived.items()):
            if e.view is None:
                awaits = tuple(gap for place, gap in gaps if place < N)
                yield Waiting(g, e.origin, e.n, awaits, e.payload)

    def _numbered(self, g: GroupId) -> Iterator[WaitingFrame]:
        return ((g, e.origin, e.n, e.payload) for e in self.arrived.values() if e.view is None)

    def _asked(self, g: GroupId) -> Iterator[WaitingFrame]:
        behind = {e.n for e in self.arrived.values() if e.origin == self.me}
        for n in self.unnumbered():
            if n not in behind:
                yield g, self.me, n, self.requests[n]

    def unordered(self, frames: Iterable[WaitingFrame]) -> Iterator[Waiting]:
        """These wait for the sequencer."""
        for g, p, n, m in frames:
            yield Waiting(g, p, n, (Awaited("order", g, self.leader, n),), m)

    def first_gaps(self, g: GroupId) -> list[tuple[int, Awaited]]:
        """Those that a frame behind them is said to wait for."""
        return list(islice(self.gaps(g).items(), MAX_NAMED))

    def is_gap(self, N: int) -> bool:
        """Is this number known to be given, and cannot be delivered for what is missing?"""
        return self.R < N <= self.top and N not in self.arrived

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        """What is missing at each number that is known to be given and cannot be delivered."""
        return {
            N: Awaited("number", g, self.leader, N)
            for N in range(self.R + 1, self.top + 1)
            if N not in self.arrived
        }


def held_ahead(g: GroupId, book: Numbering) -> Iterator[Waiting]:
    """At a sequencer: the frames that overtook their predecessors, and which of those lack."""
    for origin, ahead in book.ahead.items():
        missing = first_missing(book.last.get(origin, 0), ahead)
        things = [Awaited("frame", g, origin, k) for k in missing]
        for n, m in sorted(ahead.items()):
            yield Waiting(g, origin, n, tuple(a for a in things if a.number < n), m)


def ahead_frames(g: GroupId, book: Numbering) -> Iterator[WaitingFrame]:
    """The same without the reasons."""
    for origin, ahead in book.ahead.items():
        yield from ((g, origin, n, m) for n, m in ahead.items())
