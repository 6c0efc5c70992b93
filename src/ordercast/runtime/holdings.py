"""How many frames the machine of a group keeps. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from ordercast.core.ids import GroupId
from ordercast.stack.stack import Stack

WAITING = ("held", "arrived", "bodies")  # tables of frames that miss something, by protocol


def holdings_of(stack: Stack, g: GroupId) -> dict[str, int]:
    """Frames of g held back, kept until they are stable, and in the sequencer's history."""
    state = stack.protocols[g].state()
    book = state.get("book")  # of the sequencer
    tables = [state[name] for name in WAITING if name in state]
    tables += [state["early"].get(g, ()), stack.queued.get(g, ())]
    if book is not None:
        tables += book.ahead.values()
    return {
        "frames_held": _count(tables),
        "max_held": stack.options.max_held,
        "frames_kept": _kept(state["kept"]),
        "history": 0 if book is None else len(book.history),
    }


def _count(tables: Iterable[Sized]) -> int:
    return sum(map(len, tables))


def _kept(kept: dict[int, Any]) -> int:
    """Either by number, or by sender and then by number."""
    return sum(len(frames) if isinstance(frames, dict) else 1 for frames in kept.values())
