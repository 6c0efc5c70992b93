"""All that is measured, by stages: the figures of every run, however large it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.matching import KINDS, of_kinds
from ordercast.judge.folds.summing import FIGURES_PLACE, SUMMED_SCHEMA, sum_up
from ordercast.judge.folds.traffic import COUNTED
from ordercast.judge.measured import Measured, is_watched, spans_of, told
from ordercast.pipeline.measure.deliveries import folded_by_group
from ordercast.pipeline.measure.tallies import tallies
from ordercast.pipeline.measure.traffic import folded_traffic
from ordercast.pipeline.spark.task_code import by_tasks


def measured(events: DataFrame) -> dict[str, Measured]:
    """All that is measured, by run, for events with the columns of the schema.

    They are scanned twice: for what is in them, and then message by message, in as many
    partitions as they need.
    """
    counted = tallies(events).toArrow()
    rows = folded_by_group(events, spans_of(counted), _rows_of(counted, KINDS))
    if is_watched(counted):
        count = _rows_of(counted, COUNTED)
        rows = rows.unionByName(folded_traffic(events, FIGURES_PLACE, count))
    together = rows.repartition("run")
    summed = by_tasks(together, _sum_up_task, from_arrow_schema(SUMMED_SCHEMA))
    return told(counted, summed.toArrow())


def _sum_up_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    own = list(batches)
    if own:
        yield from sum_up(pa.Table.from_batches(own)).to_batches()


def _rows_of(tallies: pa.Table, kinds: Iterable[str]) -> int:
    return pc.sum(of_kinds(tallies, *kinds)["count"]).as_py() or 0
