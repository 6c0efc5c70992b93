"""Logs in which events happened before themselves are judged like any others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from notation import trace
from ordercast.judge.kernels import causality
from ordercast.judge.kernels.judge import judge_table
from ordercast.trace.oracle import verdicts
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from runs import run_of, use_kernels


def logs_with_knots(rng: Random) -> list[Event]:
    """Everybody delivers anything at any time, sent or not; some not at all."""
    logs: list[list[str]] = [[] for _ in range(rng.randint(2, 5))]
    for m in range(rng.randint(2, 12)):
        for q, log in enumerate(logs):
            word = "send" if q == m % len(logs) else "deliver"
            if word == "send" or rng.random() < 0.8:
                log.insert(rng.randint(0, len(log)), f"{word} m{m} {'gh'[rng.randint(0, 1)]}")
    declared = "group g: p0,p1\n" * (rng.random() < 0.5)
    return trace(declared + "\n".join(f"p{q}: {'; '.join(log)}; end" for q, log in enumerate(logs)))


@pytest.mark.parametrize("form", ["plain", "compiled"])
def test_every_verdict_on_logs_with_knots_equals_the_oracles(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_kernels(form, monkeypatch)
    cyclic = 0
    for seed in range(150):
        events = logs_with_knots(Random(seed))
        found = {one.property: one.verdict for one in judge_table(event_table(events))}
        assert found == verdicts(events), f"seed {seed}"
        cyclic += found["wellformed"] == "violated"
    assert cyclic > 100


def test_a_long_way_round_takes_no_more_scans_than_a_short_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each message is delivered before the one before it is sent."""
    logs = {0: "", 1: "", 2: ""}
    for m in range(60):
        logs[m % 3] += f"deliver m{m + 1} g; send m{m} g; "
        logs[(m + 1) % 3] += f"deliver m{m} g; "
    run = run_of("\n".join(f"p{q}: {log}end" for q, log in logs.items()))
    scans = []
    once = causality._scan.plain
    monkeypatch.setattr(causality, "_scan", lambda *args: scans.append(1) or once(*args))
    found = causality.scan(run, causality.whole_logs(run))
    assert found.causality.cyclic
    assert len(scans) == 2
    lowest, highest = run.ids.number(["m0", "m57"])
    sender, number = int(run.sender[highest]), int(run.number[highest])
    assert found.causality.known(sender, np.array([lowest]), number).all()
