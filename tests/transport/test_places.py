"""Places for connections that are nobody's yet: who must go when there are too many."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ordercast.transport.places import Places


class Caller:
    def __init__(self, host: str) -> None:
        self.peer = (host, 1)


def take(places: Places, host: str) -> tuple[Any, Any]:
    """A caller from that host, and who had to go for it."""
    caller: Any = Caller(host)
    gone = places.take(caller)
    if gone is not None:
        places.leave(gone)
    return caller, gone


def test_of_one_host_the_oldest_goes():
    places = Places(100, 2, 1000)
    first, _ = take(places, "10.0.0.1")
    take(places, "10.0.0.1")
    assert take(places, "10.0.0.1")[1] is first
    assert take(places, "10.0.0.2")[1] is None


def test_of_all_hosts_the_oldest_of_the_most_crowded_goes():
    places = Places(4, 100, 1000)
    quiet, _ = take(places, "10.0.0.9")
    crowd = [take(places, "10.0.0.1")[0] for _ in range(3)]
    assert take(places, "10.0.0.2")[1] is crowd[0]
    assert take(places, "10.0.0.1")[1] is crowd[1]
    assert quiet in places


def test_one_that_has_proved_something_goes_after_those_that_have_not():
    places = Places(100, 2, 1000)
    proved, _ = take(places, "10.0.0.1")
    silent, _ = take(places, "10.0.0.1")
    places.renew(proved, 1.0)
    assert take(places, "10.0.0.1")[1] is silent


def test_a_newcomer_waits_for_a_place_of_its_own_host_and_takes_one_of_another():
    places = Places(3, 2, 1000, stay_s=5.0)
    first: Any = Caller("10.0.0.1")
    places.take(first, 100.0)
    assert places.delay("10.0.0.1", 100.0) == 0
    places.take(Caller("10.0.0.1"), 101.0)  # type: ignore[arg-type]
    assert places.delay("10.0.0.1", 102.0) == 3.0
    assert places.delay("10.0.0.1", 105.0) == 0
    places.take(Caller("10.0.0.2"), 102.0)  # type: ignore[arg-type]
    assert places.delay("10.0.0.3", 102.0) == 0
    assert places.take(Caller("10.0.0.3"), 102.0) is first  # type: ignore[arg-type]


def test_the_stay_of_one_that_cannot_be_heard_yet_has_not_begun():
    places = Places(3, 1, 1000, stay_s=5.0)
    first: Any = Caller("10.0.0.1")
    places.take(first, inf)
    assert places.delay("10.0.0.1", 100.0) == 5.0
    places.renew(first, 103.0)
    assert places.delay("10.0.0.1", 105.0) == 3.0


def test_hosts_of_the_view_lose_nothing_to_strangers():
    places = Places(4, 3, 1000)
    places.reserve(["10.0.0.7"])
    nodes = [take(places, "10.0.0.7")[0] for _ in range(3)]
    for number in range(100):
        take(places, f"192.0.2.{number}")
    assert all(node in places for node in nodes)
    assert len(places) == 3 + 4
    assert take(places, "10.0.0.7")[1] is nodes[0]  # the places of its own host are bounded, too


def test_the_one_of_which_most_is_kept_goes():
    places = Places(10, 10, 100)
    light, heavy = take(places, "10.0.0.1")[0], take(places, "10.0.0.2")[0]
    assert places.weigh(heavy, 60) is None
    assert places.weigh(light, 40) is None
    assert places.weigh(light, 41) is heavy
    places.leave(heavy)
    places.leave(heavy)
    assert places.kept == 41


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60)), max_size=60))
def test_no_limit_is_ever_exceeded_and_a_newcomer_always_has_its_place(arrivals):
    places = Places(8, 3, 100)
    for host, size in arrivals:
        caller, gone = take(places, f"10.0.0.{host}")
        assert caller in places and gone is not caller
        heavy = places.weigh(caller, size)
        if heavy is not None:
            places.leave(heavy)
        assert len(places) <= 8 and places.kept <= 100
        assert max((len(here) for here in places._by_host.values()), default=0) <= 3
        assert places.kept == sum(sum(here.values()) for here in places._by_host.values())
