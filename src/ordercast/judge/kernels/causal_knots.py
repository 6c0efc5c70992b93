"""Where happened-before goes round: the deliveries that happened before their own sends.

A knot is a set of events each of which happened before each other. So all sends in a knot have one
stamp. The knots themselves are in order: one walk through them, the first first, stamps everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.run import NONE, Ints, Run
from ordercast.judge.kernels.strong_components import strong_components


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a way round: the process delivers one message, and later sends the other."""

    process: int
    delivers: int
    sends: int


class CausalKnots:
    """All knots of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._knot, _ = strong_components(run.start, run.kind, run.message, run.sent_row)

    @cached_property
    def too_early(self) -> Ints:
        """Places in the columns by delivery: those that happened before their own sends."""
        run = self._run
        sent = np.flatnonzero(run.sender[run.delivered] != NONE)
        delivery_knot = self._knot[run.delivered_row[sent]]
        send_knot = self._knot[run.sent_row[run.delivered[sent]]]
        return np.asarray(sent[delivery_knot == send_knot])

    def rounds(self) -> list[list[Step]]:
        """One way round in each knot; no process comes twice in it.

        The first event that a process has in a knot is a delivery, and all it sends in the knot
        comes later. So going from that delivery to the sender of it leads round at last.
        """
        run = self._run
        rows = run.delivered_row[self.too_early]
        process = np.searchsorted(run.start, rows, side="right") - 1
        firsts: dict[int, dict[int, int]] = {}  # knot -> process -> the message of its delivery
        for row, p in zip(rows.tolist(), process.tolist(), strict=True):
            firsts.setdefault(int(self._knot[row]), {}).setdefault(p, int(run.message[row]))
        return [self._go_round(first) for first in firsts.values()]

    def _go_round(self, first: dict[int, int]) -> list[Step]:
        path: list[int] = []
        p = next(iter(first))
        while p not in path:
            path.append(p)
            p = int(self._run.sender[first[p]])
        path = path[path.index(p) :]
        # path[k] delivers what path[k + 1] sends, so it sends what path[k - 1] delivers.
        return [Step(q, first[q], first[path[k - 1]]) for k, q in enumerate(path)]


def stamp_knots(
    run: Run, steps: Ints, bounds: Ints, process: Ints, column: Ints, stamps: Ints
) -> None:
    """Fill in the stamps of all sends; for the arguments see causality.py."""
    is_delivery = steps < 0
    message = np.where(is_delivery, ~steps, steps)
    sent_at = np.full(run.message_count, NONE, np.int32)
    sent_at[message[~is_delivery]] = np.flatnonzero(~is_delivery)
    knot, closed = strong_components(bounds, is_delivery.astype(np.int8), message, sent_at)
    log = np.repeat(np.arange(len(process), dtype=np.int32), np.diff(bounds))
    stamps.fill(0)
    clocks = np.zeros((len(process), stamps.shape[1]), np.int32)
    _stamp(closed, knot, steps, log, column[process], run.number, clocks, stamps)


@kernel
def _stamp(
    closed: Ints, knot: Ints, steps: Ints, log: Ints, column: Ints, number: Ints, clocks: Ints,
    stamps: Ints,
) -> None:  # fmt: skip
    """`column`: by log, that of its process; `clocks`: by log, what it knows so far."""
    width = stamps.shape[1]
    first = 0
    while first < len(closed):
        clock = np.zeros(width, np.int32)
        last = first
        while last < len(closed) and knot[closed[last]] == knot[closed[first]]:
            at = closed[last]
            step = steps[at]
            for k in range(width):
                clock[k] = max(clock[k], clocks[log[at], k])
            if step < 0:
                for k in range(width):
                    clock[k] = max(clock[k], stamps[~step, k])
            elif column[log[at]] >= 0:
                c = column[log[at]]
                clock[c] = max(clock[c], number[step])
            last += 1
        for place in range(first, last):
            at = closed[place]
            clocks[log[at]] = clock
            if steps[at] >= 0:
                stamps[steps[at]] = clock
        first = last
