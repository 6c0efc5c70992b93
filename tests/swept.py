"""A sweep without Spark: its tasks one after the other in this process. What others must equal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ordercast.experiments import Plan, store
from ordercast.experiments.identity import identities
from ordercast.experiments.sweep import about, trials_of
from ordercast.experiments.task import Share, do_shares

PLAN = """
costs = "costs.json"
needless = true
[grid]
protocol = ["basic", "cbcast", "sequencer_pb"]
members = [3, 4]
messages = 12
reply = 0.5
loss = [0.0, 0.1]
seeds = 2
"""
COSTS = '{"costs": {"receive_us": 8, "send_us": 2, "destination_us": 4}}'


def write_plan(folder: Path, text: str = PLAN) -> Path:
    """A plan, and the costs it names."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "costs.json").write_text(COSTS)
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def swept_here(plan: Plan, folder: Path) -> bytes:
    """The table of the plan, all runs in one task."""
    wanted = identities(plan)
    with store.sweeping(folder):
        store.write_shares(folder, [Share(tuple(trials_of(plan, wanted)), False)])
        list(do_shares(str(folder), [pa.record_batch({"id": [0]})]))
        rows = store.of_runs(store.finished(folder), list(wanted))
        store.write_tables(folder, rows, about(plan))
    return (folder / "runs.parquet").read_bytes()
