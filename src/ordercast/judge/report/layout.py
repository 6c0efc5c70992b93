"""Where the parts of a space-time diagram lie, so that no label covers another."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ordercast.judge.report.names import Names, width
from ordercast.judge.report.routing import Box, Place, bend, bow
from ordercast.judge.report.scene import Absence, Edge, Point, Scene

DOT = 6
_MANY_ROWS = 12
_GAP = 18  # between the labels of neighbouring columns
_NARROWEST, _NARROWEST_OF_MANY = 64, 110  # from column to column
_MOST_OBSTACLES = 60  # in a larger drawing arrows go straight
_ABOVE, _BELOW = -1, 1


@dataclass(frozen=True)
class Text:
    """A label, by the middle of its base line."""

    text: str
    x: float
    y: float

    @property
    def box(self) -> Box:
        """What it covers, and a little around it."""
        half = width(self.text) / 2 + 3
        return self.x - half, self.y - 13, self.x + half, self.y + 6


class Layout:
    """Places of one scene."""

    def __init__(self, scene: Scene, names: Names) -> None:
        self._scene = scene
        self._names = names
        pitch = 64 if len(scene.processes) <= _MANY_ROWS else 52
        self._y = {name: 38.0 + pitch * k for k, name in enumerate(scene.processes)}
        self.left = 24 + max(width(names.label(name)) for name in scene.processes)
        widths = self._label_widths()
        self._x = self._columns(widths)
        self._make_room_for_edges()
        self.right = self._x[-1] + max(widths[-1] / 2, 24) + 14
        self.height = max(self._y.values()) + 36

    def y(self, process: str) -> float:
        """Of the line of a process."""
        return self._y[process]

    def at(self, one: Point | Absence) -> Place:
        """The middle of a dot or of a cross."""
        return self._x[one.column], self._y[one.process]

    def text(self, one: Point | Absence) -> Text:
        """The label of a dot or of a cross: away from where its arrow comes from."""
        x, y = self.at(one)
        return Text(self._label(one), x, y + (-14 if self.side(one) == _ABOVE else 23))

    def edge_text(self, edge: Edge) -> Text:
        """Who holds an edge: over or under its middle, where there is more room."""
        y = self._y[edge.earlier.process]
        side, start, end = max(
            ((side, *self._free(edge, side)) for side in (_ABOVE, _BELOW)),
            key=lambda option: (option[2] - option[1], option[0]),
        )
        return Text(
            self._names.label(edge.earlier.process), (start + end) / 2, y + (-9 if side < 0 else 18)
        )

    def aim(self, send: Point, end: Point | Absence) -> Place:
        """Where the arrow from a send to a delivery aims first: round what lies between."""
        start, target = self.at(send), self.at(end)
        way = bow if send.process == end.process else bend
        places = self._scene.places
        if len(places) > _MOST_OBSTACLES:
            return way(start, target, ())
        dots = [self.at(place) for place in places if place not in (send, end)]
        boxes = [(x - DOT - 4, y - DOT - 4, x + DOT + 4, y + DOT + 4) for x, y in dots]
        boxes += [self.text(place).box for place in places]
        boxes += [self.edge_text(edge).box for edge in self._scene.edges]
        return way(start, target, boxes)

    def side(self, one: Point | Absence) -> int:
        """-1: the label is above the line. 1: below."""
        send = self._scene.sends.get(one.message)
        if isinstance(one, Point) and one.kind == "send":
            return self._side_of_send(one)
        if send is None or self._y[send.process] > self._y[one.process]:
            return _ABOVE
        return self.side(send) if send.process == one.process else _BELOW

    def _side_of_send(self, send: Point) -> int:
        """Away from where its arrows lead; if they stay on the line, from where others come."""
        here = self._y[send.process]
        ends = [self._y[end.process] for end in self.ends(send)]
        if ends:
            return _BELOW if max(ends) < here else _ABOVE
        own = {p.message for p in self._scene.places if p.process == send.process}
        others = [p for p in self._scene.points if p.kind == "send" and p.message in own]
        return _BELOW if any(self._y[p.process] < here for p in others) else _ABOVE

    def ends(self, send: Point) -> list[Point | Absence]:
        """Where the arrows of a send lead, on other lines."""
        return [
            end
            for end in self._scene.places
            if end.message == send.message and end.process != send.process
        ]

    def _label(self, one: Point | Absence) -> str:
        if isinstance(one, Absence):
            return f"never {self._names.label(one.message)}"
        return self._names.label(one.label)

    def _label_widths(self) -> list[float]:
        """Per column, the width of its widest label."""
        widths = [0.0] * self._scene.columns
        for one in self._scene.places:
            widths[one.column] = max(widths[one.column], width(self._label(one)))
        return widths

    def _columns(self, widths: list[float]) -> list[float]:
        narrowest = _NARROWEST if len(self._y) <= _MANY_ROWS else _NARROWEST_OF_MANY
        x = [self.left + max(widths[0] / 2, 20) + 8]
        for before, here in pairwise(widths):
            x.append(x[-1] + max(narrowest, (before + here) / 2 + _GAP))
        return x

    def _free(self, edge: Edge, side: int) -> tuple[float, float]:
        """What labels leave free of the last stretch before the later dot, on one side."""
        row = [p for p in self._scene.points if p.process == edge.later.process]
        before = max((p for p in row if p.column < edge.later.column), key=lambda p: p.column)
        taken = [
            width(self._label(p)) / 2 if self.side(p) == side else DOT + 4.0
            for p in (before, edge.later)
        ]
        return self._x[before.column] + taken[0], self._x[edge.later.column] - taken[1]

    def _make_room_for_edges(self) -> None:
        for edge in self._scene.edges:
            room = max(end - start for start, end in (self._free(edge, s) for s in (-1, 1)))
            lack = width(self._names.label(edge.earlier.process)) + 14 - room
            if lack > 0:
                first = edge.later.column
                self._x[first:] = [x + lack for x in self._x[first:]]
