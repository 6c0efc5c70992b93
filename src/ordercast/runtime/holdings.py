"""How many frames the machine of a group keeps. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from ordercast.core.ids import GroupId
from ordercast.process.process import Process


def holdings_of(stack: Process, g: GroupId) -> dict[str, int]:
    """Frames of g held back, kept until stable, in the sequencer's history, and not sent yet."""
    machine, gate = stack.groups.machines[g], stack.groups.gates.of.get(g)
    here = machine.holdings(g)
    early = sum(1 for packet in machine.early if packet.group == g)
    gated = 0 if gate is None else sum(1 for frame in gate.frames() if frame[0] == g)
    return {
        "frames_held": here.held + early + gated,
        "max_held": stack.options.max_held,
        "frames_kept": here.kept,
        "history": here.history,
        "frames_unsent": unsent(stack, g),
    }


def unsent(stack: Process, g: GroupId) -> int:
    """Own frames said while a flush runs, or held up by the send rule: the window bounds them."""
    flush = stack.groups.flushes.get(g)
    queued = () if flush is None else flush.queued
    held_up = stack.groups.machines[g].held_up()
    return sum(1 for said in (*queued, *held_up, *stack.said) if said.group == g)
