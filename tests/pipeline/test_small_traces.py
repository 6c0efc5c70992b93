"""A small trace is judged in one job and measured in none, with the same outcome as a large one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyspark.sql import Row, SparkSession

from notation import trace
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.judge.figures import GroupFigures
from ordercast.judge.measured import Measured, measured_here
from ordercast.pipeline.measure import measure
from ordercast.pipeline.measure.whole import measured
from ordercast.pipeline.verdict import judge_paths, judge_table
from ordercast.pipeline.verify import verify_promises, verify_table
from ordercast.simulation.config import SimulationConfig, overlapping_groups
from ordercast.simulation.run import simulate
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from ordercast.trace.write import write_jsonl

pytestmark = pytest.mark.xdist_group("spark")

ILL = """
group g: p,q,r
p: send a g; deliver a g; lost; deliver b g; deliver b g; crash
q: send b g; deliver b g; deliver c g from r; deliver a g
"""


def simulated(name: str, **options: object) -> list[Event]:
    config = SimulationConfig(members=4, messages=12, loss=0.1, seed=5, **options)  # type: ignore[arg-type]
    return [replace(event, run=name) for event in simulate(config).events()]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Runs with all that can be measured: packets, groups, repeats, losses, times and none."""
    times = {"p": 1_000, "q": 400}
    ill = [
        replace(event, time=event.index * 100 + times[event.process] if event.index else None)
        for event in trace(ILL, run="ill")
    ]
    groups = overlapping_groups(4, 2, 3)
    events = [
        *simulated("watched", protocol="cbcast", trace="protocol", groups=groups),
        *simulated("plain", protocol="sequencer_pb"),
        *ill,
        *trace("p: send a g; end\nq: deliver a g; lost; end", run="untimed"),
        *trace("p: end", run="idle"),
    ]
    return event_table(events).cast(ARROW_SCHEMA)


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, table: pa.Table) -> dict[str, Measured]:
    return measured(spark.createDataFrame(table))


def test_a_table_is_measured_here_as_spark_measures_it(
    table: pa.Table, by_spark: dict[str, Measured]
) -> None:
    here = measured_here(table)
    assert here == by_spark
    assert here["ill"].figures.health.early > 0
    assert here["ill"].figures.whole is not None
    assert (here["ill"].figures.whole.repeats, here["idle"].figures.whole) == (1, None)


def test_the_figures_of_a_run_are_those_of_the_table_of_metrics(
    spark: SparkSession, table: pa.Table, by_spark: dict[str, Measured]
) -> None:
    rows = measure(spark.createDataFrame(table), per=["run", "group"]).collect()
    spreads = {"latency": "latency", "hold_back": "hold_back", "payload": "payload"}
    compared = 0
    for row in rows:
        figures = _of(by_spark[row["run"]], row)
        if row["metric"] in ("sends", "deliveries", "repeats"):
            assert getattr(figures, row["metric"]) == row["count"]
        elif row["metric"] in spreads:
            spread = getattr(figures, row["metric"])
            assert (spread.count, spread.mean) == (row["count"], row["value"])
            points = [min(max(one, row["min"]), row["max"]) for one in row["percentiles"]]
            assert [point for _, point in spread.percentiles][1:-1] == points[1:-1]
            compared += 1
    assert compared > 10


def _of(run: Measured, row: Row) -> GroupFigures | None:
    if row["per"] == "run":
        return run.figures.whole
    return next(one for one in run.figures.groups if one.group == row["group"])


def test_a_table_is_judged_in_one_task_as_its_rows_are_when_shuffled(
    spark: SparkSession, table: pa.Table
) -> None:
    shuffled = verify_promises(spark.createDataFrame(table)).collect()
    assert _sorted(verify_table(spark, table).collect()) == _sorted(shuffled)


def _sorted(rows: Iterable[Row]) -> Sequence[Row]:
    return sorted(rows, key=lambda row: (row["run"], repr(row["promise"]), row["property"]))


def test_a_small_trace_costs_one_job(spark: SparkSession) -> None:
    events = event_table([*trace(ILL), *trace("q: receive a g", run="w")]).cast(ARROW_SCHEMA)
    spark.sparkContext.setJobGroup("small", "a small trace")
    try:
        judge_table(spark, events)
    finally:
        spark.sparkContext.setJobGroup("others", "other tests")
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("small")) == 1


@pytest.mark.usefixtures("spark")
def test_the_steps_tell_how_much_there_is_to_do(tmp_path: Path) -> None:
    write_jsonl(trace("p: send a g; deliver a g; end", run="r"), tmp_path / "trace.jsonl")
    steps: list[str] = []
    judge_paths([tmp_path], master="local[2]", say=steps.append)
    assert steps == [
        "starting Spark", "reading", "verifying 3 events of 1 run", "measuring 3 events of 1 run",
    ]  # fmt: skip
