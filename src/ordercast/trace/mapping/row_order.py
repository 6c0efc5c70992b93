"""An index made from times: the rows of each process by time, equal times by line.

The rows are sorted, since collectors and threads write lines out of order. An index is the time in
nanoseconds, raised where rows of one process have the same time. Files are read apart, so each
takes only the numbers with its own remainder when divided by the number of files: no two rows of a
process get the same index, and equal times in two files fall in the order of the files.
"""

from __future__ import annotations

from typing import Any


def indexes_by_time(columns: dict[str, list[Any]], number: int, of: int) -> list[int]:
    """The index of each row, for file `number` of `of` files."""
    runs, processes, times = columns["run"], columns["process"], columns["time"]
    last: dict[tuple[str, str | None], int] = {}
    indexes = [0] * len(times)
    for row in sorted(range(len(times)), key=times.__getitem__):  # stable: equal times by line
        log = (runs[row], processes[row])
        index = times[row] // of * of + number
        previous = last.get(log)
        if previous is not None and index <= previous:
            index = previous + of
        last[log] = indexes[row] = index
    return indexes
