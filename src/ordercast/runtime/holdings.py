"""How many frames the machine of a group keeps. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from ordercast.core.events import Multicast
from ordercast.core.ids import GroupId
from ordercast.stack.stack import Stack

WAITING = ("held", "arrived", "bodies")  # tables of frames that miss something, by protocol


def holdings_of(stack: Stack, g: GroupId) -> dict[str, int]:
    """Frames of g held back, kept until they are stable, and in the sequencer's history."""
    state = stack.protocols[g].state()
    book = state.get("book")  # of the sequencer
    tables = [state[name] for name in WAITING if name in state]
    tables += [state["early"].get(g, ()), _queued(stack, g)]
    if book is not None:
        tables += book.ahead.values()
    return {
        "frames_held": _count(tables),
        "max_held": stack.options.max_held,
        "frames_kept": _kept(state, g),
        "history": 0 if book is None else len(book.history),
    }


def _queued(stack: Stack, g: GroupId) -> list[Multicast]:
    """Said while a flush runs."""
    membership = stack.memberships.get(g)
    return [] if membership is None else [m for m in membership.queued if m.group == g]


def _count(tables: Iterable[Sized]) -> int:
    return sum(map(len, tables))


def _kept(state: dict[str, Any], g: GroupId) -> int:
    """Delivered and not stable: by number at a sequenced member, else by sender."""
    if "stability" not in state:
        return len(state["kept"])
    record = state["stability"].get(g)
    return 0 if record is None else sum(map(len, record.kept.values()))
