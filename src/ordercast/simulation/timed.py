"""A run in which work takes time: events of a process wait while it is busy.

Packets, timers, and what applications say and take wait in one line per process. Views, and what
scripts do to a run from outside, do not wait: a view change "in one instant" must not find packets
between its parts. They cost time all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from ordercast.core.events import Multicast, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.simulation.agenda import Act, Alarm, Arrival
from ordercast.simulation.checked import Steps
from ordercast.simulation.costs import CostModel
from ordercast.simulation.engine import Simulation
from ordercast.simulation.processors import Processors


class TimedSimulation(Simulation):
    """Machines that have one processor each."""

    processors: Processors

    def give_processors(self, costs: CostModel) -> None:
        """From now on work takes time. To be called before the start."""
        self.processors = Processors(
            costs, self.medium.model, len(self.machines), self.agenda.turns
        )

    def _line_up(self, p: ProcessId, cost_us: float, act: Act) -> None:
        self.processors.line_up(p, self.now, cost_us, act)

    def _take_turns(self, processes: Sequence[ProcessId]) -> None:
        for p in processes:
            self.processors.take_turn(p, self.now)

    # -- what waits -------------------------------------------------------------------------------

    def say(self, p: ProcessId, groups: Iterable[GroupId]) -> None:
        self._line_up(p, 0.0, partial(super().say, p, tuple(groups)))

    def _arrive(self, arrivals: list[Arrival]) -> None:
        last, cost = None, 0.0
        for p, batch in arrivals:
            if batch is not last:  # else the same packet at another receiver
                cost = self.processors.costs.receiving(batch[0].header, batch[0].payload)
                last = batch
            self._line_up(p, cost, partial(self._read, p, batch))

    def _read(self, p: ProcessId, batch: tuple[Receive]) -> None:
        if self.alive[p] is None:
            self.missed += 1
        else:
            self.hand(p, batch)

    def _ring(self, alarm: Alarm) -> None:
        if self.timers.counts(self.now, alarm):
            act = partial(self._fire, self.now, alarm)
            self._line_up(alarm[0], self.processors.costs.event_us, act)

    def _fire(self, due: int, alarm: Alarm) -> None:
        # While it waited it may have been cancelled, or set again.
        if self.timers.take(due, alarm):
            self._ring_now(alarm)

    def _consume(self, p: ProcessId, g: GroupId) -> None:
        self._line_up(p, self.processors.costs.event_us, partial(super()._consume, p, g))

    # -- what costs time --------------------------------------------------------------------------

    def _multicast(self, p: ProcessId, machine: Steps, message: Multicast) -> None:
        self.processors.work(p, self.now, self.processors.costs.multicast_us)
        super()._multicast(p, machine, message)

    def _carry_out(self, p: ProcessId, out: Output) -> None:
        """Packets leave when all of the step has been sent; the rest happens at once."""
        leave = self.processors.effects(p, self.now, out)
        if out.transmits:
            self.medium.carry(p, leave, out.transmits)
            out.transmits = []
        super()._carry_out(p, out)
