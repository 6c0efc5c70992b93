"""Rows of a sweep's table, put together for a figure: medians over seeds, with their ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

Row = dict[str, Any]
Value = str | Callable[[Row], float]
"""The name of a column, or what is to be made of a row."""


def only(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Those with these values; a tuple, set or list stands for any of its values."""

    def fits(row: Row, name: str, value: object) -> bool:
        found = row[name]
        return found in value if isinstance(value, tuple | set | list) else found == value

    return [row for row in rows if all(fits(row, *pair) for pair in wanted.items())]


def values(rows: Iterable[Row], value: Value) -> list[float]:
    """What each of them has, where it has anything."""
    read = value if callable(value) else lambda row: row[value]
    return [found for row in rows if (found := read(row)) is not None]


def middle(rows: Sequence[Row], value: Value, **wanted: object) -> float:
    """The median over seeds, of the rows with these values. `ValueError` if there are none."""
    found = values(only(rows, **wanted), value)
    if not found:
        raise ValueError(f"no row with {wanted} has {value}: is that in the plan?")
    return median(found)


def against(rows: Sequence[Row], x: str, value: Value) -> list[tuple[float, float, float, float]]:
    """(x, median, least, most) for each x, ascending."""
    points = []
    for at in sorted({row[x] for row in rows}):
        found = values(only(rows, **{x: at}), value)
        if found:
            points.append((at, median(found), min(found), max(found)))
    return points


def breaks(row: Row, order: str) -> bool:
    """Whether this order was violated in the run, promised or not."""
    return order in row["broken"] or order in row["unpromised"]


def distinct(rows: Iterable[Row], name: str) -> list[Any]:
    """The values of a column, each once, ascending."""
    return sorted({row[name] for row in rows})
