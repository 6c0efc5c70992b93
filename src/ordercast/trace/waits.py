"""From the `hold` rows of a trace: who waited where, for what in turn, and what ended it.

A `hold` row of ours says all that in its note. One of another system may say nothing: then a
message waits from its first `hold` row to its delivery, and what ended the wait is the row right
before that delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from ordercast.trace.holds import HoldNote, WaitsFor, decode_note
from ordercast.trace.schema import STATISTICAL_KINDS, Event


class Moment(msgspec.Struct, frozen=True):
    """A row in a log."""

    index: int
    time: int | None  # nanoseconds


class Stage(msgspec.Struct, frozen=True):
    """From this row on it waited for these."""

    at: Moment
    awaits: tuple[WaitsFor, ...]
    by: str  # what brought the message, or changed what it waits for


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """A message that was held back at a process."""

    run: str
    process: str
    group: str
    sender: str
    frame: int  # 0 where the trace does not say
    message: str | None  # None: its body never came
    stages: tuple[Stage, ...]
    ended: Moment | None  # None: it was still held when the log ended
    gone: tuple[WaitsFor, ...] = ()  # the last it waited for
    by: str = ""  # what brought that
    delivered: Moment | None = None  # to the application
    log_ended: Moment  # the last row of this log ...
    log_end: str  # ... and its kind

    @property
    def began(self) -> Moment:
        """The row with which it began to wait."""
        return self.stages[0].at

    @property
    def lasted(self) -> int | None:
        """Nanoseconds; None in a trace without times."""
        until = self.ended or self.log_ended
        if until.time is None or self.began.time is None:
            return None
        return until.time - self.began.time

    @property
    def name(self) -> str:
        """The message, or the frame whose body never came."""
        return self.message or f"frame {self.frame} of {self.sender} in {self.group}"


def has_protocol_rows(events: Iterable[Event]) -> bool:
    """Was this recorded at protocol level?"""
    return any(event.kind in STATISTICAL_KINDS for event in events)


def read_waits(events: Iterable[Event]) -> list[Wait]:
    """All waits in these events, which are sorted as `read_events` gives them."""
    logs = groupby(
        (event for event in events if event.process is not None),
        key=lambda event: (event.run, event.process),
    )
    return [wait for _, log in logs for wait in _waits_of_log(list(log))]


def longest_first(waits: Iterable[Wait]) -> list[Wait]:
    """Those that never ended before all others."""
    return sorted(waits, key=lambda wait: (wait.ended is not None, -(wait.lasted or 0)))


class _Open:
    """A wait while its rows are read."""

    def __init__(self, event: Event, note: HoldNote | None) -> None:
        self.first = event
        self.message = event.message
        self.frame = 0
        self.stages: list[Stage] = []
        self.ended: Moment | None = None
        self.gone: tuple[WaitsFor, ...] = ()
        self.by = ""
        self.delivered: Moment | None = None
        self.go_on(event, note)

    def go_on(self, event: Event, note: HoldNote | None) -> None:
        """Another `hold` row of the same message."""
        self.message = self.message or event.message
        if note is None:
            self.stages.append(Stage(_moment(event), (), ""))
            return
        self.frame = note.frame or self.frame
        if note.awaits:
            self.stages.append(Stage(_moment(event), note.awaits, note.by))
        else:
            self.end(_moment(event), note.gone, note.by)

    def end(self, at: Moment, gone: tuple[WaitsFor, ...], by: str) -> None:
        """It waits no longer."""
        self.ended, self.gone, self.by = at, gone, by

    def closed(self, last: Event) -> Wait:
        """As it stands at the end of the log."""
        first = self.first
        return Wait(
            run=first.run,
            process=first.process or "",
            group=first.group or "",
            sender=first.sender or "",
            frame=self.frame,
            message=self.message,
            stages=tuple(self.stages),
            ended=self.ended,
            gone=self.gone,
            by=self.by,
            delivered=self.delivered,
            log_ended=_moment(last),
            log_end=last.kind,
        )


class _Log:
    """The waits of one log while it is read."""

    def __init__(self) -> None:
        self.found: list[_Open] = []
        self.of_message: dict[str, _Open] = {}  # the latest of each
        self.bodiless: dict[tuple[str | None, str | None, int], _Open] = {}

    def hold(self, event: Event) -> None:
        """A message begins to wait, or goes on, or waits no longer."""
        note = decode_note(event.note)
        wait = self._open_wait(event, note)
        if wait is not None:
            wait.go_on(event, note)
        elif note is None or note.awaits:
            wait = _Open(event, note)
            self.found.append(wait)
        else:
            return
        if event.message is not None:
            self.of_message[event.message] = wait
        elif note is not None:
            self.bodiless[event.group, event.sender, note.frame] = wait

    def _open_wait(self, event: Event, note: HoldNote | None) -> _Open | None:
        wait = self.of_message.get(event.message or "")
        if wait is None and note is not None:
            wait = self.bodiless.get((event.group, event.sender, note.frame))
        return wait if wait is not None and wait.ended is None else None

    def deliver(self, event: Event, before: Event | None) -> None:
        """The application got a message."""
        wait = self.of_message.get(event.message or "")
        if wait is not None and wait.delivered is None:
            wait.delivered = _moment(event)
            if wait.ended is None:
                by = "" if before is None else _in_words(before)
                wait.end(_moment(event), wait.stages[-1].awaits, by)


def _waits_of_log(events: list[Event]) -> Iterator[Wait]:
    log = _Log()
    before: Event | None = None
    for event in events:
        if event.kind == "hold":
            log.hold(event)
        elif event.kind == "deliver":
            log.deliver(event, before)
        before = event
    for wait in log.found:
        yield wait.closed(events[-1])


def _in_words(event: Event) -> str:
    what = " ".join(filter(None, (event.kind, event.message)))
    return f"{what} (row {event.index})"


def _moment(event: Event) -> Moment:
    return Moment(event.index or 0, event.time)
