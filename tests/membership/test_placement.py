"""Where groups are sequenced: every rule of the sequencing service about places."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.placement.load import IDLE_WEIGHT, NEWEST_SHARE
from ordercast.placement.placement import Placement, Together

S, T, U = 101, 102, 103  # sequencers

seeds = st.integers(0, 2**32)


def placed(groups: dict[int, tuple[set[int], int]], *, together: Together = "strong") -> Placement:
    placement = Placement(together=together)
    for g, (members, host) in groups.items():
        placement.know(g, members, host)
    return placement


def send(placement: Placement, g: int, rate: float) -> None:
    """Measure until the average is there."""
    for _ in range(60):
        placement.measured(g, rate, {})


def at(placement: Placement, *hosts: int) -> list[float]:
    return [placement.load(h) for h in hosts]


# The load


def test_a_weight_counts_a_request_and_a_copy_for_each_member() -> None:
    placement = placed({1: ({1, 2, 3}, S)})
    send(placement, 1, 10.0)
    assert placement.weight(1) == pytest.approx(IDLE_WEIGHT + 10.0 * 4)


def test_a_rate_is_a_moving_average() -> None:
    placement = placed({1: (set(), S)})
    placement.measured(1, 100.0, {})
    assert placement.weight(1) == pytest.approx(IDLE_WEIGHT + 100.0 * NEWEST_SHARE, abs=0.001)
    placement.measured(1, 0.0, {})
    kept = 100.0 * NEWEST_SHARE * (1 - NEWEST_SHARE)
    assert placement.weight(1) == pytest.approx(IDLE_WEIGHT + kept, abs=0.001)


def test_members_that_come_and_go_change_the_weight_at_once() -> None:
    placement = placed({1: ({1, 2}, S)})
    send(placement, 1, 10.0)
    placement.joined(1, 3)
    assert placement.weight(1) == placement.load(S) == pytest.approx(41.0)
    placement.left(1, 3)
    assert placement.weight(1) == placement.load(S) == pytest.approx(31.0)


@given(seeds)
def test_a_load_is_exactly_the_sum_of_the_weights_there(seed: int) -> None:
    rng = random.Random(seed)
    placement = Placement(together="strong")
    for _ in range(60):
        g, p, host = rng.randrange(6), rng.randrange(5), rng.choice((S, T, U))
        if g not in placement.host:
            placement.know(g, {p}, host)
        else:
            change(placement, rng, g, p, host)
        for h in (S, T, U):
            there = [x for x, y in placement.host.items() if y == h]
            assert placement.load(h) == sum(map(placement.weight, there))
    assert set(placement.loads.loads) == set(placement.host.values())


def change(placement: Placement, rng: random.Random, g: int, p: int, host: int) -> None:
    match rng.randrange(7):
        case 0:
            placement.joined(g, p)
        case 1:
            placement.left(g, p)
        case 2:
            placement.settled(g, p)
        case 3:
            placement.moved(g, host)
        case 4:
            placement.know(g, {p}, host)
        case 5:
            placement.forget(g)
        case _:
            placement.measured(g, rng.random() * 1e6, {})


# New groups


def test_new_groups_spread_though_they_are_idle() -> None:
    placement = Placement(together="strong")
    assert [placement.place_new(g, (T, S, U)) for g in range(6)] == [T, S, U, T, S, U]


def test_a_new_group_goes_to_the_least_loaded() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({3, 4}, T)})
    send(placement, 1, 5.0)
    assert placement.place_new(3, (S, T)) == T
    assert placement.host[3] == T


def test_a_new_group_is_placed_where_its_founders_groups_must_be() -> None:
    weak = placed({1: ({1, 2}, S), 2: ({3, 4}, T)}, together="weak")
    send(weak, 1, 5.0)
    assert weak.place_new(3, (S, T), founders=(1,)) == S
    assert weak.moves_for_join(3, (1,), (S, T)) == (S, [])
    strong = placed({1: ({1, 2}, S), 2: ({3, 4}, T)})
    send(strong, 1, 5.0)
    assert strong.place_new(3, (S, T), founders=(1,)) == T
    assert strong.place_new(4, (S, T), founders=(1, 2, 3, 4)) == S  # 16 + 1, at T 2 + 16
    assert strong.place_new(5, (T, U), founders=(1, 2, 3, 4)) == T  # S is not eligible


# JOIN and resolve


def test_D1_the_footnote_three_groups_meet_at_one_host() -> None:
    p, q, r = 1, 2, 3
    G1, G2, G = 11, 12, 13
    placement = placed({G1: ({p, q}, S), G2: ({p, r}, T), G: ({q, r}, U)})
    assert placement.moves_for_join(G, (p,), (S, T, U)) == (S, [G2, G])
    send(placement, G2, 10.0)  # the most to move: the others come to it
    assert placement.moves_for_join(G, (p,), (S, T, U)) == (T, [G1, G])


def test_a_join_that_makes_no_strong_intersection_moves_nothing() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({3, 4}, T)})
    assert placement.moves_for_join(2, (1,), (S, T)) == (T, [])
    assert placement.component(2, (1,)) == {2}


def test_several_who_join_at_once_count_together() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({3, 4}, T)})
    assert placement.component(2, (1, 2)) == {1, 2}
    assert placement.moves_for_join(2, (1, 2), (S, T)) == (S, [2])


def test_one_common_member_is_enough_under_S1_and_none_is_under_no_rule() -> None:
    groups: dict[int, tuple[set[int], int]] = {1: ({1, 2}, S), 2: ({3, 4}, T)}
    assert placed(groups, together="weak").moves_for_join(2, (1,), (S, T)) == (S, [2])
    assert placed(groups, together="none").moves_for_join(2, (1, 2), (S, T)) == (T, [])


def test_resolve_spares_the_busy_sequencer() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 3}, T), 3: ({7, 8}, S)})
    assert placement.moves_for_join(2, (2,), (S, T)) == (T, [1])  # S also has group 3
    send(placement, 1, 10.0)  # 34 + 1 at S, 1 at T: both would cost the same
    assert placement.moves_for_join(2, (2,), (S, T)) == (T, [1])
    placement.forget(3)
    assert placement.moves_for_join(2, (2,), (S, T)) == (S, [2])  # tie of cost: the least moves


def test_resolve_breaks_a_full_tie_by_the_lowest_id() -> None:
    assert placed({1: ({1, 2}, T), 2: ({1, 3}, S)}).moves_for_join(1, (3,), (T, S)) == (S, [1])


def test_a_join_avoids_a_host_that_is_not_eligible_if_it_moves_at_all() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 3}, T), 3: ({7, 8, 9}, S)})
    assert placement.moves_for_join(2, (2,), (T, U)) == (T, [1])
    assert placement.moves_for_join(2, (2,), (U,)) == (U, [1, 2])
    assert placement.moves_for_join(3, (5,), (T, U)) == (S, [])


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Groups anywhere, also apart from their component, with weights of few values: ties."""
    placement = Placement(together=draw(st.sampled_from(("strong", "weak"))))
    for g in range(draw(st.integers(1, 7))):
        members = draw(st.sets(st.integers(0, 6), max_size=4))
        placement.know(g, members, draw(st.sampled_from((S, T, U))))
        placement.measured(g, draw(st.sampled_from((0.0, 10.0, 20.0))), {})
    return placement


