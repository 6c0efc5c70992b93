"""The files of a trace, and what is in them, read in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.files import mapped_files
from ordercast.trace.mapping.reading import Note, log_note, mapped_table
from ordercast.trace.read import read_table, trace_files


def find_files(paths: Sequence[str | Path], mapping: LogMapping | None = None) -> dict[Path, Path]:
    """The trace files behind `paths`, each once: absolute, and as the caller named it.

    Raises `TraceError` for a path that is no trace and has none in it.
    """
    if not paths:
        raise ValueError("no path given: name at least one trace file or folder")
    files = trace_files(paths) if mapping is None else mapped_files(paths, mapping)
    return {file.absolute(): file for file in files}


def total_bytes(files: Iterable[Path]) -> int:
    """The size of all these files."""
    return sum(file.stat().st_size for file in files)


def read_here(
    files: Iterable[Path], *, mapping: LogMapping | None = None, note: Note = log_note
) -> pa.Table:
    """All events of these files in one table. With a `mapping` they may be anybody's logs."""
    table = read_table(files) if mapping is None else mapped_table(list(files), mapping, note)
    return table.cast(ARROW_SCHEMA).combine_chunks()
