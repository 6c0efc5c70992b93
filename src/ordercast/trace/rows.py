"""One row of a foreign log becomes one `Event`, or is refused with file, line, column, reason.

A row is a mapping from column names to values. What may be absent depends on the kind:
only a `group` row may lack process and index (and if it has them they mean nothing: a
declaration belongs to nobody's log). Columns that the schema does not know are ignored, so a
log may carry more than we judge.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.schema import KINDS, REQUIRED_COLUMNS, Event

INTEGER_COLUMNS = ("index", "view", "seq", "size", "overhead")

# Which columns a kind cannot do without, beyond process, index and kind.
NEEDED_COLUMNS = {
    "send": ("message", "group"),
    "deliver": ("message", "group"),
    "view": ("group", "view"),
    "join": ("group",),
    "leave": ("group",),
    "group": ("group",),
}
LARGEST = 2**63 - 1
OTHER_FIELDS = " (logs with other fields: --map, see docs/FOREIGN.md)"
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


class Row:
    """The values of one row, read with the type that each column must have."""

    def __init__(self, values: Mapping[str, object], file: Path, line: int) -> None:
        self.values = values
        self.file = file
        self.line = line

    def refused(self, column: str | None, reason: str) -> TraceError:
        return TraceError(self.file, self.line, column, reason)

    def event(self, run: str) -> Event:
        """The event; `run` is what holds where the row names none."""
        kind = self.kind()
        own = kind != "group"
        event = Event(
            process=self.text("process") if own else None,
            index=self.integer("index") if own else None,
            kind=kind,
            message=self.text("message"),
            group=self.text("group"),
            run=self.text("run") or run,
            sender=self.text("sender"),
            view=self.integer("view"),
            members=self.names("members"),
            time=self._time(),
            seq=self.integer("seq"),
            size=self.integer("size"),
            overhead=self.integer("overhead"),
            layer=self.text("layer"),
            note=self.text("note"),
            order=self.text("order"),
            protocol=self.text("protocol"),
            scope=self.text("scope"),
        )
        for column in (*(("process", "index") if own else ()), *NEEDED_COLUMNS.get(kind, ())):
            if getattr(event, column) is None:
                raise self.refused(column, f"missing; a row of kind {kind!r} needs it")
        return event

    def text(self, column: str) -> str | None:
        value = self.values.get(column)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise self.refused(column, f"must be a string, not {value!r}")
        return value

    def integer(self, column: str) -> int | None:
        value = self.values.get(column)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refused(column, f"must be an integer, not {value!r}")
        if abs(value) > LARGEST:
            raise self.refused(column, f"does not fit 64 bits: {value}")
        return value

    def kind(self) -> str:
        kind = self.text("kind")
        if kind is None:
            raise self.refused("kind", f"missing; every row needs it{OTHER_FIELDS}")
        if kind not in KINDS:
            raise self.refused("kind", f"unknown kind {kind!r}; known are {', '.join(KINDS)}")
        return kind

    def names(self, column: str) -> tuple[str, ...] | None:
        """A list of names: JSON array, or a|b|c."""
        value = self.values.get(column)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            value = self._split(column, value)
        if not isinstance(value, list | tuple) or not all(
            isinstance(name, str) and name for name in value
        ):
            raise self.refused(column, f"must be a list of names, not {value!r}")
        return tuple(value)

    def _split(self, column: str, value: str) -> object:
        if not value.startswith("["):
            return value.split("|")
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError as reason:
            raise self.refused(column, f"bad JSON array: {reason}") from reason

    def _time(self) -> int | None:
        """Nanoseconds, from a number or an ISO timestamp (UTC where it names no zone)."""
        value = self.values.get("time")
        if value == "":
            return None
        if not isinstance(value, str):
            return self.integer("time")
        try:
            return iso_nanoseconds(value)
        except ValueError as reason:
            raise self.refused("time", str(reason)) from reason


def iso_nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of an ISO timestamp, UTC where it names no zone."""
    match = _STAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError("expected nanoseconds or an ISO timestamp")
        seconds = _seconds(match[1] + (match[3] or "Z"))
    except ValueError as reason:
        raise ValueError(f"{text!r}: {reason}") from reason
    return seconds * 10**9 + int((match[2] or "").ljust(9, "0"))


@lru_cache(maxsize=4096)  # a log has many rows in one second
def _seconds(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp())


def require_columns(columns: Collection[str], file: Path, line: int | None) -> None:
    """Refuse a file with a header that lacks one of the five columns every trace has."""
    missing = [column for column in REQUIRED_COLUMNS if column not in columns]
    if missing:
        needed = ", ".join(REQUIRED_COLUMNS)
        reason = f"missing column{_found(columns, missing)}; a trace needs {needed}{OTHER_FIELDS}"
        raise TraceError(file, line, ", ".join(missing), reason)


def _found(columns: Collection[str], missing: list[str]) -> str:
    """What stands there instead, and what is probably wrong with it."""
    if not columns:
        return ": the file is empty"
    header = ",".join(columns)
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(columns) == 1 and sign in header:
            return f": the header {header[:60]!r} is separated by {name}, write commas"
    tidy = {column.strip().lower(): column for column in columns}
    for column in missing:
        if column in tidy:
            return f": found {tidy[column]!r}, write {column!r}"
    return f": found {', '.join(columns)[:120]}"
