"""Crashes that wait for their moment: so many steps after a change of the cluster has begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from ordercast.core.events import Event, Receive, Timer
from ordercast.core.ids import ProcessId
from ordercast.core.output import Output
from ordercast.membership.agreement_headers import Heartbeat
from ordercast.process.process import CLUSTER_GROUP
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import Boot, ClusterSimulation, Host, PartitionHosts
from ordercast.simulation.engine import Steps
from ordercast.simulation.faults import Crash, Heal


def inner(header: msgspec.Struct) -> msgspec.Struct:
    """What a link carries."""
    return header.header if isinstance(header, Linked) else header


def is_idle(event: Event) -> bool:
    """A heartbeat, a bare acknowledgement, a tick: what happens when nothing does."""
    if isinstance(event, Timer):
        return event.group in (CLUSTER_GROUP, LINK_GROUP)
    return isinstance(event, Receive) and isinstance(inner(event.header), Heartbeat | LinkAck)


class Watched:
    """A machine, and somebody who sees each of its steps. It may be stopped after any of them."""

    def __init__(self, machine: Steps, see: Callable[[tuple[Event, ...], Output], bool]) -> None:
        self.machine = machine
        self.see = see  # says True when the machine is to stop
        self.stopped = False

    def step(self, events: Iterable[Event]) -> Output:
        """As the machine does, until it is stopped."""
        if self.stopped:
            return Output()
        batch = tuple(events)
        out = self.machine.step(batch)
        self.stopped = self.see(batch, out)
        return out


def counts(events: tuple[Event, ...], out: Output) -> bool:
    """Does this step do anything? A tick with nothing but heartbeats does not."""
    if not all(is_idle(event) for event in events):
        return True
    return any(not isinstance(inner(t[3]), Heartbeat | LinkAck) for t in out.transmits)


class CrashAtStep(msgspec.Struct, frozen=True):
    """A host crashes right after so many steps of its node since `at_ms`; idle ones do not count.

    With `steps=0` it crashes at once. Its packets under way are lost with probability `lose`.
    """

    host: Host
    steps: int
    at_ms: float
    lose: float = 0.0
    back_ms: float | None = None  # so long after the crash the host starts again

    def apply(self, simulation: ClusterSimulation) -> None:
        """Lie in wait."""
        p = simulation.current.get(self.host)
        if p is None:
            return
        left = self.steps

        def see(events: tuple[Event, ...], out: Output) -> bool:
            nonlocal left
            left -= counts(events, out)
            if left == 0:
                _soon(simulation, partial(self._strike, simulation, p))
            return left == 0

        if left == 0:
            self._strike(simulation, p)
        else:
            machine = simulation.alive[p]
            assert machine is not None
            simulation.alive[p] = Watched(machine, see)

    def _strike(self, simulation: ClusterSimulation, p: ProcessId) -> None:
        crash(simulation, p, self.lose, self.back_ms)


class CountSteps(msgspec.Struct, frozen=True):
    """How many steps the node of a host makes between two times; idle ones do not count."""

    host: Host
    at_ms: float
    until_ms: float
    count: dict[str, int]  # gets "steps", if there is a node

    def apply(self, simulation: ClusterSimulation) -> None:
        """Begin to count."""
        p = simulation.current.get(self.host)
        if p is None:
            return
        self.count["steps"] = 0

        def see(events: tuple[Event, ...], out: Output) -> bool:
            if simulation.now <= self.until_ms * TICKS_PER_MS:
                self.count["steps"] += counts(events, out)
            return False

        machine = simulation.alive[p]
        assert machine is not None
        simulation.alive[p] = Watched(machine, see)


class CrashOfWhoSays(msgspec.Struct, frozen=True):
    """The first node that sends such a packet between `at_ms` and `until_ms` crashes so many steps
    later. It strikes only once, and only those who run at `at_ms`.
    """

    says: type[msgspec.Struct]  # the packet that tells who leads a change, or takes part in it
    steps: int
    at_ms: float
    until_ms: float
    lose: float = 0.0
    back_ms: float | None = None

    def apply(self, simulation: ClusterSimulation) -> None:
        """Lie in wait at all of them."""
        begun: dict[ProcessId, int] = {}  # who has sent one, and how many steps it has left

        def see(p: ProcessId, events: tuple[Event, ...], out: Output) -> bool:
            in_time = simulation.now <= self.until_ms * TICKS_PER_MS
            if not begun and any(isinstance(inner(t[3]), self.says) for t in out.transmits):
                begun[p] = self.steps + 1
            if p not in begun or not in_time:
                return False
            begun[p] -= counts(events, out)
            if begun[p] == 0:
                act = partial(crash, simulation, p, self.lose, self.back_ms)
                _soon(simulation, act)
            return begun[p] == 0

        for p, machine in enumerate(simulation.alive):
            if machine is not None:
                simulation.alive[p] = Watched(machine, partial(see, p))


class CutOfWhoSays(msgspec.Struct, frozen=True):
    """The first node that sends such a packet between `at_ms` and `until_ms` is alone from then on,
    for a while: some of the others heard it, or nobody did."""

    says: type[msgspec.Struct]
    at_ms: float
    until_ms: float
    lose: float  # of what it has under way; a connection that loses anything breaks
    heal_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Lie in wait at all of them."""
        waiting = True

        def see(p: ProcessId, _: tuple[Event, ...], out: Output) -> bool:
            nonlocal waiting
            in_time = simulation.now <= self.until_ms * TICKS_PER_MS
            says = any(isinstance(inner(t[3]), self.says) for t in out.transmits)
            if waiting and in_time and says:
                waiting = False
                _soon(simulation, partial(self._strike, simulation, p))
            return False

        for p, machine in enumerate(simulation.alive):
            if machine is not None:
                simulation.alive[p] = Watched(machine, partial(see, p))

    def _strike(self, simulation: ClusterSimulation, p: ProcessId) -> None:
        now_ms = simulation.now / TICKS_PER_MS
        for q in simulation.medium.forget_sender(p, self.lose):
            simulation.reset(p, q)
        alone = (simulation.host_of(p),)
        simulation.suffer(PartitionHosts((alone,), at_ms=now_ms))
        heal = Heal(at_ms=now_ms + self.heal_ms)
        at = simulation.now + round(self.heal_ms * TICKS_PER_MS)
        simulation.agenda.acts[at].append(partial(simulation.suffer, heal))


