"""Which members form a subgroup, and which of them is its gateway."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.whereabouts import Whereabouts, is_partition
from ordercast.machinery.subgroups import even_runs, layout_of, subgroups_of

SITES = st.sampled_from(["", "tokyo", "lisbon"])
PLACES = st.dictionaries(st.integers(0, 9), st.builds(Whereabouts, SITES, st.booleans()))


@given(st.integers(1, 3000))
def test_without_sites_there_are_about_as_many_subgroups_as_each_has_members(n: int) -> None:
    members = tuple(range(n))
    runs = even_runs(members)
    assert len(runs) == round(sqrt(n))
    assert tuple(p for run in runs for p in run) == members
    assert max(map(len, runs)) - min(map(len, runs)) <= 1


def test_of_nobody_there_is_no_subgroup() -> None:
    assert even_runs(()) == subgroups_of((), {}) == ()


def test_nodes_of_a_site_are_a_subgroup_in_the_order_of_the_view() -> None:
    where = {p: Whereabouts(site) for p, site in enumerate(("x", "y", "x", "y", "x"))}
    assert subgroups_of((4, 3, 2, 1), where) == ((4, 2), (3, 1))


def test_those_who_do_not_say_where_they_are_are_together_if_others_say_it() -> None:
    assert subgroups_of((1, 2, 3, 4), {2: Whereabouts("x")}) == ((1, 3, 4), (2,))


def test_the_first_that_offers_is_the_gateway_and_when_it_is_gone_the_next_one() -> None:
    where = {p: Whereabouts("x", gateway=p in (2, 3)) for p in (1, 2, 3, 4)}
    assert subgroups_of((1, 2, 3, 4), where) == ((2, 1, 3, 4),)
    assert subgroups_of((1, 3, 4), where) == ((3, 1, 4),)
    assert subgroups_of((1, 4), where) == ((1, 4),)


@given(st.permutations(range(10)), PLACES)
def test_every_member_is_in_one_subgroup_and_stands_where_the_layout_says(
    members: list[int], where: dict[int, Whereabouts]
) -> None:
    subgroups = subgroups_of(tuple(members), where)
    assert is_partition(tuple(members), subgroups)
    layout = layout_of(tuple(members), subgroups)
    assert all(layout.subgroups[layout.site[p]][layout.column[p]] == p for p in members)
    assert [members[layout.place[p]] for p in layout.gateways] == list(layout.gateways)


@pytest.mark.parametrize("subgroups", [((1, 2),), ((1, 2), (3, 3)), ((1, 2, 3), ()), ((1, 2, 4),)])
def test_what_leaves_somebody_out_or_names_a_stranger_is_no_partition(subgroups: object) -> None:
    assert not is_partition((1, 2, 3), subgroups)  # type: ignore[arg-type]