@given(placements(), st.integers(0, 6))
def test_resolve_is_the_printed_formula(placement: Placement, p: int) -> None:
    g = 0
    dest, moves = placement.moves_for_join(g, (p,), (S, T, U))
    comp = placement.component(g, (p,))
    costs = []
    for h in {placement.host[x] for x in comp}:
        load = sum(placement.weight(x) for x in placement.host if placement.host[x] == h)
        moved = sum(placement.weight(x) for x in comp if placement.host[x] != h)
        costs.append((load + moved, moved, h))
    assert dest == min(costs)[2]
    assert moves == sorted(x for x in comp if placement.host[x] != dest)


@pytest.mark.parametrize(("together", "most"), [("strong", 1), ("weak", 0)])
@given(seed=seeds)
def test_groups_on_different_sequencers_never_share_too_many(
    together: Together, most: int, seed: int
) -> None:
    """Joins, leaves and moves as the coordinator does them keep S2 (S1)."""
    rng = random.Random(seed)
    placement = Placement(together=together)
    present: dict[int, set[int]] = {g: set() for g in range(7)}
    for g in present:
        placement.place_new(g, (S, T, U))
    for _ in range(50):
        g, p = rng.randrange(7), rng.randrange(6)
        if p in present[g]:
            present[g].remove(p)
            placement.left(g, p)
        elif rng.random() < 0.3:
            placement.settled(g, p)
        else:
            dest, moves = placement.moves_for_join(g, (p,), (S, T, U))
            for x in moves:
                placement.moved(x, dest)
            present[g].add(p)
            placement.joined(g, p)
        for part, to in placement.drain(rng.choice((S, T, U)), (S, T, U)):
            for x in part:
                placement.moved(x, to)
        for a, b in combinations(present, 2):
            apart = placement.host[a] != placement.host[b]
            assert not apart or len(placement.members[a] & placement.members[b]) <= most
        assert all(placement.members[x] >= present[x] for x in present)


# LEAVE


def test_D2_a_leaver_keeps_groups_together_until_it_is_settled() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 2}, S)})
    placement.left(1, 2)
    assert placement.component(1) == {1, 2}
    placement.settled(1, 2)
    assert placement.component(1) == {1}
    assert placement.members[1] == {1} and placement.leaving == {}


