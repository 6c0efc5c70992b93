"""Every fault in the membership of nodes is found, and the machine without it is accepted."""

from __future__ import annotations

from functools import cache

import pytest

from faulty_machines.rows_clusters import ROWS, FaultyCluster
from sweep.cluster_oracle import run
from sweep.trial import cluster_found

BY_NAME = {row.name: row for row in ROWS}
FEWEST_RIGHT = 4  # seeds under which the right machine must be accepted
each_fault = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.xdist_group(f"faulty: {name}")) for name in BY_NAME],
)  # both tests of a fault need the first seed that shows it


def found(row: FaultyCluster, seed: int, *, faulty: bool) -> list[tuple[str, str]]:
    return cluster_found(run(row.config(seed, faulty=faulty)))


@cache
def rejected(name: str) -> tuple[int, str]:
    """The first seed under which the fault shows, and how."""
    row = BY_NAME[name]
    for seed in range(row.seeds):
        for guarantee, sentence in found(row, seed, faulty=True):
            if guarantee in row.breaks:
                return seed, sentence
    raise AssertionError(f"{name}: nothing wrong was found in {row.seeds} runs")


@each_fault
def test_the_faulty_membership_is_rejected(name: str) -> None:
    seed, sentence = rejected(name)
    print(f"{name} ({BY_NAME[name].rule}), seed {seed}: {sentence}")
    assert sentence


@each_fault
def test_the_right_membership_is_accepted_under_the_same_seeds(name: str) -> None:
    seed, _ = rejected(name)
    for other in {*range(FEWEST_RIGHT), seed}:
        assert found(BY_NAME[name], other, faulty=False) == [], f"seed {other}"
