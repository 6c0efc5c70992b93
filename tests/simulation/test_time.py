"""Ticks, delays and timers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import mean, median
from typing import Any

import pytest

from ordercast.core.events import Timer
from ordercast.simulation import Constant, Exponential, LogNormal, Uniform
from ordercast.simulation.agenda import TICK_US, TICKS_PER_MS, Agenda

Stage = Callable[..., Any]


def timers_of(machine: Any) -> list[str]:
    return [event.name for event in machine.handed if isinstance(event, Timer)]


def test_every_tick_is_named_once_and_in_order() -> None:
    agenda = Agenda()
    agenda.packets[7].append((0, None))  # type: ignore[arg-type]
    agenda.alarms[7].append((0, 1, "a"))
    agenda.acts[3].append(print)
    agenda.packets[7].append((1, None))  # type: ignore[arg-type]
    assert [agenda.next_tick() for _ in range(3)] == [3, 7, None]
    assert [p for p, _ in agenda.packets[7]] == [0, 1]


@pytest.mark.parametrize(
    ("delay", "least", "most", "middle"),
    [
        (Constant(1000), 1000, 1000, 1000),
        (Uniform(500, 1500), 500, 1500, 1000),
        (Exponential(200, 1000), 200, 20_000, 1000),
        (LogNormal(1000, 0.5), 10, 50_000, 1133),
    ],
)
def test_delays_have_the_mean_and_the_bounds_of_their_distribution(
    delay: Any, least: float, most: float, middle: float
) -> None:
    drawn = [ticks * TICK_US for ticks in delay.draw(Random(1), 20_000)]
    assert least <= min(drawn) and max(drawn) <= most
    assert mean(drawn) == pytest.approx(middle, rel=0.03)


def test_half_of_lognormal_delays_lie_below_the_median() -> None:
    drawn = LogNormal(2000, 1.0).draw(Random(1), 20_000)
    assert median(drawn) * TICK_US == pytest.approx(2000, rel=0.05)


def test_the_shortest_delay_is_one_tick() -> None:
    for delay in (
        Constant(0.001),
        Uniform(0.001, 0.002),
        LogNormal(0.001),
        Exponential(0.001, 0.1),
    ):
        assert set(delay.draw(Random(1), 100)) == {1}


def test_a_timer_fires_once_after_its_delay(stage: Stage) -> None:
    run = stage(members=1, messages=0)
    run.machines[0].timers_wanted = {"view": [(1, "tea", 3)]}
    assert run.run() == "quiescent"
    assert timers_of(run.machines[0]) == ["tea"]
    assert run.simulation.last_event == 3 * TICKS_PER_MS


def test_a_timer_that_is_set_again_is_replaced_later_or_earlier(stage: Stage) -> None:
    later = stage(members=1, messages=0)
    later.machines[0].timers_wanted = {
        "view": [(1, "early", 1), (1, "tea", 3)],
        "early": [(1, "tea", 9)],
    }
    later.run()
    assert timers_of(later.machines[0]) == ["early", "tea"]
    assert later.simulation.last_event == 10 * TICKS_PER_MS
    earlier = stage(members=1, messages=0)
    earlier.machines[0].timers_wanted = {
        "view": [(1, "early", 1), (1, "tea", 9), (1, "tea", 9)],
        "early": [(1, "tea", 2)],
        "tea": [(1, "stop", 0)],
    }
    earlier.run()
    assert timers_of(earlier.machines[0]) == ["early", "tea", "stop"]
    assert earlier.simulation.last_event == 3 * TICKS_PER_MS + 1


def test_a_negative_delay_cancels_a_timer(stage: Stage) -> None:
    run = stage(members=1, messages=0)
    run.machines[0].timers_wanted = {
        "view": [(1, "early", 1), (1, "tea", 3), (2, "tea", 3)],
        "early": [(1, "tea", -1), (1, "never set", -1)],
    }
    run.run()
    assert [(t.group, t.name) for t in run.machines[0].handed if isinstance(t, Timer)] == [
        (1, "early"),
        (2, "tea"),
    ]


def test_a_timer_of_no_delay_fires_in_a_later_tick(stage: Stage) -> None:
    run = stage(members=1, messages=0)
    run.machines[0].timers_wanted = {"view": [(1, "now", 0)]}
    run.run()
    assert run.simulation.now == 1


def test_a_machine_that_never_rests_is_stopped_by_a_limit_and_says_so(stage: Stage) -> None:
    def restless() -> Any:
        run = stage(members=1, messages=0)
        run.machines[0].timers_wanted = {"view": [(1, "again", 1)], "again": [(1, "again", 1)]}
        return run

    assert restless().run(ticks=1000) == "time limit"
    assert restless().run(events=50) == "event limit"
    assert restless().run(quiet=5000) == "quiet"
