"""The failure detectors: silence in ticks, broken connections, other nodes' word."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.membership.detector import (
    LONGEST,
    MIN_TICKS,
    THRESHOLD,
    WARM_UP,
    WINDOW,
    AccrualDetector,
    Detector,
    detector,
)

TIMEOUT = 8
BOTH = (Detector, AccrualDetector)
Kind = Callable[..., Detector]


def watching(kind: Kind, *peers: int) -> Detector:
    found = kind(timeout_ticks=TIMEOUT)
    found.watch(peers)
    return found


def ticks_until_suspected(d: Detector, p: int, most: int = 1000) -> int:
    for n in range(1, most):
        if p in d.tick():
            return n
    raise AssertionError(f"{p} was not suspected in {most} ticks")


def used_to(*intervals: int) -> AccrualDetector:
    """A detector whose peer 1 was heard at these intervals."""
    d = AccrualDetector(timeout_ticks=TIMEOUT)
    d.watch([1])
    d.heard(1)
    for interval in intervals:
        for _ in range(interval):
            d.tick()
        d.heard(1)
    return d


# -- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_a_peer_that_never_speaks_is_suspected_after_the_timeout(kind: Kind) -> None:
    assert ticks_until_suspected(watching(kind, 1), 1) == TIMEOUT


@pytest.mark.parametrize("kind", BOTH)
def test_a_peer_is_reported_once_and_only_the_silent_one(kind: Kind) -> None:
    d = watching(kind, 1, 2)
    reported: list[int] = []
    for _ in range(3 * TIMEOUT):
        reported.extend(d.tick())
        d.heard(2)
    assert reported == [1]
    assert d.suspected == {1}


@pytest.mark.parametrize("kind", BOTH)
def test_those_suspected_in_one_tick_are_reported_in_the_order_of_their_numbers(kind: Kind) -> None:
    d = watching(kind, 3, 1, 2)
    for _ in range(TIMEOUT - 1):
        assert d.tick() == ()
    assert d.tick() == (1, 2, 3)


@pytest.mark.parametrize("kind", BOTH)
def test_a_late_tick_counts_as_one_however_late_it_is(kind: Kind) -> None:
    """A process that was stopped and wakes up finds one tick due, and suspects nobody."""
    d = watching(kind, 1)
    d.heard(1)
    assert d.tick() == ()
    assert d.silent_for(1) == 1


@pytest.mark.parametrize("kind", BOTH)
def test_a_broken_connection_is_suspected_at_once(kind: Kind) -> None:
    d = watching(kind, 1, 2)
    d.broken(2)
    assert d.suspected == {2}
    assert d.tick() == ()  # not by silence, so it is not reported again


@pytest.mark.parametrize("kind", BOTH)
def test_another_nodes_word_is_taken(kind: Kind) -> None:
    d = watching(kind, 1, 2)
    d.told(1)
    assert d.suspected == {1}


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_is_known_of_a_peer_that_is_not_watched(kind: Kind) -> None:
    d = watching(kind, 1)
    before = d.fingerprint()
    d.heard(9)
    d.broken(9)
    d.told(9)
    d.trust(9)
    assert d.silent_for(9) == 0
    assert d.fingerprint() == before


@pytest.mark.parametrize("kind", BOTH)
def test_hearing_from_a_suspect_does_not_lift_the_suspicion(kind: Kind) -> None:
    d = watching(kind, 1)
    ticks_until_suspected(d, 1)
    d.heard(1)
    assert d.silent_for(1) == 0
    assert d.suspected == {1}


@pytest.mark.parametrize("kind", BOTH)
def test_trust_lifts_the_suspicion_and_silence_begins_anew(kind: Kind) -> None:
    d = watching(kind, 1)
    ticks_until_suspected(d, 1)
    d.trust(1)
    assert d.suspected == set()
    assert ticks_until_suspected(d, 1) == TIMEOUT


@pytest.mark.parametrize("kind", BOTH)
def test_watching_others_keeps_those_who_stay_and_forgets_the_rest(kind: Kind) -> None:
    d = watching(kind, 1, 2, 3)
    d.tick()
    d.broken(2)
    d.broken(3)
    d.watch(p for p in (1, 2, 4))
    assert [d.silent_for(p) for p in (1, 2, 3, 4)] == [1, 1, 0, 0]
    assert d.suspected == {2}
    d.watch([3])
    assert d.suspected == set()


@pytest.mark.parametrize("kind", BOTH)
def test_a_copy_goes_its_own_way(kind: Kind) -> None:
    d = watching(kind, 1, 2)
    d.heard(1)
    twin = d.copy()
    assert twin.fingerprint() == d.fingerprint()
    twin.tick()
    twin.heard(1)
    assert d.silent_for(2) == 0
    assert twin.fingerprint() != d.fingerprint()
    d.tick()
    d.heard(1)
    assert twin.fingerprint() == d.fingerprint()


@pytest.mark.parametrize("kind", BOTH)
def test_a_timeout_of_one_tick_is_refused(kind: Kind) -> None:
    with pytest.raises(ValueError, match="timeout_ticks=1 must be at least 2"):
        kind(timeout_ticks=1)


def test_the_option_of_a_node_names_the_detector() -> None:
    assert type(detector("heartbeat", 8)) is Detector
    assert type(detector("accrual", 8)) is AccrualDetector


# -- accrual --------------------------------------------------------------------------------------


def test_a_regular_peer_is_suspected_sooner_than_by_the_timeout() -> None:
    assert MIN_TICKS <= ticks_until_suspected(used_to(*[1] * WINDOW), 1) < TIMEOUT


def test_an_irregular_peer_is_given_more_time() -> None:
    regular = ticks_until_suspected(used_to(*[2, 2] * 20), 1)
    irregular = ticks_until_suspected(used_to(*[1, 3] * 20), 1)
    assert regular < irregular


def test_a_few_intervals_are_not_enough_to_leave_the_plain_timeout() -> None:
    assert ticks_until_suspected(used_to(*[1] * (WARM_UP - 1)), 1) == TIMEOUT


def test_the_time_before_the_first_word_is_no_interval() -> None:
    d = AccrualDetector(timeout_ticks=TIMEOUT)
    d.watch([1])
    d.tick()
    d.heard(1)
    assert list(d.intervals[1]) == []


def test_several_arrivals_in_one_tick_count_once() -> None:
    d = used_to(1, 1)
    for _ in range(50):
        d.heard(1)
    assert list(d.intervals[1]) == [1, 1]


def test_a_peer_that_is_watched_again_is_a_stranger() -> None:
    d = used_to(*[1] * WINDOW)
    d.watch([])
    d.watch([1])
    d.heard(1)
    assert ticks_until_suspected(d, 1) == TIMEOUT


def test_only_the_last_intervals_are_remembered() -> None:
    d = used_to(*[3] * 5, *[1] * WINDOW)
    assert list(d.intervals[1]) == [1] * WINDOW


def test_a_pause_that_led_to_a_suspicion_makes_the_detector_more_patient() -> None:
    before = ticks_until_suspected(used_to(*[1] * 50), 1)
    d = used_to(*[1] * 50, 6)
    d.trust(1)
    assert ticks_until_suspected(d, 1) > before


def test_a_very_long_pause_counts_no_more_than_the_longest_one_waited_for() -> None:
    assert used_to(1, 10_000).intervals[1][-1] == LONGEST * TIMEOUT


def test_phi_grows_with_the_silence_and_never_fails() -> None:
    d = used_to(*[1] * 20)
    seen = []
    for _ in range(60):
        d.tick()
        seen.append(d.phi(1))
    assert seen == sorted(seen)
    assert seen[0] < 1 < THRESHOLD < seen[4]
    assert seen[-1] == inf


def test_phi_of_the_average_silence_is_that_of_an_even_chance() -> None:
    d = used_to(*[4] * 20)
    for _ in range(4):
        d.tick()
    assert d.phi(1) == pytest.approx(0.30103)  # -log10(1/2)


def test_phi_of_a_peer_that_never_spoke_is_zero() -> None:
    d = AccrualDetector(timeout_ticks=TIMEOUT)
    d.watch([1])
    d.tick()
    assert d.phi(1) == 0.0


@given(st.lists(st.integers(0, 40), max_size=150))
def test_whatever_was_observed_suspicion_comes_between_the_two_bounds(intervals: list[int]) -> None:
    d = used_to(*intervals)
    d.trust(1)
    assert MIN_TICKS <= ticks_until_suspected(d, 1) <= LONGEST * TIMEOUT


@given(st.lists(st.sampled_from(("tick", "hear 1", "hear 2", "break", "trust", "watch"))))
def test_the_same_story_gives_the_same_state(story: list[str]) -> None:
    def lived() -> Detector:
        d = watching(AccrualDetector, 1, 2)
        for word in story:
            match word:
                case "tick":
                    d.tick()
                case "hear 1":
                    d.heard(1)
                case "hear 2":
                    d.heard(2)
                case "break":
                    d.broken(1)
                case "trust":
                    d.trust(1)
                case _:
                    d.watch([2, 3])
            assert d.suspected <= d.silence.keys()
        return d

    assert lived().fingerprint() == lived().copy().fingerprint()
