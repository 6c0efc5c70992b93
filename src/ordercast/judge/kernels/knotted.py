"""Stamps where causality has cycles.

In a knot every event happened before every other, so all its sends have one stamp. The knots
themselves are in order: one walk through them, the first first, stamps everything.
"""

from __future__ import annotations

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.knots import find_knots
from ordercast.judge.kernels.run import NONE, Ints, Run


def stamp_knots(
    run: Run, steps: Ints, bounds: Ints, process: Ints, column: Ints, stamps: Ints
) -> None:
    """Fill in the stamps of all sends; for the arguments see causality.py."""
    is_delivery = steps < 0
    message = np.where(is_delivery, ~steps, steps)
    sent_at = np.full(run.message_count, NONE, np.int32)
    sent_at[message[~is_delivery]] = np.flatnonzero(~is_delivery)
    knot, closed = find_knots(bounds, is_delivery.astype(np.int8), message, sent_at)
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
