"""Moments of simulated runs: a node in some state, what came to it before, and what came next.

A run is watched at every step. Of each kind of state a few moments are kept, each of them with the
same chance, so that rare states are as many as common ones.
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

import msgspec

from fuzz.mutate import Seen
from ordercast.core.events import Event, Receive
from ordercast.core.ids import ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.agreement_table import Standing
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import ClusterConfig, ClusterSimulation, simulate_cluster
from ordercast.simulation.engine import Steps
from ordercast.simulation.network import NetworkModel
from ordercast.views.states import Lead
from sweep.ambush import is_idle
from sweep.churn import churn
from sweep.pairs import pairs
from sweep.placing import placing
from sweep.sites import sites

STATES = (
    "traffic", "after a crash", "joining", "entering a group", "view change", "group change",
    "moving", "blocked", "leaving",
)  # fmt: skip

FOLLOWING = 10  # steps that are kept after a moment
HEARD = 60  # packets that are kept of those that came to a node
LOOK_MS = 2.0  # so soon a node that was started is watched
MOURNING_MS = 80.0  # so long after a crash a state is one after a crash
AFTERMATH_MS = 250.0  # so long a run goes on after its last fault

Arena = Callable[[type[OrderingProtocol], int], ClusterConfig]


class Run(msgspec.Struct, frozen=True):
    """Which run: all of it follows from its number."""

    number: int
    protocol: str
    arena: str
    seed: int


class Moment(msgspec.Struct):
    """A node in a state that a run reached."""

    state: str
    run: Run
    ms: float
    node: bytes  # the process, pickled
    heard: tuple[Receive, ...]  # what came to it before
    gone: tuple[ProcessId, ...]  # processes that have ended
    is_lossy: bool
    following: list[tuple[Any, ...]]  # the batches of events that came to it next

    def process(self) -> Process:
        """An independent copy of it."""
        process: Process = pickle.loads(self.node)
        return process


# -- runs -----------------------------------------------------------------------------------------


def _merge(protocol: type[OrderingProtocol], seed: int) -> ClusterConfig:
    return churn(protocol, seed, "merge")


ARENAS: dict[str, Arena] = {
    "cluster": churn,
    "pairs": pairs,
    "cluster_merge": _merge,
    "placing": placing,
    "sites": sites,
}


def arenas_of(protocol: type[OrderingProtocol]) -> tuple[str, ...]:
    """Those in which it can run: only some protocols have groups that move, or subgroups."""
    found = ["cluster", "pairs", "cluster_merge"]
    if protocol.together is not None:
        found.insert(1, "placing")
    if protocol.has_subgroups:
        found.insert(1, "sites")
    return tuple(found)


def run_of(number: int) -> Run:
    """The protocols take turns, then the arenas of each, then seeds."""
    turn, which = divmod(number, len(PROTOCOLS))
    protocol = tuple(PROTOCOLS)[which]
    arenas = arenas_of(PROTOCOLS[protocol])
    turn += which  # not all of them begin with the same arena
    return Run(number, protocol, arenas[turn % len(arenas)], turn)


def config_of(run: Run) -> ClusterConfig:
    """The run without its end, in which everything comes to rest."""
    config = ARENAS[run.arena](PROTOCOLS[run.protocol], run.seed)
    last = max((fault.at_ms for fault in config.faults), default=0.0)
    return msgspec.structs.replace(
        config,
        checks=False,
        trace="application",
        until_ms=min(config.until_ms, last + AFTERMATH_MS),
    )


def moments_of(run: Run, of_each: int) -> tuple[list[Moment], Seen]:
    """Run it; up to so many moments of each kind of state, and the values that were said."""
    watcher = Watcher(run, of_each)
    config = config_of(run)
    faults = (watcher, *config.faults)
    watcher.is_lossy = is_lossy(config.network)
    simulate_cluster(msgspec.structs.replace(config, faults=faults))
    return watcher.kept(), watcher.seen


def is_lossy(network: NetworkModel) -> bool:
    """Does it lose, double or reorder packets, as datagrams do?"""
    return not network.fifo


# -- watching -------------------------------------------------------------------------------------


class Watcher:
    """A fault that does no harm: it watches every node from the start."""

    at_ms = 0.0

    def __init__(self, run: Run, of_each: int) -> None:
        self.run = run
        self.of_each = of_each
        self.rng = Random(f"moments {run.protocol} {run.arena} {run.seed}")
        self.seen = Seen()
        self.watched: set[ProcessId] = set()
        self.passed: Counter[str] = Counter()  # moments, by the kind of state
        self.moments: dict[str, list[Moment]] = {state: [] for state in STATES}
        self.gone: list[ProcessId] = []
        self.last_end_ms = -1e9
        self.is_lossy = False

    def apply(self, simulation: ClusterSimulation) -> None:
        """Watch those who are new."""
        for p, steps in enumerate(simulation.alive):
            if steps is not None and p not in self.watched:
                self.watched.add(p)
                process: Any = simulation.machines[p]
                simulation.alive[p] = Overheard(steps, process, self, simulation)
            elif steps is None and p in self.watched and p not in self.gone:
                self.gone.append(p)
                self.last_end_ms = simulation.now / TICKS_PER_MS
        at = simulation.now + round(LOOK_MS * TICKS_PER_MS)
        simulation.agenda.acts[at].append(partial(self.apply, simulation))

    def state_of(self, process: Process, ms: float) -> str:
        """Which kind of state this is."""
        agreement, changes = process.agreement, process.changes
        if agreement.view is None:
            return "joining"
        if process.blocked is not None:
            return "blocked"
        if agreement.standing in (Standing.LEAVING, Standing.OUT) or agreement.departure.going:
            return "leaving"
        if agreement.proposer.is_trying or agreement.acceptor.has_accepted:
            return "view change"
        if changes.prepared is not None or changes.lead is not Lead.IDLE or process.is_changing:
            return "moving" if _moves(process) else "group change"
        if ms - self.last_end_ms < MOURNING_MS:
            return "after a crash"
        return "entering a group" if changes.unmet else "traffic"

    def place_for(self, state: str) -> int | None:
        """Where the next moment of this kind is kept, if it is: a reservoir."""
        self.passed[state] += 1
        kept = self.moments[state]
        if len(kept) < self.of_each:
            kept.append(None)  # type: ignore[arg-type]  # filled at once
            return len(kept) - 1
        at = self.rng.randrange(self.passed[state])
        return at if at < self.of_each else None

    def kept(self) -> list[Moment]:
        """All moments."""
        return [moment for moments in self.moments.values() for moment in moments]


def _moves(process: Process) -> bool:
    """Does the change that is under way let another node number a group?"""
    changes = process.changes
    coming = [c.row for c in changes.prepared.groups] if changes.prepared is not None else []
    coming += changes.now.goal.values()
    rows = changes.directory.rows
    return any(r.entry.gid in rows and rows[r.entry.gid].leader != r.leader for r in coming)


class Overheard:
    """A node whose moments are kept."""

    def __init__(
        self, steps: Steps, process: Process, watcher: Watcher, simulation: ClusterSimulation
    ) -> None:
        self.steps = steps
        self.process = process
        self.watcher = watcher
        self.simulation = simulation
        self.heard: deque[Receive] = deque(maxlen=HEARD)
        self.followed: list[Moment] = []  # whose next steps are not all known

    def step(self, events: Iterable[Event]) -> Output:
        """As the node does; this may be a moment to keep."""
        batch = tuple(events)
        if not self.process.over and any(not is_idle(event) for event in batch):
            self._look()
        for moment in self.followed:
            moment.following.append(batch)
        self.followed = [m for m in self.followed if len(m.following) < FOLLOWING]
        for event in batch:
            if type(event) is Receive:
                self.heard.append(event)
        return self.steps.step(batch)

    def _look(self) -> None:
        watcher, ms = self.watcher, self.simulation.now / TICKS_PER_MS
        state = watcher.state_of(self.process, ms)
        at = watcher.place_for(state)
        if at is None:
            return
        self.process.out.clear()
        heard = tuple(self.heard)
        for packet in heard[-8:]:
            watcher.seen.note(packet.header)
        moment = Moment(
            state, watcher.run, ms, pickle.dumps(self.process, 5), heard, tuple(watcher.gone),
            watcher.is_lossy, [],
        )  # fmt: skip
        watcher.moments[state][at] = moment
        self.followed.append(moment)
