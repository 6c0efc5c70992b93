"""A cost model from measured steps."""

from __future__ import annotations

from itertools import count

import pytest

from ordercast.simulation import simulate
from ordercast.simulation.calibration import (
    FEATURES,
    Measurements,
    fitted,
    measure,
    usual_runs,
)
from ordercast.simulation.least_squares import fit


def test_costs_that_explain_the_measurements_are_found() -> None:
    rows = [(1, n, k) for n in range(5) for k in (0, 2, 7)]
    took = [3.0 + 0.5 * n + 0.25 * k for _, n, k in rows]
    assert fit(rows, took, [1.0] * len(rows)) == pytest.approx([3.0, 0.5, 0.25])


def test_no_cost_is_negative() -> None:
    rows = [(1, n) for n in range(5)]
    falling = [10.0 - n for n in range(5)]
    assert fit(rows, falling, [1.0] * 5) == pytest.approx([8.0, 0.0])
    assert fit(rows, [-1.0] * 5, [1.0] * 5) == [0.0, 0.0]


def test_columns_that_say_the_same_share_nothing_twice() -> None:
    rows = [(1, 1, 0), (2, 2, 0), (3, 3, 0)]
    found = fit(rows, [2.0, 4.0, 6.0], [1.0] * 3)
    assert sum(found) == pytest.approx(2.0)


def test_a_made_up_machine_is_measured_as_it_was_made_up() -> None:
    true = dict(zip(FEATURES, (5.0, 0.2, 1.0, 0.1, 2.0, 0.5, 3.0), strict=True))
    measurements = Measurements(lambda: 0)
    for received, entries, sent, delivered in (
        (1, 4, 0, 1), (1, 40, 0, 1), (1, 4, 2, 0), (1, 1, 1, 3), (0, 0, 1, 1), (0, 0, 0, 0),
    ):  # fmt: skip
        for multicast, other in ((0, 0),) if received else ((1, 0), (0, 1)):
            for size in (2, 9):
                kind = (received, entries, sent, sent * size, multicast, delivered, other)
                took = sum(n * us for n, us in zip(kind, true.values(), strict=True))
                for noise in range(-10, 11):
                    measurements.note(kind, 1000 * took + noise)
    found = fitted(measurements)
    assert {name: getattr(found.costs, name) for name in FEATURES} == pytest.approx(true, rel=0.01)
    assert found.error < 0.01 and found.worst < 0.01


def test_too_few_steps_are_refused() -> None:
    measurements = Measurements(lambda: 0)
    measurements.note((1, 1, 0, 0, 0, 0, 0), 5000)
    with pytest.raises(ValueError, match="20 times"):
        fitted(measurements)


@pytest.mark.parametrize("protocol", ["sequencer_pb", "vector", "fifo"])
def test_a_measured_run_does_what_an_unmeasured_run_does(protocol: str) -> None:
    """Each look at this clock finds it one microsecond later: every step takes one."""
    ticking = count(0, 1000)
    run = usual_runs(protocol, messages=60)[1]
    measurements = measure([run], lambda: next(ticking))
    events = simulate(run).statistics.events
    seen = sum(map(len, measurements.taken_ns.values()))
    views = run.members
    assert seen == events - views
    assert {ns for taken in measurements.taken_ns.values() for ns in taken} == {0}


def test_headers_of_several_sizes_are_measured() -> None:
    measurements = measure(usual_runs("vector", messages=30), lambda: 0)
    entries = {kind[1] for kind in measurements.taken_ns}
    assert len(entries) >= 5 and max(entries) >= 64


def test_where_there_are_subgroups_few_and_many_of_them_are_measured() -> None:
    sites = [len({*run.sites}) for run in usual_runs("two_layered")]
    assert len({*sites}) >= 4 and max(sites) >= 24
    assert not any(run.sites for run in usual_runs("vector"))


def test_a_large_group_is_measured_with_few_messages_if_it_is_asked_for() -> None:
    usual = usual_runs("vector", messages=100)
    asked = usual_runs("vector", messages=100, large=200)
    (large,) = (run for run in asked if run.members == 200)
    assert large.messages == 5 and not large.groups
    assert [run for run in asked if run != large] == usual
    assert max(run.members for run in usual) < 200


def test_a_large_group_is_measured_with_a_message_at_least() -> None:
    assert [run.messages for run in usual_runs("vector", messages=1, large=200)] == [1] * 9
