"""From the rows of a trace to histograms and counts, inside a task.

A value in a histogram is rounded to three digits, so that there are few bars however many rows.
Its sum, least and most are kept beside it, unrounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.folds.matching import match, of_kinds

PLACE = ("run", "group", "process", "view")
_NUMBERS = ("at", "count", "total", "least", "most", "first", "last")
FOLDED_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "group", "process")),
        ("view", pa.int64()),
        ("metric", pa.string()),
        ("peer", pa.string()),  # the sender, where the metric is about a pair of processes
        *((name, pa.int64()) for name in _NUMBERS),
    ]
)
ONE_WAY = "one_way"  # the smallest latency from `peer` to `process`, and how many were negative
_DIGITS = 3


def fold(rows: pa.Table, place: Sequence[str] = PLACE) -> pa.Table:
    """Bars and counts per run, group, process and view, of rows that are whole messages.

    With another `place`, per that; the columns that are not in it are null.
    """
    matched, sends = match(rows), of_kinds(rows, "send")
    parts = [
        bars(matched, place, "latency", "latency"),
        bars(matched, place, "hold_back", "held"),
        bars(matched, place, "header", "overhead"),
        bars(sends, place, "payload", "size"),
        *_counts(matched, place, "delivered", deliveries=None, sends=_none(matched)),
        *_counts(
            matched,
            place,
            None,
            repeats=matched["repeats"],
            early=_marks(pc.less(matched["latency"], 0)),
            waited=_marks(pc.greater(matched["held"], 0)),
            unmatched=_marks(pc.invert(matched["has_send"])),
        ),
        *_counts(sends, place, "time", sends=None, deliveries=_none(sends)),
        _one_way(matched),
    ]
    return pa.concat_tables(parts)


def rounded(values: pa.ChunkedArray) -> pa.Array:
    """To three digits. Whole numbers below 1000 stay. There must be no null among the values."""
    exact = values.to_numpy()
    digits = np.floor(np.log10(np.maximum(np.abs(exact), 1))).astype(np.int64)
    step = 10 ** np.maximum(digits - (_DIGITS - 1), 0)
    return pa.array(np.rint(exact / step).astype(np.int64) * step)


def bars(table: pa.Table, place: Sequence[str], metric: str, column: str) -> pa.Table:
    """The histogram of a column, where it is known."""
    known = table.select([*place, column]).filter(pc.is_valid(table[column]))
    known = known.append_column("at", rounded(known[column]))
    folded = known.group_by([*place, "at"]).aggregate(
        [(column, name) for name in ("count", "sum", "min", "max")]
    )
    renamed = folded.rename_columns([*place, "at", "count", "total", "least", "most"])
    return with_all_columns(renamed, metric)


def _counts(
    table: pa.Table, place: Sequence[str], time: str | None, **amounts: object
) -> Iterable[pa.Table]:
    """Sums of columns of amounts (None: of rows), with the first and last `time` of the rows."""
    for metric, amount in amounts.items():
        ones = pa.array(np.ones(table.num_rows, np.int64)) if amount is None else amount
        told = table.select([*place, *([] if time is None else [time])])
        told = told.append_column("amount", ones)
        wanted = [("amount", "sum"), *([] if time is None else [(time, "min"), (time, "max")])]
        names = ["count", *([] if time is None else ["first", "last"])]
        folded = told.group_by(list(place)).aggregate(wanted)
        yield with_all_columns(folded.rename_columns([*place, *names]), metric)


def _one_way(matched: pa.Table) -> pa.Table:
    others = pc.not_equal(matched["sender"], matched["process"])
    between = matched.select(["run", "sender", "process", "latency"])
    between = between.filter(pc.and_(others, pc.is_valid(matched["latency"])))
    between = between.append_column("early", _marks(pc.less(between["latency"], 0)))
    folded = between.group_by(["run", "sender", "process"]).aggregate(
        [("latency", "min"), ("early", "sum")]
    )
    renamed = folded.rename_columns(["run", "peer", "process", "least", "count"])
    return with_all_columns(renamed, ONE_WAY)


def _marks(marked: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(marked.cast(pa.int64()), 0)


def _none(table: pa.Table) -> pa.Array:
    return pa.array(np.zeros(table.num_rows, np.int64))


def with_all_columns(folded: pa.Table, metric: str) -> pa.Table:
    """With all columns of the schema; those that do not apply are null."""
    size = folded.num_rows
    columns: Sequence[object] = [
        pa.repeat(metric, size)
        if name == "metric"
        else folded[name]
        if name in folded.column_names
        else pa.nulls(size)
        for name in FOLDED_SCHEMA.names
    ]
    return pa.table(columns, names=FOLDED_SCHEMA.names).cast(FOLDED_SCHEMA)
