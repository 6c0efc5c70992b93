"""Covering arrays: every pair that may occur does, and a seed gives one array."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from sweep.covering import Row, allowed_pairs, covering_array, pairs_of

PARAMETERS = {
    "order": ("total", "causal", "fifo", "none"),
    "resilience": (None, 0, 1),
    "uniform": (False, True),
    "guests": (False, True),
    "sites": (False, True),
}


def excluded(row: Row) -> bool:
    if row.get("uniform") and row.get("resilience") is not None:
        return True
    if row.get("guests") and row.get("order") == "fifo":
        return True
    return bool(row.get("sites")) and row.get("order", "fifo") != "fifo"


def every_complete_row() -> list[Row]:
    rows = (dict(zip(PARAMETERS, values, strict=True)) for values in product(*PARAMETERS.values()))
    return [row for row in rows if not excluded(row)]


def covered(rows: list[Row]) -> set[frozenset[tuple[str, object]]]:
    """Pairs by their values, found in the plainest way."""
    return {frozenset(pair) for row in rows for pair in combinations(row.items(), 2)}


@pytest.mark.parametrize("seed", range(20))
def test_every_pair_of_some_allowed_row_is_in_the_array_and_no_row_is_excluded(seed: int) -> None:
    rows = covering_array(PARAMETERS, excluded, seed)
    assert covered(rows) == covered(every_complete_row())
    assert all(row.keys() == PARAMETERS.keys() and not excluded(row) for row in rows)


def test_what_two_rules_exclude_together_is_no_allowed_pair() -> None:
    pairs = allowed_pairs(PARAMETERS, excluded)
    assert ("guests", 1, "sites", 1) not in pairs  # sites are for fifo only, which has no guests
    assert ("guests", 1, "sites", 0) in pairs


def test_a_seed_gives_one_array() -> None:
    first = covering_array(PARAMETERS, excluded, 7)
    assert covering_array(PARAMETERS, excluded, 7) == first
    assert any(covering_array(PARAMETERS, excluded, seed) != first for seed in range(5))


def test_an_array_is_shorter_than_all_rows() -> None:
    rows = covering_array(PARAMETERS, excluded)
    assert len(rows) < 0.6 * len(every_complete_row())
    new: set[object] = set()
    for row in rows:  # and each of its rows is there for something
        pairs = set(pairs_of(PARAMETERS, row))
        assert pairs - new
        new |= pairs
