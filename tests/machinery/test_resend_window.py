"""Missing numbers are asked for in a window, each with a back-off of its own."""

from __future__ import annotations

from ordercast.experiments.variants import ConstantRequests
from ordercast.machinery.resend_window import MAX_BACKOFF, ResendWindow


def test_no_more_numbers_are_asked_for_than_the_window_holds() -> None:
    window = ResendWindow(3)
    assert window.period_over(range(1, 100), 99) == [1, 2, 3]


def test_a_number_that_stays_away_is_asked_for_ever_more_seldom() -> None:
    window = ResendWindow(1)
    asked = [period for period in range(100) if window.period_over([7], 7)]
    assert asked == [0, 1, 3, 7, 15, 31, 47, 63, 79, 95]
    assert asked[-1] - asked[-2] == MAX_BACKOFF


def test_the_window_moves_on_when_an_answer_comes() -> None:
    window = ResendWindow(2)
    window.period_over([1, 2, 3, 4], 4)
    assert window.came(1, [2, 3, 4]) == [3]


def test_a_number_that_was_not_asked_for_is_no_answer() -> None:
    window = ResendWindow(2)
    window.period_over([1, 2, 3, 4], 4)
    assert window.came(9, [1, 2, 3, 4]) == []


def test_what_is_missing_only_since_the_last_period_is_not_asked_for_with_an_answer() -> None:
    window = ResendWindow(4)
    window.period_over([1, 2], 2)
    assert window.came(1, [2, 3, 4]) == []
    assert window.period_over([2, 3, 4], 4) == [2, 3, 4]


def test_an_answer_ends_the_back_off_of_the_others() -> None:
    window = ResendWindow(2)
    for _ in range(20):
        window.period_over([1, 2], 2)
    assert window.period_over([1, 2], 2) == []
    assert window.came(1, [2]) == []  # not at once: its answer may be under way, too
    assert window.period_over([2], 2) == [2]


def test_each_number_has_a_back_off_of_its_own() -> None:
    window = ResendWindow(2)
    for _ in range(5):
        window.period_over([1], 1)
    assert window.period_over([1, 2], 2) == [2]


def test_nothing_is_remembered_of_what_is_not_missing() -> None:
    window = ResendWindow(4)
    window.period_over([1, 2], 2)
    window.period_over([], 2)
    assert not (window.pause or window.left)


def test_constant_limits_ask_for_the_same_first_numbers_in_every_period() -> None:
    window = ConstantRequests(2)
    assert [window.period_over([4, 5, 6], 6) for _ in range(3)] == [[4, 5]] * 3
    assert window.came(4, [5, 6]) == []
    assert window.period_over([5, 6], 6) == [5, 6]
