"""Arenas of whole clusters, where a run is judged by its trace and by where its nodes ended."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.simulation.clustered import ClusterConfig
from sweep.churn import churn
from sweep.every_step import cases, config_of
from sweep.pairs import pairs, runs_of
from sweep.placing import placing
from sweep.sites import sites
from sweep.visiting import visiting

Protocol = type[OrderingProtocol]

THOROUGH = ("sequencer_pb", "cbcast", "agreed", "javagroups")  # these are run most

ALWAYS = ("wellformed", "views", "vsync", "agreement")


class ClusterArena(msgspec.Struct, frozen=True):
    """A kind of run of a cluster."""

    name: str
    says: str
    config: Callable[[Protocol, int], ClusterConfig]
    seeds: Callable[[Protocol], int]  # how many a sweep runs
    one_loss: bool = False  # at a time: then a resilience keeps what any node delivered


def wanted(protocol: Protocol) -> tuple[str, ...]:
    """The properties that its groups must have in a trace: of survivors, so none is uniform."""
    plain = (name for name in protocol.declaration.promises if not name.endswith(".uniform"))
    return tuple(dict.fromkeys((*ALWAYS, *plain)))


def _primary(protocol: Protocol, seed: int) -> ClusterConfig:
    return churn(protocol, seed, "primary")


def _merge(protocol: Protocol, seed: int) -> ClusterConfig:
    return churn(protocol, seed, "merge")


def _many(protocol: Protocol) -> int:
    return 10_000 if protocol.declaration.name in THOROUGH else 1_000


def _fewer(protocol: Protocol) -> int:
    return 2_000 if protocol.declaration.name in THOROUGH else 500


def _step(protocol: Protocol, seed: int) -> ClusterConfig:
    return config_of(protocol, cases(protocol)[seed])


def _all_steps(protocol: Protocol) -> int:
    thorough = protocol.declaration.name in THOROUGH or protocol.together is not None
    return len(cases(protocol)) if thorough else 0


def _placed(protocol: Protocol) -> int:
    return 0 if protocol.together is None else 10_000


def _open(protocol: Protocol) -> int:
    return 0 if protocol.declaration.closed else _many(protocol)


def _sited(protocol: Protocol) -> int:
    return 10_000 if protocol.has_subgroups else 0


CLUSTERS: dict[str, ClusterArena] = {
    arena.name: arena
    for arena in (
        ClusterArena(
            "cluster", "nodes come, go, crash and are cut off; a majority goes on", _primary, _many
        ),
        ClusterArena(
            "cluster_merge", "the same; every side goes on, and they come together", _merge, _fewer
        ),
        ClusterArena("placing", "groups move between sequencers meanwhile", placing, _placed),
        ClusterArena("sites", "gateways crash, sites are cut off meanwhile", sites, _sited),
        ClusterArena("visiting", "guests come, go and become members meanwhile", visiting, _open),
        ClusterArena("pairs", "groups of different settings", pairs, runs_of, one_loss=True),
        ClusterArena(
            "cluster_steps", "each change, and a crash of each node at each step", _step, _all_steps
        ),
    )
}
