"""How far the clocks of two processes are apart, from the messages between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.clocks import OneWay, skews
from ordercast.judge.folds.folding import ONE_WAY
from ordercast.pipeline.measure.deliveries import folded
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.task_code import by_tasks

_PAIR_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "first", "second")),
        *((name, pa.int64()) for name in ("forth", "back", "early")),
    ]
)


def clocks(events: DataFrame) -> DataFrame:
    """One row per run and pair of processes with a delivery between them.

    first, second: the pair by name. forth, back: the smallest latency from first to second and
    from second to first, null where nothing was delivered that way. early: deliveries between them
    that are earlier than their sends.
    """
    one_way = folded(canonical(events)).where(sf.col("metric") == ONE_WAY)
    each = one_way.groupBy("run", "peer", "process").agg(
        sf.min("least").alias("least"), sf.sum("count").alias("count")
    )
    return by_tasks(each.repartition("run"), _whole_task, from_arrow_schema(_PAIR_SCHEMA))


def _whole_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    by_run: dict[str, list[OneWay]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            by_run.setdefault(row["run"], []).append(row)
    for run, rows in by_run.items():
        told = [
            {"run": run, "first": one.first, "second": one.second, "forth": one.forth_ns,
             "back": one.back_ns, "early": one.early}
            for one in skews(rows)
        ]  # fmt: skip
        yield pa.RecordBatch.from_pylist(told, schema=_PAIR_SCHEMA)
