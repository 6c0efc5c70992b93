"""One processor per process: what comes while it is busy waits, in the order it came.

A packet is read first, which takes time; then the machine steps, and its effects happen in that
instant; what it transmits leaves when it has been sent, which takes time again. Work is added up in
microseconds and rounded to ticks only where something happens, so cheap steps add up, too.
"""

from __future__ import annotations

from collections import deque

from ordercast.core.events import View
from ordercast.core.ids import ProcessId
from ordercast.core.output import Output
from ordercast.simulation.agenda import TICK_US, Act, Lane
from ordercast.simulation.costs import CostModel
from ordercast.simulation.network import NetworkModel

SLICE_US = 1000  # so finely it is remembered when a processor worked


class Processors:
    """Who is busy until when, and what waits for that."""

    def __init__(
        self, costs: CostModel, network: NetworkModel, processes: int, turns: Lane[ProcessId]
    ) -> None:
        self.costs = costs
        self.copies = network.copies
        self.turns = turns
        self.free_us = [0.0] * processes  # when the processor has done all it began
        self.worked: list[dict[int, float]] = [{} for _ in range(processes)]  # us, by slice of time
        # The first act of a line has begun, and happens at a turn that stands in the agenda.
        self.lines: list[deque[tuple[float, Act]]] = [deque() for _ in range(processes)]
        self.longest_line = 0
        self.at_turn: ProcessId | None = None  # goes on where it was, not at a whole tick

    def work(self, p: ProcessId, now: int, cost_us: float) -> int:
        """p works; the tick in which it has done this and all it began before."""
        free = self.free_us[p]
        if p != self.at_turn:  # a turn begins in the nearest tick, which may be a bit later
            free = max(free, now * TICK_US)
        self.free_us[p] = free = free + cost_us
        if cost_us:
            worked, at = self.worked[p], int(free / SLICE_US)
            worked[at] = worked.get(at, 0.0) + cost_us
        return max(now, round(free / TICK_US))

    def line_up(self, p: ProcessId, now: int, cost_us: float, act: Act) -> None:
        """p does this as soon as it may: when it is free, and `cost_us` later."""
        line = self.lines[p]
        if line:
            line.append((cost_us, act))
            self.longest_line = max(self.longest_line, len(line))
        elif (tick := self.work(p, now, cost_us)) == now:
            act()
        else:
            line.append((cost_us, act))
            self.turns[tick].append(p)

    def take_turn(self, p: ProcessId, now: int) -> None:
        """Do what p has finished reading, and begin with the next."""
        self.at_turn = p
        line = self.lines[p]
        while line:
            line[0][1]()
            line.popleft()
            if line and (tick := self.work(p, now, line[0][0])) > now:
                self.turns[tick].append(p)
                break
        self.at_turn = None

    def shares(self, first_us: float, last_us: float) -> tuple[float, ...]:
        """Which share of this time each process worked, to the slice."""
        slices = range(int(first_us / SLICE_US), int(last_us / SLICE_US) + 1)
        span = len(slices) * SLICE_US
        spent = (sum(us for at, us in worked.items() if at in slices) for worked in self.worked)
        return tuple(min(1.0, us / span) for us in spent)

    def total_us(self) -> float:
        """What all processes worked, in the whole run."""
        return sum(us for worked in self.worked for us in worked.values())

    def most_us(self) -> float:
        """What the process worked that worked most, in the whole run."""
        return max(sum(worked.values()) for worked in self.worked)

    def effects(self, p: ProcessId, now: int, out: Output) -> int:
        """p carries out the effects of a step; the tick in which its packets leave."""
        costs = self.costs
        cost = sum(costs.sending(each, self.copies(each[0])) for each in out.transmits)
        if costs.delivery_us:
            cost += costs.delivery_us * sum(not isinstance(d, View) for d in out.deliveries)
        return self.work(p, now, cost)
