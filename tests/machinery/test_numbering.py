"""The sequencer's book."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import PeerError
from ordercast.machinery.numbering import Numbering


def book(*members: int, limit: int = 100) -> Numbering:
    return Numbering(members, 0, {}, limit)


def enter(book: Numbering, origin: int, n: int) -> list[int]:
    return [book.enter(frame) for frame in book.in_order(origin, n, str(n).encode())]


@given(st.permutations(range(1, 9)), st.lists(st.integers(1, 8)))
def test_a_senders_frames_are_numbered_in_the_order_in_which_it_sent_them(
    order: list[int], repeats: list[int]
) -> None:
    made = book(1, 2)
    for n in order + repeats:
        enter(made, 1, n)
    assert [made.history[N].n for N in range(1, 9)] == list(range(1, 9))
    assert made.N == 8
    assert made.ahead == {1: {}} or not made.ahead


def test_a_frame_waits_only_for_its_own_senders_frames() -> None:
    made = book(1, 2)
    assert enter(made, 1, 2) == []
    assert enter(made, 2, 1) == [1]
    assert enter(made, 1, 1) == [2, 3]


def test_a_repeat_gets_no_second_number_and_its_first_one_is_known() -> None:
    made = book(1)
    enter(made, 1, 1)
    assert enter(made, 1, 1) == []
    assert made.number_of[1, 1] == 1


@pytest.mark.parametrize("far", [5, 2**60])
def test_a_frame_further_ahead_than_the_limit_is_the_senders_fault(far: int) -> None:
    made = book(1, limit=4)
    enter(made, 1, 4)
    with pytest.raises(PeerError, match=f"frame {far} lies more than max_held above 0"):
        enter(made, 1, far)
    assert made.ahead == {1: {4: b"4"}}
    enter(made, 1, 3)
    assert enter(made, 1, 1) == [1]
    assert enter(made, 1, 2) == [2, 3, 4]


def test_an_entry_is_forgotten_when_everybody_has_consumed_it_not_before() -> None:
    made = book(1, 2)
    for n in (1, 2, 3):
        enter(made, 1, n)
    assert not made.acknowledged(1, 3)
    made.prune()
    assert list(made.history) == [1, 2, 3]
    assert made.acknowledged(2, 2)
    made.prune()
    assert list(made.history) == [3]
    assert list(made.number_of) == [(1, 3)]


def test_acknowledging_what_was_not_numbered_is_a_fault_and_changes_nothing() -> None:
    made = book(1)
    before = made.fingerprint()
    with pytest.raises(PeerError, match="only 0 were given"):
        made.acknowledged(1, 1)
    assert made.fingerprint() == before


def test_the_dead_are_not_waited_for_and_their_waiting_frames_are_void() -> None:
    made = book(1, 2)
    enter(made, 1, 1)
    enter(made, 2, 5)
    made.acknowledged(1, 1)
    made.forget(2)
    assert made.stable == 1
    assert made.ahead == {}
