"""What is measured equals what a slow and obvious computation says, on simulated runs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, Row, SparkSession

from notation import trace
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.pipeline.measure import deliveries, measure
from ordercast.pipeline.measure.table import COUNTS, LEVELS, RATES, SPREADS
from ordercast.simulation.config import SimulationConfig, overlapping_groups
from ordercast.simulation.run import simulate
from ordercast.trace.expand import share
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table

pytestmark = pytest.mark.xdist_group("spark")

KINDS = {"receive": "packets_received", "retransmit": "retransmissions", "nack": "nacks"}
Key = tuple[object, ...]
"""(run, per, protocol, group, process, view, metric)"""


def frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    return spark.createDataFrame(event_table(list(events)).cast(ARROW_SCHEMA))


def simulated(name: str, **options: object) -> list[Event]:
    config = SimulationConfig(members=4, messages=30, loss=0.1, seed=5, **options)  # type: ignore[arg-type]
    return [replace(event, run=name) for event in simulate(config).events()]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    return [
        *simulated("watched", protocol="cbcast", trace="protocol",
                   groups=overlapping_groups(4, 2, 3)),
        *simulated("plain", protocol="sequencer_pb"),
    ]  # fmt: skip


class Slow:
    """All values and counts, row by row."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.values: dict[Key, list[int]] = defaultdict(list)
        self.counts: dict[Key, int] = defaultdict(int)
        self.protocols = {(e.run, e.group): e.protocol for e in events if e.kind == "group"}
        self.sends = {(e.run, e.message): e for e in events if e.kind == "send"}
        self.views: dict[Key, int | None] = {}
        self.arrived: dict[Key, int] = {}
        done: set[Key] = set()
        for e in sorted(events, key=lambda e: (e.run, e.process or "", e.index or 0)):
            copy = (e.run, e.process, e.message)
            if e.kind == "view":
                self.views[e.run, e.process, e.group] = e.view
            elif e.kind in ("receive", "hold") and e.message:
                self.arrived.setdefault(copy, e.time)
            elif e.kind == "deliver" and copy in done:
                self.count(e, "repeats")
            elif e.kind == "deliver":
                done.add(copy)
                self.delivered(e)
            elif e.kind == "send":
                self.count(e, "sends")
                self.value(e, "payload", e.size)
            if e.kind in KINDS:
                self.count(e, KINDS[e.kind])
            if e.kind == "receive":
                self.value(e, "packet_header", e.overhead)

    def delivered(self, e: Event) -> None:
        self.count(e, "deliveries")
        self.value(e, "latency", e.time - self.sends[e.run, e.message].time)
        if e.overhead is not None:
            self.value(e, "header", e.overhead)
        came = self.arrived.get((e.run, e.process, e.message))
        if came is not None and e.sender != e.process:
            self.value(e, "hold_back", e.time - came)
            self.count(e, "waited", int(e.time > came))

    def keys(self, e: Event, metric: str) -> Iterable[Key]:
        view = self.views.get((e.run, e.process, e.group))
        have = {"protocol": self.protocols.get((e.run, e.group)), "group": e.group,
                "process": e.process, "view": view}  # fmt: skip
        for level, names in LEVELS.items():
            yield (e.run, level, *(have[n] if n in names else None for n in have), metric)

    def count(self, e: Event, metric: str, amount: int = 1) -> None:
        for key in self.keys(e, metric):
            self.counts[key] += amount

    def value(self, e: Event, metric: str, value: int) -> None:
        for key in self.keys(e, metric):
            self.values[key].append(value)


def key_of(row: Row) -> Key:
    return tuple(
        row[name] for name in ("run", "per", "protocol", "group", "process", "view", "metric")
    )


def test_every_metric_of_every_level_is_what_a_slow_computation_says(
    spark: SparkSession, events: list[Event]
) -> None:
    found = {key_of(row): row for row in measure(frame(spark, events)).collect()}
    slow = Slow(events)
    assert {*SPREADS} == {key[-1] for key in slow.values}
    for key, values in slow.values.items():
        row = found.pop(key)
        assert (row["count"], row["min"], row["max"]) == (len(values), min(values), max(values))
        assert row["value"] == pytest.approx(np.mean(values))
        for percent in (50, 90, 99):
            exact = np.percentile(values, percent)
            assert row[f"p{percent}"] == pytest.approx(exact, rel=0.005, abs=1), key
        assert list(row["percentiles"]) == sorted(row["percentiles"])
    counted = {key: row for key, row in found.items() if not key[-1].endswith("_per_s")}
    assert {key: row["count"] for key, row in counted.items() if row["count"]} == {
        key: count for key, count in slow.counts.items() if count
    }
    assert {key[-1] for key in counted} >= {*KINDS.values()} - {"nacks"}


