"""Why these protocols say scope "group": across overlapping groups the order is really lost.

Each group by itself keeps its order (arena `overlapping` of the promises). Here the same kind of
run breaks the form of the property that looks across groups, so a wider promise would be false.
"""

from __future__ import annotations

import pytest

from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import SimulationConfig, Uniform, Workload, overlapping_groups, simulate
from ordercast.trace.oracle import verdicts

SEEDS = range(40)
ACROSS = {
    "fifo": ("fifo.group", "fifo.global"),
    "vector": ("causal.group", "causal.global"),
    "two_layered": ("causal.group", "causal.global"),
    "sequencer_pb": ("total.group", "total.pairwise"),
    "sequencer_bb": ("total.group", "total.pairwise"),
    "javagroups": ("total.group", "total.pairwise"),
    "agreed": ("total.group", "total.pairwise"),
}


def run(protocol: str, seed: int) -> dict[str, str]:
    config = SimulationConfig(
        protocol=protocol,
        members=4,
        groups=overlapping_groups(4, 2, 3),
        messages=6,
        workload=Workload(reply=0.9, depth=4, burst=2),
        delay=Uniform(500, 5000),
        seed=seed,
    )
    return verdicts(simulate(config).events())


@pytest.mark.parametrize(("protocol", "inside", "across"), [(p, *f) for p, f in ACROSS.items()])
def test_the_order_holds_in_each_group_and_is_lost_across_groups(
    protocol: str, inside: str, across: str
) -> None:
    assert PROTOCOLS[protocol].declaration.scope == "group"
    found = [run(protocol, seed) for seed in SEEDS]
    assert {one[inside] for one in found} == {"ok"}
    lost = sum(one[across] == "violated" for one in found)
    assert lost > 0, f"{across} held in all {len(SEEDS)} runs"
    print(f"{protocol}: {across} lost in {lost} of {len(SEEDS)} runs")


def test_every_protocol_that_promises_an_order_in_groups_is_shown_to_promise_no_more() -> None:
    ordered = {
        name
        for name, protocol in PROTOCOLS.items()
        if protocol.declaration.order != "none" and protocol.declaration.scope == "group"
    }
    assert ordered == set(ACROSS)
