"""Read one slice: exactly the same events every time."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.streaming.sources.places import CHANGED, TO_THE_END, Slice
from ordercast.trace.layout import SEGMENT_SUFFIX, run_of_folder, sealed_path
from ordercast.trace.parquet import parquet_table
from ordercast.trace.rows import Row
from ordercast.trace.schema import Event
from ordercast.trace.segments import read_segment
from ordercast.trace.tables import segment_table, table_events
from ordercast.trace.text import csv_events

PIECE_BYTES = 1024 * 1024  # read at a time where lines are only counted


def read_slice(folder: Path, part: Slice) -> list[Event]:
    """The events of the slice, as recorded: notes of crashes are not settled."""
    file = folder / part.file
    if part.file.endswith(SEGMENT_SUFFIX):
        return _segment_rows(file, part)
    if part.whole:
        return _whole_file(file, part.stop)
    return _lines(file, part)


def _segment_rows(file: Path, part: Slice) -> list[Event]:
    try:
        table = segment_table(read_segment(file))
    except FileNotFoundError:  # sealed: the same rows under another name
        table = parquet_table(sealed_path(file))
    if part.stop != TO_THE_END and len(table) < part.stop:
        reason = f"{CHANGED}: {len(table)} rows are left of {part.stop}"
        raise TraceError(file, None, None, reason)
    return table_events(table.slice(part.start, part.stop - part.start))


def _whole_file(file: Path, size: int) -> list[Event]:
    if file.stat().st_size != size:
        reason = f"{CHANGED} (only .jsonl files may grow)"
        raise TraceError(file, None, None, reason)
    return csv_events(file) if file.suffix == ".csv" else table_events(parquet_table(file))


def _lines(file: Path, part: Slice) -> list[Event]:
    run = run_of_folder(file.parent)
    text = _lines_between(file, part.start, part.stop)
    events = []
    for number, line in enumerate(text.split(b"\n")):
        if line.strip():
            events.append(_event(file, part.start, number, line, run))
    return events


def _lines_between(file: Path, start: int, stop: int) -> bytes:
    """These bytes. They were whole lines, so if they are none now, somebody changed the file."""
    before = min(start, 1)  # the end of the line before, if there is one
    with file.open("rb") as lines:
        lines.seek(start - before)
        text = lines.read(stop - start + before)
    if len(text) < stop - start + before or text[:before].strip(b"\n") or text[-1:] != b"\n":
        raise TraceError(file, None, None, CHANGED)
    return text[before:]


def _event(file: Path, start: int, number: int, line: bytes, run: str) -> Event:
    try:
        values = msgspec.json.decode(line, type=dict[str, object])
        return Row(values, file, number).event(run)
    except (msgspec.MsgspecError, UnicodeDecodeError) as reason:
        place = _lines_before(file, start) + number + 1
        raise TraceError(file, place, None, f"bad JSON: {reason}") from reason
    except TraceError as fault:
        place = _lines_before(file, start) + number + 1
        raise TraceError(file, place, fault.column, fault.reason) from fault


def _lines_before(file: Path, start: int) -> int:
    count = 0
    with file.open("rb") as lines:
        while start > 0 and (piece := lines.read(min(start, PIECE_BYTES))):
            count += piece.count(b"\n")
            start -= len(piece)
    return count
