"""Figures of a run as plain data: what is unknown is None, and how far a trace can be trusted."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from notation import trace
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.judge.figures import ClockSkew, LossyLog
from ordercast.judge.measured import Measured
from ordercast.pipeline.measure import whole
from ordercast.pipeline.measure.deliveries import folded_by_group
from ordercast.pipeline.measure.together import together
from ordercast.pipeline.measure.whole import measured
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table

pytestmark = pytest.mark.xdist_group("spark")

ILL = """
group g: p,q,r
p: send a g; deliver a g; send c g; deliver c g; deliver b g from q; end
q: deliver a g from p; send b g; deliver b g; lost; lost
"""
TIMES = {
    "p": [100, 100, 3_000, 3_000, 9_000, 9_000],
    "q": [-900, 1_000, 1_000, 1_000, 1_000],  # its clock is behind by 1000 at least
}


def timed(text: str, times: dict[str, list[int]], run: str = "") -> list[Event]:
    return [
        replace(e, time=times[e.process][e.index - 1] if e.process and e.index else None)
        for e in trace(text, run=run)
    ]


@pytest.fixture(scope="module")
def runs(spark: SparkSession) -> dict[str, Measured]:
    rows = timed(ILL, TIMES, run="ill")
    notes = iter(["7 records missing", "5 records missing"])
    rows = [replace(e, note=next(notes)) if e.kind == "lost" else e for e in rows]
    rows += trace("p: send a g; deliver a g; end\nq: lost; deliver a g; crash", run="bare")
    rows += timed(
        "p: send a g; deliver a g; nack a g; end\nq: receive a g; hold a g; deliver a g; end",
        {"p": [0, 0, 0, 0], "q": [5, 5, 8, 8]}, run="watched",
    )  # fmt: skip
    return measured(spark.createDataFrame(event_table(rows).cast(ARROW_SCHEMA)))


def test_health_names_logs_that_stop_that_have_holes_and_that_are_missing(
    runs: dict[str, Measured],
) -> None:
    health = runs["ill"].figures.health
    assert health.cut == ("q",)
    assert health.lossy == (LossyLog("q", 2, 12),)
    assert health.silent == ("r",)
    assert health.untimed == ()
    bare = runs["bare"].figures.health
    assert bare.untimed == ("p", "q")
    assert bare.lossy == (LossyLog("q", 1, None),)
    assert runs["bare"].facts.crashed == ("q",)


def test_a_delivery_before_its_send_proves_that_clocks_differ(runs: dict[str, Measured]) -> None:
    health = runs["ill"].figures.health
    assert (health.early, health.pairs, health.skewed_pairs) == (1, 1, 1)
    [skew] = health.skews
    assert (skew.first, skew.second, skew.forth_ns, skew.back_ns) == ("p", "q", -1_000, 8_000)
    assert skew.sureness == "proven"
    assert (skew.offset_ns, skew.uncertainty_ns) == (-4_500, 3_500)


@pytest.mark.parametrize(
    ("forth", "back", "early", "sureness"),
    [(5, 9, 0, "possible"), (-5, 9, 1, "proven"), (-5, 2, 1, "unsteady"), (5, None, 0, "one-way"),
     (None, -5, 1, "proven")],
)  # fmt: skip
def test_how_sure_a_skew_is(forth: int | None, back: int | None, early: int, sureness: str) -> None:
    assert ClockSkew("p", "q", forth, back, early).sureness == sureness


def test_what_the_trace_does_not_tell_is_none_and_what_did_not_happen_is_0(
    runs: dict[str, Measured],
) -> None:
    [bare], [watched] = runs["bare"].figures.groups, runs["watched"].figures.groups
    assert (bare.sends, bare.deliveries, bare.packets_received, bare.latency) == (1, 2, None, None)
    assert (bare.hold_back, bare.waited, bare.headers) == (None, None, None)
    assert runs["bare"].figures.throughput is None
    assert (watched.packets_received, watched.nacks, watched.retransmissions) == (1, 1, 0)
    assert watched.hold_back is not None
    assert (watched.hold_back.count, watched.hold_back.at(50), watched.waited) == (1, 3, 1)


def test_the_slices_of_time_have_no_holes_and_add_up(runs: dict[str, Measured]) -> None:
    pace = runs["ill"].figures.throughput
    assert pace is not None
    assert (pace.duration_ns, pace.bucket_ns) == (9_900, 200)
    assert [one.start_ns for one in pace.buckets] == list(range(0, 9_901, 200))
    assert sum(one.sends for one in pace.buckets) == 3
    assert sum(one.deliveries for one in pace.buckets) == 5
    assert pace.buckets[0].deliveries == 1
    assert pace.deliveries_per_s == pytest.approx(5e9 / 9_900)


def test_figures_can_be_written_as_json(runs: dict[str, Measured]) -> None:
    told = json.loads(json.dumps(runs["ill"].figures.as_json()))
    assert told["health"]["skews"][0]["sureness"] == "proven"
    assert told["groups"][0]["latency"]["percentiles"][0] == [0, -1_000]


def test_a_long_trace_is_measured_in_more_partitions_than_usual(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = spark.createDataFrame(event_table(trace(ILL)).cast(ARROW_SCHEMA))
    wanted = measured(events)
    usual = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    folds: list[DataFrame] = []

    def fold(*arguments: Any) -> DataFrame:
        folds.append(folded_by_group(*arguments))
        return folds[-1]

    monkeypatch.setattr(whole, "folded_by_group", fold)
    monkeypatch.setattr(sys.modules[together.__module__], "ROWS_EACH", 1)
    assert measured(events) == wanted
    moves = events.where("kind in ('send', 'deliver')").count()
    assert folds[0].rdd.getNumPartitions() == moves > usual
