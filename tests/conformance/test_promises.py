"""Protocols x guarantees x arenas: what a protocol declares, it keeps, in every kind of run.

A protocol that enters the registry, and an arena that enters `sweep.arenas`, are picked up here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import simulate
from sweep.arenas import ARENAS
from sweep.trial import FEW_PACKETS, IN_EVERY_RUN, Failure, failures

RUNS = 200  # of each protocol, at least; the sweep begins at seed 0 and goes on for thousands
SEEDS = range(1000, 1000 + -(-RUNS // len(ARENAS)))

PAIRS = [
    (name, arena.name)
    for name, page in PROTOCOLS.items()
    for arena in ARENAS.values()
    if arena.serves(page)
]


def matrix() -> Iterator[object]:
    for name, protocol in PROTOCOLS.items():
        for arena in (arena for arena in ARENAS.values() if arena.serves(protocol)):
            together = pytest.mark.xdist_group(f"{name} {arena.name}")  # they share their runs
            counted = (FEW_PACKETS,) if arena.counted else ()
            for guarantee in (*IN_EVERY_RUN, *counted, *arena.wanted(protocol)):
                yield pytest.param(name, arena.name, guarantee, marks=together)


@cache
def runs(protocol: str, arena: str) -> tuple[Failure, ...]:
    return tuple(failure for seed in SEEDS for failure in failures(protocol, arena, seed))


@pytest.mark.parametrize(("protocol", "arena", "guarantee"), list(matrix()))
def test_a_promise_is_kept(protocol: str, arena: str, guarantee: str) -> None:
    broken = [failure for failure in runs(protocol, arena) if failure.guarantee == guarantee]
    assert not broken, f"{len(broken)} of {len(SEEDS)} runs\n{broken[0]}"


@pytest.mark.parametrize(("protocol", "arena"), PAIRS)
def test_the_runs_of_an_arena_are_worth_judging(protocol: str, arena: str) -> None:
    outcomes = [simulate(ARENAS[arena].config(PROTOCOLS[protocol], seed)) for seed in SEEDS]
    enough = 20 if ARENAS[arena].settles else 10  # some come to a halt when one dies
    assert sum(outcome.statistics.deliveries for outcome in outcomes) > enough * len(SEEDS)
    if ARENAS[arena].views_change and "vsync" in ARENAS[arena].wanted(PROTOCOLS[protocol]):
        changed = [any(e.view == 2 for e in outcome.events()) for outcome in outcomes]
        assert sum(changed) > len(SEEDS) / 2
