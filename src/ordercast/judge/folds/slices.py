"""What was sent and delivered in each slice of a run's time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_SLICES = 60  # of one run, with round numbers for their length
_LENGTHS = np.array(sorted(step * 10**power for power in range(18) for step in (1, 2, 5)))
SPAN = ("run", "first", "last", "slice")
PACE_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in (*SPAN[1:], "start", "sends", "deliveries")),
    ]
)

Spans = Mapping[str, tuple[int, int]]
"""By run: the times of the first and the last send or delivery that has one."""


def with_spans(rows: pa.Table, spans: Spans) -> pa.Table:
    """Those rows that are sends or deliveries with a time, and with the span of their run."""
    moves = pc.is_in(rows["kind"], pa.array(["send", "deliver"]))
    timed = rows.select(["run", "kind", "time"])
    timed = timed.filter(pc.and_(moves, pc.is_valid(rows["time"])))
    runs = timed["run"].combine_chunks().dictionary_encode()
    own = np.array([spans[run] for run in runs.dictionary.to_pylist()], np.int64).reshape(-1, 2)
    ends = own[runs.indices.to_numpy()]
    return timed.append_column("first", pa.array(ends[:, 0])).append_column(
        "last", pa.array(ends[:, 1])
    )


def slices(timed: pa.Table) -> pa.Table:
    """The rows of `pace`, for rows with run, kind, time and the first and last time of the run."""
    first, last, time = (timed[name].to_numpy() for name in ("first", "last", "time"))
    length = _slice_lengths(first, last)
    since = time - first
    columns = {
        "run": timed["run"],
        "first": timed["first"],
        "last": timed["last"],
        "slice": pa.array(length),
        "start": pa.array(since - since % length),
        "sends": pc.equal(timed["kind"], "send").cast(pa.int64()),
        "deliveries": pc.equal(timed["kind"], "deliver").cast(pa.int64()),
    }
    folded = pa.table(columns).group_by([*SPAN, "start"])
    counted = folded.aggregate([("sends", "sum"), ("deliveries", "sum")])
    return counted.rename_columns(PACE_SCHEMA.names).cast(PACE_SCHEMA)


def slice_length(first: int, last: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... nanoseconds of which `MOST_SLICES` are enough."""
    return int(_slice_lengths(np.array([first]), np.array([last]))[0])


def _slice_lengths(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    least = -(-(last - first + 1) // MOST_SLICES)
    length: np.ndarray = _LENGTHS[np.searchsorted(_LENGTHS, least)]
    return length
