"""How much was sent and delivered in each slice of a run's time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.slices import PACE_SCHEMA, SPAN, slices
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.task_code import by_tasks


def pace(events: DataFrame) -> DataFrame:
    """One row per run and slice in which something was sent or delivered.

    start: nanoseconds since the first send or delivery of the run that has a time. slice: the
    length of each. sends, deliveries: rows in it. first, last: the ends of the run, as recorded.
    """
    timed = (
        canonical(events)
        .where("kind in ('send', 'deliver') and time is not null")
        .select("run", "kind", "time")
    )
    spans = timed.groupBy("run").agg(sf.min("time").alias("first"), sf.max("time").alias("last"))
    placed = timed.join(sf.broadcast(spans), "run", "inner")
    sliced = by_tasks(placed, _slices_of_batches, from_arrow_schema(PACE_SCHEMA))
    return sliced.groupBy(*SPAN, "start").agg(
        sf.sum("sends").alias("sends"), sf.sum("deliveries").alias("deliveries")
    )


def _slices_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from slices(pa.table(batch)).to_batches()
