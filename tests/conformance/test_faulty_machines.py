"""Every faulty machine is rejected, by the oracle and by Spark, for the reason that is its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from faulty_machines.catalogue import FAULTY, Faulty
from ordercast.pipeline import read_traces, verify
from ordercast.trace.oracle import judge, verdicts
from ordercast.trace.schema import Event
from ordercast.trace.write import write_jsonl

SEEDS = range(20)


@cache
def rejected(faulty: Faulty) -> tuple[int, list[Event]]:
    """The first seed whose run breaks what this machine breaks, and that run."""
    for seed in SEEDS:
        events = faulty.run(seed).events()
        if verdicts(events, quiescent=True)[faulty.breaks] == "violated":
            return seed, events
    raise AssertionError(f"{faulty.name}: {faulty.breaks} held for all seeds of {SEEDS}")


@pytest.mark.parametrize("name", FAULTY)
def test_the_oracle_rejects_the_faulty_machine(name: str) -> None:
    faulty = FAULTY[name]
    seed, events = rejected(faulty)
    first = judge(events, quiescent=True)[faulty.breaks].violations[0]
    print(f"{name} ({faulty.source}), seed {seed}: {first.sentence}")
    assert first.property == faulty.breaks


@pytest.mark.parametrize("name", FAULTY)
def test_the_right_machine_is_accepted_under_the_same_seeds(name: str) -> None:
    faulty = FAULTY[name]
    last, _ = rejected(faulty)
    for seed in range(max(last + 1, 4)):
        outcome = faulty.run_right(seed)
        found = verdicts(outcome.events())
        assert (outcome.ended, found[faulty.breaks]) == ("quiescent", "ok"), f"seed {seed}"


@pytest.mark.xdist_group("spark")
def test_spark_rejects_every_faulty_machine_and_accepts_the_right_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs: dict[str, list[Event]] = {}
    for name, faulty in FAULTY.items():
        seed, wrong = rejected(faulty)
        runs[f"wrong: {name}"] = wrong
        runs[f"right: {name}"] = faulty.run_right(seed).events()
    renamed = (msgspec.structs.replace(e, run=run) for run, events in runs.items() for e in events)
    write_jsonl(renamed, tmp_path / "runs.jsonl")

    found: dict[str, dict[str, str]] = {run: {} for run in runs}
    for row in verify(read_traces(spark, [tmp_path]), quiescent=True).collect():
        found[row["run"]][row["property"]] = row["verdict"]

    for name, faulty in FAULTY.items():
        assert found[f"wrong: {name}"][faulty.breaks] == "violated", name
        assert found[f"right: {name}"][faulty.breaks] == "ok", name
    for run, events in runs.items():
        assert found[run] == verdicts(events, quiescent=True), run
