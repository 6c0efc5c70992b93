"""How fast the simulator is: events handed to machines per second of one core.

An event is a packet, timer, multicast, consumption or view that a machine was handed. The trace is
collected in every run. CPU time of the process counts, not time on the wall, and the best of
several runs: what else the computer does only ever makes a run slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from ordercast.core.events import Event, Kept, Multicast, Receive, View
from ordercast.core.output import Output
from ordercast.simulation import SimulationConfig, Workload
from ordercast.simulation.engine import Machine
from ordercast.simulation.run import build, limits_of, no_collection, processes

REPEATS = 7
WORKLOAD = Workload(every_us=200, reply=0.0)


class Count(msgspec.Struct, frozen=True):
    """The only header of the machine that does nothing."""

    n: int


class Relay:
    """Sends to all others and delivers what comes: the rest of the time is the simulator's own."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.n = 0
        self.others: tuple[int, ...] = ()
        self.out = Output()

    def open(self, g: int, protocol: object) -> None:
        """Nothing to prepare."""

    def close(self, g: int) -> None:
        """Nothing to forget."""

    def unstable(self, g: int) -> tuple[Kept, ...]:
        """Nothing is kept."""
        return ()

    def step(self, events: Iterable[Event]) -> Output:
        """One packet to all, one delivery for each packet."""
        out = self.out
        out.clear()
        for event in events:
            if type(event) is Receive:
                out.deliveries.append((event.group, event.src, 0, 0, event.payload))
            elif isinstance(event, Multicast):
                self.n += 1
                out.transmits.append((self.others, event.group, 1, Count(self.n), event.payload))
                out.deliveries.append((event.group, self.me, self.n, 0, event.payload))
            elif isinstance(event, View):
                self.others = tuple(p for p in event.members if p != self.me)
                out.deliveries.append(event)
        return out


def run() -> dict[str, object]:
    """The figures of this part of the bench, each from a process of its own.

    What an earlier measurement leaves in memory would slow the next one down.
    """
    runs = {
        "simulator alone, 1000 processes": ("basic", 1000, 200, relays),
        "sequencer_pb, 1000 processes": ("sequencer_pb", 1000, 200, processes),
        "sequencer_pb, 10 processes": ("sequencer_pb", 10, 10_000, processes),
        "vector, 64 processes": ("vector", 64, 1000, processes),
        "vector, 1000 processes": ("vector", 1000, 30, processes),
    }
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        return {name: pool.submit(measure, *of).result() for name, of in runs.items()}


def relays(config: SimulationConfig) -> list[Relay]:
    """Machines that cost next to nothing."""
    return [Relay(p) for p in range(config.members)]


def measure(
    protocol: str,
    members: int,
    messages: int,
    machines: Callable[[SimulationConfig], Sequence[Machine]],
) -> dict[str, float]:
    """Events and events per second of the best run, apart from building and first views."""
    config = SimulationConfig(
        protocol=protocol,
        members=members,
        messages=messages,
        workload=WORKLOAD,
        checks=False,
        seed=1,
    )
    best = 0.0
    for _ in range(REPEATS):
        simulation = build(config, machines(config))
        with no_collection():
            simulation.start()
            before = time.process_time()
            simulation.run(limits_of(config))
            best = max(best, simulation.events / (time.process_time() - before))
    return {"events": simulation.events, "events_per_s": round(best)}


if __name__ == "__main__":
    print(msgspec.json.format(msgspec.json.encode(run())).decode())
