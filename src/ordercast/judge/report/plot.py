"""Plots as SVG: distributions as rising lines, rates over time as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ordercast.judge.report.markup import Markup, element, joined
from ordercast.judge.report.scale import Scale, compact, duration

MOST_LINES = 6  # as many as there are distinct line styles
_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 22, 14, 48
_INNER = _WIDTH - _LEFT - _RIGHT


@dataclass(frozen=True)
class Line:
    """One line of a plot."""

    name: str
    points: tuple[tuple[float, float], ...]  # (x, y), ascending in x


def distribution(lines: Sequence[Line], *, words: str) -> Markup:
    """Which share of things stays below which time: x in nanoseconds, y in percent."""
    scale = Scale([x for line in lines for x, _ in line.points])
    powers = ", powers of ten" if scale.logarithmic else ""
    grid = [
        *(_level(percent / 100, f"{percent} %") for percent in (0, 25, 50, 75, 100)),
        *(_upright(scale.share(x), duration(x)) for x in scale.marks()),
    ]
    drawn = [
        _line(line.name, k, "L".join(_place(scale.share(x), y / 100) for x, y in line.points))
        for k, line in enumerate(lines[:MOST_LINES])
    ]
    return _sheet(grid, drawn, words + powers)


def rates(lines: Sequence[Line], *, end: float, words: str) -> Markup:
    """How much happened per second, in slices of time: x in nanoseconds up to `end`.

    The ground under the first line is filled.
    """
    across = Scale([0, end])
    upwards = Scale([0, max(y for line in lines for _, y in line.points)])
    grid = [
        *(_level(upwards.share(y), compact(y)) for y in upwards.marks()),
        *(_upright(across.share(x), duration(x)) for x in across.marks()),
    ]
    stairs = [_stairs(line, end, across.share, upwards.share) for line in lines[:MOST_LINES]]
    ground = f"M{_place(0, 0)}L{stairs[0]}L{_place(1, 0)}z"
    drawn = [
        element("path", d=ground, class_="area"),
        *(
            _line(line.name, k, way)
            for k, (line, way) in enumerate(zip(lines, stairs, strict=False))
        ),
    ]
    return _sheet(grid, drawn, words)


Share = Callable[[float], float]


def _stairs(line: Line, end: float, across: Share, upwards: Share) -> str:
    ends = [*(x for x, _ in line.points[1:]), end]
    return "L".join(
        _place(across(x), upwards(y))
        for (start, y), stop in zip(line.points, ends, strict=True)
        for x in (start, stop)
    )


def swatch(number: int) -> Markup:
    """A piece of the line with this number, for a legend; nothing for a line that is not drawn."""
    if number >= MOST_LINES:
        return element("span", "not drawn", class_="soft counted")
    sample = element("path", d="M0 5H34", class_=f"curve curve{number}")
    return element("svg", sample, class_="swatch", viewBox="0 0 34 10", aria_hidden="true")


def _sheet(grid: list[Markup], drawn: list[Markup], words: str) -> Markup:
    below = element(
        "text", words, x=(_LEFT + _WIDTH - _RIGHT) // 2, y=_HEIGHT - 8, class_="middle words"
    )
    return element(
        "svg",
        *grid,
        *drawn,
        below,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=words,
        class_="plot",
    )


def _line(name: str, number: int, path: str) -> Markup:
    return element("path", element("title", name), d=f"M{path}", class_=f"curve curve{number}")


def _place(x_share: float, y_share: float) -> str:
    return f"{_LEFT + _INNER * x_share:.1f} {_y(y_share):.1f}"


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share


def _level(share: float, text: str) -> Markup:
    y = _y(share)
    return joined(
        element("path", d=f"M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}", class_="grid"),
        element("text", text, x=_LEFT - 7, y=f"{y + 4:.1f}", class_="right"),
    )


def _upright(share: float, text: str) -> Markup:
    x = _LEFT + _INNER * share
    return joined(
        element("path", d=f"M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}", class_="grid"),
        element("text", text, x=f"{x:.1f}", y=_HEIGHT - _BOTTOM + 16, class_="middle"),
    )
