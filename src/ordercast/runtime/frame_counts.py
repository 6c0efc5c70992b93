"""How many frames the machines of a node keep. For `stats()`: it reads, and never writes."""

from __future__ import annotations

from collections import Counter

from ordercast.core.ids import GroupId
from ordercast.process.process import Process


class FrameCounts:
    """What a node keeps now, group by group. What machines of several groups keep for all of them
    is looked through once, and not once for each group."""

    def __init__(self, stack: Process) -> None:
        self._stack = stack
        machines = tuple(stack.groups.every())
        flushes = {id(flush): flush for flush in stack.groups.flushes.values()}.values()
        self._early = Counter(packet.group for machine in machines for packet in machine.early)
        # Said while a flush runs, or held up by the send rule: the window bounds it.
        self._unsent = Counter(said.group for said in stack.said)
        self._unsent.update(said.group for machine in machines for said in machine.held_up())
        self._unsent.update(said.group for flush in flushes for said in flush.queued)

    def of(self, g: GroupId) -> dict[str, int]:
        """Frames of g held back, kept until stable, in the sequencer's history, not sent yet."""
        stack = self._stack
        gate = stack.groups.gates.of.get(g)
        here = stack.groups.machines[g].holdings(g)
        gated = 0 if gate is None else sum(1 for frame in gate.frames() if frame[0] == g)
        return {
            "frames_held": here.held + self._early[g] + gated,
            "max_held": stack.options.max_held,
            "frames_kept": here.kept,
            "history": here.history,
            "frames_unsent": self.unsent(g),
        }

    def unsent(self, g: GroupId) -> int:
        """Own frames of g that wait here."""
        return self._unsent[g]
