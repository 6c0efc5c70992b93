"""From coordinates to a run: groups and their leaders, the workload, the network, faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Literal

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.experiments.cells import celled_groups
from ordercast.experiments.coordinates import OF_VARIANTS, Coordinates
from ordercast.experiments.crashing import check_crashes
from ordercast.experiments.delays import delay_of
from ordercast.experiments.moving import check_moves
from ordercast.experiments.variants import protocol_of
from ordercast.placement.components import strong_components, weak_components
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.config import (
    GroupConfig,
    SimulationConfig,
    even_sites,
    overlapping_groups,
)
from ordercast.simulation.costs import CostModel
from ordercast.simulation.faults import Crash, Fault, Heal, Partition
from ordercast.simulation.workload import Planned, Workload

Groups = Mapping[GroupId, frozenset[ProcessId]]
QUIET_MS = 600_000.0  # a run with long waits for repeated words comes to rest after minutes
ENTRIES = ("receive_entry_us", "send_entry_us", "destination_entry_us")  # of a cost model


class Saturating(Workload, frozen=True, kw_only=True):
    """Equally many messages of every sender to each of its groups, all at the start: the window
    sets the pace."""

    def plan(
        self, messages: int, groups_of: Mapping[ProcessId, tuple[GroupId, ...]], rng: Random
    ) -> list[Planned]:
        """In turn to each group of the sender. Senders begin one after the other, in any order."""
        senders = [p for p in self.senders or sorted(groups_of) if groups_of.get(p)]
        rng.shuffle(senders)
        each, rest = divmod(messages, sum(len(groups_of[p]) for p in senders))
        planned = []
        for k, p in enumerate(senders):
            groups = groups_of[p]
            planned.append(Planned(1 + k, p, groups * each + groups[:rest]))
            rest -= min(rest, len(groups))
        return planned


def arranged(
    run: Coordinates,
    costs: CostModel | None = None,
    trace: Literal["application", "protocol"] = "application",
) -> SimulationConfig:
    """The run at these coordinates; `ValueError` for coordinates that contradict each other."""
    if run.senders > run.members:
        raise ConfigError(f"senders = {run.senders} and members = {run.members}: at most all send")
    if run.crashes >= run.members:
        raise ConfigError(f"crashes = {run.crashes} and members = {run.members}: one must stay")
    if run.crashes:
        check_crashes(run)
    if run.moves:
        check_moves(run)
    if run.subgroups and not PROTOCOLS[run.protocol].has_subgroups:
        raise ConfigError(f"subgroups = {run.subgroups}: {run.protocol!r} has none; write 0")
    return SimulationConfig(
        protocol=protocol_of(run),
        members=run.members + run.sequencers,
        groups=_groups(run),
        messages=run.messages,
        workload=_workload(run),
        loss=run.loss,
        duplicate=run.duplicate,
        delay=delay_of(run.delay),
        fifo=run.fifo,
        broadcast=run.broadcast,
        faults=(*_crashes(run), *_outage(run)),
        seed=run.seed,
        options=_options(run),
        window=run.window or None,
        sites=_sites(run),
        trace=trace,
        checks=False,  # the sweep looks at them; here runs are large and many
        costs=_costs(run, costs),
        quiet_ms=QUIET_MS,
    )


def _options(run: Coordinates) -> Options:
    given = {key: value for key, value in run.options if key not in OF_VARIANTS}
    return Options(hearsay=run.hearsay, **given)


def _costs(run: Coordinates, costs: CostModel | None) -> CostModel | None:
    """All work may be dearer, and entries of headers once more. A packet takes its time on the
    line of whoever sends it, and of whoever gets it."""
    if costs is not None:
        costs = _dearer(costs, CostModel.__struct_fields__, run.work_cost)
        costs = _dearer(costs, ENTRIES, run.entry_cost)
    if run.megabits:
        costs = costs or CostModel()
        costs = msgspec.structs.replace(costs, byte_us=costs.byte_us + 8 / run.megabits)
    return costs


def _dearer(costs: CostModel, names: Sequence[str], times: float) -> CostModel:
    return msgspec.structs.replace(costs, **{name: times * getattr(costs, name) for name in names})


def _workload(run: Coordinates) -> Workload:
    kind = Saturating if run.workload == "saturating" else Workload
    return kind(
        senders=tuple(range(run.senders)) if run.senders else None,
        every_us=run.every_us,
        burst=run.burst,
        reply=run.reply,
        depth=run.depth,
        size=run.size,
    )


def _sites(run: Coordinates) -> tuple[str, ...]:
    """One for each subgroup. Sequencers, if there are any, are at none."""
    sites = even_sites(run.members, run.subgroups)
    return (*sites, *[""] * run.sequencers) if sites else ()


def _half_way_ms(run: Coordinates) -> float:
    """When half of the messages are sent, if they are paced."""
    return 1 + run.messages / run.burst * run.every_us / 2000


def _crashes(run: Coordinates) -> tuple[Crash, ...]:
    last = range(run.members - run.crashes, run.members)
    return tuple(Crash(p, _half_way_ms(run)) for p in last)


def _outage(run: Coordinates) -> tuple[Fault, ...]:
    if not run.outage_ms:
        return ()
    start = _half_way_ms(run)
    return (Partition(((run.members - 1,),), start), Heal(start + run.outage_ms))


# -- groups and their leaders ---------------------------------------------------------------------


def _groups(run: Coordinates) -> tuple[GroupConfig, ...]:
    """On a ring, along a line or in cells, and led as the protocol needs it."""
    protocol = PROTOCOLS[run.protocol]
    groups = _in_cells(run) if run.cell else _on_a_ring(run) if run.ring else _along_a_line(run)
    hosts = range(run.members, run.members + run.sequencers)
    if hosts:
        return _with_leaders(groups, spread(together(protocol, _members(groups)), hosts))
    if protocol.together is not None:
        parts = together(protocol, _members(groups))
        first = {g: groups[min(part) - 1].members[0] for part in parts for g in part}
        return _with_leaders(groups, first)
    return groups


def _on_a_ring(run: Coordinates) -> tuple[GroupConfig, ...]:
    return overlapping_groups(run.members, run.groups, run.group_size)


def _along_a_line(run: Coordinates) -> tuple[GroupConfig, ...]:
    """From the first member to the last; a group meets none but its neighbours."""
    places, size = run.members - run.group_size, run.group_size
    firsts = [g * places // max(run.groups - 1, 1) for g in range(run.groups)]
    if any(later < first + size for first, later in zip(firsts, firsts[2:], strict=False)):
        raise ConfigError(
            f"ring = false with {run.members} members and {run.groups} groups of {size}: a group "
            "meets the next but one; write more members or a smaller group_size"
        )
    return tuple(GroupConfig(members=tuple(range(f, f + size))) for f in firsts)


def _in_cells(run: Coordinates) -> tuple[GroupConfig, ...]:
    """They depend on the overlap and the seed, and on nothing else."""
    found = celled_groups(
        members=run.members,
        cell=run.cell,
        groups=run.groups,
        size=run.group_size,
        outside=run.outside,
        rng=Random(f"{run.seed} {run.outside:g}"),
    )
    return tuple(GroupConfig(members=tuple(sorted(each))) for each in found.values())


def _members(groups: Sequence[GroupConfig]) -> Groups:
    return {g: frozenset(group.members) for g, group in enumerate(groups, 1)}


def _with_leaders(
    groups: Sequence[GroupConfig], leaders: Mapping[GroupId, ProcessId]
) -> tuple[GroupConfig, ...]:
    return tuple(
        msgspec.structs.replace(group, leader=leaders[g]) for g, group in enumerate(groups, 1)
    )


def largest_part(config: SimulationConfig) -> float:
    """The share of the groups that must have one sequencer, at most."""
    groups = _members(config.groups)
    protocol = config.protocol_of(config.groups[0])
    return max(map(len, together(protocol, groups))) / len(groups)


def together(protocol: type[OrderingProtocol], groups: Groups) -> list[frozenset[GroupId]]:
    """The sets of groups that one sequencer must have, for this protocol."""
    if protocol.together == "strong":
        return strong_components(groups)
    if protocol.together == "weak":
        return weak_components(groups)
    return [frozenset((g,)) for g in groups]


def spread(
    parts: Iterable[frozenset[GroupId]], hosts: Sequence[ProcessId]
) -> dict[GroupId, ProcessId]:
    """The sequencer of each group: the largest part first, each to whoever has the least."""
    load = dict.fromkeys(hosts, 0)
    place: dict[GroupId, ProcessId] = {}
    for part in sorted(parts, key=lambda part: (-len(part), min(part))):
        host = min(hosts, key=lambda h: (load[h], h))
        load[host] += len(part)
        place.update(dict.fromkeys(part, host))
    return place
