"""The Spark verifier's word on what the nodes of a live test recorded."""

from __future__ import annotations

from pathlib import Path

from ordercast.judge.outcome import Outcome, RunOutcome
from ordercast.pipeline.verdict import judge_paths

VIEWS = ("wellformed", "membership", "views", "vsync", "agreement")


def kept(trace: Path, *more: str) -> RunOutcome:
    """Assert that the one run in `trace` kept its order, virtual synchrony, and `more`."""
    (run,) = judged(trace).runs
    broken = [
        f"{one.property} is {one.verdict} ({one.because})"
        for one in run.expected
        if one.verdict != "ok"
    ]
    broken += [
        f"{name} is {run.table.verdicts[name]}: {run.table.doubts[name]}"
        for name in (*VIEWS, *more)
        if run.table.verdicts[name] != "ok"
    ]
    assert not broken, "\n".join([*broken, *map(str, run.table.violations)])
    return run


def judged(trace: Path) -> Outcome:
    """All runs. The session is the tests' own, if there is one."""
    return judge_paths([trace], master="local[2]")
