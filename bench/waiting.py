"""How much of the waiting is needless: frames held back though all they depend on is delivered.

What a frame depends on is taken from what the applications did, not from any header: a send depends
on all that its process sent and delivered before. Where the protocol's order is FIFO, on what the
process sent before. At every step of a process each frame that is held there is looked at. It waits
for good reason if something it depends on is owed to this process and not delivered yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from ordercast.core.events import Event, Multicast, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import SimulationConfig, Uniform, Workload, overlapping_groups
from ordercast.simulation.payload import unpack
from ordercast.simulation.run import build, limits_of

SEEDS = range(200)
MEMBERS = 4
TALK = Workload(reply=0.9, depth=4, burst=2)
ONE, TWO, RING = (overlapping_groups(MEMBERS, *shape) for shape in ((1, 4), (2, 3), (4, 2)))
AT_ONCE = Options(resilience=0)  # a send is not held up, so its past is that of its multicast
EXPLAINED = ("vector", "cbcast", "fast", "fast_p", "relative", "slow")


class Frame(NamedTuple):
    """A frame, by what its sender counted."""

    group: GroupId
    sender: ProcessId
    n: int


class Waits(msgspec.Struct):
    """What was seen at all steps of all processes."""

    held: int = 0  # frames held, each counted at every step of its process
    needless: int = 0  # ... that missed nothing
    hidden: int = 0  # frames that had come, were not delivered, and were not named as held
    witness: str = ""  # the first needless wait

    @property
    def share(self) -> float:
        """The needless part of the waiting."""
        return self.needless / self.held if self.held else 0.0


class Onlooker:
    """Sees what the applications of a run do, and what their machines hold."""

    def __init__(self, config: SimulationConfig, protocol: type[OrderingProtocol]) -> None:
        self.seed = config.seed
        self.declared = protocol.declaration
        self.groups_of = config.groups_of()
        self.past: dict[ProcessId, set[Frame]] = {p: set() for p in self.groups_of}
        self.sent: dict[ProcessId, list[Frame]] = {p: [] for p in self.groups_of}
        self.delivered: dict[ProcessId, set[Frame]] = {p: set() for p in self.groups_of}
        self.arrived: dict[ProcessId, set[Frame]] = {p: set() for p in self.groups_of}
        self.needs: dict[Frame, frozenset[Frame]] = {}  # what each frame depends on
        self.waits = Waits()

    def multicasts(self, p: ProcessId, g: GroupId) -> None:
        """The application at p sends to g."""
        frame = Frame(g, p, sum(1 for one in self.sent[p] if one.group == g) + 1)
        self.needs[frame] = frozenset(
            self.sent[p] if self.declared.order == "fifo" else self.past[p]
        )
        self.sent[p].append(frame)
        self.past[p].add(frame)

    def delivers(self, p: ProcessId, frame: Frame) -> None:
        """The application at p is handed a frame."""
        self.delivered[p].add(frame)
        self.past[p] |= {frame, *self.needs[frame]}

    def looks(self, p: ProcessId, held: Iterable[Frame]) -> None:
        """After a step of p."""
        named = set(held)
        for frame in sorted(named):
            self.waits.held += 1
            if not self.missing(p, frame):
                self.waits.needless += 1
                self.waits.witness = self.waits.witness or f"seed {self.seed}: {frame} at {p}"
        self.waits.hidden += len(self.arrived[p] - self.delivered[p] - named)

    def missing(self, p: ProcessId, frame: Frame) -> list[Frame]:
        """What the frame depends on, is owed to p and was not delivered there."""
        lacking = self.needs[frame] - self.delivered[p]
        return [one for one in lacking if one.group in self.groups_of[p]]


class WatchedGroups(GivenGroups):
    """A process with somebody looking on."""

    def __init__(self, me: ProcessId, onlooker: Onlooker, options: Options) -> None:
        super().__init__(me, network=onlooker.declared.network, options=options)
        self.onlooker = onlooker

    def step(self, events: Iterable[Event]) -> Output:
        """One step, and a look at what is held after it."""
        events = list(events)
        for event in events:
            if isinstance(event, Multicast):
                self.onlooker.multicasts(self.me, event.group)
            elif isinstance(event, Receive) and event.payload:
                frame = Frame(event.group, event.src, unpack(event.payload)[0])
                self.onlooker.arrived[self.me].add(frame)
        out = super().step(events)
        for delivery in out.deliveries:
            if isinstance(delivery, tuple):
                self.onlooker.delivers(self.me, Frame(*delivery[:3]))
        held = [w for protocol in self.groups.every() for w in protocol.held_back()]
        self.onlooker.looks(self.me, (Frame(w.group, w.sender, w.n) for w in held))
        return out


def waits(protocol: str | type[OrderingProtocol], seeds: Iterable[int]) -> Waits:
    """What is held in simulated runs on the network that the protocol needs, without crashes."""
    made = PROTOCOLS[protocol] if isinstance(protocol, str) else protocol
    declared = made.declaration
    total = Waits()
    for seed in seeds:
        config = SimulationConfig(
            protocol=made,
            members=MEMBERS,
            groups=(ONE, TWO, RING)[seed % 3] if declared.scope == "domain" else ONE,
            messages=8,
            workload=TALK,
            delay=Uniform(500, 3000),
            fifo=declared.network in ("N2f", "N2"),
            duplicate=0.1 if declared.network == "N1" else 0.0,
            options=AT_ONCE,
            seed=seed,
        )
        onlooker = Onlooker(config, made)
        processes = [WatchedGroups(p, onlooker, config.options) for p in range(config.members)]
        simulation = build(config, processes)
        simulation.start()
        assert simulation.run(limits_of(config)) == "quiescent", f"seed {seed} never came to rest"
        seen = onlooker.waits
        total = Waits(
            total.held + seen.held,
            total.needless + seen.needless,
            total.hidden + seen.hidden,
            total.witness or seen.witness,
        )
    return total


def run() -> dict[str, object]:
    """The share of needless waiting, for the protocols of causal order."""
    figures: dict[str, object] = {}
    for name in EXPLAINED:
        seen = waits(name, SEEDS)
        figures[f"{name}: frames held, at all steps"] = seen.held
        figures[f"{name}: needless, per cent"] = 100 * seen.share
    return figures
