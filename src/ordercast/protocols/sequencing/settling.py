"""At the coordinator of a change: where the eras of groups end, from what everybody holds.

end(g)    the highest number that somebody holds with all before it. A living sequencer reports
          all that it has numbered; of a dead one only what reached a member is left.
the cut   a frame needs earlier frames of its author in other groups that the same sequencer
          numbered. If one of these died with it, the frame goes, too: nobody has delivered it,
          and its author repeats both. A need in a group of which nobody is left is void.
together  where a living sequencer has numbered a frame whose needs are not safe, the groups of
          the needs end in the same change. Otherwise the frame is closed in one era, for all to
          deliver; the sequencer dies; and what comes before it is lost in the other group.
last(g)   per origin, the last frame that has a number up to the end: its author repeats the rest
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ordercast.core.changing import Ending, Head, NumbersEnd, NumbersHeld
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import NOBODY

Reports = dict[ProcessId, NumbersHeld]


def settle(groups: Mapping[GroupId, Ending]) -> Iterator[tuple[GroupId, NumbersEnd]]:
    """Where each of these groups ends."""
    known = {g: _of_this_era(ending) for g, ending in groups.items()}
    ends = {
        g: max((held.got for held in reports.values()), default=0) for g, reports in known.items()
    }
    _cut(groups, known, ends)
    for g, reports in known.items():
        holders = [p for p, held in reports.items() if held.got >= ends[g]]
        holders.sort(key=lambda p: (not reports[p].numbers, p))
        last = _last(reports, ends[g])
        if groups[g].nodes:  # whoever is gone repeats nothing
            last = {p: n for p, n in last.items() if p in groups[g].nodes}
        yield g, NumbersEnd(ends[g], holders[0] if holders else NOBODY, tuple(sorted(last.items())))


def needed(groups: Mapping[GroupId, Ending]) -> set[GroupId]:
    """Groups in which a frame of these needs another that a crash could still take away."""
    return {
        h
        for ending in groups.values()
        for held in _of_this_era(ending).values()
        if held.numbers
        for head in held.heads
        for h, _, _ in head.needs
    }


def _of_this_era(ending: Ending) -> Reports:
    return {
        p: held
        for p, held in ending.held.items()
        if isinstance(held, NumbersHeld) and held.era == ending.era
    }


def _cut(
    groups: Mapping[GroupId, Ending], known: dict[GroupId, Reports], ends: dict[GroupId, int]
) -> None:
    """Take back what depends on frames that are lost, until nothing does."""
    lost = {g for g, reports in known.items() if not any(held.numbers for held in reports.values())}

    def is_lost(need: tuple[GroupId, int, int]) -> bool:
        h, era, N = need
        return h in lost and bool(known[h]) and era == groups[h].era and ends[h] < N

    again = True
    while again:
        again = False
        for g in lost:
            floor = max((held.delivered for held in known[g].values()), default=0)
            for head in _heads(known[g]):
                if floor < head.N <= ends[g] and any(map(is_lost, head.needs)):
                    ends[g], again = head.N - 1, True


def _heads(reports: Reports) -> Iterator[Head]:
    return (head for held in reports.values() for head in held.heads)


def _last(reports: Reports, end: int) -> dict[ProcessId, int]:
    last: dict[ProcessId, int] = {}
    for held in reports.values():
        for origin, n in held.last:
            last[origin] = max(n, last.get(origin, 0))
    for head in _heads(reports):
        if end >= head.N:
            last[head.origin] = max(head.n, last.get(head.origin, 0))
    return last
