"""Foreign logs as one DataFrame of events: a mapping says what their fields mean.

Spark distributes which file a task reads. A first pass reads all files for what was seen in them:
a refusal, the fields that occur, where logs end. Only then is a DataFrame handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.judge.columns import ARROW_SCHEMA, SPARK_SCHEMA
from ordercast.pipeline.spark.cluster_checks import check_files_visible
from ordercast.pipeline.spark.task_code import by_tasks
from ordercast.pipeline.spark.tasks import BATCH_ROWS, numbered, numbers
from ordercast.trace.mapping.apply import Place, map_file
from ordercast.trace.mapping.reading import Note, concluded, places
from ordercast.trace.mapping.spec import LogMapping
from ordercast.trace.mapping.survey import Survey
from ordercast.trace.mapping.table import column_table
from ordercast.trace.tables import event_table

_SEEN_COLUMNS = "number long, survey string, line long, column string, reason string"
_SEEN_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("survey", pa.string()),
        ("line", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
    ]
)


def read_mapped(
    spark: SparkSession, files: Sequence[Path], mapping: LogMapping, *, note: Note
) -> DataFrame:
    """All events of `files`, read by Spark's tasks."""
    found = places(files, mapping)
    tasks = numbered(spark, len(found))
    surveys = _surveys(by_tasks(tasks, partial(_seen, found, mapping), _SEEN_COLUMNS), files)
    added = concluded(files, surveys, mapping, note)
    events = by_tasks(tasks, partial(_events, found, mapping), SPARK_SCHEMA)
    if not added:
        return events
    return events.unionByName(spark.createDataFrame(event_table(added).cast(ARROW_SCHEMA)))


def _surveys(seen: DataFrame, files: Sequence[Path]) -> list[Survey]:
    """What was seen in each file, in their order. Raises the first refusal."""
    rows = sorted(seen.collect(), key=lambda row: row["number"])
    for row in rows:
        if row["reason"] is not None:
            raise TraceError(files[row["number"]], row["line"], row["column"], row["reason"])
    return [msgspec.json.decode(row["survey"], type=Survey) for row in rows]


def _seen(
    found: list[Place], mapping: LogMapping, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in numbers(batches):
        place = found[number]
        row: dict[str, object] = {"number": number}
        try:
            check_files_visible([place.file])
            _, survey = map_file(place, mapping.sources[place.source])
            row["survey"] = msgspec.json.encode(survey).decode()
        except TraceError as fault:
            row |= {"line": fault.line, "column": fault.column, "reason": fault.reason}
        yield pa.RecordBatch.from_pylist([row], schema=_SEEN_SCHEMA)


def _events(
    found: list[Place], mapping: LogMapping, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for place in map(found.__getitem__, numbers(batches)):
        columns, _ = map_file(place, mapping.sources[place.source])
        yield from column_table(columns).cast(ARROW_SCHEMA).to_batches(max_chunksize=BATCH_ROWS)
