"""Axes of plots: which value lies where, and the round values that are written at them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_FAR_APART = 50  # from this ratio on, powers of ten


def duration(nanoseconds: float) -> str:
    """A time with the unit that reads best: 1.5 ms."""
    for factor, unit in _UNITS:
        if abs(nanoseconds) >= factor:
            number = nanoseconds / factor
            return f"{number:,.0f} {unit}" if abs(number) >= 1000 else f"{number:.3g} {unit}"
    return "0"


def compact(number: float) -> str:
    """A number in few signs: 950, 1.2 k, 35 M."""
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(number) >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"


def round_steps(low: float, high: float, most: int = 5) -> list[float]:
    """Round values from `low` to `high`, at most about `most` of them."""
    rough = (high - low) / most
    power: float = 10.0 ** floor(log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    return [k * step for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


class Scale:
    """From values to shares of an axis' length.

    By powers of ten where values lie far apart and none is negative. 0 then lies at the very left,
    a step below the smallest power.
    """

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        positive = [value for value in values if value > 0]
        self.logarithmic = low >= 0 and bool(positive) and high / min(positive) > _FAR_APART
        self._has_zero = low <= 0
        if self.logarithmic:
            self._low = float(floor(log10(min(positive))) - (1 if self._has_zero else 0))
            self._high = float(ceil(log10(high)))
        else:
            self._low = float(min(low, 0))
            self._high = float(max(high, self._low + 1))

    def share(self, value: float) -> float:
        """0 at the left end, 1 at the right."""
        place = value
        if self.logarithmic:
            place = log10(value) if value > 0 else self._low
        return (place - self._low) / (self._high - self._low)

    def marks(self) -> list[float]:
        """The values to write at the axis."""
        if not self.logarithmic:
            return round_steps(self._low, self._high)
        powers = range(round(self._low) + (1 if self._has_zero else 0), round(self._high) + 1)
        every = ceil(len(powers) / 7)
        return [0.0] * self._has_zero + [10.0**power for power in powers[::every]]
