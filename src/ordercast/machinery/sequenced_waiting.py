"""A group with a sequencer: what waits at a member and at the sequencer, and why. It only looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import (
    MAX_NAMED,
    Awaited,
    Holdings,
    Waiting,
    WaitingFrame,
    first_missing,
)
from ordercast.machinery.numbered_queue import NumberedQueue
from ordercast.machinery.numbering import Numbering
from ordercast.machinery.sent_frames import SentFrames

Gaps = list[tuple[int, Awaited]]
"""Numbers in ascending order, and what is missing at each"""


def holdings(queue: NumberedQueue, book: Numbering | None) -> Holdings:
    """How many frames are here, and for what reason."""
    held, kept = len(queue.arrived), len(queue.kept)
    if book is None:
        return Holdings(held, kept)
    return Holdings(held + sum(map(len, book.ahead.values())), kept, len(book.history))


# -- at a member ----------------------------------------------------------------------------------


def gaps(g: GroupId, leader: ProcessId, queue: NumberedQueue) -> dict[int, Awaited]:
    """What is missing at each number that is known to be given and cannot be delivered."""
    return {N: Awaited("number", g, leader, N) for N in queue.missing()}


def first_of(gaps: Mapping[int, Awaited]) -> Gaps:
    """Those that a frame behind them is said to wait for."""
    return list(islice(gaps.items(), MAX_NAMED))


def behind(g: GroupId, queue: NumberedQueue, gaps: Gaps) -> Iterator[Waiting]:
    """Numbered frames behind a gap."""
    for N, e in sorted(queue.arrived.items()):
        awaits = tuple(gap for place, gap in gaps if place < N)
        yield Waiting(g, e.origin, e.n, awaits, e.payload)


def numbered_frames(g: GroupId, queue: NumberedQueue) -> Iterator[WaitingFrame]:
    """The same without the reasons."""
    return ((g, e.origin, e.n, e.payload) for e in queue.arrived.values())


def asked_frames(g: GroupId, queue: NumberedQueue, sent: SentFrames) -> Iterator[WaitingFrame]:
    """Our own that have no number yet."""
    numbered = {e.n for e in queue.arrived.values() if e.origin == queue.me}
    for n in sent.unnumbered():
        if n not in numbered:
            yield g, queue.me, n, sent.pending[n]


def unordered(leader: ProcessId, frames: Iterable[WaitingFrame]) -> Iterator[Waiting]:
    """These wait for the sequencer."""
    for g, p, n, m in frames:
        yield Waiting(g, p, n, (Awaited("order", g, leader, n),), m)


# -- at the sequencer -----------------------------------------------------------------------------


def held_ahead(g: GroupId, book: Numbering) -> Iterator[Waiting]:
    """The frames that overtook their predecessors, and which of those lack."""
    for origin, ahead in book.ahead.items():
        missing = first_missing(book.last.get(origin, 0), ahead)
        things = [Awaited("frame", g, origin, k) for k in missing]
        for n, m in sorted(ahead.items()):
            yield Waiting(g, origin, n, tuple(a for a in things if a.number < n), m)


def ahead_frames(g: GroupId, book: Numbering) -> Iterator[WaitingFrame]:
    """The same without the reasons."""
    for origin, ahead in book.ahead.items():
        yield from ((g, origin, n, m) for n, m in ahead.items())
