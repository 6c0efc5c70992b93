"""The cost of real steps: machines run in the simulator, with real encoders, and a clock looks on.

Every packet goes through the codec of `wire`: what a live node does from the bytes that came in to
the bytes that go out is measured, step by step. Steps that did the same are one *kind*; its cost is
their median, which is not moved by whatever else the computer did. Over all kinds a cost model is
fitted. The clock is an argument: nothing in here reads one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from ordercast.core.events import Consumed, Event, Kept, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.waiting import Waiting
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import choose
from ordercast.reliability.link import LINK_GROUP
from ordercast.simulation.config import (
    GroupConfig,
    SimulationConfig,
    even_sites,
    overlapping_groups,
)
from ordercast.simulation.costs import CostModel, entries_of
from ordercast.simulation.least_squares import fit
from ordercast.simulation.run import build, limits_of, no_collection, processes
from ordercast.simulation.weighing import LINKS, codec_of
from ordercast.simulation.workload import Workload
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.frame import Splitter
from ordercast.wire.messages import pack_messages, unpack_messages

Clock = Callable[[], int]
"""Nanoseconds of this process's processor time."""

MAX_FRAME = 1 << 24
A_PAYLOAD = pack_messages(1, [b"." * 64])
LEAST_STEPS = 20  # a kind of step that was seen less often does not count
SPLITS = ((64, 2), (64, 4), (64, 24), (256, 16))  # members and subgroups
FEATURES = (
    "receive_us", "receive_entry_us", "send_us", "send_entry_us",
    "multicast_us", "delivery_us", "event_us",
)  # fmt: skip

Kind = tuple[int, ...]
"""What a step did: how often each of the FEATURES."""


class Measurements:
    """What steps took, by kind."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.taken_ns: dict[Kind, list[int]] = {}
        self.idle_ns = median(-clock() + clock() for _ in range(1000))  # what looking costs

    def note(self, kind: Kind, ns: float) -> None:
        """A step of this kind took so long."""
        self.taken_ns.setdefault(kind, []).append(max(0, round(ns - self.idle_ns)))


class Measured:
    """A machine with its encoders, every step of it measured."""

    def __init__(self, machine: GivenGroups, into: Measurements) -> None:
        self.machine = machine
        self.into = into
        self.codecs: dict[GroupId, ChannelCodec] = {LINK_GROUP: LINKS}
        self.splitter = Splitter(MAX_FRAME)

    def open(self, g: GroupId, protocol: type[OrderingProtocol]) -> None:
        """As the machine does; a channel has a codec."""
        self.codecs[g] = codec_of(protocol)
        self.machine.open(g, protocol)

    def close(self, g: GroupId) -> None:
        """As the machine does."""
        self.machine.close(g)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """As the machine does."""
        return self.machine.unstable(g)

    def report_mark(self, g: GroupId) -> int:
        """As the machine does."""
        return self.machine.report_mark(g)

    def held_back(self) -> list[Waiting]:
        """As the machine does."""
        return self.machine.held_back()

    def view(self, g: GroupId) -> View | None:
        """As the machine does."""
        return self.machine.view(g)

    def invariants(self) -> None:
        """Not looked at: that would be measured, too."""

    def step(self, events: Iterable[Event]) -> Output:
        """The machine's step, from bytes to bytes."""
        (event,) = events
        if isinstance(event, Receive):
            return self._receive(event)
        if isinstance(event, Multicast):
            return self._multicast(event)
        before = self.into.clock()
        out = self._work(event)
        if isinstance(event, Timer | Consumed):
            self._note(before, out, others=1)
        return out

    def _receive(self, event: Receive) -> Output:
        codec = self.codecs[event.group]
        data = codec.encode(event.group, event.era, event.header, event.payload)
        entries = entries_of(event.header)
        before = self.into.clock()
        ((channel, tag, era, header, payload),) = self.splitter.feed(data)
        packet = Receive(event.src, channel, era, codec.decode(tag, header), payload)
        out = self._work(packet)
        self._note(before, out, packets=1, entries=entries)
        return out

    def _multicast(self, event: Multicast) -> Output:
        before = self.into.clock()
        pack_messages(1, [event.payload])
        out = self._work(event)
        self._note(before, out, multicasts=1)
        return out

    def _work(self, event: Event) -> Output:
        out = self.machine.step((event,))
        for _, group, era, header, payload in out.transmits:
            self.codecs[group].encode(group, era, header, payload)
        for delivery in out.deliveries:
            if type(delivery) is tuple:
                unpack_messages(A_PAYLOAD)
        return out

    def _note(
        self,
        before: int,
        out: Output,
        *,
        packets: int = 0,
        entries: int = 0,
        multicasts: int = 0,
        others: int = 0,
    ) -> None:
        ns = self.into.clock() - before
        sent = len(out.transmits)
        sent_entries = sum(entries_of(transmit[3]) for transmit in out.transmits)
        delivered = sum(type(delivery) is tuple for delivery in out.deliveries)
        self.into.note((packets, entries, sent, sent_entries, multicasts, delivered, others), ns)


