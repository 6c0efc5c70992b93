"""The delivery-latency plot: for each group, which share of deliveries took how long at most."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from ordercast.pipeline.outcome import Latency
from ordercast.pipeline.report.markup import Markup, element, joined

MOST_GROUPS = 6  # as many as there are distinct line styles
_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 30, 14, 44
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def duration(nanoseconds: float) -> str:
    """A time with the unit that reads best: 1.5 ms."""
    for factor, unit in _UNITS:
        if abs(nanoseconds) >= factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return "0"


def latency_plot(latencies: Sequence[Latency]) -> Markup:
    """One line per group, those with most deliveries first."""
    shown = sorted(latencies, key=lambda one: -one.deliveries)[:MOST_GROUPS]
    axis = _Axis(shown)
    lines = [
        element("path", element("title", one.group), d=_path(one, axis), class_=f"curve curve{k}")
        for k, one in enumerate(shown)
    ]
    return element(
        "svg",
        *_shares(),
        *axis.marks(),
        *lines,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label="share of deliveries by time from send to delivery",
        class_="plot",
    )


def _path(one: Latency, axis: _Axis) -> str:
    points = [f"{axis.x(time):.1f} {_y(percent):.1f}" for percent, time in one.percentiles]
    return "M" + "L".join(points)


def _y(percent: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * percent / 100


def _shares() -> list[Markup]:
    """The horizontal lines and what they stand for."""
    marks = []
    for percent in (0, 25, 50, 75, 100):
        y = f"{_y(percent):.0f}"
        marks.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        marks.append(
            element("text", f"{percent} %", x=_LEFT - 8, y=f"{_y(percent) + 4:.0f}", class_="right")
        )
    return marks


class _Axis:
    """Time to the right: by powers of ten where times are positive and far apart."""

    def __init__(self, latencies: Sequence[Latency]) -> None:
        times = [time for one in latencies for _, time in one.percentiles]
        self._low, self._high = min(times), max(times)
        self._logarithmic = self._low > 0 and self._high / self._low > 20
        if self._logarithmic:
            self._low = 10 ** floor(log10(self._low))
            self._high = 10 ** ceil(log10(self._high))
        elif self._low >= 0:
            self._low = 0
        self._high = max(self._high, self._low + 1)

    def x(self, time: float) -> float:
        low, high = float(self._low), float(self._high)
        if self._logarithmic:
            time, low, high = log10(time), log10(low), log10(high)
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (time - low) / (high - low)

    def marks(self) -> list[Markup]:
        marks = [
            joined(
                element("line", x1=f"{self.x(t):.0f}", x2=f"{self.x(t):.0f}", y1=_TOP,
                        y2=_HEIGHT - _BOTTOM, class_="grid"),
                element("text", duration(t), x=f"{self.x(t):.0f}", y=_HEIGHT - _BOTTOM + 17,
                        class_="middle"),
            )
            for t in self._ticks()
        ]  # fmt: skip
        words = "time from send to delivery" + (", powers of ten" if self._logarithmic else "")
        middle = (_LEFT + _WIDTH - _RIGHT) // 2
        return [*marks, element("text", words, x=middle, y=_HEIGHT - 8, class_="middle")]

    def _ticks(self) -> list[float]:
        if self._logarithmic:
            exponents = range(round(log10(self._low)), round(log10(self._high)) + 1)
            return [10.0**e for e in exponents]
        return [self._low + (self._high - self._low) * k / 4 for k in range(5)]
