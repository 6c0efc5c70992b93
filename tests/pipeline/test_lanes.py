"""Whichever way the rows of a run reach the kernels, and in however many parts it is judged:
the verdicts are the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.judge.files import find_files
from ordercast.judge.kernels.findings import Findings
from ordercast.judge.kernels.judge import Judged, Part, parts
from ordercast.judge.run_files import runs_of_files
from ordercast.judge.verdict_rows import of_part, verdict_batch
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.verify import merged, verify_promises, verify_runs
from ordercast.trace.schema import Event
from ordercast.trace.write import write_csv, write_parquet
from random_traces import random_traces

pytestmark = pytest.mark.xdist_group("spark")

RUNS = 24


def findings(verdicts: DataFrame) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {
        (row["run"], str(row["promise"]), row["property"]): (
            row["verdict"],
            row["violations"],
            row["doubts"],
        )
        for row in verdicts.collect()
    }


def evidence(verdicts: DataFrame) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {
        (row["run"], str(row["promise"]), row["property"]): (row["evidence"], row["reasons"])
        for row in verdicts.collect()
    }


@pytest.fixture(scope="module")
def by_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("by_run")
    events = [event for trace in random_traces(Random(7), RUNS) for event in trace]
    promised = [
        Event(None, None, "group", None, event.group, event.run, members=event.members,
              order="causal", protocol="x", scope="group")
        for event in events
        if event.kind == "group" and event.group == "g"
    ]  # fmt: skip
    write_parquet([*events, *promised], folder)
    return folder


def test_both_ways_to_the_kernels_give_the_same_verdicts(spark: SparkSession, by_run: Path) -> None:
    runs = runs_of_files(find_files([by_run]))
    assert runs is not None
    assert len(runs) == RUNS
    shuffled = findings(verify_promises(read_traces(spark, [by_run])))
    assert len(shuffled) > 32 * RUNS  # promises too
    assert {row[0] for row in shuffled.values()} == {"ok", "violated", "inconclusive", "n/a"}
    assert findings(verify_runs(spark, runs)) == shuffled
    split = verify_runs(spark, runs, split_from=0, shares=3)
    assert findings(split) == shuffled
    again = verify_runs(spark, list(reversed(runs)), split_from=0, shares=3)
    assert evidence(again) == evidence(split)


def test_what_parts_found_is_told_in_the_order_of_the_parts(spark: SparkSession) -> None:
    def said(part: Part) -> pa.RecordBatch:
        told = [(f"{part.family} {part.share}, {word}", {}) for word in ("first", "second")]
        judged = Judged("fifo.group", "violated", Findings(2, violations=2, evidence=told))
        return of_part(verdict_batch("r", None, [judged]), part.place)

    for several in (parts(shares=2), parts(shares=2)[::-1]):
        rows = spark.createDataFrame(pa.Table.from_batches(map(said, several)))
        (row,) = merged(rows, witnesses=5).collect()
        assert [one["sentence"] for one in row["evidence"]] == [
            "facts 0, first",
            "facts 0, second",
            "total 0, first",
            "total 0, second",
            "precedence 0, first",
        ]


def test_a_file_of_several_runs_is_not_laid_out(tmp_path: Path) -> None:
    events = [event for trace in random_traces(Random(7), 2) for event in trace]
    write_csv(events, tmp_path / "trace.csv")
    assert runs_of_files(find_files([tmp_path])) is None


def test_rows_that_are_no_trace_are_refused_by_whoever_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = {"process": ["p", "p"], "index": [1, 2], "kind": ["send", "sent"],
             "message": ["a", "b"], "group": ["g", "g"]}  # fmt: skip
    pq.write_table(pa.table(table), tmp_path / "trace.parquet")
    runs = runs_of_files(find_files([tmp_path]))
    assert runs is not None
    with pytest.raises(TraceError, match="unknown kind 'sent'") as refused:
        verify_runs(spark, runs)
    assert refused.value.line == 2
