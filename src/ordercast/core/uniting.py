"""At the coordinator of a change: the frames that all members deliver before their next view, in
groups whose frames are not known by number.

    union(g)    every frame that somebody who lives holds, with the stamp that counts; where origins
                answer for their frames, none of an origin that reports and does not have it
    holder      the origin if it has reported the frame, else somebody who has that body; those who
                lack it fetch it there
    mark        where the numbers of a domain go on: the highest that was reported
    last        where one process gives numbers: the last frame of each origin up to the end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from ordercast.core.changing import Ending, FrameAt, FramesEnd, FramesHeld
from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId

if TYPE_CHECKING:
    from ordercast.core.protocol import OrderingProtocol

Reports = dict[ProcessId, FramesHeld]
FrameKey = tuple[ProcessId, int]
"""(origin, its count): a frame of one era of one group"""
Reporters = dict[ProcessId, Kept]
"""Who holds a frame, each with its stamp"""


def unite(
    page: type[OrderingProtocol], groups: Mapping[GroupId, Ending]
) -> Iterator[tuple[GroupId, FramesEnd]]:
    """Where each of these groups ends."""
    reports = {g: _of_this_era(ending) for g, ending in groups.items()}
    marks = {g: max((held.mark for held in known.values()), default=0) for g, known in
             reports.items()}  # fmt: skip
    highest = max(marks.values(), default=0)
    spans_groups = page.declaration.scope == "domain"
    for g, ending in groups.items():
        union, reporters = _union(page, ending, reports[g])
        frames = tuple(
            FrameAt(kept.origin, kept.n, kept.stamp, _holder(kept, reporters[key]))
            for key, kept in sorted(union.items())
        )
        last = _last(page, ending, reports[g], union) if page.declaration.sequenced else {}
        mark = highest if spans_groups else marks[g]
        yield g, FramesEnd(frames, mark, tuple(sorted(last.items())))


def _of_this_era(ending: Ending) -> Reports:
    return {
        p: held
        for p, held in ending.held.items()
        if isinstance(held, FramesHeld) and held.era == ending.era
    }


def _union(
    page: type[OrderingProtocol], ending: Ending, reports: Reports
) -> tuple[dict[FrameKey, Kept], dict[FrameKey, Reporters]]:
    reporters: dict[FrameKey, Reporters] = {}
    for p, held in reports.items():
        for frame in held.frames:
            kept = Kept(frame.origin, frame.n, frame.stamp, b"")
            stamps = reporters.setdefault((frame.origin, frame.n), {})
            stamps[p] = page.better(stamps[p], kept) if p in stamps else kept
    return {
        key: page.attested(reduce(page.better, _origin_first(key[0], stamps)), ending.dead)
        for key, stamps in reporters.items()
        if not (page.origins_answer and _is_disowned(key[0], reports, stamps))
    }, reporters


def _origin_first(origin: ProcessId, reporters: Reporters) -> list[Kept]:
    """Where two stamps count the same, that of the origin does."""
    others = [kept for p, kept in reporters.items() if p != origin]
    return [reporters[origin], *others] if origin in reporters else others


def _is_disowned(origin: ProcessId, reports: Reports, reporters: Reporters) -> bool:
    """A frame that its origin lives and does not have was never sent, or all have delivered it."""
    return origin in reports and origin not in reporters


def _holder(kept: Kept, reporters: Reporters) -> ProcessId:
    """Who says what an origin sent? The origin, as long as it lives. Else those who hold the frame,
    with the stamp that counts, share the work of supplying it."""
    if kept.origin in reporters:
        return kept.origin
    same = [p for p, reported in reporters.items() if reported.stamp == kept.stamp]
    holders = same or list(reporters)
    return holders[kept.n % len(holders)]


def _last(
    page: type[OrderingProtocol], ending: Ending, reports: Reports, union: dict[FrameKey, Kept]
) -> dict[ProcessId, int]:
    """The last frames that those who go on will have delivered. Where its own stay began even a
    guest knows, who delivers nothing."""
    lowest = min((held.progress for held in reports.values() if held.delivers), default=0)
    reach = page.reach(tuple(union.values()), lowest)
    known = (
        pair for p, held in reports.items() for pair in held.last if held.delivers or pair[0] == p
    )
    last: dict[ProcessId, int] = {}
    for q, n in (*known, *reach):
        if q not in ending.dead:
            last[q] = max(n, last.get(q, 0))
    return last
