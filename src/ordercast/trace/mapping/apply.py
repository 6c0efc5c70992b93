"""From the rows of one file to the columns of a trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.layout import run_of_folder
from ordercast.trace.mapping.batch import Batch
from ordercast.trace.mapping.fields import field_values, is_absent, origin_values, written
from ordercast.trace.mapping.records import parts_of
from ordercast.trace.mapping.refusals import Refusals
from ordercast.trace.mapping.row_order import indexes_by_time
from ordercast.trace.mapping.spec import ANY, IGNORE, OWN_PROCESS, Column, Field, RowOrder, Source
from ordercast.trace.mapping.survey import LogEnd, Survey
from ordercast.trace.mapping.values import typed
from ordercast.trace.rows import NEEDED_COLUMNS
from ordercast.trace.schema import KINDS

Events = dict[str, list[Any]]  # columns of ours, all of the same length; others are absent

_OUR_WORDS = {kind: kind for kind in KINDS}


class Place(msgspec.Struct, frozen=True):
    """One file among those that are read together."""

    file: Path
    shown: Path  # as the caller named it
    source: int  # which source of the mapping it belongs to
    number: int  # from 0
    of: int


def map_file(place: Place, source: Source) -> tuple[Events, Survey]:
    """The events of one file as columns, and what was seen. Raises `TraceError`."""
    reading = _Reading(place, source)
    try:
        for batch, unmatched in parts_of(place.file, source):
            reading.unmatched += unmatched
            reading.take(batch)
    except TraceError as fault:  # named as the caller named the file
        raise TraceError(place.shown, fault.line, fault.column, fault.reason) from fault
    except OSError as reason:
        raise TraceError(place.shown, None, None, f"cannot be read: {reason.strerror}") from reason
    return reading.finished()


class _Reading:
    """What has been read of one file so far."""

    def __init__(self, place: Place, source: Source) -> None:
        self.place = place
        self.source = source
        self.by_name = {column.name: column for column in source.columns}
        self.refused = Refusals(place.file)
        self.events: Events = {name: [] for name in ("run", "index", *self.by_name)}
        self.rows = self.filtered = self.unmatched = 0
        self.ignored: Counter[str] = Counter()
        self.fields: set[str] = set()  # labels of fields that some row has
        self.present: tuple[str, ...] = ()  # what the first row has

    def take(self, batch: Batch) -> None:
        """Filter, find the kinds, leave out what is to be ignored, fill the columns."""
        if not len(batch):
            return
        self.rows += len(batch)
        self.present = self.present or tuple(map(str, batch.record(0)))
        batch = self._filtered(batch)
        kinds = self._kinds(batch)
        keep = [place for place, kind in enumerate(kinds) if kind != IGNORE]
        if len(keep) < len(kinds):
            kinds, batch = [kinds[place] for place in keep], batch.chosen(keep)
        processes = self._values(self.by_name["process"], batch)
        if self.source.uses_own_process:
            batch.put(OWN_PROCESS, processes)
        filled = {"kind": kinds, "process": processes}
        for name, column in self.by_name.items():
            if name not in filled and not isinstance(column.origin, RowOrder):
                filled[name] = self._values(column, batch)
        self._check_needed(filled, batch)
        for name, values in filled.items():
            self.events[name] += values

    def _filtered(self, batch: Batch) -> Batch:
        before = len(batch)
        for one in self.source.filters:
            self._note_seen(one.field, batch)
            values = field_values(one.field.paths, batch)
            keep = [
                place
                for place, value in enumerate(values)
                if (written(value) in one.values) == one.keep
            ]
            batch = batch.chosen(keep) if len(keep) < len(values) else batch
        self.filtered += before - len(batch)
        return batch

    def _kinds(self, batch: Batch) -> list[str]:
        """Our kind for each row; IGNORE for those to leave out, which are counted."""
        column = self.by_name["kind"]
        words = self._values(column, batch)
        known = _OUR_WORDS if self.source.kinds is None else self.source.kinds
        other = known.get(ANY)
        kinds: list[Any] = [known.get(word, other) for word in words]
        if None in kinds:
            place = kinds.index(None)
            raise self.refused.unknown_kind(column, batch, place, words[place])
        if IGNORE in kinds:
            pairs = zip(words, kinds, strict=True)
            self.ignored.update(word or "" for word, kind in pairs if kind == IGNORE)
        return kinds

    def _values(self, column: Column, batch: Batch) -> list[Any]:
        """The values of one of our columns, with the type it must have."""
        values = origin_values(column.origin, batch, self.place.file)
        if column.default is not None:
            values = [column.default if is_absent(value) else value for value in values]
        for field in column.fields:
            self._note_seen(field, batch)

        def refuse(place: int, reason: str) -> TraceError:
            return self.refused.bad_value(column, batch, place, reason)

        return typed(column.name, values, refuse, unit=column.unit, split=column.split)

    def _note_seen(self, field: Field, batch: Batch) -> None:
        if field.label not in self.fields:
            values = field_values(field.paths, batch)
            if any(value is not None for value in values):
                self.fields.add(field.label)

    def _check_needed(self, filled: Events, batch: Batch) -> None:
        """Refuse the first row that lacks what its kind needs."""
        for name, values in filled.items():
            if None not in values:
                continue
            for place, kind in enumerate(filled["kind"]):
                if values[place] is None and self._is_needed(name, kind):
                    needs = f"a row of kind {kind!r} needs it as `{name}`"
                    raise self.refused.missing(self.by_name[name], batch, place, needs)

    def _is_needed(self, name: str, kind: str) -> bool:
        if name == "time":
            return self.source.row_order == "time"
        if name in ("process", "index"):
            return kind != "group"
        return name in NEEDED_COLUMNS.get(kind, ())

    def finished(self) -> tuple[Events, Survey]:
        """Give the rows their run and index; tell what was seen."""
        events, count = self.events, len(self.events["kind"])
        folder = run_of_folder(self.place.file.parent)
        events["run"] = [run or folder for run in events["run"]] or [folder] * count
        match self.source.row_order:
            case "line":
                events["index"] = list(range(1, count + 1))
            case "time":
                events["index"] = indexes_by_time(events, self.place.number, self.place.of)
        if "group" in events["kind"]:
            _disown_declarations(events)
        return events, self._survey()

    def _survey(self) -> Survey:
        return Survey(
            source=self.place.source,
            rows=self.rows,
            kinds=dict(Counter(self.events["kind"])),
            ignored=dict(self.ignored),
            filtered=self.filtered,
            unmatched=self.unmatched,
            fields=frozenset(self.fields),
            present=self.present,
            logs=_log_ends(self.events),
            runs=frozenset(self.events["run"]),
            groups=frozenset(self.events.get("group", ())) - {None},
        )


def _disown_declarations(events: Events) -> None:
    """A `group` row belongs to nobody's log."""
    for place, kind in enumerate(events["kind"]):
        if kind == "group":
            events["process"][place] = events["index"][place] = None


def _log_ends(events: Events) -> tuple[LogEnd, ...]:
    last: dict[tuple[str, str], int] = {}
    logs = list(zip(events["run"], events["process"], strict=True))
    for log, index in zip(logs, events["index"], strict=True):
        if index is not None and index > last.get(log, index - 1):
            last[log] = index
    kinds = events["kind"]
    closed = {logs[row] for row, kind in enumerate(kinds) if kind in ("crash", "end")}
    return tuple(LogEnd(*log, index, log in closed) for log, index in last.items())
