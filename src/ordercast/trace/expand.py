"""From compact records to events, one per message; and what becomes of crash notes.

The id of a message is sender/group/number. It exists only in what a reader gives out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from ordercast.errors import TraceError
from ordercast.trace.schema import STATISTICAL_KINDS, Event
from ordercast.trace.segments import NONE, RECORD, RECORD_KINDS, Declaration, Segment

CRASH_NOTE_INDEX = 2**62  # of a `crash` noted in somebody else's files: after every own index

Log = tuple[str, str | None]  # run and process


def segment_events(segment: Segment) -> list[Event]:
    """All events of a segment, in the order they were recorded."""
    if segment.head is None:
        return []
    try:
        return [
            event
            for record in RECORD.iter_unpack(segment.records)
            for event in _record_events(segment, *record)
        ]
    except (IndexError, msgspec.DecodeError) as reason:
        raise TraceError(segment.path, None, None, f"damaged record: {reason}") from reason


def _record_events(
    segment: Segment,
    code: int,
    group_number: int,
    sender_number: int,
    text_number: int,
    count: int,
    size: int,
    overhead: int,
    first: int,
    index: int,
    time: int,
    seq: int,
    view_number: int,
) -> Iterator[Event]:
    assert segment.head is not None
    run, me = segment.head.run, segment.head.process
    kind = RECORD_KINDS[code]
    group, sender = segment.names[group_number], segment.names[sender_number]
    text = segment.names[text_number]
    view = None if view_number == NONE else view_number
    if kind == "send":
        for k in range(count):
            yield Event(
                me, index + k, kind, f"{me}/{group}/{first + k}", group, run,
                view=view, time=time, size=share(size, count, k),
            )  # fmt: skip
    elif kind == "deliver":
        for k in range(count):
            yield Event(
                me, index + k, kind, f"{sender}/{group}/{first + k}", group, run, sender,
                view=view, time=time, seq=None if seq == NONE else seq,
                overhead=share(overhead, count, k) if overhead else None,
            )  # fmt: skip
    elif kind in STATISTICAL_KINDS:
        for k in range(max(count, 1)):
            message = f"{sender}/{group}/{first + k}" if sender and count else None
            yield Event(
                me, index + k, kind, message, group, run, sender, view=view, time=time, note=text,
                overhead=share(overhead, max(count, 1), k) if overhead else None,
            )  # fmt: skip
    elif kind == "group":
        told = declaration(text)
        yield Event(
            None, None, kind, None, group, run, view=view, members=told.members, time=time,
            order=told.order, protocol=told.protocol, scope=told.scope,
        )  # fmt: skip
    elif kind == "crash":
        yield Event(sender, CRASH_NOTE_INDEX, kind, run=run, time=time, note=seen_by(me))
    elif kind == "lost":
        yield Event(me, index, kind, run=run, time=time, note=missing(first))
    else:
        members = member_list(text) if kind == "view" else None
        yield Event(me, index, kind, None, group, run, view=view, members=members, time=time)


def share(total: int, count: int, k: int) -> int:
    """The part of a frame's bytes that its k-th message gets, so that the sum is right."""
    return total // count + (k < total % count)


def declaration(text: str | None) -> Declaration:
    """The text of a `group` record."""
    return msgspec.json.decode(text or "", type=Declaration)


def member_list(text: str | None) -> tuple[str, ...]:
    """The text of a `view` record."""
    return msgspec.json.decode(text or "", type=tuple[str, ...])


def seen_by(observer: str) -> str:
    return f"seen by {observer}"


def missing(count: int) -> str:
    return f"{count} records missing"


def is_crash_note(event: Event) -> bool:
    """Was this crash written down by somebody else?"""
    return event.kind == "crash" and event.index == CRASH_NOTE_INDEX


def settle_crashes(events: Iterable[Event]) -> list[Event]:
    """Turn crash notes into the last event of the logs they are about.

    Several processes may have seen one die: one note is kept, the earliest. A log that has its
    own `crash` or `end` is closed, and the notes about it are dropped: a process that wrote
    `end` was drained and left, and what the observer saw was the connection going away. With
    the note, the log would claim to be both complete and cut short.
    """
    notes: list[Event] = []
    settled: list[Event] = []
    last: dict[Log, int] = {}
    closed: set[Log] = set()
    for event in events:
        if is_crash_note(event):
            notes.append(event)
            continue
        settled.append(event)
        log = (event.run, event.process)
        if event.index is not None:
            last[log] = max(last.get(log, event.index), event.index)
        if event.kind in ("crash", "end"):
            closed.add(log)
    return settled + last_events(notes, last, closed)


def last_events(
    notes: Iterable[Event], last: Mapping[Log, int], closed: Collection[Log]
) -> list[Event]:
    """One crash per log that has notes and is not closed, after the log's last index."""

    def log(note: Event) -> tuple[str, str]:
        return note.run, note.process or ""

    ordered = sorted(notes, key=lambda note: (log(note), note.time or 0, note.note or ""))
    return [
        msgspec.structs.replace(next(same), index=last.get(key, 0) + 1)
        for key, same in groupby(ordered, key=log)
        if key not in closed
    ]
