"""Sweeps on Spark: the same table however it came about, and nothing is run twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ordercast
from ordercast.errors import UsageError
from ordercast.experiments import Plan, read_plan, read_runs, shares, store, sweep
from ordercast.experiments.identity import code_of, identities
from ordercast.experiments.sweep import Summary, run_sweep
from ordercast.experiments.task import do_shares
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.verdict import judge_events
from spark_servers import spark_environ
from swept import PLAN, swept_here, write_plan

pytestmark = pytest.mark.xdist_group("spark")
GUARD_SECONDS = 300.0  # against hanging


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweeps")


@pytest.fixture(scope="module")
def plan(folder: Path) -> Plan:
    return read_plan(write_plan(folder))


@pytest.fixture(scope="module")
def expected(plan: Plan, folder: Path) -> bytes:
    """The table of the plan, made without Spark."""
    return swept_here(plan, folder / "here")


def table(folder: Path) -> bytes:
    return (folder / "runs.parquet").read_bytes()


@pytest.mark.parametrize("tasks", [1, 24])
def test_the_table_is_the_same_for_any_number_of_tasks(
    tasks: int,
    spark: SparkSession,
    plan: Plan,
    expected: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shares, "LEAST_TASKS", tasks)
    progress: list[tuple[int, int]] = []
    summary = run_sweep(
        lambda: spark, plan, tmp_path / "out", told=lambda done, of: progress.append((done, of))
    )
    assert summary == Summary(24, 24, {"kept": 24}, ())
    made = len(list((tmp_path / "out" / "parts").iterdir()))
    assert made == 1 if tasks == 1 else made > 12
    assert table(tmp_path / "out") == expected
    assert progress[-1] == (24, 24) and progress == sorted(progress)


def test_what_is_finished_is_not_run_again(plan: Plan, expected: bytes, folder: Path) -> None:
    def nobody() -> SparkSession:
        raise AssertionError("nothing is to be run")

    assert run_sweep(nobody, plan, folder / "here").ran == 0
    assert table(folder / "here") == expected


def test_only_runs_of_a_protocol_that_changed_are_run_again(
    spark: SparkSession, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept_here(plan, tmp_path)
    changed = "ordercast.experiments.identity.code_of"
    monkeypatch.setattr(changed, lambda name: code_of(name) + "x" * (name == "cbcast"))
    summary = run_sweep(lambda: spark, plan, tmp_path)
    assert (summary.runs, summary.ran) == (24, 8)
    rows, _ = read_runs(tmp_path / "runs.parquet")
    assert [row["run"] for row in rows] == list(identities(plan))


def test_a_larger_plan_runs_only_what_is_new_and_many_parts_become_one(
    spark: SparkSession, plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_PARTS", 1)
    swept_here(plan, tmp_path / "out")
    larger = read_plan(write_plan(tmp_path, PLAN.replace("seeds = 2", "seeds = 3")))
    assert run_sweep(lambda: spark, larger, tmp_path / "out").ran == 12
    assert len(list((tmp_path / "out" / "parts").iterdir())) == 1
    assert run_sweep(lambda: spark, plan, tmp_path / "out").ran == 0


def test_traces_that_are_wanted_later_are_written_and_judged_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = PLAN.replace("seeds = 2", "seeds = 1").replace("[3, 4]", "3")
    swept_here(read_plan(write_plan(tmp_path, small)), tmp_path / "out")
    keeping = read_plan(write_plan(tmp_path, 'keep = "all"\n' + small))
    summary = run_sweep(lambda: spark, keeping, tmp_path / "out")
    assert (summary.runs, summary.ran, summary.verdicts) == (6, 6, {"kept": 6})
    assert run_sweep(lambda: spark, keeping, tmp_path / "out").ran == 0
    judged = judge_events(read_traces(spark, [tmp_path / "out" / "traces"]))
    assert judged.exit_code == 0
    assert {one.run for one in judged.runs} == set(identities(keeping))


def test_a_sweep_that_is_killed_goes_on_where_it_was(
    spark: SparkSession, plan: Plan, expected: bytes, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    start = "import sys; from ordercast.cli.app import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "sweep", folder / "plan.toml", "--out", out]
    driver = subprocess.Popen(
        [*map(str, command), "--master", "local[1]"],
        env=spark_environ(tmp_path) | {"PYTHONPATH": str(Path(ordercast.__file__).parents[1])},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    limit = time.monotonic() + GUARD_SECONDS
    try:
        while not (out / "parts").is_dir() or store.count_finished(out) < 3:
            assert driver.poll() is None and time.monotonic() < limit
            time.sleep(0.01)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    assert not (out / "runs.parquet").exists()
    summary = run_sweep(lambda: spark, plan, out)
    assert 0 < summary.ran <= 21
    assert table(out) == expected


def test_two_sweeps_into_one_folder_are_refused(
    spark: SparkSession, plan: Plan, tmp_path: Path
) -> None:
    with store.sweeping(tmp_path), pytest.raises(UsageError, match=f"process {os.getpid()}"):
        run_sweep(lambda: spark, plan, tmp_path)


def test_a_folder_of_somebody_else_is_refused(
    spark: SparkSession, plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match=r"thesis\.tex"):
        run_sweep(lambda: spark, plan, tmp_path)


def test_a_worker_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    [row] = [
        row
        for batch in do_shares(str(tmp_path), [pa.record_batch({"id": [0]})])
        for row in batch.to_pylist()
    ]
    assert "not visible on the Spark worker" in row["trouble"]


def test_the_table_says_how_it_was_made(expected: bytes, plan: Plan, folder: Path) -> None:
    rows, about = read_runs(folder / "here" / "runs.parquet")
    assert about == json.loads((folder / "here" / "about.json").read_text())
    assert about["calibrations"][""]["costs"]["receive_us"] == 8
    assert about["versions"]["ordercast"] and about["code"]["cbcast"] == code_of("cbcast")
    assert about["seeds"] == [0, 1]
    assert about == json.loads(msgspec.json.encode(sweep.about(plan)))
    assert len(rows) == 24 and all(row["cpu_ms"] > 0 for row in rows)


def test_heavy_runs_begin_first_and_every_run_once(plan: Plan) -> None:
    trials = sweep.trials_of(plan, identities(plan))
    shared = shares.shared_out(trials)
    weights = [shares.weight(trial.at) for share in shared for trial in share]
    assert weights == sorted(weights, reverse=True)
    assert sorted(t.run for share in shared for t in share) == sorted(identities(plan))
