"""What was seen in a file, and what follows from all files together.

Files are read apart, perhaps by different machines. What can only be said of all of them is said
from their surveys: whether a field of the mapping exists at all, whether a process has its rows in
one file, and where each log ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.mapping.section import said_nearest
from ordercast.trace.mapping.spec import LogMapping, Source
from ordercast.trace.schema import Event


class LogEnd(msgspec.Struct, frozen=True):
    """Where the log of one process ends, as far as one file shows."""

    run: str
    process: str
    index: int  # the highest
    closed: bool  # by its own `crash` or `end`


class Survey(msgspec.Struct, frozen=True):
    """What was seen in one file."""

    source: int  # its place in the mapping
    rows: int
    kinds: dict[str, int]  # events by kind
    ignored: dict[str, int]  # rows by the word that the mapping ignores
    filtered: int  # rows that `where` or `unless` left out
    unmatched: int  # lines that are no rows
    fields: frozenset[str]  # those of the mapping that some row has
    present: tuple[str, ...]  # what the first row has, to name the nearest
    logs: tuple[LogEnd, ...]
    runs: frozenset[str]
    groups: frozenset[str]  # that events have


def check_surveys(files: Sequence[Path], surveys: Sequence[Survey], mapping: LogMapping) -> None:
    """Refuse what only shows in all files together."""
    for number, source in enumerate(mapping.sources):
        own = [(file, s) for file, s in zip(files, surveys, strict=True) if s.source == number]
        _check_fields(source, own)
    _check_one_file_each(files, surveys, mapping)


def _check_fields(source: Source, own: list[tuple[Path, Survey]]) -> None:
    """A field that no row has is a slip of the pen, unless the mapping calls it optional."""
    read = [(file, survey) for file, survey in own if survey.rows]
    seen = {label for _, survey in read for label in survey.fields}
    events = any(survey.kinds for _, survey in read)
    needed = [one.field.label for one in source.filters]
    if events:  # else no column was looked at
        needed += [f.label for c in source.columns if not c.optional for f in c.fields]
    for label in needed:
        if read and label not in seen:
            file, survey = read[0]
            hint = said_nearest(label.partition("|")[0], survey.present)
            raise TraceError(
                file, None, label, f"no row has this field (optional = true allows that){hint}"
            )


def _check_one_file_each(
    files: Sequence[Path], surveys: Sequence[Survey], mapping: LogMapping
) -> None:
    """Lines of two files have no order between them."""
    home: dict[tuple[str, str], tuple[Path, bool]] = {}
    for file, survey in zip(files, surveys, strict=True):
        by_line = mapping.sources[survey.source].row_order == "line"
        for log in survey.logs:
            other, other_by_line = home.setdefault((log.run, log.process), (file, by_line))
            if other != file and (by_line or other_by_line):
                reason = (
                    f"process {log.process!r} has rows in {other} too, and lines of two files "
                    'have no order; use index = { by = "time" }, or a number of theirs'
                )
                raise TraceError(file, None, None, reason)


def added_events(surveys: Iterable[Survey], mapping: LogMapping) -> list[Event]:
    """The declared groups of every run, and an `end` after each log that is complete."""
    logs: dict[str, list[LogEnd]] = {}
    for survey in surveys:
        for run in survey.runs:
            logs.setdefault(run, [])
        for log in survey.logs:
            logs.setdefault(log.run, []).append(log)
    runs = sorted(logs)
    return [
        *(
            Event(None, None, "group", group=group.name, run=run, members=group.members,
                  order=group.order, protocol=group.protocol, scope=group.scope)
            for run in runs
            for group in mapping.groups
        ),
        *(event for run in runs for event in _ends(run, logs[run], mapping)),
    ]  # fmt: skip


def _ends(run: str, logs: Iterable[LogEnd], mapping: LogMapping) -> list[Event]:
    """A declared member without a row has an empty log, which may be complete too."""
    if mapping.complete is False:
        return []
    last = {name: 0 for group in mapping.groups for name in group.members or ()}
    closed = set()
    for log in logs:
        last[log.process] = max(last.get(log.process, log.index), log.index)
        if log.closed:
            closed.add(log.process)
    return [
        Event(process, last[process] + 1, "end", run=run)
        for process in sorted(last)
        if process not in closed and (mapping.complete is True or process in mapping.complete)
    ]


def check_complete(surveys: Iterable[Survey], mapping: LogMapping) -> None:
    """A name in `complete` that nobody has would do nothing."""
    if isinstance(mapping.complete, bool):
        return
    known = {log.process for survey in surveys for log in survey.logs}
    known |= {name for group in mapping.groups for name in group.members or ()}
    for name in sorted(mapping.complete - known):
        hint = said_nearest(name, sorted(known))
        raise TraceError(mapping.file, None, "complete", f"no process {name!r}{hint}")
