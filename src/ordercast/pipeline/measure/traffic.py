"""What went on below the application (`folds.traffic`), as stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.folding import FOLDED_SCHEMA, PLACE
from ordercast.judge.folds.traffic import COUNTED, PACKET, PACKET_COLUMNS, fold_traffic
from ordercast.pipeline.measure.together import together
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.task_code import by_tasks


def traffic(events: DataFrame) -> DataFrame:
    """One row per run, group, process, view and metric: how many. Rows that hold are no traffic.

    The header bytes of packets received are a histogram: one row for each size `at`, with the
    `total`, `least` and `most` of the sizes that it stands for. For the memory of tasks see
    `deliveries`.
    """
    sums = (sf.sum("count"), sf.sum("total"), sf.min("least"), sf.max("most"))
    names = ("count", "total", "least", "most")
    return (
        folded_traffic(canonical(events))
        .groupBy(*PLACE, "metric", "at")
        .agg(*(one.alias(name) for one, name in zip(sums, names, strict=True)))
    )


def folded_traffic(events: DataFrame, place: Sequence[str] = PLACE, count: int = 0) -> DataFrame:
    """The same with the columns of other folded rows: several for each place and metric.

    `count` is how many rows of the kinds `COUNTED` there are, 0 if that is not known.
    """
    rows = events.where(sf.col("kind").isin(*COUNTED)).select(*PACKET_COLUMNS)
    task = partial(_whole_task, place=place)
    packets = together(rows, *PACKET, count=count)
    return by_tasks(packets, task, from_arrow_schema(FOLDED_SCHEMA))


def _whole_task(
    batches: Iterable[pa.RecordBatch], *, place: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    own = list(batches)
    if own:
        yield from fold_traffic(pa.Table.from_batches(own), place).to_batches()
