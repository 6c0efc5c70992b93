"""Features in pairs: every two settings that may meet, in clusters of groups that differ.

Every second row of each protocol is run here, beside its neighbour; `make sweep` runs each row
beside every other (`python -m sweep --arena pairs`).
"""

from __future__ import annotations

import pytest

from ordercast.core.protocol import Options
from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import ClusterConfig
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Crash
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload
from sweep.cluster_oracle import run
from sweep.covering import allowed_pairs, pairs_of
from sweep.pairs import PARAMETERS, excluded, pairs, rows, rows_of, runs_of
from sweep.trial import cluster_found, failures

RUNS = [(name, seed) for name in PROTOCOLS for seed in range(0, len(rows_of(name)), 2)]


@pytest.mark.parametrize(("protocol", "seed"), RUNS)
def test_groups_of_different_settings_at_the_same_nodes_keep_their_promises(
    protocol: str, seed: int
) -> None:
    found = failures(protocol, "pairs", seed)
    assert not found, "\n".join(map(str, found))


def test_every_pair_of_settings_that_may_meet_is_in_some_row() -> None:
    met = {pair for row in rows() for pair in pairs_of(PARAMETERS, row)}
    assert met == allowed_pairs(PARAMETERS, excluded).keys()
    assert {row["protocol"] for row in rows()} == PROTOCOLS.keys()


def groups(protocol: str, seed: int) -> tuple[GroupConfig, ...]:
    return pairs(PROTOCOLS[protocol], seed).groups


def test_groups_with_and_without_a_resilience_meet_in_one_machine() -> None:
    spanning = [name for name, page in PROTOCOLS.items() if page.declaration.scope == "domain"]
    for name in spanning:
        found = {
            (first.durability, third.durability)
            for first, _, third in (groups(name, seed) for seed in range(len(rows_of(name))))
        }
        assert any(one != other for one, other in found), name


def test_a_sweep_runs_each_row_beside_every_other() -> None:
    page = PROTOCOLS["sequencing"]
    configs = {pairs(page, seed).seed for seed in range(runs_of(page))}
    assert len(configs) == runs_of(page) == len(rows_of("sequencing")) * (len(rows()) - 1)


def test_a_sequencer_that_is_in_no_group_knows_the_eras_that_requests_name() -> None:
    """Host 2 numbers both groups and crashes. Host 4 numbers one of them from then on, and requests
    name what their senders have seen of the other one, in which host 4 has no part."""
    group = GroupConfig(members=(0, 1, 2, 3))
    config = ClusterConfig(
        protocol=PROTOCOLS["sequencing_hybrid"],
        groups=(group, group),
        messages=36,
        workload=Workload(every_us=24_000.0, burst=2, start_ms=200, reply=1.0, depth=2),
        network=NetworkModel(fifo=True),
        faults=(Crash(2, at_ms=380.59),),
        options=Options(retry_ms=20, gap_ms=20, status_ms=10, silence_ms=5, ack_delay_ms=2),
        cluster=ClusterOptions(heartbeat_ms=40, suspect_ms=200),
        until_ms=3600.0,
        rest_ms=250.0,
    )
    done = run(config)
    leaders = {view.leader for view in map(done.simulation.machines[0].view, (1, 2)) if view}
    assert 4 in leaders
    assert cluster_found(done) == []
