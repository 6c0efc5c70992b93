"""Numbered frames as they travel through a flush, and how far all survivors come with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.core.changing import LastFrames
from ordercast.core.events import Kept
from ordercast.machinery.numbering import Numbered


def as_kept(entries: Mapping[int, Numbered]) -> tuple[Kept, ...]:
    """The stamp is the number."""
    return tuple(Kept(e.origin, e.n, (N,), e.payload) for N, e in sorted(entries.items()))


def as_entries(union: Sequence[Kept]) -> dict[int, Numbered]:
    """The other way. What a peer may have made up is left out."""
    return {
        kept.stamp[0]: Numbered(kept.origin, kept.n, kept.payload)
        for kept in union
        if len(kept.stamp) == 1
    }


def reach(union: Sequence[Kept], lowest: int) -> LastFrames:
    """The last frames of their origins that all survivors deliver, if the one furthest behind has
    delivered all numbers up to `lowest`."""
    entries = as_entries(union)
    N, last = lowest, {}
    while (entry := entries.get(N + 1)) is not None:
        N += 1
        last[entry.origin] = entry.n
    return tuple(last.items())
