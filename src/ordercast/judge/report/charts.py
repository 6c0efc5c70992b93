"""Charts that compare many things: bars, and ranges between percentiles on a common axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ordercast.judge.figures import Spread
from ordercast.judge.report.markup import Markup, element, joined
from ordercast.judge.report.scale import Scale, duration

_WIDTH, _ROW = 460, 28
_LEFT, _RIGHT, _TOP, _BOTTOM = 122, 22, 6, 46
_LONGEST_NAME = 17
_MOST_SHARE = 0.8  # of the width: the longest bar leaves room for its number

CHART_STYLE = """
.comparebar { fill: var(--c0); }
.comparerange { fill: var(--c0); opacity: .55; } .half { stroke: var(--ink); stroke-width: 2.5; }
.whisker { stroke: var(--c0); stroke-width: 1.5; fill: none; }
svg.chart text { fill: var(--ink); } svg.chart .words { fill: var(--soft); }
"""

Written = Callable[[float], str]


def bars(values: Sequence[tuple[str, float | None]], *, words: str, written: Written) -> Markup:
    """One bar per name, all from 0; a value that is not known is said to be so."""
    longest = max((value for _, value in values if value is not None), default=0) or 1
    rows = []
    for k, (name, value) in enumerate(values):
        text = "not recorded" if value is None else written(value)
        length = _span(_MOST_SHARE * (value or 0) / longest)
        bar = element(
            "rect", x=_LEFT, y=_middle(k) - 9, width=f"{length:.1f}", height=18, rx=2,
            class_="comparebar",
        )  # fmt: skip
        label = element("text", text, x=f"{_LEFT + length + 7:.1f}", y=_middle(k) + 4)
        rows.append(joined(_name(k, name), bar, label))
    return _chart(rows, len(values), [], words, bottom=_BOTTOM - 16)


def ranges(spreads: Sequence[tuple[str, Spread | None]], *, words: str) -> Markup:
    """One row per name: thick from 10 % to 90 %, thin up to 99 %, a mark at the middle."""
    known = [spread for _, spread in spreads if spread is not None]
    scale = Scale([float(spread.at(p)) for spread in known for p in (10, 50, 90, 99)])
    rows = [
        joined(_name(k, name), _range(k, spread, scale) if spread else _unknown(k))
        for k, (name, spread) in enumerate(spreads)
    ]
    bottom = _TOP + _ROW * len(spreads)
    grid = [
        joined(
            element("path", d=f"M{_x(scale, mark):.1f} {_TOP}V{bottom}", class_="grid"),
            element("text", duration(mark), x=f"{_x(scale, mark):.1f}", y=bottom + 16,
                    class_="middle"),
        )
        for mark in scale.marks()
    ]  # fmt: skip
    powers = ", powers of ten" if scale.logarithmic else ""
    return _chart(rows, len(spreads), grid, words + powers)


def _range(row: int, spread: Spread, scale: Scale) -> Markup:
    low, half, high, top = (_x(scale, spread.at(p)) for p in (10, 50, 90, 99))
    y = _middle(row)
    told = " · ".join(f"{p} %: {duration(spread.at(p))}" for p in (10, 50, 90, 99))
    return element(
        "g",
        element("title", told),
        element("path", d=f"M{high:.1f} {y}H{top:.1f}M{top:.1f} {y - 5}v10", class_="whisker"),
        element("rect", x=f"{low:.1f}", y=y - 7, width=f"{max(high - low, 2):.1f}", height=14,
                rx=2, class_="comparerange"),
        element("path", d=f"M{half:.1f} {y - 10}v20", class_="half"),
    )  # fmt: skip


def _unknown(row: int) -> Markup:
    return element("text", "not recorded", x=_LEFT + 6, y=_middle(row) + 4)


def _chart(
    rows: list[Markup], count: int, grid: list[Markup], words: str, *, bottom: int = _BOTTOM
) -> Markup:
    height = _TOP + _ROW * count + bottom
    below = element("text", words, x=(_LEFT + _WIDTH) // 2, y=height - 8, class_="middle words")
    return element(
        "svg",
        *grid,
        *rows,
        below,
        viewBox=f"0 0 {_WIDTH} {height}",
        role="img",
        aria_label=words,
        class_="plot chart",
    )


def _name(row: int, name: str) -> Markup:
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return element(
        "text", element("title", name), short, x=_LEFT - 10, y=_middle(row) + 4, class_="right"
    )


def _middle(row: int) -> int:
    return _TOP + _ROW * row + _ROW // 2


def _span(share: float) -> float:
    return (_WIDTH - _LEFT - _RIGHT) * share


def _x(scale: Scale, value: float) -> float:
    return _LEFT + _span(scale.share(value))
