"""A crash of any node at any step of any change of a small cluster: some; the sweep tries all."""

from __future__ import annotations

import pytest

from ordercast.protocols.registry import PROTOCOLS
from sweep.ambush import CountSteps, CrashAtStep
from sweep.cluster_arenas import THOROUGH
from sweep.cluster_oracle import run
from sweep.every_step import BEGINS_MS, CHANGES, HOSTS, Case, cases, config, config_of
from sweep.trial import cluster_found

EVERY = 101  # of the crashes one in so many is tried here; a prime, so that all kinds occur


def found(protocol: str, case: Case) -> list[tuple[str, str]]:
    page = PROTOCOLS[protocol]
    return cluster_found(run(config_of(page, case)))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("protocol", THOROUGH)
def test_no_crash_at_any_step_of_a_change_breaks_anything(protocol: str, change: str) -> None:
    tried = [case for case in cases(PROTOCOLS[protocol])[::EVERY] if case.change == change]
    wrong = {str(case): what for case in tried if (what := found(protocol, case))}
    assert not wrong
    assert len(tried) >= 4


@pytest.mark.parametrize("protocol", THOROUGH)
def test_every_host_is_crashed_at_many_steps_of_every_change(protocol: str) -> None:
    steps = {(case.change, case.host, case.steps) for case in cases(PROTOCOLS[protocol])}
    for change in CHANGES:
        hosts = {host for name, host, _ in steps if name == change}
        assert len(hosts) >= HOSTS - 1, change  # one may be dead already
        for host in hosts:
            assert sum(1 for c, h, _ in steps if (c, h) == (change, host)) > 4


def test_a_crash_at_a_step_is_right_after_that_step() -> None:
    change, page = CHANGES["a member crashes"], PROTOCOLS["cbcast"]
    seen: dict[str, int] = {}
    count = CountSteps(1, BEGINS_MS, BEGINS_MS + 1000.0, seen)
    crash = CrashAtStep(1, 5, BEGINS_MS)
    done = run(config(page, change, count, crash))
    assert seen == {"steps": 5}
    assert done.simulation.current[1] is None
