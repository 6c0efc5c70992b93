"""How long a packet travels: distributions, drawn many at a time."""

from __future__ import annotations

from math import exp, log
from random import Random
from typing import Protocol

import msgspec

from ordercast.errors import ConfigError
from ordercast.simulation.agenda import TICK_US, ticks_of


class Delay(Protocol):
    """A distribution of delays."""

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` delays in ticks, each at least one."""
        ...


class Constant(msgspec.Struct, frozen=True):
    """Every packet takes equally long."""

    us: float

    def __post_init__(self) -> None:
        _check_positive("us", self.us)

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` times the same delay."""
        return [ticks_of(self.us)] * count


class Uniform(msgspec.Struct, frozen=True):
    """Anything between two bounds, equally likely."""

    least_us: float
    most_us: float

    def __post_init__(self) -> None:
        _check_positive("least_us", self.least_us)
        if self.most_us < self.least_us:
            raise ConfigError(
                f"least_us={self.least_us} exceeds most_us={self.most_us}: a uniform delay needs "
                "least_us <= most_us"
            )

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` independent delays."""
        random = rng.random
        least = ticks_of(self.least_us)
        span = ticks_of(self.most_us) - least + 1
        return [least + int(span * random()) for _ in range(count)]


class Exponential(msgspec.Struct, frozen=True):
    """A least delay, and on top of it a wait without memory, as in a queue."""

    least_us: float
    mean_us: float  # of the whole delay

    def __post_init__(self) -> None:
        _check_positive("least_us", self.least_us)
        if self.mean_us <= self.least_us:
            raise ConfigError(
                f"mean_us={self.mean_us} does not exceed least_us={self.least_us}: an exponential "
                "delay needs least_us < mean_us"
            )

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` independent delays."""
        random = rng.random
        least = ticks_of(self.least_us)
        wait = (self.mean_us - self.least_us) / TICK_US
        return [least + int(0.5 - wait * log(1.0 - random())) for _ in range(count)]


class LogNormal(msgspec.Struct, frozen=True):
    """Most packets near the median, a few very late: what real networks show."""

    median_us: float
    sigma: float = 0.5

    def __post_init__(self) -> None:
        _check_positive("median_us", self.median_us)
        _check_positive("sigma", self.sigma)

    def draw(self, rng: Random, count: int) -> list[int]:
        """`count` independent delays."""
        gauss, sigma = rng.gauss, self.sigma
        median = self.median_us / TICK_US
        return [max(1, int(0.5 + median * exp(gauss(0.0, sigma)))) for _ in range(count)]


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name}={value} must be greater than 0")
