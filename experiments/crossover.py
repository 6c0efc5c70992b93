"""A flat group beside a two-layered one: over the size, and from which on the latter is faster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from experiments.drawing import Line, Lines
from experiments.rows import Row, Value, against, distinct, only

FLAT, LAYERED = "vector", "two_layered"
NAMES = {FLAT: "flat", LAYERED: "two layers"}
Panel = tuple[str, str, Value]  # its title, what is upwards, and that


def against_size(rows: list[Row], panels: Iterable[Panel]) -> list[Lines]:
    """Both kinds of groups over their size, in each panel."""
    return [
        Lines(
            title,
            "members of the group",
            up,
            [
                Line(said, against(only(rows, protocol=name), "members", value))
                for name, said in NAMES.items()
            ],
        )
        for title, up, value in panels
    ]


def of_protocol(rows: list[Row], protocol: str) -> list[Row]:
    """The runs of one of the two."""
    return [row for row in rows if row["protocol"] == protocol]


def wire_us(row: Row) -> float:
    """How long every packet travels, in runs where all travel equally long.

    A run in slow motion, where all work and all journeys take so many times as long, is told in
    the time of what it stands for.
    """
    name, us = row["delay"].split()
    assert name == "constant", row["delay"]
    return float(us) / float(row["work_cost"])


def delay_ms(row: Row) -> float:
    """Until all have a message; slow motion is taken out."""
    return float(row["delay_all_ms"]) / float(row["work_cost"])


def crossover(rows: list[Row], flat_off: float = 0.0, layered_off: float = 0.0) -> float | None:
    """The size from which on two layers are faster, between two sizes that were run.

    The least size, if they always are; None, if they are not at the largest. `off` is by which
    share all work of a group takes longer than it did in the runs; packets travel as they did.
    """
    flat = _delays(of_protocol(rows, FLAT), flat_off, journeys=1)
    two = _delays(of_protocol(rows, LAYERED), layered_off, journeys=3)
    gains = [(n, flat[n] - two[n]) for n in sorted(flat.keys() & two.keys())]
    if not gains or gains[-1][1] <= 0:
        return None
    worse = [k for k, (_, gain) in enumerate(gains) if gain <= 0]
    if not worse:
        return gains[0][0]
    (n, gain), (next_n, next_gain) = gains[worse[-1]], gains[worse[-1] + 1]
    return n + (next_n - n) * gain / (gain - next_gain)


def _delays(rows: list[Row], off: float, journeys: int) -> dict[float, float]:
    """By size, if work took longer by this share."""

    def with_work_off(row: Row) -> float:
        wires = journeys * wire_us(row) / 1000
        return wires + (1 + off) * (delay_ms(row) - wires)

    return {n: ms for n, ms, _, _ in against(rows, "members", with_work_off)}


@dataclass(frozen=True)
class Crossing:
    """A crossover, and between which sizes it lies if costs of work are off."""

    at: float | None
    earliest: float | None
    latest: float | None


def crossing(rows: list[Row], flat_error: float, layered_error: float) -> Crossing:
    """Costs are off by these shares at most, one up and the other down."""
    return Crossing(
        crossover(rows),
        crossover(rows, flat_error, -layered_error),
        crossover(rows, -flat_error, layered_error),
    )


def told(found: float | None, rows: list[Row]) -> str:
    """In words, and only as far as was measured."""
    sizes = distinct(rows, "members")
    if found is None:
        return f"not up to {sizes[-1]:,}"
    return f"{found:,.0f}" if found > sizes[0] else f"{sizes[0]} or less"


def told_range(found: Crossing, rows: list[Row]) -> str:
    """The size, and the sizes at which it is not decided."""
    if found.earliest is None:
        return told(None, rows)
    if found.earliest == found.latest:
        return told(found.at, rows)
    latest = "more" if found.latest is None else f"{found.latest:,.0f}"
    return f"{told(found.at, rows)} ({found.earliest:,.0f} to {latest})"
