"""Read files through a mapping: all of them here, or each where somebody else decides."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ordercast.trace.mapping.account import said
from ordercast.trace.mapping.apply import Events, Place, map_file
from ordercast.trace.mapping.files import mapped_files, source_of
from ordercast.trace.mapping.spec import LogMapping
from ordercast.trace.mapping.survey import (
    Survey,
    added_events,
    check_complete,
    check_surveys,
)
from ordercast.trace.schema import COLUMNS, Event

Note = Callable[[str], None]  # is told how many rows became events and how many were left out
Table = Any  # pyarrow.Table

log_note: Note = logging.getLogger("ordercast.trace.mapping").info


def mapped_events(
    paths: Iterable[Path | str] | Path | str, mapping: LogMapping, note: Note = log_note
) -> list[Event]:
    """The events of these files, then what the mapping adds."""
    found, added = _read(mapped_files(paths, mapping), mapping, note)
    return [*(event for part in found for event in _events(part)), *added]


def mapped_table(files: Sequence[Path], mapping: LogMapping, note: Note = log_note) -> Table:
    """The same as an Arrow table with the columns of TABLE_SCHEMA. Needs pyarrow."""
    from ordercast.trace.mapping.table import column_table
    from ordercast.trace.tables import event_table, joined

    found, added = _read(files, mapping, note)
    return joined([*(column_table(columns) for columns in found), event_table(added)])


def _events(columns: Events) -> Iterable[Event]:
    absent = [None] * len(columns["kind"])
    rows = zip(*(columns.get(name, absent) for name in COLUMNS), strict=True)
    return (Event(*row) for row in rows)


def places(files: Sequence[Path], mapping: LogMapping) -> list[Place]:
    """The files with all that reading one of them apart from the others takes."""
    return [
        Place(
            file=file.absolute(),
            shown=file,
            source=mapping.sources.index(source_of(file, mapping)),
            number=number,
            of=len(files),
        )
        for number, file in enumerate(files)
    ]


def concluded(
    files: Sequence[Path], surveys: Sequence[Survey], mapping: LogMapping, note: Note
) -> list[Event]:
    """What follows from all surveys: refusals, a note for people, the rows that are added."""
    added = added_events(surveys, mapping)
    note(said(surveys, mapping, added))
    check_surveys(files, surveys, mapping)
    check_complete(surveys, mapping)
    return added


def _read(
    files: Sequence[Path], mapping: LogMapping, note: Note
) -> tuple[list[Events], list[Event]]:
    read = [map_file(place, mapping.sources[place.source]) for place in places(files, mapping)]
    added = concluded(files, [survey for _, survey in read], mapping, note)
    return [columns for columns, _ in read], added
