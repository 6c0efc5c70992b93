"""Why is it held back? Every protocol of the registry answers truly, at every step of a run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ordercast.core.events import Event, Receive, View
from ordercast.core.output import Output
from ordercast.core.waiting import NOBODY, Awaited, Waiting
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import SimulationConfig, Uniform, Workload, overlapping_groups
from ordercast.simulation.run import build, limits_of, stacks
from ordercast.stack.stack import Stack

SEEDS = range(6)
NETWORKS = {
    "lossy": {"loss": 0.2, "duplicate": 0.1},
    "reordering": {"duplicate": 0.1},
}


class Questioned:
    """A machine that is asked after each step why it holds what it holds."""

    def __init__(self, machine: Stack) -> None:
        self.machine = machine
        self.received: dict[int, Receive] = {}  # by the identity of the payload
        self.delivered: set[int] = set()  # payloads
        self.frames: set[tuple[int, int, int]] = set()  # delivered: group, sender, n
        self.numbers: set[tuple[int, int]] = set()  # delivered: group, number
        self.answers = 0

    def step(self, events: Iterable[Event]) -> Output:
        events = tuple(events)
        out = self.machine.step(events)
        for event in events:
            if isinstance(event, Receive) and event.payload:
                self.received[id(event.payload)] = event
        for delivery in out.deliveries:
            if not isinstance(delivery, View):
                g, sender, n, number, payload = delivery
                self.delivered.add(id(payload))
                self.frames.add((g, sender, n))
                self.numbers.add((g, number))
        self.question()
        return out

    def question(self) -> None:
        held = self.machine.held_back()
        here = {id(waiting.payload) for waiting in held}
        unnamed = [self.received[m] for m in self.received.keys() - self.delivered - here]
        assert not unnamed, f"received, not delivered, and not named: {unnamed[0]}"
        for waiting in held:
            self.answers += 1
            assert waiting.awaits, f"{waiting} waits for nothing"
            assert id(waiting.payload) not in self.delivered, f"{waiting} was delivered"
            for awaited in waiting.awaits:
                assert self.is_missing(waiting, awaited), f"{awaited} is here; {waiting}"
        for g in self.machine.protocols:
            assert self.machine.held_back(g) == [w for w in held if w.group == g]

    def is_missing(self, waiting: Waiting, awaited: Awaited) -> bool:
        g, p, n = awaited.group, awaited.process, awaited.number
        view = self.machine.view(g)
        assert view is not None and g in self.machine.protocols, "a group that is none of its own"
        if awaited.what in ("frame", "body", "agreement"):
            return p in view.senders and (g, p, n) not in self.frames
        if awaited.what == "number":
            return p == view.leader and (g, n) not in self.numbers
        if awaited.what == "order":
            return p == view.leader and (g, waiting.sender, n) not in self.frames
        if awaited.what in ("block", "proposal"):
            return p in view.members and p != self.machine.me
        if awaited.what == "packet":
            link = self.machine.links[p]
            return n > link.r and n not in link.ahead
        if awaited.what == "view":
            return n > view.number
        assert awaited.what == "copies" and p == NOBODY
        return 0 < n < len(view.members)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_held_back_is_named_with_what_it_really_misses(protocol, network) -> None:
    answers = 0
    for seed in SEEDS:
        config = SimulationConfig(
            protocol=protocol,
            members=5,
            groups=overlapping_groups(5, 3, 3),
            messages=20,
            workload=Workload(reply=0.5, depth=3),
            delay=Uniform(200, 4000),
            seed=seed,
            **NETWORKS[network],
        )
        machines = stacks(config)
        simulation = build(config, machines)
        questioned = [Questioned(machine) for machine in machines]
        simulation.alive = list(questioned)
        try:
            simulation.start()
            assert simulation.run(limits_of(config)) == "quiescent"
            assert [machine.held_back() for machine in machines] == [[]] * len(machines)
        except AssertionError as error:
            error.add_note(f"{protocol}, {network}, seed {seed}, tick {simulation.now}")
            raise
        answers += sum(machine.answers for machine in questioned)
    if waits(protocol, network):
        assert answers > 0


def waits(protocol: str, network: str) -> bool:
    """Does anything wait? Without an order only packets do, for those that a link misses."""
    declared = PROTOCOLS[protocol].declaration
    return declared.order != "none" or (network == "lossy" and declared.network != "N0")
