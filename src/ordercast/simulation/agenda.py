"""When things happen: simulated time in whole ticks, and what is due at each of them.

A packet to a thousand receivers is a thousand entries, so an entry must be cheap: it is appended
to the bucket of its tick, and only the *ticks* are kept sorted, in a heap. Nothing is ever added
to the tick that is being worked off, because every delay is at least one tick.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeVar

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId

TICK_US = 10  # simulated microseconds in a tick
TICK_NS = 1000 * TICK_US
TICKS_PER_MS = 1000 // TICK_US

Act = Callable[[], None]
"""Something scripted: a multicast of the workload, a fault, a consumption."""

Alarm = tuple[ProcessId, GroupId, str]
"""(process, group, name of the timer)"""

Arrival = tuple[ProcessId, tuple[Receive]]
"""(receiver, the packet as a batch of one; the batch is shared by all receivers)"""

T = TypeVar("T")


def ticks_of(us: float) -> int:
    """A delay in ticks: at least one, because nothing arrives in the instant it was sent."""
    return max(1, round(us / TICK_US))


class Lane(dict[int, list[T]]):
    """Entries of one sort, by tick; a new tick enters the agenda by itself."""

    def __init__(self, ticks: list[int]) -> None:
        super().__init__()
        self.ticks = ticks

    def __missing__(self, tick: int) -> list[T]:
        heappush(self.ticks, tick)
        bucket = self[tick] = []
        return bucket


class Agenda:
    """Everything that is still to happen. Within a tick: acts, alarms, turns, then packets."""

    def __init__(self) -> None:
        self.ticks: list[int] = []  # a heap; a tick may stand in it once per lane
        self.acts: Lane[Act] = Lane(self.ticks)
        self.alarms: Lane[Alarm] = Lane(self.ticks)
        self.turns: Lane[ProcessId] = Lane(self.ticks)  # of processors; only with a cost model
        self.packets: Lane[Arrival] = Lane(self.ticks)

    def clear(self) -> None:
        """Nothing more happens."""
        self.ticks.clear()
        for lane in (self.acts, self.alarms, self.turns, self.packets):
            lane.clear()

    def next_tick(self) -> int | None:
        """Take the next tick at which something is due; None when nothing is."""
        if not self.ticks:
            return None
        tick = heappop(self.ticks)
        while self.ticks and self.ticks[0] == tick:
            heappop(self.ticks)
        return tick

    def put_back(self, tick: int) -> None:
        """It was taken, and nothing was done: the run may go on from there."""
        heappush(self.ticks, tick)
