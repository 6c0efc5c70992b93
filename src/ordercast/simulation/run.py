"""Run a simulation from its config."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.whereabouts import Whereabouts
from ordercast.process.given import GivenGroups
from ordercast.simulation.agenda import TICKS_PER_MS, Agenda
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.engine import EndReason, Limits, Machine, Simulation
from ordercast.simulation.faults import Partition
from ordercast.simulation.log import Declared
from ordercast.simulation.network import Medium
from ordercast.simulation.outcome import Outcome, Statistics
from ordercast.simulation.seats import Roster
from ordercast.simulation.timed import TimedSimulation

EVERYBODY_ALIKE: Mapping[ProcessId, float] = {}


def simulate(config: SimulationConfig) -> Outcome:
    """Run it. The same config gives the same outcome in every interpreter."""
    simulation = build(config, processes(config))
    try:
        with no_collection():
            simulation.start()
            ended = simulation.run(limits_of(config))
    except Exception as error:
        error.add_note(f"in a simulated run with seed={config.seed}, tick {simulation.now}")
        raise
    if ended == "quiescent":
        simulation.finish()
    return outcome(config, simulation, ended)


def processes(config: SimulationConfig) -> list[GivenGroups]:
    """One machine per process, with links where the protocol needs more than this network."""
    partitions = any(isinstance(fault, Partition) for fault in config.faults)
    network = config.network.network_class(partitions=partitions)
    options = consuming(config.options, config.consume_ms)
    out = Output()  # one for all: each step's effects are carried out before the next step
    made = [
        GivenGroups(p, network=network, options=options, out=out) for p in range(config.members)
    ]
    whereabouts = {p: Whereabouts(site) for p, site in enumerate(config.sites) if site}
    for process in made:
        process.locate(whereabouts)
    return made


def build(config: SimulationConfig, machines: Sequence[Machine]) -> Simulation:
    """A run that is ready to start, with these machines."""
    agenda = Agenda()
    medium = Medium(config.network, config.members, agenda.packets, _random(config, "network"))
    rosters = {
        g: Roster(
            config.protocol_of(group),
            group.members,
            group.members[0] if group.leader is None else group.leader,
            guests=group.guests,
        )
        for g, group in config.group_list()
    }
    sizes = {g: len(roster.members) for g, roster in rosters.items()}
    kind = Simulation if config.costs is None else TimedSimulation
    simulation = kind(
        machines,
        [
            config.workload.application(sizes, _random(config, f"application {p}"))
            for p in range(config.members)
        ],
        rosters,
        agenda,
        medium,
        size=config.workload.size,
        window=config.window,
        consume_ticks=consumption(config.consume_ms, config.members, dict(config.slow_consumers)),
        watch=config.trace == "protocol",
        checks=config.checks,
    )
    if isinstance(simulation, TimedSimulation):
        assert config.costs is not None
        simulation.give_processors(config.costs)
    for planned in config.workload.plan(
        config.messages, config.groups_of(), _random(config, "workload")
    ):
        act = partial(simulation.say, planned.process, planned.groups)
        agenda.acts[planned.tick].append(act)
    for fault in config.faults:
        agenda.acts[_ticks(fault.at_ms)].append(partial(fault.apply, simulation))
    return simulation


def consumption(
    consume_ms: float | None, processes: int, slow: Mapping[ProcessId, float] = EVERYBODY_ALIKE
) -> tuple[int, ...]:
    """How many ticks each application takes to consume; none if applications do not consume."""
    if consume_ms is None:
        return ()
    return tuple(_ticks(slow.get(p, consume_ms)) for p in range(processes))


def consuming(options: Options, consume_ms: float | None) -> Options:
    """The options of machines whose applications consume, if they do."""
    if consume_ms is None:
        return options
    return msgspec.structs.replace(options, driver_consumes=True)


def outcome(config: SimulationConfig, simulation: Simulation, ended: EndReason) -> Outcome:
    """What there is to say of a run that has ended."""
    groups = tuple(
        Declared(g, roster.members, roster.protocol.declaration)
        for g, roster in simulation.rosters.items()
    )
    return Outcome(
        f"seed-{config.seed}",
        ended,
        statistics_of(simulation),
        groups,
        simulation.log,
        tuple(simulation.first_faults),
        simulation.processors if isinstance(simulation, TimedSimulation) else None,
    )


def statistics_of(simulation: Simulation) -> Statistics:
    medium = simulation.medium
    delivered = simulation.log.deliveries_per_step()
    return Statistics(
        events=simulation.events,
        simulated_ms=simulation.last_event / TICKS_PER_MS,
        multicasts=sum(seat.sent for seats in simulation.seats for seat in seats.values()),
        deliveries=sum(delivered),
        unsent=simulation.unsent(),
        packets=medium.packets_sent,
        packets_of={kind.__name__: count for kind, count in medium.packets_of.items()},
        payload_bytes=sum(medium.bytes_from),
        most_bytes_sent=max(medium.bytes_from),
        lost=medium.lost,
        cut=medium.cut,
        duplicates=medium.duplicated,
        missed=simulation.missed,
        timers=simulation.timers_fired,
        consumptions=simulation.consumptions,
        retransmissions=simulation.notes["retransmit"],
        held_back=sum(delivered) - len(delivered),
        most_held_back=max(delivered, default=1) - 1,
        faults=simulation.faults,
    )


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause garbage collection. A run makes no reference cycles, and looking for them among all
    that is under way and in the trace takes up to a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def limits_of(config: SimulationConfig) -> Limits:
    """When the run is stopped though it is not over."""
    return Limits(
        ticks=_ticks(config.limit_ms),
        events=config.limit_events,
        quiet=_ticks(config.quiet_ms),
    )


def _random(config: SimulationConfig, purpose: str) -> Random:
    # A stream of its own for each purpose: another delay does not change what is said. Seeding
    # with a text does not depend on the hash seed.
    return Random(f"ordercast {config.seed} {purpose}")


def _ticks(ms: float) -> int:
    return max(1, round(ms * TICKS_PER_MS))
