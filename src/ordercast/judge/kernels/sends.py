"""The sends of one process: where each message was sent for the first time."""

from __future__ import annotations

import numpy as np

from ordercast.judge.kernels.run import SEND, Ints, Run


def first_sends(run: Run, process: int) -> tuple[Ints, Ints]:
    """The rows where `process` is the first to send something, and the messages."""
    here = run.rows(process)
    rows = (np.flatnonzero(run.kind[here] == SEND) + here.start).astype(np.int32)
    messages = run.message[rows]
    if not len(run.repeated_sends):
        return rows, messages
    first = run.sent_row[messages] == rows
    return rows[first], messages[first]


def sends_before(run: Run, process: int, row: int) -> int:
    """How many first sends of `process` lie before `row`."""
    start = int(run.start[process])
    repeated = np.searchsorted(run.repeated_sends, (start, row))
    return int(np.count_nonzero(run.kind[start:row] == SEND) - repeated[1] + repeated[0])
