"""Which groups must be together: against a search that knows no shortcuts."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.placement.components import NEVER, STRONG, WEAK, Components
from ordercast.placement.placement import strong_components, weak_components

Members = dict[int, set[int]]

memberships = st.dictionaries(
    st.integers(0, 9), st.sets(st.integers(0, 7), max_size=4), min_size=1, max_size=9
)
shares = st.sampled_from((STRONG, WEAK, NEVER))
changes = st.lists(
    st.tuples(
        st.sampled_from(("enter", "enter", "enter", "leave", "remove", "ask")),
        st.integers(0, 7),
        st.integers(0, 5),
    ),
    max_size=60,
)


def slowly(groups: Members, share: int) -> list[frozenset[int]]:
    """Merge sets of groups, pair by pair, until nothing changes."""
    parts = [{g} for g in sorted(groups)]
    for a, b in combinations(sorted(groups), 2):
        if len(groups[a] & groups[b]) >= share:
            fused = [p for p in parts if a in p or b in p]
            parts = [p for p in parts if p not in fused] + [set().union(*fused)]
    return sorted(map(frozenset, parts), key=min)


@given(memberships)
def test_components_are_what_pairwise_merging_finds(groups: Members) -> None:
    assert strong_components(groups) == slowly(groups, STRONG)
    assert weak_components(groups) == slowly(groups, WEAK)


@given(changes, shares)
def test_components_stay_right_while_members_come_and_go(
    ops: list[tuple[str, int, int]], share: int
) -> None:
    kept = Components(share)
    groups: Members = {}
    for op, g, p in ops:
        if op == "enter":
            if g not in groups:
                kept.add(g)
            groups.setdefault(g, set()).add(p)
            kept.enter(g, p)
        elif op == "leave" and g in groups:
            groups[g].discard(p)
            kept.leave(g, p)
        elif op == "remove" and g in groups:
            del groups[g]
            kept.remove(g)
        elif op == "ask":
            assert kept.all() == slowly(groups, share)
    assert kept.all() == slowly(groups, share)
    assert kept.members == groups
    assert kept.of == {
        p: {g for g in groups if p in groups[g]} for p in set().union(*groups.values())
    }
    assert kept.parts == {min(part): part for part in slowly(groups, share)}
    assert kept.label == {g: min(part) for part in kept.all() for g in part}


@given(memberships, shares, st.integers(0, 9), st.sets(st.integers(0, 7), max_size=3))
def test_a_component_is_foretold_for_those_who_will_join(
    groups: Members, share: int, g: int, joining: set[int]
) -> None:
    kept = of(groups, share)
    then = groups | {g: groups.get(g, set()) | joining}
    assert kept.component(g, joining) == next(c for c in slowly(then, share) if g in c)
    assert kept.all() == slowly(groups, share)  # asking changed nothing


def test_the_footnote_one_join_fuses_three_groups() -> None:
    p, q, r = 1, 2, 3
    G1, G2, G = 11, 12, 13
    kept = of({G1: {p, q}, G2: {p, r}, G: {q, r}}, STRONG)
    assert kept.all() == [frozenset({G1}), frozenset({G2}), frozenset({G})]
    assert kept.component(G, (p,)) == {G1, G2, G}
    kept.enter(G, p)
    assert kept.all() == [frozenset({G1, G2, G})]


def test_a_component_that_lost_a_link_and_gained_another_is_judged_as_one() -> None:
    kept = of({1: {1, 2}, 2: {1, 2, 3, 4}, 3: {3, 4}}, STRONG)
    kept.leave(2, 3)  # 3 is apart, but nobody asked yet
    kept.add(0)
    for p in (1, 2):
        kept.enter(0, p)  # the component gets a lower name
    assert kept.all() == [frozenset({0, 1, 2}), frozenset({3})]


def test_a_component_falls_into_pieces_when_its_middle_is_cut_off() -> None:
    kept = of({1: {1, 2}, 2: {1, 2, 3, 4, 5, 6}, 3: {3, 4}, 4: {5, 6}}, STRONG)
    for p in (1, 3, 5):
        kept.leave(2, p)  # 1, 3 and 4 were held together by 2 only
    assert kept.all() == [frozenset({1}), frozenset({2}), frozenset({3}), frozenset({4})]


def of(groups: Members, share: int) -> Components:
    kept = Components(share)
    for g, members in groups.items():
        kept.add(g)
        for p in members:
            kept.enter(g, p)
    return kept


@pytest.mark.parametrize("share", [STRONG, WEAK])
@pytest.mark.parametrize("others", [(), (2,), (2, 3)])
def test_a_member_that_leaves_its_groups_one_by_one_notes_few_lost_links(
    share: int, others: tuple[int, ...]
) -> None:
    """All of them are linked with each other: one link of a group stands for those to all."""
    kept, count = Components(share), 200
    for g in range(count):
        kept.add(g)
        for p in (1, *others):
            kept.enter(g, p)
    for g in range(count):
        kept.leave(g, 1)
    assert len(kept.lost) <= count * max(1, len(others))
    assert kept.all() == slowly({g: set(others) for g in range(count)}, share)
