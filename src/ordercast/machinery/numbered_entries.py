"""Numbered entries as they travel through a flush, and how far all survivors come with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ordercast.core.changing import LastFrames
from ordercast.core.events import Kept
from ordercast.core.ids import ProcessId
from ordercast.machinery.numbering import VIEW_ENTRY, Numbered, ViewEntry


def as_kept(entries: Mapping[int, Numbered]) -> tuple[Kept, ...]:
    """The stamp is the number; of a view also what it says."""
    return tuple(
        Kept(e.origin, e.n, (N, *_stamp(e)), e.payload) for N, e in sorted(entries.items())
    )


def as_entries(union: Sequence[Kept]) -> dict[int, Numbered]:
    """The other way. What a peer may have made up is left out."""
    return {kept.stamp[0]: _entry(kept) for kept in union if _is_well_formed(kept)}


def reach(union: Sequence[Kept], lowest: int) -> LastFrames:
    """The last frames of their origins that all survivors deliver, if the one furthest behind has
    delivered all numbers up to `lowest`."""
    entries = as_entries(union)
    N, last = lowest, {}
    while (entry := entries.get(N + 1)) is not None:
        N += 1
        if entry.view is None:
            last[entry.origin] = entry.n
    return tuple(last.items())


def _stamp(entry: Numbered) -> Iterable[int]:
    view = entry.view
    return () if view is None else (view.number, len(view.members), *view.members, *view.guests)


def _entry(kept: Kept) -> Numbered:
    view = _view(*kept.stamp) if kept.origin == VIEW_ENTRY else None
    return Numbered(kept.origin, kept.n, kept.payload, view)


def _view(N: int, number: int, size: int, *processes: ProcessId) -> ViewEntry:
    return ViewEntry(N, number, processes[:size], (), (), 0, processes[size:])


def _is_well_formed(kept: Kept) -> bool:
    if kept.origin != VIEW_ENTRY:
        return len(kept.stamp) == 1
    return len(kept.stamp) >= 3 and 0 <= kept.stamp[2] <= len(kept.stamp) - 3
