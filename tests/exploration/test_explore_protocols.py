"""Every protocol of the registry, in every order of arrival: it keeps what it promises.

A protocol that enters the registry is picked up here.
"""

from __future__ import annotations

import pytest

from explored import FITS, SCRIPTS, largest_that_fits, told
from ordercast.exploration import Saying, Scenario, explore
from ordercast.protocols.registry import PROTOCOLS

each = pytest.mark.parametrize("script", SCRIPTS)
every = pytest.mark.parametrize("name", PROTOCOLS)


@each
@every
def test_in_one_group_every_order_of_arrival_is_right(name: str, script: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], script, least=2)
    assert found.complete, told(found)
    assert found.outcomes


@each
@every
def test_in_two_overlapping_groups_every_order_of_arrival_is_right(name: str, script: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], script, least=2, overlap=True)
    assert found.complete, told(found)


@each
@pytest.mark.parametrize("name", [n for n, p in PROTOCOLS.items() if p.declaration.network == "N0"])
def test_where_a_packet_may_be_lost_everything_is_delivered(name: str, script: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], script, most=2, losses=1)
    assert found.complete, told(found)


@each
@pytest.mark.parametrize(
    "name", [n for n, p in PROTOCOLS.items() if p.declaration.network in ("N0", "N1")]
)
def test_a_packet_that_comes_twice_does_no_harm(name: str, script: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], script, duplicates=1)
    assert found.complete, told(found)


@each
@every
def test_wherever_a_process_crashes_the_order_is_kept(name: str, script: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], script, most=2, crash=True)
    assert found.complete, told(found)


@pytest.mark.parametrize(
    "name", [n for n, p in PROTOCOLS.items() if p.declaration.scope == "domain"]
)
def test_round_a_ring_of_groups_a_dependency_is_kept(name: str) -> None:
    # p2 must deliver m1 before m3, though nobody in the group of m3 but p2 has ever seen m1.
    ring = Scenario(
        protocol=PROTOCOLS[name],
        groups=((0, 1), (1, 2), (2, 0)),
        script=(Saying(0, 3), Saying(0, 1), Saying(1, 2, after=1)),
        rounds_after=0,
    )
    found = explore(ring, limit=FITS)
    assert found.complete, told(found)


@every
def test_once_everything_is_delivered_nothing_follows(name: str) -> None:
    found = largest_that_fits(PROTOCOLS[name], "replies", rounds_after=2)
    assert found.complete, told(found)
