"""JSONL and CSV traces, line by line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.layout import run_of_folder
from ordercast.trace.rows import INTEGER_COLUMNS, Row, require_columns
from ordercast.trace.schema import Event


def jsonl_events(path: Path) -> list[Event]:
    """One JSON object per line; blank lines are skipped."""
    run = run_of_folder(path.parent)
    events = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            values = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as reason:
            raise TraceError(path, number, None, f"bad JSON: {reason}") from reason
        if not isinstance(values, dict):
            kind = "an array" if isinstance(values, list) else f"{values!r}"[:40]
            raise TraceError(path, number, None, f"each line must be a JSON object, not {kind}")
        events.append(Row(values, path, number).event(run))
    return events


def csv_events(path: Path) -> list[Event]:
    """Comma-separated with a header line; an empty cell is an absent value."""
    run = run_of_folder(path.parent)
    return [_cells(row).event(run) for row in _csv_rows(path)]


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            header = next(reader, [])
            _check_header(header, path)
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    reason = f"{len(cells)} cells where the header has {len(header)}"
                    raise TraceError(path, reader.line_num, None, reason)
                yield Row(dict(zip(header, cells, strict=True)), path, reader.line_num)
        except (csv.Error, UnicodeDecodeError) as reason:
            line = max(1, reader.line_num)
            raise TraceError(path, line, None, f"bad CSV: {reason}") from reason


def _check_header(header: list[str], path: Path) -> None:
    require_columns(header, path, 1)
    for column in header:
        if header.count(column) > 1:
            raise TraceError(path, 1, column, "the column occurs twice")


def _cells(row: Row) -> Row:
    """The row with numbers where numbers belong, and nothing where a cell is empty."""
    values: dict[str, object] = {name: cell for name, cell in row.values.items() if cell != ""}
    for column in INTEGER_COLUMNS:
        if column in values:
            values[column] = _integer(row, column, str(values[column]))
    time = values.get("time")
    if isinstance(time, str) and time.removeprefix("-").isdecimal():
        values["time"] = _integer(row, "time", time)
    return Row(values, row.file, row.line)


def _integer(row: Row, column: str, cell: str) -> int:
    try:
        return int(cell)
    except ValueError:
        raise row.refused(column, f"must be an integer, not {cell!r}") from None
