"""A machine that does the least a machine can do, and remembers everything it was handed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from ordercast.core.events import Cut, Event, Kept, Multicast, Receive, Timer, View
from ordercast.core.output import Output
from ordercast.simulation import SimulationConfig
from ordercast.simulation.engine import EndReason, Limits, Simulation
from ordercast.simulation.run import build


class Numbered(msgspec.Struct, frozen=True):
    """The only header: the sender's count."""

    n: int


class Diary:
    """Sends to all others, delivers what it receives, as it comes; writes down every event."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.n = 0
        self.others: dict[int, tuple[int, ...]] = {}
        self.handed: list[Event] = []
        self.timers_wanted: dict[str, list[tuple[int, str, int]]] = {}  # asked for at a timer
        self.kept: tuple[Kept, ...] = ()
        self.closed: list[int] = []
        self.out = Output()

    def open(self, g: int, protocol: object) -> None:
        self.others[g] = ()

    def close(self, g: int) -> None:
        self.closed.append(g)

    def unstable(self, g: int) -> tuple[Kept, ...]:
        return self.kept

    def report_mark(self, g: int) -> int:
        return 0

    def step(self, events: Iterable[Event]) -> Output:
        self.out.clear()
        for event in events:
            self.handed.append(event)
            self.handle(event)
        return self.out

    def cut(self, cut: Cut) -> None:
        for flush in cut.flushes:
            for kept in flush.union:
                self.out.deliveries.append((flush.group, kept.origin, kept.n, 0, kept.payload))
        for view in cut.views:
            self.handle(view)

    def handle(self, event: Event) -> None:
        if isinstance(event, Cut):
            self.cut(event)
            return
        g = event.group
        if isinstance(event, View):
            self.others[g] = tuple(p for p in event.members if p != self.me)
            self.out.deliveries.append(event)
            self.out.timers += self.timers_wanted.get("view", [])
        elif isinstance(event, Multicast):
            self.n += 1
            self.out.transmits.append((self.others[g], g, 1, Numbered(self.n), event.payload))
            self.out.deliveries.append((g, self.me, self.n, 0, event.payload))
        elif isinstance(event, Receive):
            self.out.deliveries.append((g, event.src, event.header.n, 0, event.payload))
        elif isinstance(event, Timer):
            self.out.timers += self.timers_wanted.get(event.name, [])

    def invariants(self) -> None:
        """Of a diary nothing can be wrong."""

    def packets(self) -> list[Receive]:
        """What it received."""
        return [event for event in self.handed if isinstance(event, Receive)]


class Stage:
    """A simulation over diaries, ready to start."""

    def __init__(self, **config: Any) -> None:
        self.config = SimulationConfig(**{"protocol": "basic", **config})
        self.machines = [Diary(p) for p in range(self.config.members)]
        self.simulation: Simulation = build(self.config, self.machines)

    def run(self, **limits: int) -> EndReason:
        """Start and run to the end, or to a limit in ticks, events or quiet ticks."""
        self.simulation.start()
        full = {"ticks": 10**9, "events": 10**9, "quiet": 10**9}
        return self.simulation.run(Limits(**{**full, **limits}))


@pytest.fixture
def stage() -> Callable[..., Stage]:
    """stage(members=3, ...): a simulation over diaries."""
    return Stage
