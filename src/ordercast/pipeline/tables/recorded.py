"""The table `recorded`: Spark distributes which files a task reads.

A first pass looks into files that are new or changed: which runs they hold, and whether any of it
has to be refused. Only then are rows written. Small files are read in the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.pipeline.spark.task_code import by_tasks
from ordercast.pipeline.spark.tasks import BATCH_ROWS, numbered
from ordercast.pipeline.spark.tasks import numbers as given
from ordercast.pipeline.tables.logs import RECORDED_SCHEMA, Logs, Seen
from ordercast.pipeline.tables.schema import TABLES

_SEEN_COLUMNS = "number long, seen string, fault string"
_SEEN_SCHEMA = pa.schema([("number", pa.int64()), ("seen", pa.string()), ("fault", pa.string())])

Batches = Iterable[pa.RecordBatch]


def look(spark: SparkSession, logs: Logs, numbers: Sequence[int], *, here: bool) -> list[Seen]:
    """What is in the files with these numbers. Raises `TraceError` for the first that is no trace.

    They are read `here` in the driver, or by Spark's tasks.
    """
    if here:
        return [logs.look(number) for number in numbers]
    found = by_tasks(numbered(spark, len(numbers)), partial(_look, logs, numbers), _SEEN_COLUMNS)
    rows = sorted(found.collect(), key=lambda row: row["number"])
    for row in rows:
        if row["fault"] is not None:
            raise TraceError(*msgspec.json.decode(row["fault"]))
    return [msgspec.json.decode(row["seen"], type=Seen) for row in rows]


def recorded(
    spark: SparkSession, logs: Logs, numbers: Sequence[int], runs: Iterable[str], *, here: bool
) -> DataFrame:
    """The rows of these runs in the files with these numbers, as they were recorded."""
    wanted = pa.array(sorted(runs), pa.string())
    if here:
        tables = [one for number in numbers for one in _rows(logs, number, wanted)]
        table = pa.concat_tables([RECORDED_SCHEMA.empty_table(), *tables])
        return spark.createDataFrame(table.combine_chunks())
    read = partial(_read, logs, numbers, wanted)
    return by_tasks(numbered(spark, len(numbers)), read, TABLES["recorded"].schema)


def _look(logs: Logs, numbers: Sequence[int], batches: Batches) -> Iterator[pa.RecordBatch]:
    for place in given(batches):
        row: dict[str, object] = {"number": place}
        try:
            row["seen"] = msgspec.json.encode(logs.look(numbers[place])).decode()
        except TraceError as fault:
            told = [str(fault.file), fault.line, fault.column, fault.reason]
            row["fault"] = msgspec.json.encode(told).decode()
        yield pa.RecordBatch.from_pylist([row], schema=_SEEN_SCHEMA)


def _read(
    logs: Logs, numbers: Sequence[int], wanted: pa.Array, batches: Batches
) -> Iterator[pa.RecordBatch]:
    for place in given(batches):
        for table in _rows(logs, numbers[place], wanted):
            yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _rows(logs: Logs, number: int, wanted: pa.Array) -> Iterator[pa.Table]:
    for table in logs.rows(number):
        yield table.filter(pc.is_in(table["run"], wanted))
