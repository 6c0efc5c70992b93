"""Gaps in total order: q never delivers a, and delivers b where it owes a; p delivers a before b.

Let B be what q delivers of the group within the span in which it owes a. Then a is a gap if some
p delivers a before the last of its own deliveries that is in B. So of each p one place is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.gap_candidates import GapCandidates, find_gap_candidates
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run

LOOK_UP_COST = 4  # looking up one delivery costs as much as reading so many in a row

BY_CRASHED, BY_CORRECT = 1, 2  # who shows the gap; both can be


@dataclass(frozen=True)
class Gaps:
    """What one process lacks: messages, ascending."""

    process: int
    shown_by_correct: Ints  # some p that did not crash shows the gap
    shown_by_any: Ints


def find_gaps(run: Run, missing: Sequence[Sequence[MissingInSpan]]) -> Iterator[Gaps]:
    """The gaps of each process that has any. `missing` by process."""
    candidates = find_gap_candidates(run, missing)
    search = _Search(run, candidates)
    for q, some in enumerate(candidates):
        if some:
            yield search.gaps(q)


class _Search:
    """Goes through the logs of the observers for the candidates of one process after the other."""

    def __init__(self, run: Run, candidates: list[list[GapCandidates]]) -> None:
        self._run = run
        self._candidates = candidates
        self._row = np.full(run.message_count, NONE, np.int32)  # where the present q delivers it
        self._number = np.full(run.message_count, NONE, np.int32)  # place among the candidates

    def gaps(self, q: int) -> Gaps:
        run, here = self._run, self._run.deliveries(q)
        self._row[run.delivered[here]] = run.delivered_row[here]
        shown = [self._shown(some) for some in self._candidates[q]]
        self._row[run.delivered[here]] = NONE
        messages = np.concatenate([some.messages for some in self._candidates[q]])
        by = np.concatenate(shown)
        return Gaps(q, np.unique(messages[by >= BY_CORRECT]), np.unique(messages[by > 0]))

    def _shown(self, some: GapCandidates) -> Ints:
        """By whom each of the messages is shown to be a gap; 0: by nobody."""
        run, observers = self._run, some.observers
        ends = np.full(len(observers), NONE, np.int64)
        _last_inside(
            run.delivered, run.delivery_start, observers, self._row, run.group_of,
            some.group, some.span.first, some.span.last, ends,
        )  # fmt: skip
        by = np.zeros(len(some.messages), np.int8)
        if self._are_few(some):
            end_of = np.full(len(run.processes), NONE, np.int64)
            end_of[observers] = ends
            _look_up(some.messages, *self._copies, end_of, run.crashed, by)
        else:
            self._number[some.messages] = np.arange(len(some.messages))
            _read_through(
                run.delivered, run.delivery_start, observers, ends, self._number, run.crashed, by
            )
            self._number[some.messages] = NONE
        return by

    def _are_few(self, some: GapCandidates) -> bool:
        """Is it better to look up each message than to read all that the observers deliver?"""
        sizes = np.diff(self._run.delivery_start)[some.observers]
        copies = len(some.messages) * len(some.observers)
        return LOOK_UP_COST * copies <= int(sizes.sum(dtype=np.int64))

    @cached_property
    def _copies(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Of the messages to be looked up, all deliveries: those of message m have their places
        in the log and their processes from bounds[slot[m]] to bounds[slot[m] + 1]."""
        run = self._run
        wanted = np.zeros(run.message_count, np.bool_)
        for candidates in self._candidates:
            for some in filter(self._are_few, candidates):
                wanted[some.messages] = True
        count = np.count_nonzero(wanted)
        slot = np.full(run.message_count, NONE, np.int32)
        slot[wanted] = np.arange(count)
        bounds = np.zeros(count + 1, np.int64)
        _count_copies(run.delivered, slot, bounds)
        np.cumsum(bounds, out=bounds)
        places = run.scratch.empty(int(bounds[-1]), np.int32)
        processes = run.scratch.empty(int(bounds[-1]), np.int32)
        free = bounds[:-1].copy()
        _enter_copies(run.delivered, run.delivery_start, slot, free, places, processes)
        return slot, bounds, places, processes


@kernel
def _last_inside(
    delivered: Ints, start: Ints, observers: Ints, row: Ints, group_of: Ints,
    group: int, first: int, last: int, ends: Ints,
) -> None:  # fmt: skip
    """Per observer, its last delivery of a message of the group with a row in [first, last)."""
    for i in range(len(observers)):
        p = observers[i]
        at = start[p + 1] - 1
        while at >= start[p]:
            m = delivered[at]
            if row[m] != -1 and first <= row[m] < last and group_of[m] == group:
                ends[i] = at
                break
            at -= 1


@kernel
def _read_through(
    delivered: Ints, start: Ints, observers: Ints, ends: Ints, number: Ints, crashed: Bools,
    by: Ints,
) -> None:  # fmt: skip
    """Note which numbered messages the observers deliver before their `ends`."""
    for i in range(len(observers)):
        p = observers[i]
        for at in range(start[p], ends[i]):
            n = number[delivered[at]]
            if n != -1:
                by[n] |= 1 if crashed[p] else 2


@kernel
def _look_up(
    messages: Ints, slot: Ints, bounds: Ints, places: Ints, processes: Ints, end_of: Ints,
    crashed: Bools, by: Ints,
) -> None:  # fmt: skip
    """The same message by message: `end_of` by process."""
    for n in range(len(messages)):
        s = slot[messages[n]]
        for k in range(bounds[s], bounds[s + 1]):
            p = processes[k]
            if places[k] < end_of[p]:
                by[n] |= 1 if crashed[p] else 2
                if not crashed[p]:
                    break


@kernel
def _count_copies(delivered: Ints, slot: Ints, bounds: Ints) -> None:
    """How often each wanted message is delivered, one entry ahead."""
    for at in range(len(delivered)):
        s = slot[delivered[at]]
        if s != -1:
            bounds[s + 1] += 1


@kernel
def _enter_copies(
    delivered: Ints, start: Ints, slot: Ints, free: Ints, places: Ints, processes: Ints
) -> None:
    """`free`: per wanted message, where its next delivery is entered."""
    for p in range(len(start) - 1):
        for at in range(start[p], start[p + 1]):
            s = slot[delivered[at]]
            if s != -1:
                places[free[s]] = at
                processes[free[s]] = p
                free[s] += 1
