"""How many frames the machine of a group keeps. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from ordercast.core.ids import GroupId
from ordercast.stack.stack import Stack


def holdings_of(stack: Stack, g: GroupId) -> dict[str, int]:
    """Frames of g held back, kept until stable, in the sequencer's history, and not sent yet."""
    protocol = stack.protocols[g]
    here = protocol.holdings(g)
    early = sum(1 for packet in protocol.early if packet.group == g)
    gated = sum(1 for frame in stack.gates[g].frames() if frame[0] == g) if g in stack.gates else 0
    return {
        "frames_held": here.held + early + gated,
        "max_held": stack.options.max_held,
        "frames_kept": here.kept,
        "history": here.history,
        "frames_unsent": unsent(stack, g),
    }


def unsent(stack: Stack, g: GroupId) -> int:
    """Own frames said while a flush runs, or held up by the send rule: the window bounds them."""
    membership = stack.memberships.get(g)
    queued = () if membership is None else membership.queued
    return sum(1 for said in (*queued, *stack.protocols[g].held_up()) if said.group == g)
