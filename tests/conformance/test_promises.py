"""Protocols x guarantees x arenas: what a protocol declares, it keeps, in every kind of run.

A protocol that enters the registry, and an arena that enters `sweep.arenas`, are picked up here.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from ordercast.protocols.registry import PROTOCOLS
from sweep.arenas import ARENAS
from sweep.trial import Failure, tried

RUNS = 100  # of each protocol, at least; the sweep begins at seed 0 and goes on for thousands
SEEDS = range(1000, 1000 + -(-RUNS // len(ARENAS)))

PAIRS = [
    (name, arena.name)
    for name, page in PROTOCOLS.items()
    for arena in ARENAS.values()
    if arena.serves(page)
]
each_pair = pytest.mark.parametrize(
    ("protocol", "arena"),
    [
        pytest.param(*pair, marks=pytest.mark.xdist_group(" ".join(pair)))  # they share their runs
        for pair in PAIRS
    ],
)


class Runs:
    """All runs of a protocol in an arena: what went wrong, and what there was to judge."""

    def __init__(self, protocol: str, arena: str) -> None:
        self.failures: list[Failure] = []
        self.deliveries = 0
        self.changed = 0  # runs in which a group got a second view
        for seed in SEEDS:
            failures, outcome = tried(protocol, arena, seed)
            self.failures += failures
            if outcome is not None:
                self.deliveries += outcome.statistics.deliveries
                self.changed += any(event.view == 2 for event in outcome.events())


runs = cache(Runs)


@each_pair
def test_every_promise_is_kept(protocol: str, arena: str) -> None:
    """All that is promised, that it comes to rest, and that it takes no more than it declares."""
    broken = runs(protocol, arena).failures
    counts = Counter(failure.guarantee for failure in broken)
    examples = {failure.guarantee: str(failure) for failure in reversed(broken)}
    told = [f"{counts[name]} times: {example}" for name, example in examples.items()]
    assert not broken, "\n".join((f"in {len(SEEDS)} runs", *told))
    assert ARENAS[arena].wanted(PROTOCOLS[protocol])


@each_pair
def test_the_runs_of_an_arena_are_worth_judging(protocol: str, arena: str) -> None:
    found = runs(protocol, arena)
    enough = 20 if ARENAS[arena].settles else 10  # some come to a halt when one dies
    assert found.deliveries > enough * len(SEEDS)
    if ARENAS[arena].views_change and "vsync" in ARENAS[arena].wanted(PROTOCOLS[protocol]):
        assert found.changed > len(SEEDS) / 2
