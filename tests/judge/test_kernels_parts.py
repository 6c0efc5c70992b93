"""However a run is stored and into whatever parts its work is cut, the findings are the same."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from ordercast.judge.kernels import judge
from ordercast.judge.kernels.judge import judge_run, judge_table, merged, parts
from ordercast.judge.kernels.load import RunLoader, build_run
from ordercast.judge.kernels.promises import promises, restricted
from ordercast.judge.kernels.scratch import LOCAL_FOLDERS, Scratch
from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from random_traces import random_trace

Counts = dict[str, tuple[str, int, int]]
TRACES = range(120)


def table_of(seed: int) -> pa.Table:
    return event_table(random_trace(Random(seed)))


def whole(table: pa.Table) -> Counts:
    return {
        one.property: (one.verdict, one.findings.violations, one.findings.doubts)
        for one in judge_table(table)
    }


def in_parts(table: pa.Table, shares: int) -> Counts:
    """Each part by itself, as another task would do it."""
    said: dict[str, list[judge.Judged]] = {}
    for part in parts(shares):
        for one in judge_run(build_run(table), part):
            said.setdefault(one.property, []).append(one)
    together = {}
    for name, several in said.items():
        found = merged((one.findings for one in several), limit=20)
        verdict = "n/a" if several[0].verdict == "n/a" else found.verdict
        together[name] = (verdict, found.violations, found.doubts)
    return together


@pytest.mark.parametrize("shares", [1, 2, 5])
def test_parts_find_together_what_one_task_finds(shares: int) -> None:
    for seed in TRACES:
        table = table_of(seed)
        assert in_parts(table, shares) == whole(table), f"seed {seed}"


def test_a_clock_that_has_no_room_is_kept_a_share_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = [whole(table_of(seed)) for seed in TRACES]
    monkeypatch.setattr(judge, "CLOCK_BYTES", 1)
    assert [whole(table_of(seed)) for seed in TRACES] == wanted


def test_columns_in_files_serve_as_well_as_columns_in_memory() -> None:
    for seed in TRACES:
        table = table_of(seed)
        scratch = Scratch(spill_from=1)
        loader = RunLoader(scratch)
        for start in range(0, table.num_rows, 7):
            loader.add(table.slice(start, 7))
        found = {
            one.property: (one.verdict, one.findings.violations, one.findings.doubts)
            for one in judge_run(loader.finish())
        }
        assert found == whole(table), f"seed {seed}"
        assert not table.num_rows or scratch.spilled


def test_a_column_in_a_file_leaves_nothing_behind_if_its_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    scratch = Scratch(spill_from=8)
    column = scratch.full(1000, 7, np.int32)
    gathered = scratch.gather(np.int32)
    for number in range(10):
        gathered.add(np.full(5, number))
    whole_column = gathered.whole()
    assert scratch.spilled == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert (int(column.sum()), int(whole_column.sum())) == (7000, 225)


def test_columns_in_files_lie_in_the_first_folder_that_spark_is_told_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, spark, yarn = (tmp_path / name for name in ("own", "spark", "yarn"))
    for folder in (own, spark, yarn):
        folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(own))
    for told, used in (
        ({}, own),
        ({"LOCAL_DIRS": f"{yarn},{own}"}, yarn),
        ({"LOCAL_DIRS": str(yarn), "SPARK_LOCAL_DIRS": f"{spark},{own}"}, spark),
        ({"SPARK_LOCAL_DIRS": str(tmp_path / "nowhere")}, own),
    ):
        for name in LOCAL_FOLDERS:
            monkeypatch.delenv(name, raising=False)
        for name, folders in told.items():
            monkeypatch.setenv(name, folders)
        assert Scratch().file().parent.parent == used, told


def test_the_order_of_rows_means_nothing() -> None:
    for seed in TRACES:
        events = random_trace(Random(seed))
        if unspecified(events):  # of two rows with one index, either may come first
            continue
        wanted = whole(event_table(events))
        Random(seed).shuffle(events)
        assert whole(event_table(events)) == wanted, f"seed {seed}"


def test_a_domain_is_judged_as_if_the_run_had_no_other_groups() -> None:
    judged = 0
    for seed in TRACES:
        events = random_trace(Random(seed))
        groups = sorted({event.group for event in events if event.group})
        if len(groups) < 2 or unspecified(events):
            continue
        promise = Event(None, None, "group", None, groups[0], order="fifo")
        run = build_run(event_table([*events, promise]))
        [found] = promises(run)
        assert not found.everything
        inside = judge_run(restricted(run, found.groups, quiescent=False))
        wanted = verdicts(_rows_of(groups[0], [*events, promise]))
        assert {one.property: one.verdict for one in inside} == wanted, f"seed {seed}"
        judged += 1
    assert judged > 20


def _rows_of(group: str, events: list[Event]) -> list[Event]:
    """A delivery belongs to the group of its message's send; what has no group, to all."""
    sent_to = {event.message: event.group for event in events if event.kind == "send"}
    return [
        event
        for event in events
        if (sent_to.get(event.message, event.group) if event.kind == "deliver" else event.group)
        in (group, None)
    ]
