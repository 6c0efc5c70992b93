"""What a space-time diagram of one violation shows: only the events of its witness.

Every event has a column: after its predecessor in the log, and a delivery after its send.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

MOST_EVENTS = 300  # a witness with more is not drawn

Row = Mapping[str, Any]  # an event as the witness has it


@dataclass(frozen=True)
class Point:
    """One event."""

    process: str
    index: int
    kind: str
    message: str  # "" where the event is about none
    label: str
    column: int = 0
    broken: bool = False  # here the promise is broken


@dataclass(frozen=True)
class Absence:
    """A delivery that never came."""

    process: str
    message: str
    column: int


@dataclass(frozen=True)
class Edge:
    """Two deliveries of one process whose order is part of a contradiction."""

    earlier: Point
    later: Point


@dataclass(frozen=True)
class Scene:
    """All that is drawn."""

    processes: tuple[str, ...]  # from the top
    points: tuple[Point, ...]
    absences: tuple[Absence, ...]
    edges: tuple[Edge, ...]

    @property
    def places(self) -> list[Point | Absence]:
        """Whatever lies on a line and has a label."""
        return [*self.points, *self.absences]

    @property
    def columns(self) -> int:
        return 1 + max(place.column for place in self.places)

    @property
    def sends(self) -> dict[str, Point]:
        """By message."""
        return {point.message: point for point in self.points if point.kind == "send"}

    def messages(self) -> list[str]:
        """In the order in which they appear."""
        ordered = sorted(self.places, key=lambda place: (place.column, natural(place.message)))
        return list(dict.fromkeys(place.message for place in ordered if place.message))


def scene(witness: Mapping[str, Any]) -> Scene | None:
    """The scene of a witness; None if it names no events, or too many."""
    points = _points(witness.get("events") or ())
    if not 0 < len(points) <= MOST_EVENTS:
        return None
    points = _placed(points)
    broken = set(_broken(points, witness))
    points = [replace(point, broken=point in broken) for point in points]
    absences = tuple(_absences(points, witness))
    edges = tuple(_edges(points, witness))
    return Scene(tuple(_rows(points, absences, witness)), tuple(points), absences, edges)


def _points(events: Iterable[Row]) -> list[Point]:
    found: dict[Point, None] = {}
    for event in events:
        message = event.get("message") or ""
        view = event.get("view")
        label = message or (f"{event['kind']} {view}" if view is not None else event["kind"])
        point = Point(event["process"], event["index"], event["kind"], message, label)
        found[point] = None
    return list(found)


def _placed(points: list[Point]) -> list[Point]:
    """With columns. Where a delivery comes before its own send, only the logs count."""
    logs = list(_log_steps(points))
    columns = _longest_paths(points, [*logs, *_message_steps(points)])
    columns = columns or _longest_paths(points, logs)
    return [replace(point, column=columns[point]) for point in points]


Steps = list[tuple[Point, Point]]  # from an event to one that is drawn to the right of it


def _log_steps(points: list[Point]) -> Iterator[tuple[Point, Point]]:
    ordered = sorted(points, key=lambda point: (point.process, point.index))
    return ((a, b) for a, b in pairwise(ordered) if a.process == b.process)


def _message_steps(points: list[Point]) -> Iterator[tuple[Point, Point]]:
    sends = {point.message: point for point in points if point.kind == "send"}
    return (
        (sends[point.message], point)
        for point in points
        if point.kind == "deliver" and point.message in sends
    )


def _longest_paths(points: list[Point], steps: Steps) -> dict[Point, int]:
    """The length of the longest path to each event; empty if there is a cycle."""
    following: dict[Point, list[Point]] = {point: [] for point in points}
    waiting = dict.fromkeys(points, 0)
    for a, b in steps:
        following[a].append(b)
        waiting[b] += 1
    columns = dict.fromkeys(points, 0)
    ready = [point for point in points if not waiting[point]]
    for point in ready:  # grows on the way
        for after in following[point]:
            columns[after] = max(columns[after], columns[point] + 1)
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    return columns if len(ready) == len(points) else {}


def _broken(points: list[Point], witness: Mapping[str, Any]) -> Iterator[Point]:
    """The events with which the promise was broken. In a cycle no event is to blame."""
    if "cycle" in witness:
        return
    for process, messages in (witness.get("only") or {}).items():
        yield from (
            point
            for point in points
            if (point.process, point.kind) == (process, "deliver") and point.message in messages
        )
    turns = {(step["process"], step["delivers"]) for step in witness.get("round") or ()}
    yield from (p for p in points if p.kind == "deliver" and (p.process, p.message) in turns)
    own = [p for p in points if p.process == witness.get("process") and p.kind != "send"]
    messages = witness.get("messages") or [""]
    told = [point for point in own if point.message == messages[-1]] or (
        own if witness.get("messages") is None else []
    )
    if told:
        yield max(told, key=lambda point: point.index)


def _absences(points: list[Point], witness: Mapping[str, Any]) -> Iterator[Absence]:
    missing = witness.get("missing")
    pairs = [(missing["process"], missing["message"])] if missing else []
    only = witness.get("only") or {}
    drawn = {point.message for point in points}
    for process, messages in only.items():
        others = [other for other in only if other != process]
        pairs += [(other, m) for other in others for m in messages if m in drawn]
    delivered = {(p.process, p.message) for p in points if p.kind == "deliver"}
    last = {process: -1 for process, _ in pairs}
    for point in points:
        last[point.process] = max(last.get(point.process, -1), point.column)
    sent = {point.message: point.column for point in points if point.kind == "send"}
    for process, message in pairs:
        if (process, message) not in delivered:
            last[process] = max(last[process], sent.get(message, -1)) + 1
            yield Absence(process, message, last[process])


def _edges(points: list[Point], witness: Mapping[str, Any]) -> Iterator[Edge]:
    at = {(p.process, p.message): p for p in points if p.kind == "deliver"}
    for step in witness.get("cycle") or ():
        earlier = at.get((step["process"], step["before"]))
        later = at.get((step["process"], step["after"]))
        if earlier and later and earlier.column < later.column:
            yield Edge(earlier, later)


def _rows(
    points: list[Point], absences: tuple[Absence, ...], witness: Mapping[str, Any]
) -> list[str]:
    """From the top: senders in the order of their sends, last who broke the promise.

    Along a cycle, so that arrows stay short: the sender of a message, then who delivers it first.
    """
    first_send: dict[str, int] = {}
    for point in points:
        if point.kind == "send":
            before = first_send.get(point.process, point.column)
            first_send[point.process] = min(before, point.column)

    def key(name: str) -> tuple[object, ...]:
        blamed = name == witness.get("process")
        return (name not in first_send, first_send.get(name, 0), blamed, natural(name))

    sender = {point.message: point.process for point in points if point.kind == "send"}
    along_cycle: list[str] = []
    for step in witness.get("cycle") or ():
        along_cycle += [sender.get(step["before"], step["process"]), step["process"]]
    names = {point.process for point in points} | {one.process for one in absences}
    others = sorted(names - set(along_cycle), key=key)
    return [*dict.fromkeys(along_cycle), *others]


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sort key with which p2 comes before p10."""
    parts = [part.lstrip("0") for part in re.findall(r"[0-9]+|[^0-9]+", name)]
    return [(0, len(p), p) if p[:1] in "0123456789" else (1, 0, p) for p in parts]
