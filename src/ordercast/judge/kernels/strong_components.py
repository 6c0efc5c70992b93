"""Sets of events each of which comes before each other: strongly connected components (Tarjan).

Each event has at most two right before it: the one before it in its log and, for a delivery, the
send. So the search goes backwards and needs no lists of neighbours.
"""

from __future__ import annotations

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.run import NONE, Ints


def strong_components(start: Ints, kind: Ints, message: Ints, sent_row: Ints) -> tuple[Ints, Ints]:
    """(row -> a row of its knot; all rows, knot after knot, in happened-before order)."""
    knot, closed = np.full(len(kind), NONE, np.int32), np.zeros(len(kind), np.int32)
    _strong_components(start, kind, message, sent_row, knot, closed)
    return knot, closed


@kernel
def _strong_components(
    start: Ints, kind: Ints, message: Ints, sent_row: Ints, knot: Ints, closed: Ints
) -> None:
    """`knot`: row -> the row by which its knot was entered; alone in it unless others share it.
    `closed`: the rows as their knots become known, which is after all that happened before."""
    rows = len(kind)
    order = np.zeros(rows, np.int32)  # when a row was met, from 1
    low = np.zeros(rows, np.int32)  # the earliest met that is known to be in the same knot
    tried = np.zeros(rows, np.int8)  # how many of the events right before it were gone to
    path = np.zeros(rows, np.int32)
    open_rows = np.zeros(rows, np.int32)  # met, knot not yet known
    is_first = np.zeros(rows + 1, np.bool_)
    for p in range(len(start) - 1):
        is_first[start[p]] = True
    met, opened, known = 0, 0, 0
    for root in range(rows):
        if order[root]:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            row = path[depth]
            if not order[row]:
                met += 1
                order[row] = met
                low[row] = met
                open_rows[opened] = row
                opened += 1
            before = -1
            while tried[row] < 2:
                tried[row] += 1
                if tried[row] == 1:
                    before = -1 if is_first[row] else row - 1
                else:
                    before = sent_row[message[row]] if kind[row] == 1 else -1  # DELIVER
                if before < 0:
                    continue
                if not order[before]:
                    break
                if knot[before] < 0:
                    low[row] = min(low[row], order[before])
                before = -1
            if before >= 0:
                depth += 1
                path[depth] = before
                continue
            if low[row] == order[row]:
                while True:
                    opened -= 1
                    knot[open_rows[opened]] = row
                    closed[known] = open_rows[opened]
                    known += 1
                    if open_rows[opened] == row:
                        break
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[row])
