"""Read traces: segments, sealed or not, JSONL, CSV and Parquet, by file or by folder.

A folder is read with all folders in it; files whose names begin with "." or "_" are skipped,
as Spark does, and so are files of other kinds. Where a segment lies beside its sealed form,
the sealed one counts. A folder that lacks a segment in the middle of a log is refused.

Events come out sorted by run, process and index. `read_table` gives the same rows as an Arrow
table, faster, in no particular order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ordercast.errors import TraceError
from ordercast.trace.expand import segment_events, settle_crashes
from ordercast.trace.layout import (
    SEALED_SUFFIX,
    SEGMENT_SUFFIX,
    sealed_path,
    segment_number,
    segment_of_sealed,
)
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.files import mapped_files
from ordercast.trace.mapping.reading import mapped_events, mapped_table
from ordercast.trace.schema import Event
from ordercast.trace.segments import Segment, read_segment
from ordercast.trace.text import csv_events, jsonl_events

SUFFIXES = (SEGMENT_SUFFIX, ".parquet", ".jsonl", ".ndjson", ".csv")

_HINTS = {
    ".json": " (one JSON object per line? call it .jsonl)",
    ".gz": " (unpack it first)",
    ".zip": " (unpack it first)",
}

Table = Any  # pyarrow.Table; pyarrow ships no type information


def read_events(
    paths: Iterable[Path | str] | Path | str, mapping: LogMapping | None = None
) -> list[Event]:
    """All events of these files and folders, sorted, crash notes settled.

    With a `mapping` they may be anybody's logs.
    """
    if mapping is not None:
        return sorted(mapped_events(paths, mapping), key=_place)
    events = [event for file in trace_files(paths) for event in _events_of(file)]
    return sorted(settle_crashes(events), key=_place)


def read_table(
    paths: Iterable[Path | str] | Path | str, mapping: LogMapping | None = None
) -> Table:
    """The same rows with the columns of `tables.TABLE_SCHEMA`, unsorted. Needs pyarrow."""
    if mapping is not None:
        return mapped_table(mapped_files(paths, mapping), mapping)
    from ordercast.trace.tables import joined, settle_crash_rows

    return settle_crash_rows(joined([file_table(file) for file in trace_files(paths)]))


def trace_files(paths: Iterable[Path | str] | Path | str) -> list[Path]:
    """The files that hold the traces named by `paths`, each once, in a fixed order."""
    if isinstance(paths, Path | str):
        paths = [paths]
    found = {file.resolve(): file for path in paths for file in _files_at(Path(path))}
    sealed = {segment_of_sealed(real) for real in found if real.name.endswith(SEALED_SUFFIX)}
    return [file for real, file in found.items() if real not in sealed]


def _files_at(path: Path) -> list[Path]:
    if not path.exists():
        if path.suffix == SEGMENT_SUFFIX and sealed_path(path).exists():
            return [sealed_path(path)]  # sealed since whoever names it has looked
        raise TraceError(path, None, None, "no such file or folder")
    if not path.is_dir():
        if path.suffix not in SUFFIXES:
            hint = _HINTS.get(path.suffix, "")
            reason = f"not a trace by its name; known are {', '.join(SUFFIXES)}{hint}"
            raise TraceError(path, None, None, reason)
        return [path]
    files = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix in SUFFIXES
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        and file.is_file()
    ]
    if not files:
        raise TraceError(path, None, None, f"no trace files here ({', '.join(SUFFIXES)})")
    _refuse_missing_segments(files)
    return files


def _refuse_missing_segments(files: Iterable[Path]) -> None:
    """A hole in the middle of a log would look as if the process had done nothing there."""
    numbers: dict[Path, set[int]] = defaultdict(set)
    for file in files:
        if (found := segment_number(file)) is not None:
            numbers[file.with_name(found[0])].add(found[1])
    for log, present in numbers.items():
        for number in range(1, max(present)):
            if number not in present:
                name = f"{log.name}-{number:05d}{SEGMENT_SUFFIX}"
                raise TraceError(
                    log.with_name(name), None, None, "this segment of the log is missing"
                )


def _events_of(file: Path) -> list[Event]:
    match file.suffix:
        case ".seg":
            segment = _segment_at(file)
            return segment_events(segment) if segment else _parquet_events(sealed_path(file))
        case ".parquet":
            return _parquet_events(file)
        case ".csv":
            return csv_events(file)
        case _:
            return jsonl_events(file)


def _parquet_events(file: Path) -> list[Event]:
    from ordercast.trace.parquet import parquet_table
    from ordercast.trace.tables import table_events

    return table_events(parquet_table(file))


def file_table(file: Path) -> Table:
    """One file as it is: crashes that others noted stay notes (see `settle_crash_rows`)."""
    from ordercast.trace.parquet import parquet_table
    from ordercast.trace.tables import event_table, segment_table

    if file.suffix == ".parquet":
        return parquet_table(file)
    if file.suffix == SEGMENT_SUFFIX:
        segment = _segment_at(file)
        return segment_table(segment) if segment else parquet_table(sealed_path(file))
    return event_table(_events_of(file))


def file_tables(file: Path) -> Iterator[Table]:
    """The same, a large Parquet file a piece at a time."""
    from ordercast.trace.parquet import parquet_tables

    if file.suffix == ".parquet":
        yield from parquet_tables(file)
    else:
        yield file_table(file)


def _segment_at(file: Path) -> Segment | None:
    """The segment, None if it was sealed since we looked.

    A log goes on in another segment only after this one was finished. If this one is torn
    and yet another follows, it was damaged later.
    """
    try:
        segment = read_segment(file)
    except FileNotFoundError:
        return None
    found = segment_number(file)
    if not segment.finished and found is not None:
        following = file.with_name(f"{found[0]}-{found[1] + 1:05d}{SEGMENT_SUFFIX}")
        if following.exists() or sealed_path(following).exists():
            raise TraceError(file, None, None, f"torn, and yet {following.name} follows it")
    return segment


def _place(event: Event) -> tuple[str, str, int]:
    return event.run, event.process or "", event.index or 0
