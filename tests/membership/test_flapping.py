"""A name that keeps coming back after exclusions waits longer each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.membership.flapping import Flapping


def flapping(max_names: int = 3) -> Flapping:
    return Flapping(first_wait=2, longest_wait=10, forget_after=5, max_names=max_names)


def ticks_until_let_in(f: Flapping, name: str) -> int:
    ticks = 0
    while not f.may_enter(name):
        f.tick()
        ticks += 1
    return ticks


def test_a_name_that_was_never_excluded_does_not_wait() -> None:
    assert flapping().may_enter("alice")
    assert flapping().waits("alice") == 0


def test_the_first_return_is_immediate_and_each_later_one_takes_twice_as_long_up_to_the_cap() -> (
    None
):
    f = flapping()
    waited = []
    for _ in range(7):
        f.excluded("alice")
        waited.append(ticks_until_let_in(f, "alice"))
    assert waited == [0, 2, 4, 8, 10, 10, 10]


def test_thousands_of_exclusions_change_nothing_any_more() -> None:
    f = flapping()
    for _ in range(5000):
        f.excluded("alice")
    assert f.waits("alice") == 10


def test_only_the_name_that_flaps_waits() -> None:
    f = flapping()
    f.excluded("alice")
    f.excluded("alice")
    f.excluded("bob")
    assert not f.may_enter("alice")
    assert f.may_enter("bob")


def test_an_exclusion_while_it_waits_begins_the_longer_wait_anew() -> None:
    f = flapping()
    f.excluded("alice")
    f.excluded("alice")
    f.tick()
    f.excluded("alice")
    assert f.waits("alice") == 4


def test_a_name_that_stays_in_long_enough_is_forgotten() -> None:
    f = flapping()
    f.excluded("alice")
    f.excluded("alice")
    for _ in range(2 + 4):  # its wait, and one tick less than it takes to be forgotten
        f.tick()
    assert f.exclusions("alice") == 2
    f.tick()
    assert f.exclusions("alice") == 0
    assert f.fingerprint() == flapping().fingerprint()


def test_waiting_is_not_staying_in() -> None:
    """Else a wait longer than `forget_after` would clear the name it is there for."""
    f = flapping()
    for _ in range(4):
        f.excluded("alice")
    assert ticks_until_let_in(f, "alice") == 8 > f.forget_after
    assert f.exclusions("alice") == 4


def test_beyond_the_limit_the_name_excluded_longest_ago_is_forgotten_and_counted() -> None:
    f = flapping(max_names=2)
    for name in ("alice", "bob", "alice", "carol"):
        f.excluded(name)
    assert [f.exclusions(name) for name in ("alice", "bob", "carol")] == [2, 0, 1]
    assert f.dropped == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_wait": 0},
        {"first_wait": 9, "longest_wait": 8},
        {"forget_after": 0},
        {"max_names": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    name, value = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"{name}={value}"):
        Flapping(**wrong)


@given(st.lists(st.sampled_from(("tick", "a", "b", "c", "d")), max_size=200))
def test_nobody_waits_longer_than_the_cap_and_no_more_names_are_kept_than_allowed(
    story: list[str],
) -> None:
    f = flapping()
    for word in story:
        twin = f.copy()
        for machine in (f, twin):
            machine.tick() if word == "tick" else machine.excluded(word)
        assert f.fingerprint() == twin.fingerprint()
        assert len(f.names) == len(set(f.names)) == len(f.records) <= f.max_names
        assert all(0 <= f.waits(name) <= f.longest_wait for name in "abcd")
