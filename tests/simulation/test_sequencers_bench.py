"""The experiment with several sequencers: its groups, and where they are numbered."""

from __future__ import annotations

from random import Random

import pytest

from bench.sequencers import CELL, SIZE, Even, celled_groups, placed, together
from ordercast.simulation import Constant, CostModel, GroupConfig, SimulationConfig, simulate


@pytest.mark.parametrize(
    ("outside", "least", "most"), [(0.0, 0, 0), (0.2, 150, 250), (1.0, 1e3, 1e3)]
)
def test_a_share_of_the_members_comes_from_outside_the_cell(
    outside: float, least: float, most: float
) -> None:
    groups = celled_groups(25, 200, outside, Random(1))
    assert {len(members) for members in groups.values()} == {SIZE}
    strangers = sum(p // CELL != g % 25 for g, members in groups.items() for p in members)
    assert least <= strangers <= most


def test_cells_without_strangers_are_the_components_of_total_order() -> None:
    groups = celled_groups(4, 40, 0.0, Random(1))
    assert len(together("sequencing", groups)) == 4
    assert len(together("sequencing_hybrid", groups)) == 40


def test_groups_that_belong_together_have_one_sequencer_and_the_load_is_even() -> None:
    parts = [frozenset(range(k * 10, k * 10 + 10)) for k in range(6)]
    place = placed(parts, (100, 101, 102))
    assert all(len({place[g] for g in part}) == 1 for part in parts)
    loads = [list(place.values()).count(host) for host in (100, 101, 102)]
    assert loads == [20, 20, 20]


def test_every_member_sends_equally_many_messages_to_each_of_its_groups() -> None:
    groups = (GroupConfig(members=(0, 1, 2), leader=4), GroupConfig(members=(2, 3), leader=4))
    config = SimulationConfig(
        protocol="sequencer_pb",
        members=5,
        groups=groups,
        workload=Even(each=3, reply=0.0),
        window=1,
        delay=Constant(100),
        costs=CostModel(receive_us=5),
    )
    outcome = simulate(config)
    assert outcome.statistics.multicasts == 3 * 5
    assert outcome.statistics.deliveries == 3 * (3 * 3 + 2 * 2)
