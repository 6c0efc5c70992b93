"""Two observers that deliver two messages in opposite orders: which observers, which messages.

An order of all messages that fits most sequences leaves little to compare: where p and q are
opposite on two messages, one of them is opposite to that order too. So of each sequence only the
messages count that are not in their place in it, and these are looked up in the other logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.kernels.compiled import kernel
from ordercast.pipeline.kernels.merge import Merged, Sequences
from ordercast.pipeline.kernels.run import NONE, Bools, Ints, Run


@dataclass
class Opposites:
    """One line for each two observers of a scope that disagree: sorted by scope and observers.

    `high` delivers `first` before `second`, `low` the other way round.
    """

    group: Ints
    low: Ints
    high: Ints
    first: Ints
    second: Ints

    def __len__(self) -> int:
        return len(self.low)

    def between(self, observers: Bools) -> Opposites:
        """Those where both are among `observers`."""
        return self._only(observers[self.low] & observers[self.high])

    def within(self, group: int) -> Opposites:
        """Those of one group."""
        return self._only(self.group == group)

    def _only(self, chosen: Bools) -> Opposites:
        return Opposites(
            self.group[chosen], self.low[chosen], self.high[chosen],
            self.first[chosen], self.second[chosen],
        )  # fmt: skip


def no_opposites() -> Opposites:
    """Nobody disagrees."""
    nothing = np.empty(0, np.int32)
    return Opposites(nothing, nothing, nothing, nothing, nothing)


def opposites_by_group(run: Run, sequences: Sequences, merged: Merged) -> Opposites:
    """Who disagrees inside which group. `sequences` by group, `merged` to the end."""
    scopes: list[list[int]] = [[] for _ in run.processes]
    for p, scope in zip(sequences.process.tolist(), sequences.scope.tolist(), strict=True):
        if merged.stuck[scope]:
            scopes[p].append(scope)

    def partners(p: int) -> Ints:
        ranges = [np.array(sequences.in_scope(scope), np.int32) for scope in scopes[p]]
        return np.concatenate(ranges) if ranges else np.empty(0, np.int32)

    return _find(run, sequences, merged, partners)


def opposites_overall(
    run: Run, sequences: Sequences, merged: Merged, by_group: Sequences
) -> Opposites:
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
) -> Opposites:
    """`partners(p)`: the sequences to be compared with the log of p."""
    messages, bounds = _out_of_place(sequences, merged)
    sizes = np.diff(bounds)
    position = np.full(run.message_count, NONE, np.int32)  # in the log of the present p
    lines: list[Ints] = []
    for p in range(len(run.processes)):
        others = partners(p)
        others = others[(sizes[others] > 0) & (sequences.process[others] != p)]
        if not len(others):
            continue
        here = run.deliveries(p)
        position[run.delivered[here]] = np.arange(here.start, here.stop)
        earlier = np.full(len(others), NONE, np.int32)
        later = np.full(len(others), NONE, np.int32)
        _first_descents(position, messages, bounds, others, earlier, later)
        position[run.delivered[here]] = NONE
        found = earlier != NONE
        q = others[found]
        p_again = np.full(len(q), p, np.int32)
        lines.append(
            np.stack(
                (sequences.scope[q], p_again, sequences.process[q], earlier[found], later[found])
            )
        )
    return _pairs(run, lines, sequences)


def _out_of_place(sequences: Sequences, merged: Merged) -> tuple[Ints, Ints]:
    """Of each sequence the messages that come after a higher rank or before a lower one."""
    parts = [np.empty(0, np.int32)]
    sizes = np.zeros(len(sequences) + 1, np.int64)
    for s in np.flatnonzero(merged.stuck[sequences.scope]).tolist():
        messages = sequences.of(s)
        if merged.fits(messages):
            continue
        rank = merged.rank[messages]
        highest = np.maximum.accumulate(rank)
        lowest = np.minimum.accumulate(rank[::-1])[::-1]
        parts.append(messages[(rank < highest) | (rank > lowest)])
        sizes[s + 1] = len(parts[-1])
    return np.concatenate(parts), np.cumsum(sizes)


@kernel
def _first_descents(
    position: Ints, messages: Ints, bounds: Ints, chosen: Ints, earlier: Ints, later: Ints
) -> None:
    """Per chosen sequence the first two neighbours, of those that have a position, whose
    positions are the other way round."""
    for k in range(len(chosen)):
        highest, previous = -1, -1
        for at in range(bounds[chosen[k]], bounds[chosen[k] + 1]):
            m = messages[at]
            if position[m] == -1:
                continue
            if position[m] < highest:
                earlier[k] = previous
                later[k] = m
                break
            highest, previous = position[m], m


def _pairs(run: Run, lines: list[Ints], sequences: Sequences) -> Opposites:
    """Each two observers of a scope once, whichever was compared with which."""
    if not lines:
        return no_opposites()
    scope, p, q, earlier, later = np.concatenate(lines, axis=1)
    low, high = np.minimum(p, q), np.maximum(p, q)
    count = len(run.processes)
    _, kept = np.unique((scope.astype(np.int64) * count + low) * count + high, return_index=True)
    up = (q > p)[kept]  # q delivers `earlier` before `later`
    return Opposites(
        group=np.array(sequences.groups, np.int32)[scope[kept]],
        low=low[kept],
        high=high[kept],
        first=np.where(up, earlier[kept], later[kept]),
        second=np.where(up, later[kept], earlier[kept]),
    )
