"""The relational lane: equal to the oracle on random runs, to the kernels on planted faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace as with_fields
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from random import Random

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from bench.traces import FAULTS, Shape, small_table
from notation import trace
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.judge.kernels.judge import judge_table
from ordercast.pipeline.relational import RELATIONAL, relational
from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table, table_events
from random_traces import random_traces

pytestmark = pytest.mark.xdist_group("spark")

SEED = 41
RUNS = 400
TINY = Shape(events=545, processes=8, lag=1)
PLANTED = ("", *FAULTS)

# Runs about which folds can say something, and runs about which they cannot.
BY_HAND = {
    "late join": """
        p: join g; send a g; deliver a g; send b g; deliver b g; end
        q: join g; deliver b g; end""",
    "early join": """
        p: join g; send a g; deliver a g; end
        q: join g; deliver a g; end""",
    "circle": """
        group g: p,q
        p: deliver b g; send a g; deliver a g; end
        q: deliver a g; send b g; deliver b g; end""",
    "before its send": """
        group g: p
        p: deliver a g; send a g; end""",
    "outsider and late join": """
        p: send a g; end
        q: send b g; deliver b g; end
        r: join g; end""",
    "outsider served by a leaver": """
        group g: q,r
        p: send a g; end
        q: deliver a g; leave g; end
        r: end""",
    "two senders": """
        group g: p,q
        p: send a g; deliver a g; deliver a g; end
        q: send a g; deliver a g; end""",
}


def with_a_common_clock(events: list[Event]) -> list[Event]:
    """Times that fit what happened before what, where nothing happened before itself."""
    own = [event for event in events if event.kind != "group"]
    logs: dict[str | None, list[Event]] = {}
    for event in sorted(own, key=lambda event: event.index or 0):
        logs.setdefault(event.process, []).append(event)
    before: dict[int, list[int]] = {id(event): [] for event in own}
    sent: dict[str | None, Event] = {}
    for log in logs.values():
        for earlier, later in pairwise(log):
            before[id(later)].append(id(earlier))
        for event in log:
            if event.kind == "send":
                sent.setdefault(event.message, event)
    for event in own:
        if event.kind == "deliver" and event.message in sent:
            before[id(event)].append(id(sent[event.message]))
    try:
        times = {name: time for time, name in enumerate(TopologicalSorter(before).static_order())}
    except CycleError:
        times = {}
    return [replace(event, time=times.get(id(event))) for event in events]


@pytest.fixture(scope="module")
def random_runs() -> dict[str, list[Event]]:
    traces = (with_a_common_clock(one) for one in random_traces(Random(SEED), RUNS))
    return {one[0].run: one for one in traces if one}


@pytest.fixture(scope="module")
def planted_runs() -> dict[str, list[Event]]:
    """A clean run, and one for each fault that the generator knows."""
    runs = {}
    for fault in PLANTED:
        faults = (fault,) if fault else ()
        table, _ = small_table(with_fields(TINY, faults=faults, run=f"fault {fault}"))
        runs[f"fault {fault}"] = table_events(table)
    return runs


@pytest.fixture(scope="module")
def folds(
    spark: SparkSession,
    random_runs: dict[str, list[Event]],
    planted_runs: dict[str, list[Event]],
) -> dict[str, dict[str, str | None]]:
    """The verdicts of the relational lane on all of them: one job."""
    by_hand = [event for run, text in BY_HAND.items() for event in trace(text, run=run)]
    several = [*random_runs.values(), *planted_runs.values(), by_hand]
    return judged(frame(spark, (event for events in several for event in events)))


def frame(spark: SparkSession, events: Iterable[Event]) -> DataFrame:
    return spark.createDataFrame(event_table(events).cast(ARROW_SCHEMA).combine_chunks())


def judged(events: DataFrame, *, quiescent: bool = False) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for row in relational(events, quiescent=quiescent).collect():
        assert row["property"] not in found.setdefault(row["run"], {})
        found[row["run"]][row["property"]] = row["verdict"]
    return found


def test_folds_give_the_verdicts_of_the_oracle_wherever_they_give_one(
    folds: dict[str, dict[str, str | None]], random_runs: dict[str, list[Event]]
) -> None:
    seen: Counter[tuple[str, str | None]] = Counter()
    for run, events in random_runs.items():
        wanted = verdicts(events)
        assert folds[run].keys() == set(RELATIONAL)
        for name in ("wellformed",) if unspecified(events) else RELATIONAL:
            said = folds[run][name]
            assert said in (None, wanted[name]), f"seed {SEED}, run {run}, {name}"
            seen[name, said] += 1
    for name in RELATIONAL:  # the comparison means something for every property
        assert seen[name, "ok"] > 100 and seen[name, "violated"] > 5, name
        assert seen[name, None] < RUNS / 5, name


def test_folds_and_kernels_agree_on_every_planted_fault(
    folds: dict[str, dict[str, str | None]], planted_runs: dict[str, list[Event]]
) -> None:
    broken = set()
    for run, events in planted_runs.items():
        kernels = {one.property: one.verdict for one in judge_table(event_table(events))}
        assert folds[run] == {name: kernels[name] for name in RELATIONAL}, run
        broken |= {name for name in RELATIONAL if folds[run][name] == "violated"}
    assert set(RELATIONAL) - broken == {"wellformed"}  # of which the generator breaks nothing


def test_folds_say_nothing_where_a_join_may_have_come_too_late(
    folds: dict[str, dict[str, str | None]],
) -> None:
    late, early = folds["late join"], folds["early join"]
    assert (late["agreement"], late["agreement.uniform"]) == (None, None)
    assert (early["agreement"], early["agreement.uniform"]) == ("ok", "ok")
    assert late["validity"] == "ok"
    assert folds["outsider and late join"]["validity"] is None


def test_a_message_from_outside_is_not_served_by_a_member_that_goes_away(
    folds: dict[str, dict[str, str | None]],
) -> None:
    assert folds["outsider served by a leaver"]["validity"] == "violated"


def test_folds_say_nothing_of_circles_unless_the_clock_or_one_log_shows(
    folds: dict[str, dict[str, str | None]],
) -> None:
    assert (folds["circle"]["wellformed"], folds["circle"]["no_creation"]) == (None, None)
    own = folds["before its send"]
    assert (own["wellformed"], own["no_creation"]) == ("violated", "violated")


def test_folds_say_nothing_but_wellformed_where_verdicts_are_unspecified(
    folds: dict[str, dict[str, str | None]],
) -> None:
    two = folds["two senders"]
    assert two["wellformed"] == "violated"
    assert {verdict for name, verdict in two.items() if name != "wellformed"} == {None, "n/a"}


def test_five_columns_are_enough_and_cut_logs_are_taken_as_ended_if_asked_for(
    spark: SparkSession,
) -> None:
    events = trace("p: send a g; deliver a g; send b g; deliver b g\nq: deliver a g")
    five = frame(spark, events).select("process", "index", "kind", "message", "group")
    assert judged(five, quiescent=True)[""]["agreement"] == "violated"
