"""Which judge gets which rows, what is told, and the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from notation import trace
from ordercast.errors import TraceError
from ordercast.pipeline.streaming.journal import Journal, RunStatus
from ordercast.pipeline.streaming.live import Notice
from ordercast.pipeline.streaming.panel import Panel
from ordercast.trace.schema import Event

CROSSED = """
    p: send a g; send b h
    q: deliver b h; deliver a g
"""


def declared(group: str, order: str, scope: str = "domain") -> Event:
    return Event(None, None, "group", group=group, members=("p", "q"), order=order, scope=scope)


def properties(notices: list[Notice]) -> set[str]:
    return {notice.property for notice in notices if notice.kind == "violated"}


def test_a_promise_is_judged_among_its_own_groups() -> None:
    apart = Panel()
    rows = [declared("g", "fifo"), declared("h", "causal"), *trace(CROSSED)]
    assert properties(apart.feed(rows, 0)) == set()
    together = Panel()
    rows = [declared("g", "fifo"), declared("h", "fifo"), *trace(CROSSED)]
    assert properties(together.feed(rows, 0)) == {"fifo.global"}


def test_only_what_is_expected_is_told() -> None:
    nothing = Panel()
    assert properties(nothing.feed(trace(CROSSED), 0)) == set()
    asked = Panel(expected=("hybrid.kindberg", "fifo.global.uniform"))
    assert properties(asked.feed(trace(CROSSED), 0)) == {"causal.global", "fifo.global"}
    assert set(asked.status("").violated) == {"hybrid.kindberg", "fifo.global.uniform"}


def test_a_judge_that_begins_late_knows_who_crashed() -> None:
    panel = Panel()
    panel.feed([declared("g", "fifo"), *trace("p: send a g"), Event("q", 9, "crash")], 0)
    panel.feed([declared("h", "fifo", "group")], 0)
    assert all(
        state.processes[state.process_numbers["q"]].crashed for state in panel.state.judges.values()
    )


def test_an_order_declared_after_its_rows_is_said_not_to_be_judged() -> None:
    panel = Panel()
    panel.feed(trace("p: send a g; send b g"), 0)
    notices = panel.feed([declared("g", "fifo"), *trace("q: deliver b g; deliver a g")], 0)
    assert properties(notices) == set()
    assert any("declared after" in doubt for doubt in panel.status("").doubts)


def test_the_memory_of_a_bench_is_its_bytes() -> None:
    whole, parts = Panel(), Panel()
    rows = [declared("g", "fifo"), *trace("p: send a g; send b g\nq: deliver b g; deliver a g")]
    said = whole.feed(rows, 0)
    again: list[Notice] = []
    for row in rows:
        again += parts.feed([row], 0)
        parts = Panel(parts.encode())
    assert {notice.about for notice in again} == {notice.about for notice in said} != set()
    assert parts.status("r") == whole.status("r")


def test_a_checkpoint_is_not_used_to_judge_something_else() -> None:
    memory = Panel(expected=("fifo.group",)).encode()
    with pytest.raises(TraceError, match=r"begun to judge fifo\.group"):
        Panel(memory, expected=("total.group",))
    with pytest.raises(TraceError, match="another version"):
        Panel(b"\x00" + memory[1:])


def test_time_stands_still_while_a_backlog_is_read() -> None:
    panel = Panel(expected=("fifo.group",), stable_ms=1_000, backlog_rows=3)
    panel.feed(trace("group g: p,q\np: send a g; deliver a g; send b g; deliver b g"), 1)
    assert panel.feed(trace("r: send c g; send d g; send e g"), 60_001) == []
    assert panel.feed([], 61_000) == []
    late = panel.feed([], 61_001)
    assert {notice.about for notice in late} >= {"q|a", "q|b"}


def status(run: str, events: int) -> RunStatus:
    return RunStatus(run, events, 2, 0, 0, 0, 0, 0, True, (), ("wellformed",), {})


def test_a_batch_that_is_recorded_again_is_there_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    notice = Notice("violated", "fifo.group", "x", "p did it.", {"process": "p"})
    for _ in range(2):
        journal.write(3, [("r", notice)], [status("r", 5)])
    journal.write(4, [], [status("s", 7)])
    (told,) = journal.read()
    assert (told.run, told.batch, told.number, told.notice) == ("r", 3, 0, notice)
    assert list(journal.read(after=3)) == []
    assert {run: one.events for run, one in journal.status().runs.items()} == {"r": 5, "s": 7}


def test_what_was_shown_is_remembered(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new")
    assert (journal.shown(), list(journal.read())) == (-1, [])
    journal.write(0, [], [])
    journal.mark_shown(12)
    assert Journal(tmp_path / "new").shown() == 12
