"""A small space-time diagram of one violation.

Processes are lines, time runs to the right, an arrow leads from each send to its deliveries. A ring
marks the delivery that broke the promise, a dashed arrow to a cross stands for a delivery that
never came, a thick stretch of a line for an order that contradicts others.
"""

from __future__ import annotations

from ordercast.judge.report.layout import DOT, Layout, Text
from ordercast.judge.report.markup import Markup, element, joined
from ordercast.judge.report.names import Names
from ordercast.judge.report.routing import Place, direction
from ordercast.judge.report.scene import Absence, Edge, Point, Scene

COLOURS = 6  # then they come again: the labels tell


def draw(scene: Scene, names: Names, *, label: str) -> Markup:
    """The diagram; `label` says in words what it shows."""
    layout = Layout(scene, names)
    colour = {m: f"m{k % COLOURS}" for k, m in enumerate(scene.messages())}
    pen = _Pen(scene, layout, names, colour)
    return element(
        "svg",
        *(pen.line(name) for name in scene.processes),
        *(pen.edge(edge) for edge in scene.edges),
        *(pen.arrow_to(point) for point in scene.points if point.kind == "deliver"),
        *(pen.arrow_to(absence) for absence in scene.absences),
        *(pen.event(point) for point in scene.points),
        *(pen.absence(absence) for absence in scene.absences),
        *(_written(layout.edge_text(edge), "label edgename") for edge in scene.edges),
        viewBox=f"0 0 {layout.right:.0f} {layout.height:.0f}",
        width=f"{layout.right:.0f}",
        height=f"{layout.height:.0f}",
        role="img",
        aria_label=label,
        class_="diagram",
    )


class _Pen:
    """Draws one part after the other."""

    def __init__(self, scene: Scene, layout: Layout, names: Names, colour: dict[str, str]) -> None:
        self._scene = scene
        self._layout = layout
        self._names = names
        self._colour = colour

    def line(self, name: str) -> Markup:
        y = self._layout.y(name)
        start, end = self._layout.left - 6, self._layout.right - 6
        return joined(
            _path(f"M{start:.0f} {y:.0f}H{end:.0f}", "process"),
            element("text", element("title", name), self._names.label(name), x="8",
                    y=f"{y + 4:.0f}", class_="name"),
        )  # fmt: skip

    def event(self, point: Point) -> Markup:
        x, y = self._layout.at(point)
        told = f"{point.process}: {point.kind} {point.message}, index {point.index}"
        kind = point.kind if point.kind in ("send", "deliver") else "mark"
        class_ = f"{kind} {self._colour.get(point.message, '')}".rstrip()
        ring = _circle(x, y, DOT + 5, "ring") if point.broken else Markup()
        text = _written(self._layout.text(point), "label broken" if point.broken else "label")
        return joined(ring, _circle(x, y, DOT, class_, told), text)

    def absence(self, absence: Absence) -> Markup:
        x, y = self._layout.at(absence)
        told = f"{absence.process} never delivers {absence.message}"
        cross = _path(f"M{x - 6:.0f} {y - 6:.0f}l12 12m0 -12l-12 12", "cross", told)
        return joined(cross, _written(self._layout.text(absence), "label broken"))

    def edge(self, edge: Edge) -> Markup:
        (x1, y), (x2, _) = self._layout.at(edge.earlier), self._layout.at(edge.later)
        told = f"{edge.earlier.process} delivers {edge.earlier.message} before {edge.later.message}"
        return joined(
            _path(f"M{x1:.0f} {y:.0f}H{x2 - DOT - 8:.0f}", "edge", told),
            _head((x2 - DOT - 2, y), (1, 0), "edgehead"),
        )

    def arrow_to(self, end: Point | Absence) -> Markup:
        """From the send of a message to a delivery of it, or to where one is missing."""
        send = self._scene.sends.get(end.message)
        if send is None:
            return Markup()
        colour = self._colour[end.message]
        start, target = self._layout.at(send), self._layout.at(end)
        aim = self._layout.aim(send, end)
        along = direction(aim, target)
        tip = (target[0] - along[0] * (DOT + 5), target[1] - along[1] * (DOT + 5))
        class_ = f"absent {colour}" if isinstance(end, Absence) else f"message {colour}"
        path = f"M{start[0]:.0f} {start[1]:.0f}Q{aim[0]:.1f} {aim[1]:.1f} {tip[0]:.1f} {tip[1]:.1f}"
        return joined(_path(path, class_), _head(tip, along, f"head {colour}"))


def _head(tip: Place, along: Place, class_: str) -> Markup:
    """The head of an arrow that ends at `tip`."""
    (x, y), (dx, dy) = tip, along
    x, y = x + 2 * dx, y + 2 * dy
    back, wide = (x - 9 * dx, y - 9 * dy), 4.2
    corners = (
        f"M{x:.1f} {y:.1f}L{back[0] - wide * dy:.1f} {back[1] + wide * dx:.1f}"
        f"L{back[0] + wide * dy:.1f} {back[1] - wide * dx:.1f}z"
    )
    return _path(corners, class_)


def _circle(x: float, y: float, r: float, class_: str, told: str = "") -> Markup:
    title = [element("title", told)] if told else []
    return element("circle", *title, cx=f"{x:.0f}", cy=f"{y:.0f}", r=r, class_=class_)


def _path(d: str, class_: str, told: str = "") -> Markup:
    title = [element("title", told)] if told else []
    return element("path", *title, d=d, class_=class_)


def _written(text: Text, class_: str) -> Markup:
    return element("text", text.text, x=f"{text.x:.0f}", y=f"{text.y:.0f}", class_=class_)
