"""Thousands of small random runs in one Spark job: all 32 verdicts equal the oracle's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline import read_traces, verify
from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.schema import PROPERTIES
from ordercast.trace.write import write_jsonl
from random_traces import random_traces

SEED = 20_260
RUNS = 3_000

pytestmark = pytest.mark.xdist_group("spark")


def test_all_verdicts_of_3000_random_runs_equal_the_oracles(
    spark: SparkSession, tmp_path: Path
) -> None:
    traces = list(random_traces(Random(SEED), RUNS))
    write_jsonl((event for trace in traces for event in trace), tmp_path / "runs.jsonl")

    found: dict[str, dict[str, str]] = {}
    for row in verify(read_traces(spark, [tmp_path], small_bytes=0)).collect():
        assert row["property"] not in found.setdefault(row["run"], {})
        found[row["run"]][row["property"]] = row["verdict"]

    seen: Counter[tuple[str, str]] = Counter()
    for trace in filter(None, traces):
        run = trace[0].run
        wanted = verdicts(trace)
        assert found[run].keys() == set(PROPERTIES)
        compared = ("wellformed",) if unspecified(trace) else PROPERTIES
        differing = {n: (found[run][n], wanted[n]) for n in compared if found[run][n] != wanted[n]}
        assert not differing, f"seed {SEED}, run {run}: (Spark, oracle) {differing}"
        seen.update((name, wanted[name]) for name in compared)
    for name in PROPERTIES:  # the comparison means something for every property
        assert seen[name, "ok"] > 100 and seen[name, "violated"] > 20, name
