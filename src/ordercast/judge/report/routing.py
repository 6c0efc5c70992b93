"""How an arrow gets from one place to another without covering dots and labels between."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

Place = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom

_BENDS = (0, 24, -24, 48, -48, 80)  # how far aside the arrow aims, the straight way first
_SAMPLES = [k / 24 for k in range(3, 22)]  # shares of the way that are looked at


def bend(start: Place, end: Place, obstacles: Sequence[Box]) -> Place:
    """The point at which an arrow aims first so that it covers as few boxes as can be."""
    along = direction(start, end)
    aims = [
        ((start[0] + end[0]) / 2 + aside * along[1], (start[1] + end[1]) / 2 - aside * along[0])
        for aside in _BENDS
    ]
    return _clearest(start, end, aims, obstacles)


def bow(start: Place, end: Place, obstacles: Sequence[Box]) -> Place:
    """The same for an arrow that begins and ends on one line: round below it, or above."""
    depth = min(46.0, 22 + abs(end[0] - start[0]) * 0.07)
    aims = [((start[0] + end[0]) / 2, start[1] + depth * side) for side in (1, -1)]
    return _clearest(start, end, aims, obstacles)


def _clearest(start: Place, end: Place, aims: list[Place], obstacles: Sequence[Box]) -> Place:
    return min(aims, key=lambda aim: _covered(start, aim, end, obstacles))


def _covered(start: Place, aim: Place, end: Place, obstacles: Sequence[Box]) -> int:
    way = [_on_curve(start, aim, end, share) for share in _SAMPLES]
    return sum(
        any(left < x < right and top < y < bottom for x, y in way)
        for left, top, right, bottom in obstacles
    )


def _on_curve(start: Place, aim: Place, end: Place, t: float) -> Place:
    """A quadratic Bézier curve, as SVG draws it."""
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
    return a * start[0] + b * aim[0] + c * end[0], a * start[1] + b * aim[1] + c * end[1]


def direction(start: Place, end: Place) -> Place:
    """From one place to another, of length 1."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    return dx / hypot(dx, dy), dy / hypot(dx, dy)