def test_a_leaver_also_fuses_groups_that_meet_before_it_is_settled() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 3}, T)})
    placement.left(1, 2)
    assert placement.moves_for_join(2, (2,), (S, T)) == (S, [2])


def test_a_join_cancels_a_pending_split() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 2}, S)})
    placement.left(1, 2)
    placement.joined(1, 2)
    placement.settled(1, 2)  # late news of the leave
    assert placement.component(1) == {1, 2}
    assert placement.leaving == {}


def test_a_join_of_another_keeps_together_what_was_about_to_split() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 2, 3}, S)})
    placement.left(1, 2)
    assert placement.moves_for_join(1, (3,), (S, T)) == (S, [])
    placement.joined(1, 3)
    placement.settled(1, 2)
    assert placement.component(1) == {1, 2}


def test_news_of_a_group_that_is_gone_is_ignored() -> None:
    placement = placed({1: ({1, 2}, S)})
    for _ in range(2):
        placement.measured(1, 9.0, {1: 9})
    placement.left(1, 2)
    placement.forget(1)
    before = placement.fingerprint()
    placement.settled(1, 2)
    placement.measured(1, 9.0, {1: 9})
    placement.forget(1)
    assert placement.fingerprint() == before == Placement(together="strong").fingerprint()


def test_a_report_replaces_members_and_host_and_keeps_the_rate() -> None:
    placement = placed({1: ({1, 2, 3}, S), 2: ({1, 2}, S)})
    send(placement, 1, 10.0)
    placement.left(1, 2)
    placement.know(1, {2, 4}, T)
    assert placement.members[1] == {2, 4} and placement.host[1] == T
    assert placement.component(1) == {1}
    assert at(placement, S, T) == [1.0, pytest.approx(31.0)]


# A host is emptied, or dies


def test_drain_sends_each_component_to_the_least_loaded_heaviest_first() -> None:
    placement = placed(
        {1: ({1, 2}, S), 2: ({1, 2}, S), 3: ({3, 4}, S), 4: ({5, 6}, S), 5: ({7, 8}, T)}
    )
    send(placement, 3, 1.0)
    assert placement.drain(S, (S, T, U)) == [
        (frozenset({3}), U),  # 4
        (frozenset({1, 2}), T),  # 1 + 2
        (frozenset({4}), T),  # 3 + 1
    ]
    assert placement.drain(S, (S,)) == []
    assert placement.drain(U, (S, T)) == []


def test_drain_sends_a_component_that_is_moving_where_part_of_it_is() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({1, 2}, T), 3: ({3, 4}, T)})
    assert placement.drain(S, (T, U)) == [(frozenset({1, 2}), T)]


def test_lost_groups_go_where_most_of_their_component_survived() -> None:
    placement = placed({g: ({1, 2}, h) for g, h in {1: S, 2: T, 3: U, 4: U}.items()})
    assert placement.place_all((1,), (T, U)) == {1: U, 2: U}
    assert set(placement.host.values()) == {U}


def test_lost_groups_without_a_surviving_host_are_spread_heaviest_first() -> None:
    placement = placed(
        {1: ({1, 2}, S), 2: ({3, 4}, S), 3: ({3, 4}, S), 4: ({5, 6}, S), 5: ({7, 8}, T)}
    )
    assert placement.place_all((1, 2, 3, 4), (T, U)) == {2: U, 3: U, 1: T, 4: T}
    assert at(placement, S, T, U) == [0.0, 3.0, 2.0]


def test_a_group_whose_host_is_eligible_after_all_stays() -> None:
    assert placed({1: ({1, 2}, S), 2: ({3, 4}, T)}).place_all((1,), (T, S)) == {1: S}


def test_those_that_stay_count_before_the_homeless_are_spread() -> None:
    placement = placed({1: ({1, 2}, S), 2: ({3, 4}, S), 3: ({3, 4}, T), 9: ({7, 8}, U)})
    send(placement, 1, 50.0)  # the heaviest, yet it waits for 2
    assert placement.place_all((1, 2), (T, U)) == {1: U, 2: T}


@given(placements(), st.sampled_from((S, T, U)))
def test_after_a_crash_each_component_of_a_lost_group_is_at_one_living_host(
    placement: Placement, dead: int
) -> None:
    eligible = [h for h in (S, T, U) if h != dead]
    before = dict(placement.host)
    lost = {g for g, h in before.items() if h == dead}
    new = placement.place_all(lost, eligible)
    assert new.keys() >= lost
    assert placement.host == before | new
    for g in lost:
        assert {placement.host[x] for x in placement.component(g)} == {new[g]} <= set(eligible)
    assert all(h != before[g] for g, h in new.items())
