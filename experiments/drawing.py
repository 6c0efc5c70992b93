"""Figures as SVG, from numbers alone: lines with their ranges, bars side by side, a caption.

Nothing but text is made here, so a figure is the same wherever it is drawn. A browser turns it into
a PNG, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from textwrap import wrap

from bench.plot import write_png
from ordercast.judge.report.scale import compact, round_steps

COLOURS = ("#0b5fa5", "#b3441a", "#3c7d22", "#7a3ea1", "#b8860b", "#555555")
DASHES = ("", "6 4", "2 3")
WIDTH = 980
_PLOT_HEIGHT, _LEFT, _TOP, _BOTTOM = 250, 62, 54, 46
_LEGEND, _LEGEND_ROW, _IN_A_ROW = 150, 18, 2
_KEY, _UNDER = 17, 12
_GAP = 24
_ROW, _NAME = 15, 118
_LETTERS = 150  # of a line of the caption
_POWERS_FROM = 30  # from this ratio on, powers of ten
_LETTER = 6.2  # width of a letter at an axis
_SAME = 2.0  # lines that are nowhere farther apart cannot be told from one another
LOG, EVEN = " (log scale)", " (even steps)"

Place = Callable[[float], float]
"""From a value to where it lies in the drawing."""


@dataclass(frozen=True)
class Line:
    """One curve: (x, y, least, most); least and most are drawn as a whisker."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    colour: int | None = None  # of COLOURS; None: a new one for each line
    dash: int = 0  # of DASHES, if it has a colour
    dots: bool = True


@dataclass(frozen=True)
class Lines:
    """A panel of curves. Axes say what they show, with the unit."""

    title: str
    across: str
    up: str
    lines: Sequence[Line]
    even_steps: bool = False  # one x as far from the next as any other
    powers: bool = False  # powers of ten also where a value is 0; that lies at the bottom


@dataclass(frozen=True)
class Bars:
    """A panel of bars: for each name one bar of each series."""

    title: str
    across: str
    names: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    most: float = 0.0  # the axis reaches at least to this


MEDIANS = "medians over them, and whiskers from the least to the most where there are any"


@dataclass(frozen=True)
class Figure:
    """What is drawn."""

    title: str
    panels: Sequence[Lines | Bars]
    caption: Sequence[str] = field(default_factory=tuple)
    columns: int = 2  # panels beside one another
    shows: str = MEDIANS  # of the runs at a point


