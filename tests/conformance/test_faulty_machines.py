"""Every faulty machine is rejected, by the oracle and by Spark, for the reason that is its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from faulty_machines.catalogue import DIRECTED, FAULTY
from faulty_machines.faulty import Faulty
from ordercast.pipeline import read_traces, verify
from ordercast.simulation import Outcome
from ordercast.trace.oracle import judge, verdicts
from ordercast.trace.schema import Event
from ordercast.trace.write import write_jsonl

SEEDS = range(100)
FEWEST_RIGHT = 4  # seeds under which the right machine must be accepted


@cache
def rejected(faulty: Faulty) -> tuple[int, list[Event]]:
    """The first seed whose run breaks what this machine breaks, and that run."""
    for seed in SEEDS:
        events = faulty.run(seed).events()
        if verdict(faulty, events) == "violated":
            return seed, events
    raise AssertionError(f"{faulty.name}: {faulty.breaks} held for all seeds of {SEEDS}")


@cache
def right(faulty: Faulty, seed: int) -> Outcome:
    """The right machine under this seed."""
    return faulty.run_right(seed)


def verdict(faulty: Faulty, events: list[Event]) -> str:
    """What the oracle says of the property in question."""
    only = (faulty.breaks,)
    return judge(events, quiescent=True, only=only)[faulty.breaks].verdict


@pytest.mark.parametrize("name", FAULTY)
def test_the_oracle_rejects_the_faulty_machine(name: str) -> None:
    faulty = FAULTY[name]
    seed, events = rejected(faulty)
    first = judge(events, quiescent=True, only=(faulty.breaks,))[faulty.breaks].violations[0]
    print(f"{name} ({faulty.source}), seed {seed}: {first.sentence}")
    assert first.property == faulty.breaks


@pytest.mark.parametrize("name", FAULTY)
def test_the_right_machine_is_accepted_under_the_same_seeds(name: str) -> None:
    faulty = FAULTY[name]
    last, _ = rejected(faulty)
    for seed in {*range(FEWEST_RIGHT), last}:
        outcome = right(faulty, seed)
        found = verdict(faulty, outcome.events())
        assert (outcome.ended, found) == (faulty.right_ends, "ok"), f"seed {seed}"


@pytest.mark.xdist_group("spark")
def test_spark_rejects_every_faulty_machine_and_accepts_the_right_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs: dict[str, list[Event]] = {}
    breaks: dict[str, str] = {}
    for name, faulty in FAULTY.items():
        seed, runs[f"wrong: {name}"] = rejected(faulty)
        runs[f"right: {name}"] = right(faulty, seed).events()
        breaks[name] = faulty.breaks
    for name, directed in DIRECTED.items():
        benches = directed.played()
        runs[f"wrong: by hand, {name}"], runs[f"right: by hand, {name}"] = (
            bench.trace() for bench in benches
        )
        breaks[f"by hand, {name}"] = directed.breaks
    renamed = (msgspec.structs.replace(e, run=run) for run, events in runs.items() for e in events)
    write_jsonl(renamed, tmp_path / "runs.jsonl")

    found: dict[str, dict[str, str]] = {run: {} for run in runs}
    for row in verify(read_traces(spark, [tmp_path]), quiescent=True).collect():
        found[row["run"]][row["property"]] = row["verdict"]

    for name, broken in breaks.items():
        assert found[f"wrong: {name}"][broken] == "violated", name
        assert found[f"right: {name}"][broken] == "ok", name
    for run, events in runs.items():
        assert found[run] == verdicts(events, quiescent=True), run
