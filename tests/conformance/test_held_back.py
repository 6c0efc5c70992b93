"""Why is it held back? Every protocol of the registry answers truly, at every step of a run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from machines import FLUSHED
from ordercast.core.events import Event, Receive, View
from ordercast.core.output import Output
from ordercast.core.waiting import MAX_NAMED, NOBODY, Awaited, Waiting
from ordercast.machinery.total_headers import NewView
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.reliability.link import Linked
from ordercast.simulation import (
    Crash,
    FlushTo,
    SimulationConfig,
    Uniform,
    Workload,
    overlapping_groups,
    simulate,
)
from ordercast.simulation.run import build, limits_of, processes
from ordercast.trace.holds import WaitsFor
from ordercast.trace.schema import Event as TraceEvent
from ordercast.trace.waits import Wait, read_waits
from ordercast.trace.watch import by_key, keys_of

SEEDS = range(6)
NETWORKS = {
    "lossy": {"loss": 0.2, "duplicate": 0.1},
    "reordering": {"duplicate": 0.1},
}


class Questioned:
    """A machine that is asked after each step why it holds what it holds."""

    def __init__(self, machine: GivenGroups) -> None:
        self.machine = machine
        self.received: dict[int, Receive] = {}  # by the identity of the payload
        self.delivered: set[int] = set()  # payloads
        self.frames: set[tuple[int, int, int]] = set()  # delivered: group, sender, n
        self.numbers: set[tuple[int, int]] = set()  # delivered: group, number
        self.blocks: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (packet on its link, b)
        self.began: set[int] = set()  # groups whose first number was told
        self.answers = 0

    def step(self, events: Iterable[Event]) -> Output:
        events = tuple(events)
        out = self.machine.step(events)
        for event in events:
            if isinstance(event, Receive):
                self.hear(event)
        for delivery in out.deliveries:
            if not isinstance(delivery, View):
                g, sender, n, number, payload = delivery
                self.delivered.add(id(payload))
                self.frames.add((g, sender, n))
                self.numbers.add((g, number))
        self.question()
        return out

    def hear(self, packet: Receive) -> None:
        if packet.payload:
            self.received[id(packet.payload)] = packet
        header = packet.header
        if isinstance(header, NewView):
            self.began.add(packet.group)
        if isinstance(header, Linked) and hasattr(header.header, "b"):
            heard = self.blocks.setdefault((packet.group, packet.src), [])
            heard.append((header.s, header.header.b))

    def question(self) -> None:
        held = self.machine.held_back()
        here = {id(waiting.payload) for waiting in held}
        bodies = [(w.group, w.sender, w.payload) for w in held if w.payload]
        assert len(bodies) == len(set(bodies)), f"a frame is named twice: {held}"
        unnamed = [self.received[m] for m in self.received.keys() - self.delivered - here]
        assert not unnamed, f"received, not delivered, and not named: {unnamed[0]}"
        for waiting in held:
            self.answers += 1
            assert waiting.awaits, f"{waiting} waits for nothing"
            assert len(waiting.awaits) <= MAX_NAMED
            assert id(waiting.payload) not in self.delivered, f"{waiting} was delivered"
            for awaited in waiting.awaits:
                assert self.is_missing(waiting, awaited), f"{awaited} is here; {waiting}"
        assert set(keys_of(self.machine.waiting_frames())) == set(by_key(held))
        for g in self.machine.groups.machines:
            assert self.machine.held_back(g) == [w for w in held if w.group == g]

    def is_missing(self, waiting: Waiting, awaited: Awaited) -> bool:
        g, p, n = awaited.group, awaited.process, awaited.number
        view = self.machine.view(g)
        assert view is not None and g in self.machine.groups.machines, (
            "a group that is none of its own"
        )
        if awaited.what in ("frame", "body", "agreement"):
            return p in view.senders and (g, p, n) not in self.frames
        if awaited.what == "origin":
            return p in view.senders and p != self.machine.me and (g, p, n) not in self.frames
        if awaited.what == "number":
            return p == self.sequencer(g) and (g, n) not in self.numbers
        if awaited.what == "order":
            return p == self.sequencer(g) and (g, waiting.sender, n) not in self.frames
        if awaited.what == "first":
            return p == self.sequencer(g) != self.machine.me and g not in self.began
        if awaited.what == "block":
            heard = self.blocks.get((g, p), [])
            top = max((b for s, b in heard if s <= self.machine.links.links[p].r), default=0)
            return p in view.members and p != self.machine.me and top < n
        if awaited.what == "proposal":
            return p in view.members and p != self.machine.me
        if awaited.what == "packet":
            link = self.machine.links.links[p]
            return n > link.r and n not in link.ahead
        if awaited.what == "view":
            return n > view.number
        if awaited.what == "relay":
            return p != self.machine.me and n >= self.next_relay(g, p)
        assert awaited.what == "copies" and p == NOBODY
        return 0 < n < len(view.members)

    def next_relay(self, g: int, p: int) -> int:
        """The number that a process expects of its gateway, or a gateway of another."""
        layered = self.machine.groups.machines[g]
        assert isinstance(layered, TwoLayered) and p in layered.layout.gateways
        i = layered.layout.site[p]
        return layered.local.rsq[0] if i == layered.i else layered.main.rsq[i]

    def sequencer(self, g: int) -> int:
        """The leader, or the first of the members where views change by a flush."""
        protocol, view = self.machine.groups.machines[g], self.machine.view(g)
        return view.leader if protocol.declaration.sequenced else view.members[0]


def config_of(protocol: str, network: str, seed: int, **more: object) -> SimulationConfig:
    return SimulationConfig(
        protocol=protocol,
        members=5,
        messages=20,
        workload=Workload(reply=0.5, depth=3),
        delay=Uniform(200, 4000),
        seed=seed,
        **{"groups": overlapping_groups(5, 3, 3), **NETWORKS[network], **more},
    )


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_held_back_is_named_with_what_it_really_misses(protocol, network) -> None:
    answers = 0
    for seed in SEEDS:
        config = config_of(protocol, network, seed)
        machines = processes(config)
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


def waits_of(events: list[TraceEvent]) -> list[Wait]:
    own = [event for event in events if event.process is not None]
    return read_waits(sorted(own, key=lambda event: (event.process, event.index)))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_trace_of_a_run_tells_how_every_wait_ended(protocol) -> None:
    events = simulate(config_of(protocol, "lossy", 1, trace="protocol")).events()
    delivered = {(e.process, e.message): e.index for e in events if e.kind == "deliver"}
    waits = waits_of(events)
    assert len(waits) > 10
    for wait in waits:
        assert wait.ended is not None and wait.by, wait
        assert wait.delivered is not None, wait
        assert wait.began.index < wait.ended.index < wait.delivered.index
        assert set(map(identity, wait.gone)) == set(map(identity, wait.stages[-1].awaits))
        for thing in wait.gone:
            if thing.message:
                assert delivered[wait.process, thing.message] < wait.delivered.index, wait
    assert_only_real_messages(events)


@pytest.mark.parametrize("protocol", FLUSHED)
def test_a_trace_through_crashes_and_view_changes_names_only_messages_that_were_sent(
    protocol,
) -> None:
    groups = overlapping_groups(5, 1, 5)
    faults = (Crash(3, at_ms=6, lose=0.5), FlushTo(1, (0, 1, 2), at_ms=9))
    for seed in SEEDS:
        config = config_of(
            protocol, "lossy", seed, groups=groups, faults=faults, trace="protocol", quiet_ms=3000
        )
        assert_only_real_messages(simulate(config).events())


def assert_only_real_messages(events: list[TraceEvent]) -> None:
    sent = {event.message for event in events if event.kind == "send"}
    for event in events:
        assert event.message is None or event.message in sent, event
    for wait in waits_of(events):
        assert wait.message is None or wait.message in sent
        for thing in (*wait.gone, *(thing for stage in wait.stages for thing in stage.awaits)):
            assert not thing.message or thing.message in sent, wait


def identity(thing: WaitsFor) -> tuple[str, str, str, int]:
    return thing.what, thing.group, thing.process, thing.number
