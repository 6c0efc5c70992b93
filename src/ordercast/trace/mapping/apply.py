"""From the records of one file to the columns of a trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.layout import run_of_folder
from ordercast.trace.mapping.fields import Record, field_values, origin_values, plain
from ordercast.trace.mapping.records import Batch, batches
from ordercast.trace.mapping.row_order import indexes_by_time
from ordercast.trace.mapping.section import said_nearest
from ordercast.trace.mapping.spec import (
    ANY,
    IGNORE,
    Column,
    Constant,
    Field,
    RowOrder,
    Source,
    Template,
)
from ordercast.trace.mapping.survey import LogEnd, Survey
from ordercast.trace.mapping.values import texts, typed
from ordercast.trace.rows import NEEDED_COLUMNS
from ordercast.trace.schema import COLUMNS, KINDS

Columns = dict[str, list[Any]]  # our columns, all of the same length


class Place(msgspec.Struct, frozen=True):
    """One file among those that are read together."""

    file: Path
    shown: Path  # as the caller named it
    source: int  # which source of the mapping it belongs to
    number: int  # from 0
    of: int


def map_file(place: Place, source: Source) -> tuple[Columns, Survey]:
    """The events of one file as columns, and what was seen. Raises `TraceError`."""
    reading = _Reading(place, source)
    for batch in batches(place.file, source):
        reading.take(batch)
    return reading.finished()


class _Reading:
    """What has been read of one file so far."""

    def __init__(self, place: Place, source: Source) -> None:
        self.place = place
        self.source = source
        self.columns: Columns = {name: [] for name in COLUMNS}
        self.lines: list[int] = []  # of the events
        self.rows = self.filtered = self.unmatched = 0
        self.ignored: Counter[str] = Counter()
        self.fields: set[str] = set()  # labels of fields that some row has
        self.present: tuple[str, ...] = ()

    def take(self, batch: Batch) -> None:
        """Filter, find the kinds, leave out what is to be ignored, fill the columns."""
        self.rows += len(batch.records)
        self.unmatched += batch.unmatched
        if batch.records and not self.present:
            self.present = tuple(map(str, batch.records[0]))
        batch = self._filtered(batch)
        kinds = self._kinds(batch)
        keep = [place for place, kind in enumerate(kinds) if kind != IGNORE]
        if len(keep) < len(kinds):
            kinds = [kinds[place] for place in keep]
            batch = _chosen(batch, keep)
        filled = {"kind": kinds}
        for column in self.source.columns:
            if column.name != "kind" and not isinstance(column.origin, RowOrder):
                filled[column.name] = self._values(column, batch)
        self._check_needed(filled, batch)
        for name, values in self.columns.items():
            values += filled.get(name) or [None] * len(kinds)
        self.lines += batch.lines

    def _filtered(self, batch: Batch) -> Batch:
        before = len(batch.records)
        for one in self.source.filters:
            values = field_values(one.field.paths, batch.records)
            self._note_seen(one.field, batch.records)
            keep = [
                place
                for place, value in enumerate(values)
                if (str(plain(value)) in one.values) == one.keep
            ]
            batch = _chosen(batch, keep) if len(keep) < len(values) else batch
        self.filtered += before - len(batch.records)
        return batch

    def _kinds(self, batch: Batch) -> list[str]:
        column = self.source.column("kind")
        assert column is not None
        words = self._values(column, batch)
        known = self.source.kinds
        if known is None:
            known = {kind: kind for kind in KINDS}
        kinds = [known.get(word) for word in words]
        rest = known.get(ANY)
        for place, kind in enumerate(kinds):
            if kind is None:
                kinds[place] = rest or self._unknown_kind(column, batch, place, words[place])
        if IGNORE in kinds:
            self.ignored.update(
                word or "" for word, kind in zip(words, kinds, strict=True) if kind == IGNORE
            )
        return kinds  # type: ignore[return-value]  # each None was replaced

    def _unknown_kind(self, column: Column, batch: Batch, place: int, word: str | None) -> str:
        if word is None:
            raise self._missing(column, batch, place, "every row needs it as `kind`")
        if self.source.kinds is None:
            reason = f"{word!r} is no kind of ours{said_nearest(word, KINDS)} Write a table [kinds]"
        else:
            hint = f'write {word!r} = "{IGNORE}" to leave such rows out'
            reason = f"{word!r} is not in [kinds]; {hint}"
        raise self._refused(column, batch, place, reason)

    def _values(self, column: Column, batch: Batch) -> list[Any]:
        """The values of one of our columns."""
        raw = origin_values(column.origin, batch.records, self.place.shown)
        if column.default is not None:
            raw = [column.default if value in (None, "") else value for value in raw]
        for field in column.fields:
            self._note_seen(field, batch.records)

        def refuse(place: int, reason: str) -> TraceError:
            return self._refused(column, batch, place, reason)

        if column.name == "kind":
            return texts(raw, refuse)
        return typed(column.name, raw, refuse, unit=column.unit, split=column.split)

    def _note_seen(self, field: Field, records: list[Record]) -> None:
        if field.label not in self.fields and any(
            value is not None for value in field_values(field.paths, records)
        ):
            self.fields.add(field.label)

    def _check_needed(self, filled: Columns, batch: Batch) -> None:
        """Refuse the first row that lacks what its kind needs."""
        kinds = filled["kind"]
        for name, values in filled.items():
            if None not in values:
                continue
            for place, value in enumerate(values):
                kind = kinds[place]
                always = name in ("process", "index") and kind != "group"
                if value is None and (always or name in NEEDED_COLUMNS.get(kind, ())):
                    column = self.source.column(name)
                    assert column is not None
                    needs = f"a row of kind {kind!r} needs it as `{name}`"
                    raise self._missing(column, batch, place, needs)
        if self.source.row_order == "time" and None in filled["time"]:
            column = self.source.column("time")
            assert column is not None
            needs = "every row needs it where the index is made by time"
            raise self._missing(column, batch, filled["time"].index(None), needs)

    def _missing(self, column: Column, batch: Batch, place: int, needs: str) -> TraceError:
        record = batch.records[place]
        for field in column.fields:
            [value] = field_values(field.paths, [record])
            if value is None or value == "":
                named = any(path in record for path in field.paths)
                hint = " (it is empty)" if named else said_nearest(field.paths[0], record)
                return self._refused_field(field.label, batch, place, f"missing; {needs}{hint}")
        return self._refused(column, batch, place, f"missing; {needs}")

    def _refused(self, column: Column, batch: Batch, place: int, reason: str) -> TraceError:
        """A refusal that names their column."""
        match column.origin:
            case Field(paths=paths):
                label: str | None = "|".join(paths)
            case Template(fields=fields):
                label = ", ".join(field.label for field in fields)
            case Constant():
                label = f"{column.name} of the mapping"
            case _:
                label = column.name
        return self._refused_field(label, batch, place, reason)

    def _refused_field(
        self, label: str | None, batch: Batch, place: int, reason: str
    ) -> TraceError:
        return TraceError(self.place.shown, batch.lines[place], label, reason)

    def finished(self) -> tuple[Columns, Survey]:
        """Give the rows their run and index; tell what was seen."""
        run = run_of_folder(self.place.file.parent)
        columns = self.columns
        columns["run"] = [value or run for value in columns["run"]]
        match self.source.row_order:
            case "line":
                columns["index"] = list(range(1, len(columns["kind"]) + 1))
            case "time":
                columns["index"] = indexes_by_time(columns, self.place.number, self.place.of)
        _disown_declarations(columns)
        return columns, self._survey()

    def _survey(self) -> Survey:
        return Survey(
            source=self.place.source,
            rows=self.rows,
            kinds=dict(Counter(self.columns["kind"])),
            ignored=dict(self.ignored),
            filtered=self.filtered,
            unmatched=self.unmatched,
            fields=frozenset(self.fields),
            present=self.present,
            logs=_log_ends(self.columns),
            runs=frozenset(self.columns["run"]),
        )


def _chosen(batch: Batch, places: list[int]) -> Batch:
    return Batch([batch.records[place] for place in places], [batch.lines[p] for p in places])


def _disown_declarations(columns: Columns) -> None:
    """A `group` row belongs to nobody's log."""
    for place, kind in enumerate(columns["kind"]):
        if kind == "group":
            columns["process"][place] = columns["index"][place] = None


def _log_ends(columns: Columns) -> tuple[LogEnd, ...]:
    last: dict[tuple[str, str], int] = {}
    closed = set()
    rows = zip(columns["run"], columns["process"], columns["index"], columns["kind"], strict=True)
    for run, process, index, kind in rows:
        if process is not None:
            log = (run, process)
            if index > last.get(log, index - 1):
                last[log] = index
            if kind in ("crash", "end"):
                closed.add(log)
    return tuple(LogEnd(*log, index, log in closed) for log, index in last.items())
