"""The growing folder as a streaming source of Spark.

Its offsets are places (see `places`), so Spark's own log of offsets makes every batch repeatable.
Events travel packed, thousands per row: what Spark must convert row by row is next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from ordercast.pipeline.streaming.sources.places import (
    Place,
    Slice,
    advance,
    by_log,
    slices_between,
)
from ordercast.pipeline.streaming.sources.slices import read_slice
from ordercast.trace.schema import Event

NAME = "ordercast_folder"
MOST_ROWS = 200_000  # per batch, about
PACK = 5_000  # events per row
_SCHEMA = "run string, packed binary"
_ARROW_SCHEMA = pa.schema([("run", pa.string()), ("packed", pa.binary())])


class FolderSource(DataSource):
    """Option `path`: the folder; `most_rows`: about how many events a batch may have."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> FolderReader:  # noqa: N802 - Spark's name
        most_rows = int(self.options.get("most_rows", MOST_ROWS))
        return FolderReader(Path(self.options["path"]), most_rows)


class LogPart(InputPartition):
    """What one task reads: neighbouring slices of one log."""

    def __init__(self, slices: list[Slice]) -> None:
        self.slices = [(one.file, one.start, one.stop, one.whole) for one in slices]


class FolderReader(DataSourceStreamReader):
    """Plans batches in the driver, reads slices in the tasks."""

    def __init__(self, folder: Path, most_rows: int) -> None:
        self.folder = folder
        self.most_rows = most_rows

    def initialOffset(self) -> Place:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.most_rows)

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:  # noqa: N802
        return advance(self.folder, start, now=time.time(), most_rows=self.most_rows)

    def partitions(self, start: Place, end: Place) -> Sequence[InputPartition]:
        return [LogPart(slices) for slices in by_log(slices_between(start, end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, LogPart)
        for one in partition.slices:
            yield _packed(read_slice(self.folder, Slice(*one)))


def _packed(events: list[Event]) -> pa.RecordBatch:
    runs: dict[str, list[Event]] = {}
    for event in events:
        runs.setdefault(event.run, []).append(event)
    packs = [
        {"run": run, "packed": msgspec.msgpack.encode(rows[first : first + PACK])}
        for run, rows in runs.items()
        for first in range(0, len(rows), PACK)
    ]
    return pa.RecordBatch.from_pylist(packs, schema=_ARROW_SCHEMA)


def unpack(packed: bytes) -> list[Event]:
    """The events of one row."""
    return msgspec.msgpack.decode(packed, type=list[Event])


def register(spark: SparkSession) -> None:
    """Make the source known to this session."""
    spark.dataSource.register(FolderSource)
