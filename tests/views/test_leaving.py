"""Whoever numbers the groups of others and wants to leave the cluster gets away."""

from __future__ import annotations

import pytest

from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import ClusterConfig, Depart
from ordercast.simulation.config import GroupConfig
from sweep.cluster_oracle import cluster_complaints, run, settled_view

PLACED = [name for name, page in PROTOCOLS.items() if page.together is not None]


@pytest.mark.parametrize("protocol", PLACED)
@pytest.mark.parametrize("hosts", [2, 3])
def test_a_node_that_numbers_groups_of_one_member_each_gets_away(hosts: int, protocol: str) -> None:
    config = ClusterConfig(
        protocol=PROTOCOLS[protocol],
        hosts=hosts,
        groups=tuple(GroupConfig(members=(h,)) for h in range(1, hosts) for _ in range(3)),
        faults=(Depart(0, at_ms=400.0),),
        messages=20,
        cluster=ClusterOptions(heartbeat_ms=20, suspect_ms=100),
    )
    done = run(config)
    assert cluster_complaints(done) == []
    assert set(settled_view(done).pids) == set(range(1, hosts))
