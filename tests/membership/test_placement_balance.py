"""Moves that nobody asked for: to even out the load, and to the process that sends most."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.placement.balance import LEAST_GAP, MOST_OF_GAP, PATIENCE, REST, Placed, best_move
from ordercast.placement.load import LEAST_REQUESTS
from ordercast.placement.placement import Move, Placement

S, T, U = 101, 102, 103  # sequencers


def placed(hosts: dict[int, int]) -> Placement:
    """Groups without common members."""
    placement = Placement(together="strong")
    for g, h in hosts.items():
        placement.know(g, {10 * g, 10 * g + 1}, h)
    return placement


def window(placement: Placement, rates: dict[int, float], count: int = 1) -> None:
    for _ in range(count):
        for g in list(placement.host):
            placement.measured(g, rates.get(g, 0.0), {})


def carried_out(placement: Placement, move: Move | None) -> Move | None:
    for g in move[0] if move else ():
        placement.moved(g, move[1] if move else 0)
    return move


def ask(placement: Placement, rates: dict[int, float], count: int) -> list[Move | None]:
    """Measure, ask and obey, window after window."""
    answers = []
    for _ in range(count):
        window(placement, rates)
        answers.append(carried_out(placement, placement.rebalance((S, T))))
    return answers


# Load


def test_a_component_moves_when_the_load_was_uneven_for_long_enough() -> None:
    placement = placed({1: S, 2: S})
    rates = {1: 500.0, 2: 500.0}
    answers = ask(placement, rates, PATIENCE)
    assert answers == [None] * (PATIENCE - 1) + [(frozenset({1}), T)]


def test_a_load_that_is_uneven_only_now_and_then_moves_nothing() -> None:
    placement = placed({1: S, 2: S, 3: T})
    window(placement, {1: 500.0, 2: 500.0, 3: 1000.0}, count=40)
    for _ in range(3):
        placement.know(9, {1, 2}, S)
        for _ in range(PATIENCE):
            placement.measured(9, 1e6, {})
        assert placement.rebalance((S, T)) is None  # uneven, for the first time
        placement.forget(9)
        assert placement.rebalance((S, T)) is None  # even


def test_after_a_move_there_is_a_rest() -> None:
    placement = placed(dict.fromkeys(range(8), S))
    rates = dict.fromkeys(range(8), 200.0)
    window(placement, rates, count=40)
    moves = [answer is not None for answer in ask(placement, rates, PATIENCE + 2 * REST + 2)]
    assert moves == [False] * (PATIENCE - 1) + [True, *[False] * REST] * 2 + [True]


def test_all_groups_on_one_host_spread_until_it_is_even_and_then_nothing_moves() -> None:
    placement = placed(dict.fromkeys(range(8), S))
    rates = dict.fromkeys(range(8), 200.0)
    ask(placement, rates, 40)
    assert sorted(placement.host.values()) == [S] * 4 + [T] * 4
    assert ask(placement, rates, 20) == [None] * 20


def test_a_small_difference_moves_nothing() -> None:
    rate = LEAST_GAP / 2 / 3  # two groups of two members weigh LEAST_GAP and 2 when idle
    placement = placed({1: S, 2: S})
    assert set(ask(placement, {1: rate - 1.0, 2: rate - 1.0}, 30)) == {None}
    placement = placed({1: S, 2: S})
    assert set(ask(placement, {1: rate, 2: rate}, 30)) != {None}


def test_a_difference_that_is_small_beside_the_load_moves_nothing() -> None:
    placement = placed({1: S, 2: S, 3: T})
    assert set(ask(placement, {1: 1000.0, 2: 200.0, 3: 1000.0}, 30)) == {None}


def test_a_component_that_would_only_swap_the_loads_stays() -> None:
    placement = placed({1: S, 2: T})
    assert set(ask(placement, {1: 1000.0}, 30)) == {None}


def test_a_component_moves_as_a_whole() -> None:
    placement = placed({1: S})
    placement.know(2, {1, 2}, S)
    placement.know(3, {1, 2}, S)
    rates = {1: 500.0, 2: 200.0, 3: 300.0}
    assert carried_out(placement, ask(placement, rates, PATIENCE)[-1]) == (frozenset({1}), T)
    placement.know(1, {1, 2}, S)  # now all three are one
    assert set(ask(placement, rates, 20)) == {None}


def test_a_component_that_is_moving_is_left_alone() -> None:
    placement = placed({3: S})
    placement.know(1, {1, 2}, S)
    placement.know(2, {1, 2}, T)
    assert set(ask(placement, {1: 500.0, 3: 600.0}, 20)) == {None, (frozenset({3}), T)}


def test_a_group_that_was_not_measured_twice_is_left_alone() -> None:
    placement = placed({1: S})
    window(placement, {1: 300.0}, count=40)
    placement.know(2, {1, 2}, S)
    placement.measured(2, 1000.0, {})  # it would fit, and it is unknown
    placement.know(3, {3, 4}, S)
    for _ in range(2):
        placement.measured(3, 300.0, {})
    for _ in range(PATIENCE):
        move = placement.rebalance((S, T))
    assert move is not None and move[0] != frozenset({2})


def test_if_the_busiest_cannot_be_relieved_the_next_one_is() -> None:
    loads = {S: 1000.0, T: 600.0, U: 0.0}
    huge, half = Placed(frozenset({1}), S, 1000.0), Placed(frozenset({2}), T, 300.0)
    assert best_move(loads, [huge, half]) == (frozenset({2}), U)
    assert best_move(loads, [huge]) is None
    few = Placed(frozenset({2}), T, 40.0)
    assert best_move({S: 1000.0, T: 90.0, U: 0.0}, [huge, few]) is None  # T is light enough


def test_the_component_that_evens_out_most_is_chosen() -> None:
    loads = {S: 1000.0, U: 0.0}
    weights = {1: 100.0, 2: 450.0, 3: 1000.0 * MOST_OF_GAP + 1, 4: 700.0}
    parts = [Placed(frozenset({g}), S, w) for g, w in weights.items()]
    assert best_move(loads, parts) == (frozenset({2}), U)
    assert best_move(loads, [p for p in parts if p.weight > 700.0]) is None


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_no_component_goes_to_and_fro_under_a_load_that_only_flickers(seed: int) -> None:
    rng = random.Random(seed)
    hosts = {g: rng.choice((S, T)) for g in range(10)}
    rates = {g: rng.choice((0.0, 10.0, 100.0, 1000.0)) for g in hosts}
    placement = placed(hosts)
    moved: list[int] = []
    for _ in range(120):
        window(placement, {g: r * rng.uniform(0.9, 1.1) for g, r in rates.items()})
        move = carried_out(placement, placement.rebalance((S, T)))
        moved += move[0] if move else ()
    assert len(moved) == len(set(moved))


# The majority sender


def sent(placement: Placement, *windows: dict[int, dict[int, int]]) -> None:
    for by_group in windows:
        for g in placement.host:
            placement.measured(g, 0.0, by_group.get(g, {}))


MOST = {T: LEAST_REQUESTS, U: LEAST_REQUESTS - 1}
HALF = {T: LEAST_REQUESTS, U: LEAST_REQUESTS}


def test_a_component_goes_to_the_process_that_sent_most_in_two_windows_in_a_row() -> None:
    placement = placed({1: S})
    sent(placement, {1: MOST})
    assert placement.majority_sender((S, T)) is None
    sent(placement, {1: HALF}, {1: MOST})
    assert placement.majority_sender((S, T)) is None
    sent(placement, {1: MOST})
    assert placement.majority_sender((S, T)) == (frozenset({1}), T)


def test_two_different_majorities_move_nothing() -> None:
    placement = placed({1: S})
    sent(placement, {1: {U: 99}}, {1: {T: 99}})
    assert placement.majority_sender((S, T, U)) is None


def test_few_requests_are_no_majority() -> None:
    placement = placed({1: S})
    few = {1: {T: LEAST_REQUESTS - 1}}
    sent(placement, few, few)
    assert placement.majority_sender((S, T)) is None
    enough = {1: {T: LEAST_REQUESTS}}
    sent(placement, enough, enough)
    assert placement.majority_sender((S, T)) is not None


def test_a_majority_counts_only_at_an_eligible_process_elsewhere() -> None:
    placement = placed({1: S})
    sent(placement, {1: MOST}, {1: MOST})
    assert placement.majority_sender((S, U)) is None
    placement.moved(1, T)
    sent(placement, {1: MOST}, {1: MOST})
    assert placement.majority_sender((S, T)) is None


def test_the_majority_is_that_of_the_whole_component() -> None:
    placement = Placement(together="strong")
    for g in (1, 2):
        placement.know(g, {1, 2}, S)
    mixed = {1: {T: 40}, 2: {U: 50}}
    sent(placement, mixed, mixed)
    assert placement.majority_sender((S, T, U)) == (frozenset({1, 2}), U)


def test_of_several_components_the_busiest_moves_first() -> None:
    placement = placed({1: S, 2: S, 3: S})
    three = {1: {T: 40}, 2: {T: 60}, 3: {U: 60}}
    sent(placement, three, three)
    assert placement.majority_sender((T, U)) == (frozenset({2}), T)


def test_after_a_move_two_new_windows_are_needed() -> None:
    placement = placed({1: S})
    sent(placement, {1: MOST}, {1: MOST})
    placement.moved(1, U)
    assert placement.majority_sender((S, T)) is None
    sent(placement, {1: MOST})
    assert placement.majority_sender((S, T)) is None
    sent(placement, {1: MOST})
    assert placement.majority_sender((S, T)) == (frozenset({1}), T)


def test_what_is_at_its_majority_sender_is_not_moved_to_even_out_the_load() -> None:
    placement = placed({1: S, 2: S})
    away: list[Move | None] = []
    for busiest in (S, S, S, T, S, T, S, S):  # a single window without a majority does not count
        for g in placement.host:
            placement.measured(g, 500.0, {busiest: 99})
        away.append(placement.rebalance((S, T)))
    assert set(away) == {None}
    for _ in range(2):
        for g in placement.host:
            placement.measured(g, 500.0, {T: 99})
    assert placement.rebalance((S, T)) is not None


# The state


def test_a_copy_goes_its_own_way() -> None:
    placement = placed({1: S, 2: S})
    twin = placement.copy()
    assert twin.fingerprint() == placement.fingerprint()
    ask(twin, {1: 500.0, 2: 500.0}, PATIENCE)
    assert placement.host == {1: S, 2: S}
    assert twin.host == {1: T, 2: S}
