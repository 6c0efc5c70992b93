"""From a file to batches of rows, whatever its format."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.mapping.batch import Batch, Columns, Record, Records
from ordercast.trace.mapping.otlp import spans
from ordercast.trace.mapping.section import said_nearest
from ordercast.trace.mapping.spec import OWN_PROCESS, Source

BATCH_ROWS = 20_000  # rows that are in memory with all their fields at one time
LONGEST_CELL = 16 * 1024 * 1024  # of CSV, in characters
_BOM = b"\xef\xbb\xbf"
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


Part = tuple[Batch, int]  # rows, and how many lines between them were no rows


def parts_of(file: Path, source: Source) -> Iterator[Part]:
    """All rows of `file`. Raises `TraceError` for what cannot be read."""
    try:
        if source.format == "text":
            yield from _text(file, source)
        else:
            yield from ((batch, 0) for batch in _READERS[source.format](file, source))
    except UnicodeDecodeError as reason:
        text = f"not text in {source.encoding}: byte {reason.object[reason.start]:#04x}"
        raise TraceError(file, None, None, f"{text}; see the key 'encoding'") from reason


def _jsonl(file: Path, source: Source) -> Iterator[Batch]:
    for first, lines in _line_batches(file, source):
        yield _objects(file, first, lines)


def _objects(file: Path, first: int, lines: list[bytes]) -> Records:
    """One object per line; blank lines are skipped."""
    decode = msgspec.json.Decoder(Record).decode
    numbered = [(number, line) for number, line in enumerate(lines, first) if line.strip()]
    try:
        records = [decode(line) for _, line in numbered]
    except _BAD_JSON:
        records = [_object(file, number, line) for number, line in numbered]  # says which
    return Records(records, [number for number, _ in numbered])


def _object(file: Path, number: int, line: bytes) -> Record:
    try:
        value = msgspec.json.decode(line)
    except _BAD_JSON as reason:
        raise TraceError(file, number, None, f"bad JSON: {reason}") from reason
    if not isinstance(value, dict):
        array = isinstance(value, list)
        what = 'an array (one array in all? format = "json")' if array else f"{value!r}"[:60]
        raise TraceError(file, number, None, f"each line must be a JSON object, not {what}")
    return value


def _json(file: Path, source: Source) -> Iterator[Batch]:
    """One array; the line named in a refusal is the place in the array, from 1."""
    try:
        values = msgspec.json.decode(file.read_bytes().removeprefix(_BOM))
    except _BAD_JSON as reason:
        hint = 'one object per line? format = "jsonl"'
        raise TraceError(file, None, None, f"bad JSON: {reason} ({hint})") from reason
    if not isinstance(values, list):
        raise TraceError(file, None, None, "the file must hold one JSON array of objects")
    for number, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise TraceError(file, number, None, f"must be an object, not {value!r}"[:100])
    yield Records(values, range(1, len(values) + 1))


def _otlp(file: Path, source: Source) -> Iterator[Batch]:
    for first, lines in _line_batches(file, source):
        exports = _objects(file, first, lines)
        records: list[Record] = []
        numbers: list[int] = []
        for export, number in zip(exports.records, exports.lines, strict=True):
            found = spans(export, file, number)
            records += found
            numbers += [number] * len(found)
        yield Records(records, numbers)


def _text(file: Path, source: Source) -> Iterator[Part]:
    match = re.compile(source.pattern).search
    for first, lines in _line_batches(file, source):
        records: list[Record] = []
        numbers: list[int] = []
        unmatched = 0
        for number, line in enumerate(lines, start=first):
            text = line.decode("utf-8").rstrip("\r\n")
            found = match(text)
            if found is not None:
                records.append(found.groupdict())
                numbers.append(number)
            elif text.strip() and source.unmatched == "refuse":
                reason = f"the line does not match the pattern: {text[:80]!r}"
                raise TraceError(file, number, None, f"{reason}; see the key 'unmatched'")
            elif text.strip():
                unmatched += 1
        yield Records(records, numbers), unmatched


def _csv(file: Path, source: Source) -> Iterator[Batch]:
    csv.field_size_limit(LONGEST_CELL)
    encoding = "utf-8-sig" if source.encoding == "utf-8" else source.encoding
    with file.open(encoding=encoding, newline="") as text:
        reader = csv.reader(text, delimiter=source.delimiter, quotechar=source.quote, strict=True)
        try:
            header = list(source.header) or next(reader, [])
            _check_header(header, file, source)
            yield from _csv_batches(reader, header, file)
        except csv.Error as reason:
            raise TraceError(file, max(1, reader.line_num), None, f"bad CSV: {reason}") from reason


def _csv_batches(reader: Any, header: list[str], file: Path) -> Iterator[Batch]:
    line = reader.line_num
    while rows := list(islice(reader, BATCH_ROWS)):
        lines: Sequence[int] = range(line + 1, reader.line_num + 1)
        if len(lines) != len(rows) or [] in rows:
            rows, lines = _placed(rows, line)
        for cells, number in zip(rows, lines, strict=True):
            if len(cells) != len(header):
                reason = f"{len(cells)} cells where the header has {len(header)}"
                raise TraceError(file, number, None, reason)
        columns = zip(*rows, strict=True)
        yield Columns(dict(zip(header, columns, strict=True)) if rows else {}, lines)
        line = reader.line_num


def _placed(rows: list[list[str]], line: int) -> tuple[list[list[str]], list[int]]:
    """Where there are blank lines, or line breaks in cells: the rows, and the last line of each."""
    kept, lines = [], []
    for cells in rows:
        line += 1 + sum(cell.count("\n") for cell in cells)
        if cells:
            kept.append(cells)
            lines.append(line)
    return kept, lines


def _check_header(header: list[str], file: Path, source: Source) -> None:
    if not header:
        raise TraceError(file, None, None, "the file is empty; a header line must be there")
    for name in header:
        if header.count(name) > 1:
            raise TraceError(file, 1, name, "the column occurs twice")
    _check_names(header, file, source, 1)


def _check_names(names: list[str], file: Path, source: Source, line: int | None) -> None:
    """Refuse a file that has none of the columns that a field may be."""
    known = {*names, OWN_PROCESS}
    for field in source.fields:
        if not any(path in known or path.partition(".")[0] in known for path in field.paths):
            if len(names) == 1 and source.format == "csv":
                hint = f"; the header is {names[0][:60]!r}: is 'delimiter' right?"
            else:
                hint = said_nearest(field.paths[0], names)
            raise TraceError(file, line, field.label, f"no such column{hint}")


def _parquet(file: Path, source: Source) -> Iterator[Batch]:
    from ordercast.trace.mapping.foreign_parquet import parquet_columns, parquet_names

    present = parquet_names(file)
    _check_names(present, file, source, None)
    wanted = {path for field in source.fields for path in field.paths}
    wanted |= {path.partition(".")[0] for path in wanted}
    done = 0
    for columns, count in parquet_columns(file, [n for n in present if n in wanted], BATCH_ROWS):
        yield Columns(columns, range(done + 1, done + count + 1))
        done += count


def _line_batches(file: Path, source: Source) -> Iterator[tuple[int, list[bytes]]]:
    """The lines in UTF-8, with the number of the first of each batch."""
    raw, first = _lines(file, source.encoding), 1
    while lines := list(islice(raw, BATCH_ROWS)):
        if first == 1:
            lines[0] = lines[0].removeprefix(_BOM)
        yield first, lines
        first += len(lines)


def _lines(file: Path, encoding: str) -> Iterator[bytes]:
    if encoding == "utf-8":
        with file.open("rb") as raw:
            yield from raw
    else:
        with file.open(encoding=encoding, newline="\n") as text:
            yield from (line.encode() for line in text)


_READERS: dict[str, Callable[[Path, Source], Iterator[Batch]]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _csv,
    "otlp": _otlp,
    "parquet": _parquet,
}