class Axis:
    """From values to places: by powers of ten where they lie far apart and none is 0.

    With `zero` also where some are 0: that lies at the start, a step below the smallest power.
    """

    def __init__(
        self, found: Sequence[float], start: float, length: float, *, zero: bool = False
    ) -> None:
        self.start, self.length = start, length
        least, most = min(found), max(found)
        above = min((v for v in found if v > 0), default=0.0)
        self.zero = zero and least == 0 < above
        self.powers = (least > 0 or self.zero) and most / above > _POWERS_FROM
        self.low: float  # at the start; of powers, the exponent
        self.high: float  # at the end
        if self.powers:
            self.low = floor(log10(above)) - self.zero
            self.high = ceil(log10(most) - 1e-9)
        else:
            self.low, self.high = min(0.0, least), max(most * 1.02, min(0.0, least) + 1e-9)

    def place(self, value: float) -> float:
        """In the drawing."""
        at = value
        if self.powers:
            at = log10(value) if value > 0 else self.low
        return self.start + self.length * (at - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        """Round values to write at the axis."""
        if self.powers:
            powers = range(int(self.low) + self.zero, int(self.high) + 1)
            return [0.0] * self.zero + [10.0**power for power in powers]
        return round_steps(self.low, self.high)


def svg(figure: Figure) -> str:
    """The figure as a document of its own."""
    width = (WIDTH - _GAP * (figure.columns - 1)) / figure.columns
    parts = [_text(8, 20, figure.title, size=15, weight="bold")]
    y = 34.0
    for first in range(0, len(figure.panels), figure.columns):
        row = figure.panels[first : first + figure.columns]
        for k, panel in enumerate(row):
            parts.append(_panel(panel, k * (width + _GAP), y, width))
        y += max(map(_height, row)) + 10
    for line in (line for text in figure.caption for line in wrap(text, _LETTERS)):
        y += 15
        parts.append(_text(8, y, line, size=11, fill="#555"))
    height = round(y + 14)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(figure.title)}">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def draw(figure: Figure, path: Path, *, png: bool = True) -> list[Path]:
    """Write FILE.svg, and FILE.png beside it if there is a browser; the files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = svg(figure)
    path.write_text(text, encoding="utf-8")
    height = int(text.split('height="')[1].split('"')[0])
    made = write_png(path, WIDTH, height) if png else None
    return [path] if made is None else [path, made]


def _height(panel: Lines | Bars) -> float:
    if isinstance(panel, Lines):
        return _TOP + _PLOT_HEIGHT + _BOTTOM
    return _TOP + _legend_height(panel) + len(panel.names) * _row_height(panel) + _BOTTOM


def _panel(panel: Lines | Bars, x: float, y: float, width: float) -> str:
    title = _text(x + 8, y + 20, panel.title, weight="bold")
    drawn = _lines(panel, x, y, width) if isinstance(panel, Lines) else _bars(panel, x, y, width)
    return title + "".join(drawn)


# -- lines ----------------------------------------------------------------------------------------


def _lines(panel: Lines, x: float, y: float, width: float) -> list[str]:
    xs = sorted({point[0] for line in panel.lines for point in line.points})
    ys = [v for line in panel.lines for point in line.points for v in point[1:]]
    left, right = x + _LEFT, x + width - _LEGEND
    top, bottom = y + _TOP, y + _TOP + _PLOT_HEIGHT
    upwards = Axis(ys, bottom, top - bottom, zero=panel.powers)
    place, scale = _across(panel, xs, left + 10, right - left - 20)
    up = panel.up + LOG * upwards.powers
    parts = [_text(x + 8, y + 36, up, size=11, fill="#555")]
    parts += [_level(upwards.place(v), left, right, compact(v)) for v in upwards.marks()]
    parts += [
        _text(place(v), bottom + 16, _written(v), anchor="middle", size=11) for v in _few(xs, place)
    ]
    across = panel.across + scale
    parts.append(
        _text((left + right) / 2, bottom + 34, across, anchor="middle", size=11, fill="#555")
    )
    hidden = _hidden(panel.lines, place, upwards)
    below = top + 8
    for k, line in enumerate(panel.lines):
        parts += _line(line, k, place, upwards)
        parts += _key(line, k, right + 12, below)
        below += _KEY
        if k in hidden:
            parts.append(_text(right + 40, below - 2, f"under {hidden[k]}", size=9, fill="#555"))
            below += _UNDER
    return parts


def _across(panel: Lines, xs: Sequence[float], start: float, length: float) -> tuple[Place, str]:
    """Where each x lies, and what is said of the scale."""
    if panel.even_steps:
        return lambda v: start + length * xs.index(v) / max(len(xs) - 1, 1), EVEN
    spread = xs[0] > 0 and xs[-1] / xs[0] >= 8
    low, high = (log10(xs[0]), log10(xs[-1])) if spread else (xs[0], xs[-1])
    wide = (high - low) or 1
    return lambda v: start + length * ((log10(v) if spread else v) - low) / wide, LOG * spread


def _written(v: float) -> str:
    """At the axis: no more digits than can be read."""
    return f"{v:,.0f}" if v >= 1000 else f"{v:.3g}"


def _few(xs: Sequence[float], place: Place) -> list[float]:
    """Those of the xs that can be written without touching the one before."""
    shown: list[float] = []
    for v in xs:
        needed = _LETTER * (len(_written(v)) + len(_written(shown[-1]))) / 2 + 6 if shown else 0
        if not shown or place(v) - place(shown[-1]) > needed:
            shown.append(v)
    return shown


def _hidden(lines: Sequence[Line], place: Place, upwards: Axis) -> dict[int, str]:
    """Of each line that cannot be seen, the last one that lies on it."""
    dots = [{place(x): upwards.place(v) for x, v, _, _ in line.points} for line in lines]
    return {
        k: lines[j].name
        for k, own in enumerate(dots)
        for j in range(k + 1, len(dots))
        if own
        and own.keys() <= dots[j].keys()
        and all(abs(y - dots[j][x]) < _SAME for x, y in own.items())
    }


def _line(line: Line, k: int, place: Place, upwards: Axis) -> list[str]:
    colour, dash = _style(line, k)
    dots = [(place(x), upwards.place(v)) for x, v, _, _ in line.points]
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in dots)
    parts = [f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
    if not line.dots:
        return parts
    for (x, y), (_, _, least, most) in zip(dots, line.points, strict=True):
        ends = f"M{x:.1f} {upwards.place(least):.1f}V{upwards.place(most):.1f}"
        parts.append(f'<path d="{ends}" stroke="{colour}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
    return parts


def _key(line: Line, k: int, x: float, y: float) -> list[str]:
    colour, dash = _style(line, k)
    sample = f'<path d="M{x:.1f} {y:.1f}h22" stroke="{colour}" stroke-width="2"{dash}/>'
    return [sample, _text(x + 28, y + 4, line.name, size=11, fill=colour)]


def _style(line: Line, k: int) -> tuple[str, str]:
    if line.colour is None:
        colour, dash = k % len(COLOURS), DASHES[k // len(COLOURS) % len(DASHES)]
    else:
        colour, dash = line.colour, DASHES[line.dash]
    return COLOURS[colour], f' stroke-dasharray="{dash}"' if dash else ""


# -- bars -----------------------------------------------------------------------------------------


def _row_height(panel: Bars) -> float:
    return _ROW * (1 + 0.6 * (len(panel.series) - 1)) + 3


def _bars(panel: Bars, x: float, y: float, width: float) -> list[str]:
    found = [v for several in panel.series.values() for v in several if v is not None]
    left, top = x + _NAME, y + _TOP + _legend_height(panel)
    most = max([panel.most, *found]) or 1.0
    across = Axis([0.0, most], left, width - _NAME - 56)
    bottom = top + len(panel.names) * _row_height(panel)
    parts = _bars_legend(panel, left, y + _TOP)
    for mark in across.marks():
        at = across.place(mark)
        parts.append(f'<path d="M{at:.1f} {top:.1f}V{bottom:.1f}" stroke="#ddd"/>')
        parts.append(_text(at, bottom + 15, compact(mark), anchor="middle", size=11))
    for row, name in enumerate(panel.names):
        at = top + row * _row_height(panel)
        middle = at + _row_height(panel) / 2
        parts.append(_text(left - 8, middle + 3, name, anchor="end", size=11))
        for k, several in enumerate(panel.series.values()):
            parts += _bar(several[row], k, at + 1 + k * _ROW * 0.6, across, len(panel.series))
    parts.append(
        _text(left + (width - _NAME) / 2 - 28, bottom + 32, panel.across, anchor="middle",
              size=11, fill="#555")
    )  # fmt: skip
    return parts


def _legend_height(panel: Bars) -> int:
    return _LEGEND_ROW * ceil(len(panel.series) / _IN_A_ROW) if len(panel.series) > 1 else 0


def _bars_legend(panel: Bars, left: float, top: float) -> list[str]:
    """Two names beside each other."""
    if len(panel.series) < 2:
        return []
    parts = []
    for k, name in enumerate(panel.series):
        x, y = left + _LEGEND * (k % _IN_A_ROW), top + _LEGEND_ROW * (k // _IN_A_ROW)
        parts += [_square(x, y + 2, k), _text(x + 14, y + 11, name, size=11)]
    return parts


def _bar(value: float | None, k: int, y: float, across: Axis, series: int) -> list[str]:
    high = _ROW - 3 if series == 1 else _ROW * 0.6 - 1
    if value is None:
        return [_text(across.start + 4, y + high, "not told", size=9, fill="#777")]
    length = max(across.place(value) - across.start, 0.5)
    bar = (
        f'<rect x="{across.start:.1f}" y="{y:.1f}" width="{length:.1f}" height="{high:.1f}" '
        f'fill="{COLOURS[k]}"/>'
    )
    said = _text(across.start + length + 4, y + high - 0.5, compact(value), size=9)
    return [bar, said]


# -- signs ----------------------------------------------------------------------------------------


def _square(x: float, y: float, k: int) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="10" height="10" fill="{COLOURS[k]}"/>'


def _level(y: float, left: float, right: float, said: str) -> str:
    line = f'<path d="M{left:.1f} {y:.1f}H{right:.1f}" stroke="#ddd"/>'
    return line + _text(left - 6, y + 4, said, anchor="end", size=11)


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    fill: str = "#222",
    size: float = 12,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" '
        f'font-family="sans-serif" font-size="{size:g}" font-weight="{weight}">'
        f"{escape(text)}</text>"
    )
