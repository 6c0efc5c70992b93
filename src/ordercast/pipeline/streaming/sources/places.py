"""Where in a growing folder the reader is, and what lies between two places.

    "run=a/p%231-"       "12:340"    a recorded log: segment 12, its first 340 rows
    "logs/alice.jsonl"   "18211"     a file that may grow: its first 18211 bytes
    "logs/bob.csv"       "=9310"     a file that must be complete: all of it, when it had that size

A segment is the same rows whether it is sealed or not. JSONL files may grow; the last line counts
once it ends. CSV and Parquet files are read as a whole, once nobody has written to them for
`SETTLED_SECONDS`: put them there by renaming.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.trace.layout import SEGMENT_SUFFIX, sealed_path, segment_number
from ordercast.trace.schema import STATISTICAL_KINDS
from ordercast.trace.segments import RECORD, RECORD_FIELDS, RECORD_KINDS, read_segment

SETTLED_SECONDS = 2.0
CHANGED = "it changed after it was read"
GROWING = (".jsonl", ".ndjson")
WHOLE = (".csv", ".parquet")
TO_THE_END = 2**62  # a segment that was left behind is complete: all its rows
_COUNT = RECORD_FIELDS.index("count")
JSONL_BYTES_PER_ROW = 64  # a low guess, to turn a limit of rows into one of bytes

Place = dict[str, str]


class Slice(msgspec.Struct, frozen=True):
    """Rows or bytes `start` to `stop` of one file; `whole`: all of a file of `stop` bytes."""

    file: str  # below the folder; of a segment, its name before sealing
    start: int
    stop: int
    whole: bool = False


def advance(folder: Path, start: Place, *, now: float, most_rows: int) -> Place:
    """The place after about `most_rows` more rows, shared among the logs that have some."""
    place = dict(start)
    logs, files = _listing(folder)
    for file in files:
        if file.suffix in WHOLE and now - file.stat().st_mtime >= SETTLED_SECONDS:
            place.setdefault(str(file.relative_to(folder)), f"={file.stat().st_size}")
    active = [*logs, *(str(f.relative_to(folder)) for f in files if f.suffix in GROWING)]
    while active and most_rows > 0:
        share = max(1, most_rows // len(active))
        taken = {name: _advance_one(folder, name, logs.get(name), place, share) for name in active}
        most_rows -= sum(taken.values())
        active = [name for name in active if taken[name] >= share]
    return {name: value for name, value in place.items() if value not in ("0", "0:0")}


def _advance_one(
    folder: Path, name: str, segments: list[int] | None, place: Place, share: int
) -> int:
    """Move on in one log or file; about how many rows that was."""
    if segments is not None:
        place[name], taken = _advance_log(folder, name, segments, place.get(name, "0:0"), share)
        return taken
    was = int(place.get(name, "0"))
    upto = _advance_lines(folder / name, was, share)
    place[name] = str(upto)
    return -(-(upto - was) // JSONL_BYTES_PER_ROW)


def slices_between(start: Place, end: Place) -> Iterator[Slice]:
    """What was added, log by log in order; each log is one stretch of neighbouring slices."""
    for name, stop in end.items():
        was = start.get(name)
        if stop == was:
            continue
        if ":" in stop:
            yield from _log_slices(name, was or "0:0", stop)
        elif stop.startswith("="):
            yield Slice(name, 0, int(stop[1:]), whole=True)
        else:
            yield Slice(name, int(was or "0"), int(stop))


def _listing(folder: Path) -> tuple[dict[str, list[int]], list[Path]]:
    """The numbers of the segments of each log, and all other trace files."""
    logs: dict[str, set[int]] = {}
    files = []
    for file in sorted(folder.rglob("*")):
        if any(part.startswith((".", "_")) for part in file.relative_to(folder).parts):
            continue
        found = segment_number(file)
        if found is not None:
            log = str(file.relative_to(folder).with_name(found[0])) + "-"
            logs.setdefault(log, set()).add(found[1])
        elif file.suffix in (*GROWING, *WHOLE) and file.is_file():
            files.append(file)
    return {log: sorted(numbers) for log, numbers in logs.items()}, files


def _advance_log(
    folder: Path, log: str, numbers: list[int], at: str, share: int
) -> tuple[str, int]:
    segment, rows = map(int, at.split(":"))
    segment, room = segment or 1, share
    while room > 0 and _is_there(folder, log, segment, numbers):
        there = _segment_rows(folder, log, segment)
        taken = min(there - rows, room)
        rows, room = rows + taken, room - taken
        if rows < there or not _is_there(folder, log, segment + 1, numbers):
            break
        segment, rows = segment + 1, 0
    return (f"{segment}:{rows}" if segment > 1 or rows else "0:0"), share - room


def _is_there(folder: Path, log: str, segment: int, numbers: list[int]) -> bool:
    """Is there such a segment? If only later ones are, the log has a hole and is refused."""
    if segment in numbers or segment > numbers[-1]:
        return segment in numbers
    path = folder / f"{log}{segment:05d}{SEGMENT_SUFFIX}"
    if path.exists() or sealed_path(path).exists():  # it came while the folder was listed
        return True
    raise TraceError(path, None, None, "this segment of the log is missing")


def _segment_rows(folder: Path, log: str, segment: int) -> int:
    path = folder / f"{log}{segment:05d}{SEGMENT_SUFFIX}"
    try:
        return sum(map(_rows_of, RECORD.iter_unpack(read_segment(path).records)))
    except FileNotFoundError:
        with pq.ParquetFile(sealed_path(path)) as file:
            return int(file.metadata.num_rows)


def _rows_of(record: tuple[int, ...]) -> int:
    """How many events a record stands for (see `trace.expand`)."""
    kind, count = RECORD_KINDS[record[0]], record[_COUNT]
    if kind in ("send", "deliver"):
        return count
    return max(count, 1) if kind in STATISTICAL_KINDS else 1


def _advance_lines(file: Path, at: int, share: int) -> int:
    """The end of the last complete line, not much further than the limit."""
    size = file.stat().st_size
    if size < at:
        raise TraceError(file, None, None, f"{CHANGED}: it is shorter now")
    with file.open("rb") as lines:
        lines.seek(at)
        text = lines.read(min(share * JSONL_BYTES_PER_ROW, size - at))
        if b"\n" not in text:
            text += lines.readline()
    return at + text.rfind(b"\n") + 1


def _log_slices(log: str, start: str, stop: str) -> Iterator[Slice]:
    segment, rows = map(int, start.split(":"))
    segment = segment or 1
    last, upto = map(int, stop.split(":"))
    for number in range(segment, last + 1):
        begin = rows if number == segment else 0
        end = upto if number == last else TO_THE_END
        if begin < end:
            yield Slice(f"{log}{number:05d}{SEGMENT_SUFFIX}", begin, end)


def by_log(slices: Iterable[Slice]) -> list[list[Slice]]:
    """What one task reads: the slices of one log, or of one file."""
    logs: dict[str, list[Slice]] = {}
    for one in slices:
        found = segment_number(Path(one.file))
        name = one.file if found is None else str(Path(one.file).with_name(found[0]))
        logs.setdefault(name, []).append(one)
    return list(logs.values())
