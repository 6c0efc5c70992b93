"""From which size on a two-layered group is faster than a flat one."""

from __future__ import annotations

from experiments.rows import Row, against, distinct

FLAT, LAYERED = "vector", "two_layered"
DELAY = "delay_all_ms"


def of_protocol(rows: list[Row], protocol: str) -> list[Row]:
    """The runs of one of the two."""
    return [row for row in rows if row["protocol"] == protocol]


def wire_us(row: Row) -> float:
    """How long every packet travels, in runs where all travel equally long."""
    name, us = row["delay"].split()
    assert name == "constant", row["delay"]
    return float(us)


def crossover(rows: list[Row]) -> float | None:
    """The size from which on two layers are faster, between two sizes that were run.

    The least size, if they always are; None, if they are not at the largest.
    """
    flat = {n: ms for n, ms, _, _ in against(of_protocol(rows, FLAT), "members", DELAY)}
    two = {n: ms for n, ms, _, _ in against(of_protocol(rows, LAYERED), "members", DELAY)}
    gains = [(n, flat[n] - two[n]) for n in sorted(flat.keys() & two.keys())]
    if not gains or gains[-1][1] <= 0:
        return None
    worse = [k for k, (_, gain) in enumerate(gains) if gain <= 0]
    if not worse:
        return gains[0][0]
    (n, gain), (next_n, next_gain) = gains[worse[-1]], gains[worse[-1] + 1]
    return n + (next_n - n) * gain / (gain - next_gain)


def told(found: float | None, rows: list[Row]) -> str:
    """In words, and only as far as was measured."""
    sizes = distinct(rows, "members")
    if found is None:
        return f"not up to {sizes[-1]:,}"
    return f"{found:,.0f}" if found > sizes[0] else f"{sizes[0]} or less"
