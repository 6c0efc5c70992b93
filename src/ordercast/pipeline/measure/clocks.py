"""How far the clocks of two processes are apart, from the messages between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.pipeline.columns import canonical
from ordercast.pipeline.figures import ClockSkew
from ordercast.pipeline.measure.deliveries import folded
from ordercast.pipeline.measure.folding import ONE_WAY
from ordercast.pipeline.spark.ship import by_tasks

_PAIR_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "first", "second")),
        *((name, pa.int64()) for name in ("forth", "back", "early")),
    ]
)

OneWay = Mapping[str, Any]
"""run, peer, process, least: the smallest latency that way; count: of deliveries too early."""


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


def skews(rows: Iterable[OneWay]) -> list[ClockSkew]:
    """Each pair of one run, the largest proven difference first.

    A latency below 0 is the least by which the clocks of a pair differ.
    """
    ways = {(row["peer"], row["process"]): row for row in rows}
    pairs = sorted({(min(way), max(way)) for way in ways})
    found = [_skew(ways.get(pair), ways.get(pair[::-1]), pair) for pair in pairs]
    return sorted(found, key=lowest)


def lowest(skew: ClockSkew) -> int:
    """The smallest latency between the two if it is below 0, else 0."""
    return min(skew.forth_ns or 0, skew.back_ns or 0, 0)


def _skew(forth: OneWay | None, back: OneWay | None, pair: tuple[str, str]) -> ClockSkew:
    return ClockSkew(
        *pair,
        forth_ns=None if forth is None else forth["least"],
        back_ns=None if back is None else back["least"],
        early=sum(way["count"] for way in (forth, back) if way),
    )
