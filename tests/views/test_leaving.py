"""Whoever numbers the groups of others and wants to leave the cluster gets away."""

from __future__ import annotations

from typing import cast

import pytest

from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import ClusterConfig, Depart
from ordercast.simulation.config import GroupConfig
from ordercast.views.changes import Changes, Groups
from ordercast.views.headers import LeaveConfirmed
from sweep.cluster_oracle import cluster_complaints, run, settled_view

GROUP = 5
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


def test_only_the_last_wish_to_be_out_of_a_group_is_confirmed() -> None:
    """The word about a former one was on its way while this node wanted in, and out again: the
    change that lets it in may be under way."""
    changes, groups = Changes(2), cast(Groups, None)
    for _ in range(2):
        changes.want_out(groups, GROUP)
    assert changes.unconfirmed == {GROUP: 2}
    for number, is_out in ((1, False), (3, False), (2, True)):
        changes._on_leave_confirmed(groups, 0, LeaveConfirmed(0, GROUP, number))
        assert changes.is_out_for_good(GROUP) is is_out
