"""From folded rows to the figures of whole runs and their groups, inside a task or in the driver.

The rows of a trace are folded message by message, so the bars of a run come in several pieces. Here
they are put together, with percentiles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.folds.folding import ONE_WAY, fold, with_all_columns
from ordercast.judge.folds.slices import Spans, slices, with_spans

PERCENTS = (*range(0, 100, 2), 99, 100)
SENT_IN_SLICE, DELIVERED_IN_SLICE = "sent_in_slice", "delivered_in_slice"
SUMMED_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("per", pa.string()),  # run, group; pair or slice where the metric is of such
        *((name, pa.string()) for name in ("group", "process", "peer", "metric")),
        *((name, pa.int64()) for name in ("at", "count", "total", "least", "most")),
        ("percentiles", pa.list_(pa.int64())),  # at `PERCENTS`, where values are spread
    ]
)
FIGURES_PLACE = ("run", "group")  # what the figures of a run are of
_SUMS = (("count", "sum"), ("total", "sum"), ("least", "min"), ("most", "max"))


def fold_groups(rows: pa.Table, spans: Spans) -> pa.Table:
    """What `fold` gives, per run and group; and what was sent and delivered in slices of time."""
    moves = slices(with_spans(rows, spans)).rename_columns({"start": "at"})
    parts = [
        with_all_columns(moves.select(["run", "at", name]).rename_columns({name: "count"}), metric)
        for name, metric in (("sends", SENT_IN_SLICE), ("deliveries", DELIVERED_IN_SLICE))
    ]
    named = rows.filter(pc.is_valid(rows["message"])) if rows["message"].null_count else rows
    return pa.concat_tables([fold(named, FIGURES_PLACE), *parts])


def sum_up(folded: pa.Table) -> pa.Table:
    """All folded rows of some runs, put together for each run, group, pair and slice."""
    metric = folded["metric"]
    paired = pc.equal(metric, ONE_WAY)
    sliced = pc.is_in(metric, pa.array([SENT_IN_SLICE, DELIVERED_IN_SLICE]))
    figures = folded.filter(pc.invert(pc.or_(paired, sliced)))
    in_groups = figures.filter(pc.is_valid(figures["group"]))
    parts = [
        _summed(folded.filter(paired), "pair", ("process", "peer", "metric")),
        _summed(folded.filter(sliced), "slice", ("metric", "at")),
        _spread(_summed(figures, "run", ("metric", "at")), ("run", "metric")),
        _spread(_summed(in_groups, "group", ("group", "metric", "at")), ("run", "group", "metric")),
    ]
    return pa.concat_tables(parts)


def _summed(rows: pa.Table, per: str, keys: Sequence[str]) -> pa.Table:
    """One row per run and keys."""
    names = ["run", *keys]
    folded = rows.group_by(names).aggregate(_SUMS)
    folded = folded.rename_columns([*names, *(name for name, _ in _SUMS)])
    size = folded.num_rows
    columns = [
        folded[name] if name in folded.column_names else pa.nulls(size)
        for name in SUMMED_SCHEMA.names
    ]
    columns[SUMMED_SCHEMA.names.index("per")] = pa.repeat(per, size)
    return pa.table(columns, names=SUMMED_SCHEMA.names).cast(SUMMED_SCHEMA)


def _spread(bars: pa.Table, keys: Sequence[str]) -> pa.Table:
    """One row per keys: the sums of its bars, and the percentiles where it has any."""
    whole = _summed(bars, bars["per"][0].as_py() if bars.num_rows else "", keys[1:])
    ordered = bars.sort_by([(name, "ascending") for name in (*keys, "at")])
    whole = whole.sort_by([(name, "ascending") for name in keys])
    sizes = bars.group_by(list(keys)).aggregate([("at", "count")])
    sizes = sizes.sort_by([(name, "ascending") for name in keys])["at_count"].to_numpy()
    at = pc.drop_null(ordered["at"]).to_numpy()
    count = ordered.filter(pc.is_valid(ordered["at"]))["count"].to_numpy()
    ends = np.cumsum(sizes)
    points = [
        percentiles(at[end - size : end], count[end - size : end]) if size else None
        for size, end in zip(sizes, ends, strict=True)
    ]
    place = SUMMED_SCHEMA.names.index("percentiles")
    return whole.set_column(place, "percentiles", pa.array(points, SUMMED_SCHEMA.types[place]))


def percentiles(at: np.ndarray, count: np.ndarray) -> list[int]:
    """Of so many values at each of these ascending points: at `PERCENTS`, between two in line."""
    until = np.cumsum(count)
    place = np.array(PERCENTS) / 100 * (until[-1] - 1)
    low, high = np.floor(place), np.ceil(place)
    below = at[np.searchsorted(until, low, "right")]
    above = at[np.searchsorted(until, high, "right")]
    between = (high - place) * below + (place - low) * above
    exact = np.where(below == above, below, between)
    rounded = np.copysign(np.floor(np.abs(exact) + 0.5), exact)
    return [int(point) for point in rounded]
