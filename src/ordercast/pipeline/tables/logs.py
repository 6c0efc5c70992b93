"""The source files, read one by one: which runs a file holds, and its rows as they were recorded.

Two kinds with the same methods: traces in our columns, and foreign logs behind a mapping. Both are
plain data, so that they can travel to Spark's tasks. Files are known by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.errors import TraceError
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.pipeline.spark.cluster_checks import check_files_visible
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.apply import Place, map_file
from ordercast.trace.mapping.reading import Note, concluded, places
from ordercast.trace.mapping.survey import Survey
from ordercast.trace.mapping.table import column_table
from ordercast.trace.parquet import parquet_tables
from ordercast.trace.read import file_table
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table

RECORDED_SCHEMA = pa.schema([*ARROW_SCHEMA, ("file", pa.string()), ("row", pa.int64())])


class Seen(msgspec.Struct, frozen=True):
    """What was seen in one file."""

    runs: frozenset[str]
    survey: Survey | None = None  # of a foreign log


@dataclass(frozen=True)
class TraceFiles:
    """Files in our columns: Parquet, segments, JSONL, CSV."""

    files: Sequence[Path]  # absolute
    shown: Sequence[Path]  # as the caller named them

    def look(self, number: int) -> Seen:
        """Read the whole file, so that whatever is no trace is refused. Raises `TraceError`."""
        check_files_visible([self.files[number]])
        try:
            runs = [pc.unique(table["run"]).to_pylist() for table in self._tables(number)]
        except TraceError as fault:  # named as the caller named the file
            raise TraceError(self.shown[number], fault.line, fault.column, fault.reason) from fault
        return Seen(frozenset(run or "" for several in runs for run in several))

    def rows(self, number: int) -> Iterator[pa.Table]:
        """Its rows with the columns of RECORDED_SCHEMA."""
        before = 0
        for table in self._tables(number):
            rows = pa.array(np.arange(before + 1, before + len(table) + 1))
            yield _located(table, self.files[number], rows)
            before += len(table)

    def _tables(self, number: int) -> Iterator[pa.Table]:
        file = self.files[number]
        if file.suffix == ".parquet":
            yield from parquet_tables(file)
        else:
            yield file_table(file)


@dataclass(frozen=True)
class ForeignLogs:
    """Anybody's logs. Rows are left out on the way, so the number of a row is not known."""

    places: Sequence[Place]
    mapping: LogMapping

    def look(self, number: int) -> Seen:
        place = self.places[number]
        check_files_visible([place.file])
        _, survey = map_file(place, self.mapping.sources[place.source])
        return Seen(survey.runs, survey)

    def rows(self, number: int) -> Iterator[pa.Table]:
        place = self.places[number]
        columns, _ = map_file(place, self.mapping.sources[place.source])
        table = column_table(columns)
        yield _located(table, place.file, pa.nulls(len(table), pa.int64()))

    def added(self, seen: Sequence[Seen], note: Note) -> list[Event]:
        """What follows from all files: declared groups, ends of logs; or a refusal."""
        surveys = [one.survey for one in seen if one.survey is not None]
        return concluded([place.shown for place in self.places], surveys, self.mapping, note)


Logs = TraceFiles | ForeignLogs


def logs_of(files: dict[Path, Path], mapping: LogMapping | None) -> Logs:
    """The logs in files as `find_files` gives them."""
    if mapping is None:
        return TraceFiles(list(files), list(files.values()))
    return ForeignLogs(places(list(files.values()), mapping), mapping)


def added_rows(events: Sequence[Event]) -> pa.Table:
    """Rows that stand in no file."""
    table = event_table(events)
    return _located(table, None, pa.nulls(len(table), pa.int64()))


def _located(table: pa.Table, file: Path | None, rows: pa.Array) -> pa.Table:
    """The rows with the place where they were read, and "" where no run is named."""
    named = pc.fill_null(pc.cast(table["run"], pa.string()), "")
    table = table.set_column(table.schema.get_field_index("run"), "run", named)
    files = pa.repeat(pa.scalar(None if file is None else str(file), pa.string()), len(table))
    return table.append_column("file", files).append_column("row", rows).cast(RECORDED_SCHEMA)
