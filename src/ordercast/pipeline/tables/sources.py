"""The files that tables are made from: as they are now, which runs they hold, their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.pipeline.read import SMALL_BYTES
from ordercast.pipeline.tables.logs import ForeignLogs, Seen, added_rows, logs_of
from ordercast.pipeline.tables.manifest import Manifest, SeenFile, digest
from ordercast.pipeline.tables.plan import unknown_files
from ordercast.pipeline.tables.recorded import look, recorded
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import Note


class Sources:
    """Files, as `find_files` gives them, at the moment when this is made."""

    def __init__(
        self,
        spark: SparkSession,
        files: dict[Path, Path],
        mapping: LogMapping | None,
        *,
        note: Note,
        small_bytes: int = SMALL_BYTES,
    ) -> None:
        self._spark = spark
        self._logs = logs_of(files, mapping)
        self._note = note
        self._small_bytes = small_bytes
        through = "" if mapping is None else digest(msgspec.structs.replace(mapping, file=""))
        self.now = {str(file): _state(file, through) for file in files}
        self._numbers = {path: number for number, path in enumerate(self.now)}
        self._added: DataFrame | None = None

    def with_runs(self, manifest: Manifest) -> dict[str, SeenFile]:
        """The files with the runs they hold, read only where the manifest does not tell.

        Raises `TraceError` for the first thing in them that is no trace.
        """
        unknown = unknown_files(self.now, manifest)
        known = {path: manifest.files[path] for path in self.now.keys() - unknown}
        if isinstance(self._logs, ForeignLogs) and unknown:
            unknown = list(self.now)  # what a mapping adds follows from all files
        found = dict(zip(unknown, self._look(unknown), strict=True))
        for path, seen in found.items():
            runs = tuple(sorted(seen.runs))
            known[path] = msgspec.structs.replace(self.now[path], runs=runs)
        return {path: known[path] for path in self.now}

    def recorded(self, paths: Collection[str], runs: Collection[str]) -> DataFrame:
        """The rows of these runs in these files, and what a mapping adds to them."""
        numbers = [self._numbers[path] for path in self.now if path in paths]
        here = self._is_small(paths)
        rows = recorded(self._spark, self._logs, numbers, runs, here=here)
        if isinstance(self._logs, ForeignLogs):
            if self._added is None:
                self._look(list(self.now))
            assert self._added is not None
            rows = rows.unionByName(self._added.where(sf.col("run").isin(list(runs))))
        return rows

    def _look(self, paths: Sequence[str]) -> list[Seen]:
        if not paths:
            return []
        numbers = [self._numbers[path] for path in paths]
        seen = look(self._spark, self._logs, numbers, here=self._is_small(paths))
        if isinstance(self._logs, ForeignLogs):
            added = self._logs.added(seen, self._note)
            self._added = self._spark.createDataFrame(added_rows(added).combine_chunks())
        return seen

    def _is_small(self, paths: Collection[str]) -> bool:
        return sum(self.now[path].size for path in paths) <= self._small_bytes


def _state(file: Path, mapping: str) -> SeenFile:
    known = file.stat()
    return SeenFile(known.st_size, known.st_mtime_ns, mapping)
