"""Generated runs with planted faults: each is found with its witness, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from bench.traces import FAULTS, MASKED, TOGETHER, Shape, closure, generate, review, small_table
from ordercast.judge.kernels.judge import judge_table
from ordercast.trace.oracle import verdicts
from ordercast.trace.read import read_table
from ordercast.trace.schema import PROPERTIES
from ordercast.trace.tables import table_events

ALL_EVIDENCE = 1000
TINY = Shape(events=545, processes=8, lag=1)  # what the oracle judges in a second


def judged(table: pa.Table) -> tuple[dict[str, str], list[tuple[str, dict[str, object]]]]:
    """(verdicts, evidence) of the kernels."""
    found = judge_table(table, witnesses=ALL_EVIDENCE)
    evidence = [(one.property, witness) for one in found for _, witness in one.findings.evidence]
    return {one.property: one.verdict for one in found}, evidence


def violated(table_verdicts: dict[str, str]) -> set[str]:
    return {name for name, verdict in table_verdicts.items() if verdict == "violated"}


@pytest.mark.parametrize("groups", [1, 3])
def test_a_generated_run_keeps_every_property(groups: int) -> None:
    table, faults = small_table(replace(TINY, groups=groups))
    found, _ = judged(table)
    assert faults == []
    assert found == verdicts(table_events(table)) == dict.fromkeys(PROPERTIES, "ok")


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_breaks_what_it_claims_and_is_shown(name: str) -> None:
    table, faults = small_table(replace(TINY, faults=(name,)))
    found, evidence = judged(table)
    assert violated(found) == closure(faults[0].breaks)
    assert found == verdicts(table_events(table)), "the oracle's"
    outcome = review(faults, violated(found), evidence)
    assert outcome.perfect, outcome


@pytest.mark.parametrize(
    ("processes", "groups", "planted"),
    [(10, 4, TOGETHER), (30, 1, TOGETHER), (10, 4, MASKED)],
    ids=["overlapping groups", "many processes", "a ring"],
)
def test_many_faults_in_one_run_are_all_found(
    processes: int, groups: int, planted: tuple[str, ...]
) -> None:
    shape = Shape(1500 * processes, processes, groups, lag=2, faults=planted)
    table, faults = small_table(shape)
    found, evidence = judged(table)
    outcome = review(faults, violated(found), evidence)
    assert len(faults) == len(planted)
    assert outcome.perfect, outcome


@pytest.mark.parametrize("layout", ["logs", "shuffled", "heap"])
def test_the_layout_of_a_run_changes_no_verdict(layout: str, tmp_path: Path) -> None:
    shape = Shape(15_000, 10, groups=3, lag=2, faults=TOGETHER)
    written = generate(tmp_path, replace(shape, layout=layout))
    table = read_table(sorted(written.path.glob("*.parquet")))
    found, evidence = judged(table)
    outcome = review(written.faults, violated(found), evidence)
    assert len(table) >= written.rows
    assert outcome.perfect, outcome


def test_an_equal_shape_is_not_written_again(tmp_path: Path) -> None:
    shape = Shape(5_000, 8, lag=2, faults=("fifo_gap",))
    first = generate(tmp_path, shape)
    stamp = (first.path / "p0.parquet").stat().st_mtime_ns
    assert generate(tmp_path, shape) == first
    assert (first.path / "p0.parquet").stat().st_mtime_ns == stamp
    assert generate(tmp_path, replace(shape, seed=2)) != first


def test_a_run_that_is_too_short_says_how_long_it_must_be() -> None:
    with pytest.raises(ValueError, match="too few; at least"):
        small_table(Shape(100, 8))


def test_a_review_tells_what_was_missed_and_what_is_strange() -> None:
    table, faults = small_table(replace(TINY, faults=("fifo_inversion",)))
    found, evidence = judged(table)
    assert review(faults, [], []).missed
    assert review(faults, [], []).verdicts
    assert review([], violated(found), evidence).strange == tuple(evidence)
    a, b = faults[0].chain
    wrong = {"process": "p0", "messages": [a, b], "chain": [b, a]}
    assert not review(faults, violated(found), [("fifo.group", wrong)]).perfect
