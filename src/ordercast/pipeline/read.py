"""From files to one DataFrame of events with the canonical columns.

Spark distributes which files a task reads; the task parses and checks them with the readers of
`ordercast.trace`, so that a refusal names file, line and column. A small trace is read the same
way in the driver, which spares it two jobs. Nothing of a trace is judged if
any of it is refused: all files are checked before the DataFrame is handed out.

A row's run is its `run` column. Without one it is the name of the folder `run=NAME` it lies in.
Without that it is "": several plain files are the logs of one run, since one log per process is
how most systems write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.judge.columns import ARROW_SCHEMA, SPARK_SCHEMA
from ordercast.judge.files import find_files, read_here, total_bytes
from ordercast.pipeline.crash_notes import has_notes, noted_crashes, outline, without_notes
from ordercast.pipeline.mapped import read_mapped
from ordercast.pipeline.spark.cluster_checks import check_files_visible
from ordercast.pipeline.spark.task_code import by_tasks
from ordercast.pipeline.spark.tasks import BATCH_ROWS, numbered, numbers
from ordercast.trace.layout import segment_number
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import Note, log_note
from ordercast.trace.parquet import has_plain_columns
from ordercast.trace.read import file_tables, read_table

SMALL_BYTES = 1024 * 1024  # starting a Python worker takes longer than reading this much

Parts = list[list[str]]  # files that one task reads together

_FAULT_COLUMNS = "file string, line long, column string, reason string"
_FAULT_SCHEMA = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("column", pa.string()), ("reason", pa.string())]
)


def read_traces(
    spark: SparkSession,
    paths: Sequence[str | Path],
    *,
    small_bytes: int = SMALL_BYTES,
    mapping: LogMapping | None = None,
    note: Note = log_note,
) -> DataFrame:
    """All events of the trace files and folders in `paths`: Parquet, JSONL, CSV, recordings.

    Raises `TraceError` for the first thing that cannot be read, before anything is judged.
    Files of up to `small_bytes` together are read here and now, larger ones by Spark's tasks.
    With a `mapping` they may be anybody's logs; `note` is told how many rows were left out.
    """
    files = find_files(paths, mapping)
    if total_bytes(files) <= small_bytes:
        return spark.createDataFrame(read_here(files.values(), mapping=mapping, note=note))
    if mapping is not None:
        return read_mapped(spark, list(files.values()), mapping, note=note)
    parts = _parts(files)
    faults = by_tasks(numbered(spark, len(parts)), partial(_faults, parts), _FAULT_COLUMNS)
    _refuse_faults(faults, files)
    return _by_tasks(spark, parts)


def read_checked(spark: SparkSession, files: Iterable[Path]) -> DataFrame:
    """The events of files that are known to be traces: Spark reads itself what it can.

    A task reads one file, so that a recording of any size is shared among tasks. What they write
    about each other, crash notes, is settled before: that takes a job.
    """
    own: list[Path] = []
    others: list[Path] = []
    for file in files:
        plain = file.suffix == ".parquet" and segment_number(file) is None
        (own if plain and has_plain_columns(file) else others).append(file)
    found = [_settled_files(spark, others)] if others else []
    if own:
        found.append(spark.read.schema(SPARK_SCHEMA).parquet(*map(str, own)))
    return reduce(DataFrame.unionByName, found)


def _settled_files(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    pieces = numbered(spark, len(files))
    events = by_tasks(pieces, partial(_raw_events, files), SPARK_SCHEMA)
    outlines = by_tasks(pieces, partial(_outlines, files), SPARK_SCHEMA).toArrow()
    if not has_notes(outlines):
        return events
    crashes = noted_crashes(spark.createDataFrame(outlines)).toArrow()
    own = without_notes(events)
    return own.unionByName(spark.createDataFrame(crashes)) if crashes.num_rows else own


def _by_tasks(spark: SparkSession, parts: Parts) -> DataFrame:
    return by_tasks(numbered(spark, len(parts)), partial(_events, parts), SPARK_SCHEMA)


def _parts(files: Iterable[Path]) -> Parts:
    """Files that one task must read together: the segments of a folder, else each file alone.

    A recording notes the crash of one process in the files of another, so its folder is one part.
    """
    parts: dict[Path, list[str]] = {}
    for file in files:
        unit = file if segment_number(file) is None else file.parent
        parts.setdefault(unit, []).append(str(file))
    return list(parts.values())


def _refuse_faults(faults: DataFrame, files: Mapping[Path, Path]) -> None:
    """Raise the first fault, with the file named as the caller named it."""
    first = min(faults.collect(), default=None, key=lambda fault: (fault.file, fault.line or 0))
    if first is not None:
        file = files.get(Path(first.file), first.file)
        raise TraceError(file, first.line, first.column, first.reason)


def _faults(parts: Parts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in numbers(batches):
        try:
            check_files_visible(parts[number])
            read_table(parts[number])
        except TraceError as fault:
            row = {name: getattr(fault, name) for name in _FAULT_SCHEMA.names}
            yield pa.RecordBatch.from_pylist([row], schema=_FAULT_SCHEMA)


def _events(parts: Parts, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in numbers(batches):
        table = read_table(parts[number]).cast(ARROW_SCHEMA)
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _raw_events(
    files: Sequence[Path], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of each file by itself: crashes that others noted stay notes."""
    for table in _raw_tables(files, batches):
        yield from table.to_batches(max_chunksize=BATCH_ROWS)


def _outlines(files: Sequence[Path], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for table in _raw_tables(files, batches):
        yield from outline(table).to_batches()


def _raw_tables(files: Sequence[Path], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for number in numbers(batches):
        for table in file_tables(files[number]):
            yield table.cast(ARROW_SCHEMA)