class Fitted:
    """A cost model, and how near it is to what was measured."""

    def __init__(self, costs: CostModel, steps: int, error: float, worst: float) -> None:
        self.costs = costs
        self.steps = steps  # that were measured
        self.error = error  # mean distance, as a share of what was measured
        self.worst = worst  # of the kind that fits worst


def usual_runs(protocol: str, messages: int = 400, large: int = 0) -> list[SimulationConfig]:
    """Runs of a protocol with headers of several sizes: small and large groups, much overlap; and
    a few messages in a group of `large`, if the model is to be used for such.

    A protocol without a leader does not care that process 0 leads groups it is not in. Where there
    are subgroups, the size of a header follows from how many: few and many are run, too.
    """
    workload = Workload(every_us=300, reply=0.3)

    def run(
        members: int,
        groups: tuple[GroupConfig, ...] = (),
        subgroups: int = 0,
        messages: int = messages,
    ) -> SimulationConfig:
        return SimulationConfig(
            protocol=protocol,
            members=members,
            groups=groups,
            messages=messages,
            workload=workload,
            sites=even_sites(members, subgroups),
            checks=False,
        )

    alone = [run(n) for n in (3, 8, 24, 64)]
    if large:
        alone.append(run(large, messages=-(-messages // 20)))
    overlap = [run(24, overlapping_groups(24, 24, size, leader=0)) for size in (2, 4, 8, 12)]
    if not choose(None, protocol).has_subgroups:
        return alone + overlap
    return alone + overlap + [run(n, subgroups=k) for n, k in SPLITS]


def measure(runs: Iterable[SimulationConfig], clock: Clock) -> Measurements:
    """Run them all, and look at the clock."""
    measurements = Measurements(clock)
    for config in runs:
        machines = [Measured(machine, measurements) for machine in processes(config)]
        simulation = build(config, machines)
        with no_collection():
            simulation.start()
            simulation.run(limits_of(config))
    return measurements


def fitted(measurements: Measurements) -> Fitted:
    """The cost model that explains the measurements best."""
    kinds = {k: ns for k, ns in measurements.taken_ns.items() if len(ns) >= LEAST_STEPS}
    if not kinds:
        raise ValueError(f"no kind of step was seen {LEAST_STEPS} times: measure longer runs")
    rows = list(kinds)
    took = [median(ns) / 1000 for ns in kinds.values()]
    seen = [len(ns) for ns in kinds.values()]
    # A share off counts the same for a cheap step and for a dear one.
    found = fit(rows, took, [n / us**2 for n, us in zip(seen, took, strict=True)])
    off = [abs(_dot(row, found) - us) / us for row, us in zip(rows, took, strict=True)]
    costs = CostModel(**{name: round(us, 4) for name, us in zip(FEATURES, found, strict=True)})
    mean = sum(n * share for n, share in zip(seen, off, strict=True)) / sum(seen)
    return Fitted(costs, sum(seen), round(mean, 4), round(max(off), 4))


def _dot(row: Sequence[float], found: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(row, found, strict=True))
