"""A small space-time diagram of one violation: only the events of its witness.

Processes are lines, time runs to the right, an arrow leads from each send to its deliveries. A
ring marks the events at the process that broke the promise, a dashed arrow to a cross stands for
a delivery that never came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ordercast.pipeline.report.markup import Markup, element, joined

_ROW = 58  # height of a process's line
_TOP = 30
_DOT = 6
_LETTER = 6.9  # width of a character of a label
_LONGEST_LABEL = 22


@dataclass(frozen=True)
class _Point:
    process: str
    index: int
    kind: str
    message: str
    rank: int  # column, from 0


def draw(witness: dict[str, Any]) -> Markup | None:
    """The diagram of a witness, None if it names no events."""
    events = _distinct(witness.get("events") or ())
    if not events:
        return None
    points = _placed(events)
    missing = witness.get("missing")
    names = {point.process for point in points} | ({missing["process"]} if missing else set())
    processes = sorted(names)
    labels = [_short(point.message or point.kind) for point in points]
    labels += [f"never {_short(missing['message'])}"] if missing else []
    width = max(64.0, max(len(label) for label in labels) * _LETTER + 20)
    left = max(len(_short(name)) for name in processes) * _LETTER + 34
    columns = max(point.rank for point in points) + 1 + (1 if missing else 0)
    size = (left + columns * width + 16, _TOP + len(processes) * _ROW)
    sheet = _Sheet(processes, left, width, size[0])
    parts = [
        _arrow_head(),
        *(sheet.line(name) for name in processes),
        *sheet.arrows(points),
        *(sheet.absence(points, missing, columns - 1) if missing else ()),
        *(sheet.event(point, _is_broken_at(witness, point)) for point in points),
    ]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {size[0]:.0f} {size[1]:.0f}",
        width=f"{size[0]:.0f}",
        height=f"{size[1]:.0f}",
        role="img",
        aria_label="space-time diagram of the events involved",
        class_="diagram",
    )


def _is_broken_at(witness: dict[str, Any], point: _Point) -> bool:
    """Is this one of the events that cannot all be right?"""
    return point.kind != "send" and ("cycle" in witness or point.process == witness.get("process"))


def _distinct(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(e["process"], e["index"], e["kind"]): e for e in events}.values())


def _placed(events: list[dict[str, Any]]) -> list[_Point]:
    """Events with their column: after their predecessor in the log and after their send."""
    ranks = _ranks(events, follow_messages=True) or _ranks(events, follow_messages=False)
    return [
        _Point(e["process"], e["index"], e["kind"], e.get("message", ""), rank)
        for e, rank in zip(events, ranks, strict=True)
    ]


def _ranks(events: list[dict[str, Any]], *, follow_messages: bool) -> list[int]:
    """Longest paths; empty if a delivery comes before its own send, so that there are none."""
    ranks = [0] * len(events)
    for _ in range(len(events) + 1):
        before = list(ranks)
        for k, event in enumerate(events):
            for j, other in enumerate(events):
                same_log = other["process"] == event["process"] and other["index"] < event["index"]
                if same_log or (follow_messages and _carries(other, event)):
                    ranks[k] = max(ranks[k], ranks[j] + 1)
        if ranks == before:
            return ranks
    return []


def _carries(send: dict[str, Any], delivery: dict[str, Any]) -> bool:
    return (
        send["kind"] == "send"
        and delivery["kind"] == "deliver"
        and send.get("message") == delivery.get("message")
    )


class _Sheet:
    """Where things lie on the drawing."""

    def __init__(self, processes: list[str], left: float, column: float, right: float) -> None:
        self._row = {name: _TOP + _ROW * k + _ROW * 0.45 for k, name in enumerate(processes)}
        self._left = left
        self._column = column
        self._right = right

    def _x(self, rank: float) -> float:
        return self._left + (rank + 0.5) * self._column

    def line(self, name: str) -> Markup:
        y = self._row[name]
        return joined(
            element("line", x1=f"{self._left - 12:.0f}", x2=f"{self._right - 6:.0f}",
                    y1=f"{y:.0f}", y2=f"{y:.0f}", class_="process"),
            element("text", element("title", name), _short(name), x="6", y=f"{y + 4:.0f}",
                    class_="name"),
        )  # fmt: skip

    def event(self, point: _Point, marked: bool) -> Markup:
        x, y = self._x(point.rank), self._row[point.process]
        title = element("title", f"{point.process}: {point.kind} {point.message}, {point.index}")
        shape = element(
            "circle", title, cx=f"{x:.0f}", cy=f"{y:.0f}", r=_DOT,
            class_="send" if point.kind == "send" else "deliver",
        )  # fmt: skip
        ring = (
            [element("circle", cx=f"{x:.0f}", cy=f"{y:.0f}", r=_DOT + 5, class_="ring")]
            if marked
            else []
        )
        label = point.message or point.kind
        text = element("text", _short(label), x=f"{x:.0f}", y=f"{y - 17:.0f}", class_="label")
        return joined(*ring, shape, text)

    def arrows(self, points: list[_Point]) -> list[Markup]:
        sends = {point.message: point for point in points if point.kind == "send"}
        return [
            self._arrow(self._at(sends[point.message]), self._at(point), "message")
            for point in points
            if point.kind == "deliver" and point.message in sends
        ]

    def absence(self, points: list[_Point], missing: dict[str, Any], rank: int) -> list[Markup]:
        """The delivery that never came, at the end of the log that lacks it."""
        x, y = self._x(rank), self._row[missing["process"]]
        cross = element(
            "path",
            element("title", f"{missing['process']} never delivers {missing['message']}"),
            d=f"M{x - 6:.0f} {y - 6:.0f}l12 12m0 -12l-12 12",
            class_="cross",
        )
        text = element(
            "text", f"never {_short(missing['message'])}", x=f"{x:.0f}", y=f"{y - 17:.0f}",
            class_="label never",
        )  # fmt: skip
        origin = next(
            (p for p in points if p.kind == "send" and p.message == missing["message"]), None
        )
        arrow = [self._arrow(self._at(origin), (x, y), "absent")] if origin else []
        return [*arrow, cross, text]

    def _at(self, point: _Point) -> tuple[float, float]:
        return self._x(point.rank), self._row[point.process]

    def _arrow(self, start: tuple[float, float], end: tuple[float, float], class_: str) -> Markup:
        (x1, y1), (x2, y2) = start, end
        if y1 == y2:  # on one line: a bow below it
            bow = f"Q{(x1 + x2) / 2:.0f} {y1 + 32:.0f} {x2 - 3:.0f} {y2 + _DOT + 4:.0f}"
            path = f"M{x1:.0f} {y1 + _DOT:.0f}{bow}"
            return element("path", d=path, class_=class_, marker_end="url(#head)")
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        short = 1 - (_DOT + 5) / length
        path = f"M{x1:.0f} {y1:.0f}L{x1 + (x2 - x1) * short:.0f} {y1 + (y2 - y1) * short:.0f}"
        return element("path", d=path, class_=class_, marker_end="url(#head)")


def _arrow_head() -> Markup:
    tip = element("path", d="M0 0L8 4L0 8z", class_="tip")
    marker = element(
        "marker", tip, id="head", viewBox="0 0 8 8", refX="7", refY="4", markerWidth="8",
        markerHeight="8", orient="auto",
    )  # fmt: skip
    return element("defs", marker)


def _short(text: str) -> str:
    if len(text) <= _LONGEST_LABEL:
        return text
    half = (_LONGEST_LABEL - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
