"""How long packets travel, as text: the name of a distribution, and its numbers in microseconds."""

from __future__ import annotations

from collections.abc import Callable

from ordercast.simulation.delays import Constant, Delay, Exponential, LogNormal, Uniform

DELAYS: dict[str, tuple[Callable[..., Delay], tuple[str, ...]]] = {
    "constant": (Constant, ("us",)),
    "uniform": (Uniform, ("least_us", "most_us")),
    "exponential": (Exponential, ("least_us", "mean_us")),
    "lognormal": (LogNormal, ("median_us", "sigma")),
}
FORMS = ", ".join(f"'{name} {' '.join(numbers)}'" for name, (_, numbers) in DELAYS.items())


def delay_of(text: str) -> Delay:
    """The distribution; `ValueError` says how to write one."""
    name, *numbers = text.split()
    if name not in DELAYS or len(numbers) != len(DELAYS[name][1]):
        raise ValueError(f"delay = {text!r} is wrong; write one of {FORMS}")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise ValueError(f"delay = {text!r} is wrong: these are no numbers; {FORMS}") from None
    try:
        return DELAYS[name][0](*values)
    except ValueError as reason:
        raise ValueError(f"delay = {text!r} is wrong: {reason}") from None
