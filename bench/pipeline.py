"""The pipeline at full size: every property of a generated run against a bare sort by Spark.

The yardstick is what Spark needs merely to read the columns that a verdict needs, shuffle the rows
by process and sort them by index, thrown away at the end; on the same session, both warm. The runs
have planted faults. Whether all of them are found, with the right witness, and nothing else, is
among the figures: speed that sees nothing is none.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from bench import kernels
from bench.peak import PeakMemory
from bench.traces import MASKED, TOGETHER, Generated, Shape, generate, review, small_table
from ordercast.judge.files import find_files
from ordercast.judge.kernels.run import KERNEL_COLUMNS
from ordercast.judge.run_files import runs_of_files
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.verify import verify_promises, verify_runs
from ordercast.trace.schema import PROPERTIES
from ordercast.trace.tables import table_events
from ordercast.trace.write import write_jsonl

FOLDER = Path("out/bench-traces")
MILLION = 1_000_000
REPEATS = 3
ALL_EVIDENCE = 2_000

FEWEST = ("run", "process", "index", "kind", "message", "group", "sender")
NEEDED = ("run", *KERNEL_COLUMNS)
YARDSTICKS = {"7 columns": FEWEST, "all that a verdict needs": NEEDED}


def run_of(millions: int, processes: int, faults: tuple[str, ...] = TOGETHER) -> Generated:
    """The generated run of this size, from the disk if it is there."""
    kind = {TOGETHER: "faults", MASKED: "cycle", (): "clean"}[faults]
    name = f"{millions}M-{processes}p-{kind}"
    return generate(FOLDER, Shape(millions * MILLION, processes, faults=faults, run=name))


@contextmanager
def session() -> Iterator[SparkSession]:
    """The session that `ordercast verify` takes for large traces."""
    spark = local_session(app_name="bench", small=False)
    try:
        yield spark
    finally:
        spark.stop()


def seconds(action: Callable[[], object]) -> float:
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def best(action: Callable[[], object], repeats: int = REPEATS) -> float:
    return min(seconds(action) for _ in range(repeats))


def bare_sort(spark: SparkSession, generated: Generated, columns: tuple[str, ...]) -> None:
    """Read, shuffle by process, sort by index, throw away."""
    rows: DataFrame = spark.read.parquet(str(generated.path)).select(*columns)
    ordered = rows.repartition("run", "process").sortWithinPartitions("run", "process", "index")
    ordered.write.format("noop").mode("overwrite").save()


def verdicts(
    spark: SparkSession, generated: Generated, witnesses: int = kernels.LIMIT
) -> list[Row]:
    """All 32 verdicts on the run, as `ordercast verify` gets them from a large trace."""
    runs = runs_of_files(find_files([generated.path]))
    assert runs is not None, "generated runs are laid out by run"
    return verify_runs(spark, runs, witnesses=witnesses).collect()


def found(rows: list[Row], generated: Generated) -> str:
    """Is every planted fault there, with the right witness, and nothing else?"""
    whole = [row for row in rows if row["promise"] is None]
    assert len(whole) == len(PROPERTIES)
    violated = {row["property"] for row in whole if row["verdict"] == "violated"}
    doubtful = {row["property"] for row in whole if row["verdict"] == "inconclusive"}
    kept = [
        (row["property"], json.loads(one["witness"])) for row in whole for one in row["evidence"]
    ]
    outcome = str(review(generated.faults, violated, kept))
    if len(kept) < sum(row["violations"] for row in whole):
        outcome += "; not all evidence was looked at"
    return outcome + (f"; inconclusive: {sorted(doubtful)}" if doubtful else "")


def full_size(processes: int) -> dict[str, Any]:
    """10 M events: the ratio to the bare sort, what was found, and every kernel's speed."""
    generated, ring = run_of(10, processes), run_of(10, processes, MASKED)
    with session() as spark:
        verdicts(spark, run_of(1, processes))
        bare_sort(spark, run_of(1, processes), NEEDED)
        verified, sorts = float("inf"), dict.fromkeys(YARDSTICKS, float("inf"))
        for _ in range(REPEATS):  # in turn, so that other load on the machine hits all alike
            verified = min(verified, seconds(lambda: verdicts(spark, generated)))
            for name, columns in YARDSTICKS.items():
                took = seconds(partial(bare_sort, spark, generated, columns))
                sorts[name] = min(sorts[name], took)
        outcome = found(verdicts(spark, generated, ALL_EVIDENCE), generated)
        ring_outcome = found(verdicts(spark, ring, ALL_EVIDENCE), ring)
    return {
        "events": generated.rows,
        "all 32 verdicts, s": verified,
        "events/s": generated.rows / verified,
        **{f"bare sort, {name}, s": took for name, took in sorts.items()},
        **{f"verdicts / bare sort, {name}": verified / took for name, took in sorts.items()},
        f"{len(generated.faults)} planted faults": outcome,
        "a ring of three": ring_outcome,
        **{
            f"M events/s and core: {name}": speed / MILLION
            for name, speed in kernels.speeds(run_of(10, processes, ())).items()
        },
    }


def scaling() -> dict[str, Any]:
    """Ten times the events, ten times the processes; and the lane for what is not laid out."""
    with session() as spark:
        verdicts(spark, run_of(1, 10))
        ten = best(lambda: verdicts(spark, run_of(10, 10)))
        one = best(lambda: verdicts(spark, run_of(1, 10)))
        small = run_of(1, 10)
        events = read_traces(spark, [small.path])
        shuffled_lane = seconds(lambda: verify_promises(events).collect())
        rows = verify_promises(events, witnesses=ALL_EVIDENCE).collect()
        outcome = found(rows, small)
    few, many = kernels.causal_s(run_of(10, 10, ())), kernels.causal_s(run_of(10, 100, ()))
    return {
        "1 M events, s": one,
        "10 M events, s": ten,
        "time(10 M) / time(1 M)": ten / one,
        "fifo and causal, 10 processes, ns per event": few * 1e9,
        "fifo and causal, 100 processes, ns per event": many * 1e9,
        "100 processes / 10 processes": many / few,
        "1 M events through shuffle and sort, s": shuffled_lane,
        "found there": outcome,
        "`ordercast verify` of 1,000 events, s": small_trace(),
    }


def small_trace() -> float:
    """Seconds that the command takes for a small file, start to end."""
    table, _ = small_table(Shape(1_000, 10, lag=1))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.jsonl"
        write_jsonl(table_events(table), file)
        command = [Path(sys.executable).with_name("ordercast"), "verify", file]
        return best(lambda: subprocess.run(command, check=True, capture_output=True))


def hundred_million() -> dict[str, Any]:
    """100 M events in one run: does it end, how long does it take, how much memory."""
    made = seconds(lambda: run_of(100, 10))
    generated = run_of(100, 10)
    with session() as spark:
        verdicts(spark, run_of(1, 10))
        with PeakMemory() as peak:
            before = time.perf_counter()
            rows = verdicts(spark, generated, ALL_EVIDENCE)
            took = time.perf_counter() - before
    return {
        "events": generated.rows,
        "making it (0: it was there), s": made,
        "on disk, MB": generated.bytes / 1e6,
        "all 32 verdicts, s": took,
        "events/s": generated.rows / took,
        "peak resident memory of all processes, MiB": peak.mib,
        "planted faults": found(rows, generated),
    }