class CutBefore(msgspec.Struct, frozen=True):
    """When the node of a host sends such a packet, the network parts, and only its own side hears
    it."""

    host: Host
    says: type[msgspec.Struct]
    sides: tuple[tuple[Host, ...], ...]
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Lie in wait."""
        p = simulation.current.get(self.host)
        machine = None if p is None else simulation.alive[p]
        if p is None or machine is None:
            return
        waiting = True

        def see(_: tuple[Event, ...], out: Output) -> bool:
            nonlocal waiting
            if waiting and any(isinstance(inner(t[3]), self.says) for t in out.transmits):
                waiting = False
                now_ms = simulation.now / TICKS_PER_MS
                simulation.suffer(PartitionHosts(self.sides, at_ms=now_ms))
            return False

        simulation.alive[p] = Watched(machine, see)


def crash(simulation: ClusterSimulation, p: ProcessId, lose: float, back_ms: float | None) -> None:
    """The host of p crashes, if p still runs there; and perhaps starts again."""
    host, now_ms = simulation.host_of(p), simulation.now / TICKS_PER_MS
    if simulation.current.get(host) == p:
        simulation.suffer(Crash(host, at_ms=now_ms, lose=lose))
        if back_ms is not None:
            at = simulation.now + round(back_ms * TICKS_PER_MS)
            back = Boot(host, at_ms=now_ms + back_ms)
            simulation.agenda.acts[at].append(partial(simulation.suffer, back))


def _soon(simulation: ClusterSimulation, act: Callable[[], None]) -> None:
    simulation.agenda.acts[simulation.now + 1].append(act)
