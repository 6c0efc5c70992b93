"""Which part of a node view may go on alone."""

from __future__ import annotations

import pytest

from ordercast.membership.cluster_headers import Attempt
from ordercast.membership.nodes import Ballot, NodeEntry, NodeView, deciding

FIVE = Ballot(5, 0, (0, 1, 2, 3, 4))
PAIR = Ballot(2, 0, (0, 1))


@pytest.mark.parametrize("side", [(0, 1, 2), (2, 3, 4), (0, 1, 2, 3, 4, 9)])
def test_more_than_half_of_a_view_goes_on(side: tuple[int, ...]) -> None:
    assert FIVE.won_by(side)


@pytest.mark.parametrize("side", [(), (0, 1), (3, 4), (0, 1, 7, 8, 9)])
def test_less_than_half_does_not_whoever_else_is_there(side: tuple[int, ...]) -> None:
    assert not FIVE.won_by(side)


def test_exactly_half_goes_on_if_it_holds_the_first_node() -> None:
    four = Ballot(4, 7, (7, 1, 2, 3))
    assert four.won_by((7, 3))
    assert not four.won_by((1, 2))


def test_of_two_nodes_the_first_goes_on_alone_and_the_second_does_not() -> None:
    assert PAIR.won_by((0,))
    assert not PAIR.won_by((1,))
    assert PAIR.missing((1,)) == (0,)


def test_no_two_sides_of_a_view_can_both_go_on() -> None:
    everybody = (0, 1, 2, 3, 4, 5)
    for size in range(1, 7):
        ballot = Ballot(1, 0, everybody[:size])
        for chosen in range(2**size):
            side = [p for p in range(size) if chosen >> p & 1]
            rest = [p for p in range(size) if p not in side]
            assert ballot.won_by(side) != ballot.won_by(rest), (size, side)


def test_who_left_in_order_does_not_count() -> None:
    left = FIVE.without((0, 1, 2))
    assert left.nodes == (3, 4)
    assert left.won_by((3,)) and not left.won_by((4,))
    assert not FIVE.won_by((3, 4))


def test_a_view_is_judged_by_the_one_in_force_and_by_all_that_were_prepared_since() -> None:
    before, in_force, prepared = Ballot(4, 0, (0, 1)), FIVE, Ballot(6, 0, (0, 1, 3, 4))
    assert deciding((before, in_force, prepared), in_force=5) == [in_force, prepared]
    # The interleaving of the module's head: b, c, d are three of five, and half of what c and d
    # have prepared, without its first node.
    side = (2, 3, 4)
    assert FIVE.won_by(side) and not prepared.won_by(side)
    assert all(ballot.won_by((0, 1)) for ballot in (prepared,))


def test_newcomers_come_in_at_the_end_and_the_number_rises() -> None:
    nodes = tuple(NodeEntry(p, f"n{p}", 1) for p in range(3))
    view = NodeView(7, nodes[:2]).with_nodes((nodes[2],))
    assert (view.number, view.pids, view.coordinator) == (8, (0, 1, 2), 0)


def test_the_next_in_the_list_coordinates_when_the_first_is_gone() -> None:
    nodes = tuple(NodeEntry(p, f"n{p}", 1) for p in (4, 2, 9))
    view = NodeView(7, nodes).without((4,))
    assert (view.number, view.pids, view.coordinator) == (8, (2, 9), 2)


def test_of_two_attempts_the_higher_number_counts_and_then_the_older_node() -> None:
    older, younger, later = Attempt(6, 0, 3), Attempt(6, 1, 4), Attempt(7, 2, 5)
    assert older.beats(None) and older.beats(younger) and later.beats(older)
    assert not younger.beats(older) and not older.beats(later)
    assert not older.beats(older)
