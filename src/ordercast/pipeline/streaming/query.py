"""The streaming query: folder -> packed rows -> one judge per run -> journal.

Spark keeps the memory of each judge, as bytes, in its state store, by batch: a batch that is done
again after a crash starts from the same memory, reads the same rows and has the same time, so it
finds the same. Notices go to the journal, where a repeated batch replaces itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupStateTimeout

from ordercast.errors import UsageError
from ordercast.pipeline.spark.task_code import is_connect, ship
from ordercast.pipeline.streaming.journal import Journal, RunStatus
from ordercast.pipeline.streaming.live import Limits, Notice
from ordercast.pipeline.streaming.panel import Panel
from ordercast.pipeline.streaming.sources.spark_source import MOST_ROWS, NAME, register, unpack
from ordercast.pipeline.streaming.terms import keep_terms

KEPT_BATCHES = "10"  # of Spark's own logs and of the states of the judges
# When a query is stopped in the middle of a batch, Spark looks through the long text of the error
# with a pattern that takes more stack than threads have, and complains about that.
JAVA_OPTIONS = "-Xss16m"
_OUT = "run string, notices binary, status binary"
_STATE = "memory binary"


class WatchOptions(msgspec.Struct, frozen=True):
    """How to judge."""

    stable_ms: int = 5_000
    tick_ms: int = 1_000
    expected: tuple[str, ...] = ()  # properties; none: what each run declares
    most_rows: int = MOST_ROWS
    limits: Limits = Limits()


def start_watch(
    spark: SparkSession, folder: Path, checkpoint: Path, options: WatchOptions
) -> StreamingQuery:
    """Watch `folder` until the query is stopped; what is found is in `Journal(checkpoint)`.

    Raises `UsageError` on a session of Spark Connect, and `ValueError` if the checkpoint was begun
    to judge something else.
    """
    if is_connect(spark):
        raise UsageError(
            "a watch cannot run over Spark Connect: it needs a session of its own "
            "(spark://, yarn, k8s:// or local)"
        )
    keep_terms(checkpoint, options.expected, options.stable_ms)
    ship(spark)
    register(spark)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", KEPT_BATCHES)
    rows = (
        spark.readStream.format(NAME)
        .option("path", str(folder.absolute()))
        .option("most_rows", options.most_rows)
        .load()
    )
    journal = Journal(checkpoint)
    return (
        judged(rows, options)
        .writeStream.outputMode("update")
        .foreachBatch(partial(_record, journal))
        .option("checkpointLocation", str((checkpoint / "spark").absolute()))
        .trigger(processingTime=f"{options.tick_ms} milliseconds")
        .start()
    )


def judged(rows: DataFrame, options: WatchOptions) -> DataFrame:
    """Per batch and run with something new, or whose time has come: notices and status."""
    return rows.groupBy("run").applyInPandasWithState(
        partial(_judge, options), _OUT, _STATE, "update", GroupStateTimeout.ProcessingTimeTimeout
    )


def _judge(
    options: WatchOptions, key: tuple[str], frames: Iterable[pd.DataFrame], state: Any
) -> Iterator[pd.DataFrame]:
    memory = bytes(state.get[0]) if state.exists else None
    panel = Panel(
        memory,
        expected=options.expected,
        stable_ms=options.stable_ms,
        limits=options.limits,
        backlog_rows=max(1, options.most_rows // 2),
    )
    packs = [] if state.hasTimedOut else [packed for frame in frames for packed in frame["packed"]]
    rows = [event for packed in packs for event in unpack(packed)]
    notices = panel.feed(rows, state.getCurrentProcessingTimeMs())
    state.update((panel.encode(),))
    status = panel.status(key[0])
    if not status.idle:  # a run that is over must not be looked at every second
        state.setTimeoutDuration(options.tick_ms)
    columns = {"notices": msgspec.json.encode(notices), "status": msgspec.json.encode(status)}
    yield pd.DataFrame({"run": [key[0]], **{name: [value] for name, value in columns.items()}})


def _record(journal: Journal, batch: DataFrame, number: int) -> None:
    rows = sorted(batch.collect(), key=lambda row: row["run"])
    notices = [
        (row["run"], notice)
        for row in rows
        for notice in msgspec.json.decode(row["notices"], type=list[Notice])
    ]
    journal.write(
        number, notices, [msgspec.json.decode(row["status"], type=RunStatus) for row in rows]
    )
