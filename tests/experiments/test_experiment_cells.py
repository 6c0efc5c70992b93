"""Runs of the sequencing service in a sweep: cells, contexts, lines of limited width, moves."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from ordercast.errors import ConfigError
from ordercast.experiments.arrange import arranged, largest_part, spread
from ordercast.experiments.cells import celled_groups
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.moving import moves_ms
from ordercast.experiments.trial import Row, Trial, run_trial
from ordercast.simulation import CostModel

COSTS = CostModel(receive_us=8, send_us=2, destination_us=4, receive_entry_us=0.2)
CELLS = Coordinates(
    protocol="sequencing",
    members=32,
    cell=8,
    groups=40,
    group_size=5,
    sequencers=2,
    messages=200,
    workload="saturating",
    window=2,
    delay="constant 100",
)
MOVES = Coordinates(
    protocol="sequencing",
    members=3,
    group_size=3,
    sequencers=2,
    messages=60,
    every_us=100.0,
    fifo=True,
    delay="constant 100",
    moves=2,
)


def row_of(at: Coordinates, **changes: object) -> Row:
    here = msgspec.structs.replace(at, **changes)
    trial = Trial(run="one", at=here, costs=COSTS, trace="application", needless=False, keep="none")
    return run_trial(trial, Path("nowhere"))


@pytest.mark.parametrize(
    ("outside", "least", "most"), [(0.0, 0, 0), (0.2, 150, 250), (1.0, 1e3, 1e3)]
)
def test_a_share_of_the_members_comes_from_outside_the_cell(
    outside: float, least: float, most: float
) -> None:
    groups = celled_groups(members=200, cell=8, groups=200, size=5, outside=outside, rng=Random(1))
    assert {len(members) for members in groups.values()} == {5}
    strangers = sum(p // 8 != g % 25 for g, members in groups.items() for p in members)
    assert least <= strangers <= most


@pytest.mark.parametrize(("members", "size"), [(20, 5), (8, 5), (32, 9)])
def test_cells_that_cannot_be_are_refused(members: int, size: int) -> None:
    with pytest.raises(ConfigError, match="cell = 8"):
        arranged(msgspec.structs.replace(CELLS, members=members, group_size=size))


def test_cells_without_strangers_are_the_parts_of_total_order_and_of_no_other() -> None:
    assert largest_part(arranged(CELLS)) == 1 / 4
    hybrid = msgspec.structs.replace(CELLS, protocol="sequencing_hybrid")
    assert largest_part(arranged(hybrid)) == 1 / 40
    assert largest_part(arranged(msgspec.structs.replace(CELLS, outside=1.0))) > 1 / 4


def test_groups_that_belong_together_have_one_sequencer_and_the_load_is_even() -> None:
    parts = [frozenset(range(k * 10, k * 10 + 10)) for k in range(6)]
    place = spread(parts, (100, 101, 102))
    assert all(len({place[g] for g in part}) == 1 for part in parts)
    loads = [list(place.values()).count(host) for host in (100, 101, 102)]
    assert loads == [20, 20, 20]


def test_every_member_sends_equally_many_messages_to_each_of_its_groups() -> None:
    config = arranged(CELLS)
    planned = config.workload.plan(600, config.groups_of(), Random(1))
    sent = [(one.process, g) for one in planned for g in one.groups]
    assert len(sent) == 600
    assert {sent.count(pair) for pair in sent} == {3}


def test_two_sequencers_take_more_than_one_where_cells_are_apart() -> None:
    alone, both = row_of(CELLS, sequencers=1), row_of(CELLS)
    assert (alone["verdict"], both["verdict"]) == ("kept", "kept")
    assert both["throughput_per_s"] > 1.5 * alone["throughput_per_s"]
    assert 0 < both["context_mean"] <= 9, "at most the other groups of the cell"


def test_bytes_take_their_time_on_a_line() -> None:
    config = arranged(msgspec.structs.replace(CELLS, megabits=8.0), COSTS)
    assert config.costs is not None
    assert config.costs.byte_us == 1.0
    assert config.costs.receive_us == COSTS.receive_us
    assert arranged(CELLS, COSTS).costs == COSTS


def test_bodies_apart_leave_the_sequencer_without_bodies() -> None:
    one = Coordinates(
        protocol="sequencing", members=4, group_size=4, sequencers=1, messages=40, size=100
    )
    through = row_of(one)
    apart = row_of(one, options=(("bodies_apart", True),))
    assert through["most_bytes_sent"] == 40 * 4 * 100, "the sequencer sends every body to all"
    assert apart["most_bytes_sent"] < through["most_bytes_sent"] / 2
    assert apart["payload_bytes"] == 40 * 4 * 100


# -- moves ----------------------------------------------------------------------------------------


def test_what_is_sent_around_a_move_is_repeated_and_nothing_else() -> None:
    row = row_of(MOVES)
    assert row["verdict"] == "kept", row["witness"]
    assert (row["sent"], row["deliveries"]) == (60, 180)
    assert 0 < row["repeated"] < 30
    assert row["repeated_most"] <= row["repeated"]
    assert row["repeated_until_ms"] < 1.5, "a few hops after the order"
    assert row["repeated_delay_ms"] > row["other_delay_ms"]


def test_a_group_moves_without_its_bodies() -> None:
    small, large = row_of(MOVES), row_of(MOVES, size=1000)
    assert large["verdict"] == "kept", large["witness"]
    assert large["change_bytes"] == small["change_bytes"] > 0


def test_moves_divide_a_run_evenly() -> None:
    assert moves_ms(MOVES) == [602.0, 604.0]


@pytest.mark.parametrize(
    "changes",
    [{"protocol": "cbcast"}, {"sequencers": 1}, {"workload": "saturating"}, {"window": 2}],
)
def test_moves_where_nothing_can_move_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="moves = 2"):
        arranged(msgspec.structs.replace(MOVES, **changes))
