"""How far the clocks of two processes are apart, from the smallest latency each way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ordercast.judge.figures import ClockSkew

OneWay = Mapping[str, Any]
"""run, peer, process, least: the smallest latency that way; count: of deliveries too early."""


def skews(rows: Iterable[OneWay]) -> list[ClockSkew]:
    """Each pair of one run, the largest proven difference first.

    A latency below 0 is the least by which the clocks of a pair differ.
    """
    ways = {(row["peer"], row["process"]): row for row in rows}
    pairs = sorted({(min(way), max(way)) for way in ways})
    found = [_skew(ways.get(pair), ways.get(pair[::-1]), pair) for pair in pairs]
    return sorted(found, key=lowest)


def lowest(skew: ClockSkew) -> int:
    """The smallest latency between the two if it is below 0, else 0."""
    return min(skew.forth_ns or 0, skew.back_ns or 0, 0)


def _skew(forth: OneWay | None, back: OneWay | None, pair: tuple[str, str]) -> ClockSkew:
    return ClockSkew(
        *pair,
        forth_ns=None if forth is None else forth["least"],
        back_ns=None if back is None else back["least"],
        early=sum(way["count"] for way in (forth, back) if way),
    )
