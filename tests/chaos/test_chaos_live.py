"""Two short chaos runs on real processes: the machinery works from the plan to the findings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chaos.__main__ import one_run
from chaos.judge import judge
from chaos.lane import Lane
from chaos.logs import read_logs
from chaos.outcome import Outcome
from chaos.plan import COORDINATOR, Fault, Group, Plan
from chaos.verdict import spark_verdicts
from netlab.namespaces import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")

PATIENCE = 60.0  # a guard; such a cluster is back within a second on a quiet machine


@pytest.fixture(scope="module")
def lane() -> Iterator[Lane]:
    if (reason := refusal()) is not None:
        pytest.skip(reason)
    with Lane(patience=PATIENCE) as opened:
        yield opened


def plan_with(*faults: Fault) -> Plan:
    """Three nodes and two groups. Nobody is suspected for being slow: the machine may be busy."""
    groups = (
        Group("g0", {"order": "total", "scope": "group"}, ("a", "b", "c")),
        Group("g1", {"protocol": "fifo", "scope": "group"}, ("a", "b")),
    )
    options = {"suspect_ms": 20_000, "heartbeat_ms": 500}
    return Plan(
        seed=1,
        names=("a", "b", "c"),
        groups=groups,
        options=options,
        each={},
        rate=50.0,
        size=100,
        slow_ms={},
        guests={"c": ("g1",)},
        loop="asyncio",
        close_together=False,
        faults=faults,
    )


def test_a_run_with_a_killed_coordinator_and_a_newcomer_is_carried_out_and_judged(
    lane: Lane, tmp_path: Path, spark: SparkSession
) -> None:
    kill = Fault("kill coordinator", 0.2, 0.1, (COORDINATOR,))
    arrival = Fault("arrival", 0.3, 0.0, ("y",))
    record = one_run(lane, plan_with(kill, arrival), tmp_path / "run", "sources")
    assert record.findings == ()
    assert record.recovery is not None and record.deliveries > 0
    processes = {log.process for log in read_logs(tmp_path / "run")}
    assert processes == {"a.1", "a.2", "b.1", "c.1", "y.1"}
    counts, wrong = spark_verdicts([tmp_path / "run"], lambda seed: True, "local[2]")
    assert (counts, wrong) == ({"ok": 1}, [])


def test_a_line_that_is_taken_out_of_a_real_log_is_noticed(lane: Lane, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    plan = plan_with(Fault("pause", 0.2, 0.2, ("b",)), Fault("clock step", 0.2, 0.0, ("c",), STEP))
    outcome: Outcome = lane.run(plan, folder)
    logs = read_logs(folder)
    assert judge(plan, outcome, logs) == []
    log = next(log for log in logs if log.name == "b")
    log.entries.remove(next(iter(log.of_kind("got"))))
    assert "agreement" in {finding.property for finding in judge(plan, outcome, logs)}


def test_nothing_of_a_run_lives_on(lane: Lane, tmp_path: Path) -> None:
    lane.run(plan_with(Fault("kill", 0.1, 0.0, ("b",))), tmp_path / "run")
    assert lane.nursery.ended() == {}
    children = Path(f"/proc/{lane.nursery.pid}/task/{lane.nursery.pid}/children").read_text()
    assert children == "" and os.path.exists(tmp_path / "run" / "outcome.json")


STEP = {"step": -3600.0}
