"""The same run in a cluster: where a process crashes, its groups go on in a next view.

The nodes form a cluster and their groups before anything is said. From then on it is the run of the
config, its faults at the same times after the beginning.
"""

from __future__ import annotations

import msgspec

from ordercast.core.whereabouts import Whereabouts
from ordercast.errors import ConfigError
from ordercast.membership.options import ClusterOptions
from ordercast.simulation.clustered import ClusterConfig, ClusterFault, PartitionHosts
from ordercast.simulation.config import GroupConfig, SimulationConfig
from ordercast.simulation.faults import Crash, Fault, Heal, Partition

BEGIN_MS = 2000  # all are in their groups, also where packets are lost
REST_MS, AT_MOST_MS = 1000, 600_000
DETECTS = ClusterOptions(heartbeat_ms=10, suspect_ms=100)  # a crash is noticed after that


def formed(config: SimulationConfig, cluster: ClusterOptions = DETECTS) -> ClusterConfig:
    """The run of this config in a cluster; `ConfigError` if it cannot be one."""
    for name in ("window", "slow_consumers"):
        if getattr(config, name):
            raise ConfigError(
                f"{name}={getattr(config, name)} where processes crash: the groups change as nodes "
                f"of a cluster agree, and a simulated cluster has no {name}"
            )
    return ClusterConfig(
        protocol=config.protocol_of(GroupConfig(members=(0,))),
        hosts=config.members,
        groups=tuple(msgspec.structs.replace(group, leader=None) for group in config.groups),
        sites=tuple(map(Whereabouts, config.sites)),
        messages=config.messages,
        workload=msgspec.structs.replace(
            config.workload, start_ms=BEGIN_MS + config.workload.start_ms
        ),
        network=config.network,
        faults=tuple(map(_later, config.faults)),
        seed=config.seed,
        options=config.options,
        consume_ms=config.consume_ms,
        cluster=cluster,
        costs=config.costs,
        trace=config.trace,
        until_ms=AT_MOST_MS,
        rest_ms=REST_MS,
    )


def _later(fault: Fault) -> ClusterFault:
    at_ms = BEGIN_MS + fault.at_ms
    if isinstance(fault, Partition):
        return PartitionHosts(fault.sides, at_ms=at_ms)
    if isinstance(fault, Crash | Heal):
        return msgspec.structs.replace(fault, at_ms=at_ms)
    raise ConfigError(f"{fault}: in a cluster only its nodes change views")
