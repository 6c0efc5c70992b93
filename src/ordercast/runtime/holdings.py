"""How many frames the machine of a group keeps. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from ordercast.core.ids import GroupId
from ordercast.core.sequencer import SequencedProtocol
from ordercast.stack.stack import Stack


def holdings_of(stack: Stack, g: GroupId) -> dict[str, int]:
    """Frames of g held back, kept until they are stable, and in the sequencer's history."""
    protocol = stack.protocols[g]
    held, kept = protocol.holdings(g)
    held += sum(1 for packet in protocol.early if packet.group == g) + _queued(stack, g)
    history = 0
    if isinstance(protocol, SequencedProtocol) and protocol.book is not None:
        held += sum(map(len, protocol.book.ahead.values()))
        history = len(protocol.book.history)
    return {
        "frames_held": held,
        "max_held": stack.options.max_held,
        "frames_kept": kept,
        "history": history,
    }


def _queued(stack: Stack, g: GroupId) -> int:
    """Said while a flush runs."""
    membership = stack.memberships.get(g)
    return 0 if membership is None else sum(1 for m in membership.queued if m.group == g)