def test_a_rate_is_over_the_time_from_the_first_to_the_last_send_or_delivery(
    spark: SparkSession,
) -> None:
    times = {("p", 1): 0, ("p", 2): 1_000_000_000, ("q", 1): 4_000_000_000}
    rows = trace("group g: p,q\np: send a g; deliver a g; end\nq: deliver a g; end")
    timed = [replace(e, time=times.get((e.process, e.index))) for e in rows]
    found = {
        row["metric"]: row["value"] for row in measure(frame(spark, timed), per=["run"]).collect()
    }
    assert found["sends_per_s"] == 0.25
    assert found["deliveries_per_s"] == 0.5


def test_a_packet_with_three_messages_is_one_packet(spark: SparkSession) -> None:
    """The recorder writes a row for each message; what is numbered on at one time is one packet."""
    rows = [
        Event("q", 1 + k, "receive", f"p/g/{4 + k}", "g", sender="p", time=7, note="Data from p")
        for k in range(3)
    ]
    rows = [replace(event, overhead=share(20, 3, k)) for k, event in enumerate(rows)]
    rows += [Event("q", 4, "receive", "p/g/9", "g", sender="p", time=7, note="Data from p")]
    rows += [Event("q", 5 + k, "receive", None, "g", sender="p", time=7) for k in range(2)]
    rows += [Event("q", 7 + k, "receive", f"m{k}", "g", time=7) for k in range(2)]
    found = {row["metric"]: row for row in measure(frame(spark, rows), per=["run"]).collect()}
    headers, row = found["packet_header"], found["packets_received"]
    assert (headers["count"], headers["value"], headers["p50"]) == (1, 20, 20)
    assert row["count"] == 1 + 1 + 2 + 2


def test_matched_deliveries_have_the_first_delivery_and_count_the_others(
    spark: SparkSession,
) -> None:
    rows = trace("p: send a g\nq: receive a g; deliver a g; deliver a g; deliver b g from r")
    timed = [replace(e, time=10 * (e.index or 0) + (100 if e.process == "q" else 0)) for e in rows]
    first, second = deliveries(frame(spark, timed)).orderBy("message").collect()
    assert (first["sender"], first["process"], first["index"], first["repeats"]) == (
        "p", "q", 2, 1,
    )  # fmt: skip
    assert (first["sent"], first["delivered"], first["latency"], first["held"]) == (
        10, 120, 110, 10,
    )  # fmt: skip
    assert (second["message"], second["sender"], second["has_send"]) == ("b", "r", False)
    assert (second["sent"], second["latency"], second["held"]) == (None, None, None)


def test_five_columns_suffice_and_tell_counts_only(spark: SparkSession) -> None:
    columns = "process string, index long, kind string, message string, `group` string"
    rows = [("p", 1, "send", "a", "g"), ("q", 1, "deliver", "a", "g")]
    found = measure(spark.createDataFrame(rows, columns), per=["group"]).collect()
    assert {row["metric"]: row["count"] for row in found if row["count"]} == {
        "sends": 1, "deliveries": 1,
    }  # fmt: skip
    assert "latency" not in {row["metric"] for row in found}


def test_an_unknown_level_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="per='member': no such level; there are run, protocol"):
        measure(frame(spark, trace("p: send a g")), per=["member"])


def test_the_page_names_every_metric_and_its_example_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "MEASURE.md").read_text()
    assert [name for name in (*SPREADS, *COUNTS, *RATES) if f"`{name}`" not in page] == []
    monkeypatch.chdir(tmp_path)
    simulate(SimulationConfig(protocol="cbcast", members=2, messages=3)).write("out/cmp/cbcast")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [example] = [text for text in examples if "table" in text]
    names = {"spark": spark}
    exec(example, names)
    assert names["table"].where("metric = 'latency' and per = 'group'").count() == 1
