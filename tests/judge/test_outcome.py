"""From paths to an outcome: expectations, domains, exit codes, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from notation import trace
from ordercast.errors import TraceError
from ordercast.judge.check import check_paths
from ordercast.judge.outcome import Outcome
from ordercast.trace.schema import PROPERTIES, Event
from ordercast.trace.write import write_jsonl

CLEAN = "group g: p,q\np: send a g; deliver a g; end\nq: deliver a g; end"
SWAPPED = """
group g: p,q
p: send a g; send b g; deliver a g; deliver b g; end
q: deliver b g; deliver a g; end
"""


def declared(events: Iterable[Event], **orders: str) -> list[Event]:
    """The events with an order declared for each group named."""
    return [
        replace(e, order=orders[e.group], scope="domain")
        if e.kind == "group" and e.group in orders
        else e
        for e in events
    ]


def judge(tmp_path: Path, events: Iterable[Event], *expect: str) -> Outcome:
    write_jsonl(events, tmp_path / "trace.jsonl")
    return check_paths([tmp_path], expect=expect)


def test_without_declarations_four_properties_are_expected(tmp_path: Path) -> None:
    outcome = judge(tmp_path, trace(SWAPPED))
    [run] = outcome.runs
    assert [one.property for one in run.expected] == [
        "wellformed", "no_duplication", "no_creation", "membership",
    ]  # fmt: skip
    assert run.table.verdicts["fifo.group"] == "violated"
    assert outcome.exit_code == 0


def test_a_declared_order_is_expected(tmp_path: Path) -> None:
    outcome = judge(tmp_path, declared(trace(SWAPPED), g="fifo"))
    assert outcome.exit_code == 1
    [broken] = [one for one in outcome.runs[0].expected if one.verdict == "violated"]
    assert broken.property == "fifo.global"
    assert broken.because == "declared: fifo (domain scope): g"


def test_what_is_asked_for_takes_the_place_of_what_is_declared(tmp_path: Path) -> None:
    outcome = judge(tmp_path, declared(trace(SWAPPED), g="fifo"), "wellformed", "views")
    assert [(e.property, e.verdict) for e in outcome.runs[0].expected] == [
        ("wellformed", "ok"), ("views", "n/a"),
    ]  # fmt: skip
    assert outcome.exit_code == 3  # nothing was checked, so nothing is known to hold


def test_an_undecided_expectation_gives_3(tmp_path: Path) -> None:
    events = trace("group g: p,q,r\np: send a g; deliver a g\nq: deliver a g; end")
    assert judge(tmp_path, events, "agreement").exit_code == 3


def test_a_declared_order_that_is_not_known_is_not_taken_to_hold(tmp_path: Path) -> None:
    outcome = judge(tmp_path, declared(trace(CLEAN), g="alphabetical"))
    assert outcome.exit_code == 3


def test_a_promise_is_judged_on_the_groups_it_was_made_for(tmp_path: Path) -> None:
    """Order between g and h is broken, but g promises it only inside its own domain."""
    events = trace(
        "group g: p,q\ngroup h: p,q\n"
        "p: send a g; send b h; send c h; deliver a g; deliver b h; deliver c h; end\n"
        "q: deliver b h; deliver a g; deliver c h; end"
    )
    outcome = judge(tmp_path, declared(events, g="fifo", h="causal"))
    [run] = outcome.runs
    assert run.table.verdicts["fifo.global"] == "violated"
    assert {domain.groups: table.verdicts["fifo.global"] for domain, table in run.domains} == {
        ("g",): "ok", ("h",): "ok",
    }  # fmt: skip
    assert outcome.exit_code == 0
    together = judge(tmp_path, declared(events, g="fifo", h="fifo"))
    assert together.runs[0].domains == ()
    assert together.exit_code == 1


def test_the_json_form_has_exactly_the_32_names_and_the_witnesses(tmp_path: Path) -> None:
    outcome = judge(tmp_path, trace(SWAPPED, run="r1"), "fifo")
    told = json.loads(json.dumps(outcome.as_json()))
    [run] = told["runs"]
    assert run["run"] == "r1"
    assert tuple(run["verdicts"]) == PROPERTIES
    assert set(run["verdicts"].values()) <= {"ok", "violated", "inconclusive", "n/a"}
    broken = next(one for one in run["violations"] if one["property"] == "fifo.global")
    assert broken["witness"]["messages"] == ["a", "b"]


def test_facts_count_processes_crashes_and_groups(tmp_path: Path) -> None:
    events = trace("group g: p,q\np: send a g; deliver a g; crash\nq: lost; deliver a g")
    times = {"send": 1_000, "deliver": 4_000}
    outcome = judge(tmp_path, [replace(e, time=times.get(e.kind)) for e in events])
    [run] = outcome.runs
    assert (run.facts.processes, run.facts.crashed) == (2, ("p",))
    assert (run.facts.cut, run.facts.lossy) == (1, 1)
    assert [(g.name, g.members, g.sends, g.deliveries) for g in run.groups] == [
        ("g", ("p", "q"), 1, 2)
    ]
    [figures] = run.figures.groups
    assert figures.latency is not None
    assert (figures.latency.count, figures.latency.at(50)) == (2, 3_000)


def test_a_trace_without_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="not a single event"):
        judge(tmp_path, [])


def test_what_can_be_refused_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    steps: list[str] = []
    with pytest.raises(ValueError, match="unknown order or property 'fast'"):
        check_paths([tmp_path], expect=["fast"], say=steps.append)
    with pytest.raises(TraceError, match="nowhere"):
        check_paths([tmp_path / "nowhere"], say=steps.append)
    with pytest.raises(ValueError, match="no path given"):
        check_paths([], say=steps.append)
    assert steps == []
