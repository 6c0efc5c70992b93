"""Covering arrays: few rows in which every two values that may meet do meet.

Source  D. M. Cohen, S. R. Dalal, M. L. Fredman, G. C. Patton: "The AETG System: An Approach to
        Testing Based on Combinatorial Design", IEEE Trans. on Software Engineering 23(7), 1997.

A row begins with a pair that no row has yet. The other parameters follow in a random order; each
gets the value that brings most new pairs. Of several such rows the best one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

Parameters = Mapping[str, Sequence[Any]]
Row = dict[str, Any]
Pair = tuple[str, int, str, int]  # a parameter and the place of its value; another one and its own
Excluded = Callable[[Row], bool]
"""Is this wrong, whatever else a row says? It is asked of rows that are not complete."""

CANDIDATES = 5  # rows that are tried for each one that is taken


def covering_array(parameters: Parameters, excluded: Excluded, seed: int = 0) -> list[Row]:
    """Rows that cover every pair that may occur. The same seed gives the same rows."""
    rng = Random(f"covering array {seed}")
    missing = allowed_pairs(parameters, excluded)
    rows: list[Row] = []
    while missing:
        tried = [_candidate(parameters, excluded, missing, rng) for _ in range(CANDIDATES)]
        best = max(tried, key=lambda row: _gain(parameters, row, missing))
        rows.append(best)
        for pair in pairs_of(parameters, best):
            missing.pop(pair, None)
    return rows


def allowed_pairs(parameters: Parameters, excluded: Excluded) -> dict[Pair, None]:
    """Pairs of values that some complete row has; in a fixed order."""
    found: dict[Pair, None] = {}
    for a, b in combinations(parameters, 2):
        for i, x in enumerate(parameters[a]):
            for j, y in enumerate(parameters[b]):
                if _completed(parameters, excluded, {a: x, b: y}) is not None:
                    found[a, i, b, j] = None
    return found


def pairs_of(parameters: Parameters, row: Row) -> Iterator[Pair]:
    """Those that a row covers, complete or not."""
    places = {name: parameters[name].index(row[name]) for name in parameters if name in row}
    for a, b in combinations(places, 2):
        yield a, places[a], b, places[b]


def _gain(parameters: Parameters, row: Row, missing: Mapping[Pair, None]) -> int:
    return sum(pair in missing for pair in pairs_of(parameters, row))


def _candidate(
    parameters: Parameters, excluded: Excluded, missing: Mapping[Pair, None], rng: Random
) -> Row:
    a, i, b, j = rng.choice(list(missing))
    row: Row = {a: parameters[a][i], b: parameters[b][j]}
    others = [name for name in parameters if name not in row]
    rng.shuffle(others)
    for name in others:
        values = list(parameters[name])
        rng.shuffle(values)
        longer = [{**row, name: value} for value in values]
        possible = [one for one in longer if _completed(parameters, excluded, one) is not None]
        row = max(possible, key=lambda one: _gain(parameters, one, missing))
    return row


def _completed(parameters: Parameters, excluded: Excluded, row: Row) -> Row | None:
    """A complete row that has these values; None if there is none."""
    if excluded(row):
        return None
    name = next((name for name in parameters if name not in row), None)
    if name is None:
        return row
    for value in parameters[name]:
        found = _completed(parameters, excluded, {**row, name: value})
        if found is not None:
            return found
    return None
