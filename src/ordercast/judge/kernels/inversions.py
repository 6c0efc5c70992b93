"""Two observers that deliver messages in opposite orders: which ones, how often, and an example.

A knot of two observers is a smallest set of messages that are out of order among themselves only:
of what both deliver, all that comes before the set at one comes before it at the other too. Two
swaps that do not overlap are two knots; what lies inside a wider swap belongs to its knot.

An order of all messages that fits most sequences leaves little to compare: where p and q are
opposite on two messages, one of them is opposite to that order too. So of two logs, one at least
strays from it, and only those messages count that are not in their place in some log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.merge import Merged, Sequences
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run

COUNTED = 2_000_000_000  # messages looked up; of two observers that come later, one knot counts


@dataclass
class Inversions:
    """One line for each two observers of a scope that disagree: sorted by scope and observers.

    `high` delivers `first` before `second`, `low` the other way round.
    """

    group: Ints  # NONE: the scope is the whole run
    low: Ints
    high: Ints
    first: Ints
    second: Ints
    knots: Ints  # how many

    def __len__(self) -> int:
        return len(self.low)

    def between(self, observers: Bools) -> Inversions:
        """Those where both are among `observers`."""
        return self.only(observers[self.low] & observers[self.high])

    def only(self, chosen: Ints | Bools) -> Inversions:
        """These lines."""
        return Inversions(
            self.group[chosen], self.low[chosen], self.high[chosen],
            self.first[chosen], self.second[chosen], self.knots[chosen],
        )  # fmt: skip

    def each_knot(self, run: Run, line: int) -> Iterator[tuple[int, int]]:
        """`first` and `second` in every knot of one line, in the order of `high`."""
        low, high = (_log(run, p[line], self.group[line]) for p in (self.low, self.high))
        position = np.full(run.message_count, NONE, np.int32)
        position[low] = np.arange(len(low))
        common = high[position[high] != NONE]
        place = position[common]
        highest = np.maximum.accumulate(place)
        lowest = np.minimum.accumulate(place[::-1])[::-1]
        parts = np.flatnonzero(highest[:-1] < lowest[1:]) + 1  # where a new set begins
        descents = np.flatnonzero(place[1:] < place[:-1]) + 1
        _, chosen = np.unique(np.searchsorted(parts, descents, side="right"), return_index=True)
        for at in descents[chosen[: self.knots[line]]].tolist():
            yield int(common[at - 1]), int(common[at])


def _log(run: Run, process: int, group: int) -> Ints:
    log: Ints = run.delivered[run.deliveries(process)]
    return log if group == NONE else log[run.group_of[log] == group]


def no_inversions() -> Inversions:
    """Nobody disagrees."""
    nothing = np.empty(0, np.int32)
    return Inversions(nothing, nothing, nothing, nothing, nothing, nothing)


def inversions_by_group(run: Run, sequences: Sequences, merged: Merged) -> Inversions:
    """Who disagrees inside which group. `sequences` by group, `merged` to the end."""
    scopes: list[list[int]] = [[] for _ in run.processes]
    for p, scope in zip(sequences.process.tolist(), sequences.scope.tolist(), strict=True):
        if merged.stuck[scope]:
            scopes[p].append(scope)

    def partners(p: int) -> Ints:
        ranges = [np.array(sequences.in_scope(scope), np.int32) for scope in scopes[p]]
        return np.concatenate(ranges) if ranges else np.empty(0, np.int32)

    return _find(run, sequences, merged, partners)


def inversions_overall(
    run: Run, sequences: Sequences, merged: Merged, by_group: Sequences
) -> Inversions:
    """Who disagrees over all groups. Whole logs, `merged` to the end.

    Only processes that deliver of one group have messages in common.
    """
    groups: list[list[int]] = [[] for _ in run.processes]
    for p, scope in zip(by_group.process.tolist(), by_group.scope.tolist(), strict=True):
        groups[p].append(scope)

    def partners(p: int) -> Ints:
        met = [by_group.process[by_group.scope_bounds[g] : by_group.scope_bounds[g + 1]]
               for g in groups[p]]  # fmt: skip
        return np.unique(np.concatenate(met)) if met else np.empty(0, np.int32)

    return _find(run, sequences, merged, partners)


def _find(
    run: Run, sequences: Sequences, merged: Merged, partners: Callable[[int], Ints]
) -> Inversions:
    """`partners(p)`: the sequences to be compared with the log of p."""
    strays = _strays(run, sequences, merged)
    count_knots = _count_knots.for_size(len(strays.messages) * len(run.processes))
    position = np.full(run.message_count, NONE, np.int32)  # in the log of the present p
    looks = COUNTED
    lines: list[Ints] = []
    for p in range(len(run.processes)):
        others = strays.to_compare_with(p, partners(p))
        if not len(others):
            continue
        here = run.deliveries(p)
        position[run.delivered[here]] = np.arange(here.start, here.stop)
        knots, earlier, later = (np.zeros(len(others), np.int32) for _ in range(3))
        looks = count_knots(
            position, strays.messages, strays.bounds, others, looks, knots, earlier, later
        )
        position[run.delivered[here]] = NONE
        found = knots > 0
        q = others[found]
        p_again = np.full(len(q), p, np.int32)
        lines.append(
            np.stack(
                (sequences.scope[q], p_again, sequences.process[q], earlier[found], later[found],
                 knots[found])
            )
        )  # fmt: skip
    return _pairs(lines, sequences)


@dataclass(frozen=True)
class _Strays:
    """The sequences that do not fit the merged order."""

    sequences: Sequences
    strays: Bools  # by sequence
    scopes_of: dict[int, list[int]]  # process -> where it strays
    messages: Ints  # of each stray, those that are out of place in some sequence
    bounds: Ints

    def to_compare_with(self, p: int, partners: Ints) -> Ints:
        """The strays among `partners` to look at with the log of p: each two observers once."""
        others = partners[self.strays[partners]]
        process = self.sequences.process[others]
        p_strays = np.isin(self.sequences.scope[others], self.scopes_of.get(p, []))
        chosen: Ints = others[(process > p) | (~p_strays & (process != p))]
        return chosen


def _strays(run: Run, sequences: Sequences, merged: Merged) -> _Strays:
    out_of_place = np.zeros(run.message_count, np.bool_)
    strays = np.zeros(len(sequences), np.bool_)
    for s in np.flatnonzero(merged.stuck[sequences.scope]).tolist():
        messages = sequences.of(s)
        if merged.fits(messages):
            continue
        rank = merged.rank[messages]
        highest = np.maximum.accumulate(rank)
        lowest = np.minimum.accumulate(rank[::-1])[::-1]
        out_of_place[messages[(rank < highest) | (rank > lowest)]] = True
        strays[s] = True
    parts = [np.empty(0, np.int32)]
    sizes = np.zeros(len(sequences) + 1, np.int64)
    scopes_of: dict[int, list[int]] = {}
    for s in np.flatnonzero(strays).tolist():
        messages = sequences.of(s)
        parts.append(messages[out_of_place[messages]])
        sizes[s + 1] = len(parts[-1])
        scopes_of.setdefault(int(sequences.process[s]), []).append(int(sequences.scope[s]))
    return _Strays(sequences, strays, scopes_of, np.concatenate(parts), np.cumsum(sizes))


@kernel
def _count_knots(
    position: Ints, messages: Ints, bounds: Ints, chosen: Ints, looks: int, knots: Ints,
    earlier: Ints, later: Ints,
) -> int:  # fmt: skip
    """Per chosen sequence how many knots it has with the log that the positions are of, and the
    first two neighbours whose positions are the other way round. The answer: `looks` left."""
    longest = 0
    for k in range(len(chosen)):
        longest = max(longest, bounds[chosen[k] + 1] - bounds[chosen[k]])
    highest = np.zeros(longest, np.int32)  # a stack: of each set so far, its highest position
    is_knot = np.zeros(longest, np.bool_)
    for k in range(len(chosen)):
        depth, previous = 0, -1
        for at in range(bounds[chosen[k]], bounds[chosen[k] + 1]):
            m = messages[at]
            x = position[m]
            looks -= 1
            if x == -1:
                continue
            top = x
            if depth > 0 and x < highest[depth - 1]:
                top = highest[depth - 1]
                if later[k] == earlier[k]:
                    earlier[k], later[k] = previous, m
                while depth > 0 and x < highest[depth - 1]:
                    depth -= 1
                    if is_knot[depth]:
                        knots[k] -= 1
                knots[k] += 1
                if looks < 0:
                    knots[k] = 1
                    break
            highest[depth] = top
            is_knot[depth] = top != x
            depth += 1
            previous = m
    return looks


def _pairs(lines: list[Ints], sequences: Sequences) -> Inversions:
    """Each two observers of a scope, whichever was compared with which."""
    if not lines:
        return no_inversions()
    scope, p, q, earlier, later, knots = np.concatenate(lines, axis=1)
    low, high, up = np.minimum(p, q), np.maximum(p, q), q > p
    order = np.lexsort((high, low, scope))
    found = Inversions(
        group=np.array(sequences.groups, np.int32)[scope],
        low=low,
        high=high,
        first=np.where(up, earlier, later),  # q delivers `earlier` before `later`
        second=np.where(up, later, earlier),
        knots=knots,
    )
    return found.only(order)
