"""Crashes, members that come and go, and the scripted view change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ordercast.core.events import Cut, Flush, Kept, Multicast, Receive, View
from ordercast.errors import ConfigError
from ordercast.simulation import (
    Constant,
    Crash,
    FlushTo,
    GroupConfig,
    SimulationConfig,
    Uniform,
    Workload,
    all_senders,
    one_sender,
    simulate,
)
from ordercast.simulation.log import Ended
from ordercast.simulation.payload import pack
from ordercast.trace.oracle.judge import judge

Stage = Callable[..., Any]


def rows_of(run: Any, p: int) -> list[tuple[int, Any]]:
    return [(tick, row) for q, tick, row in run.simulation.log.rows() if q == p]


def test_a_crashed_process_is_handed_nothing_and_says_nothing(stage: Stage) -> None:
    run = stage(
        members=4, messages=300, workload=all_senders(every_us=100), faults=(Crash(2, 10),), seed=3
    )
    run.machines[2].timers_wanted = {"view": [(1, "late", 15)]}
    handed: list[int] = []
    crash = run.simulation.crash

    def count_then_crash(p: int, lose: float) -> None:
        handed.append(len(run.machines[2].handed))
        crash(p, lose)

    run.simulation.crash = count_then_crash
    run.run()
    assert handed == [len(run.machines[2].handed)]
    tick, last = rows_of(run, 2)[-1]
    assert (tick, last) == (1000, Ended("crash"))
    assert run.simulation.missed > 0
    assert run.simulation.unsent() > 0
    assert run.simulation.timers_fired == 0


def test_a_crashed_process_has_no_end_in_its_log_and_the_others_have(stage: Stage) -> None:
    run = stage(members=3, messages=10, faults=(Crash(1, 2), Crash(1, 3)))
    run.run()
    run.simulation.finish()
    lasts = [rows_of(run, p)[-1][1] for p in range(3)]
    assert lasts == [Ended("end"), Ended("crash"), Ended("end")]


def test_packets_of_a_crashed_process_arrive_unless_they_are_to_be_lost(stage: Stage) -> None:
    def heard(lose: float) -> int:
        run = stage(
            members=41,
            messages=1,
            workload=one_sender(0),
            delay=Uniform(1000, 2000),
            faults=(Crash(0, 1.5, lose),),
        )
        run.run()
        return sum(len(machine.packets()) for machine in run.machines)

    assert heard(0.0) == 40
    assert heard(1.0) == 0
    assert 5 < heard(0.5) < 35


def test_a_flush_gives_every_survivor_the_union_and_then_the_next_view(stage: Stage) -> None:
    run = stage(members=5, messages=0,
        workload=all_senders(), groups=(GroupConfig(members=(0, 1, 2, 3)),),
                faults=(Crash(0, 1), FlushTo(1, (1, 2, 4), 5)))  # fmt: skip
    ours, theirs = Kept(0, 1, (1,), pack(1, 0, 8)), Kept(2, 1, (2,), pack(1, 0, 8))
    run.machines[0].kept = (Kept(0, 2, (3,), pack(2, 0, 8)),)  # only the dead one has it
    run.machines[1].kept = (theirs,)
    run.machines[2].kept = (theirs, ours)
    run.run()
    view = View(1, 2, (1, 2, 4), leader=1, era=2)
    assert run.machines[1].handed[-1] == Cut((Flush(1, (ours, theirs)),), (view,))
    assert run.machines[2].handed[-1] == Cut((Flush(1, (ours, theirs)),), (view,))
    assert run.machines[4].handed == [Cut((), (view,))]
    assert run.machines[0].handed[-1] == View(1, 1, (0, 1, 2, 3), leader=0)
    assert run.machines[3].closed == [1], "who is alive and not in the new view is out"


def test_a_process_that_joins_later_sends_what_it_planned_when_it_is_in(stage: Stage) -> None:
    run = stage(
        members=2,
        messages=3,
        groups=(GroupConfig(members=(0,)),),
        workload=Workload(senders=(0,), every_us=10, reply=0),
        faults=(FlushTo(1, (0, 1), 9),),
    )
    simulation = run.simulation
    simulation.agenda.acts[100].append(lambda: simulation.say(1, (1, 1, 1)))
    run.run()
    assert [type(e) for e in run.machines[1].handed if type(e) is not Receive] == [
        Cut,
        *[Multicast] * 3,
    ]


def test_an_own_fault_can_be_plugged_in(stage: Stage) -> None:
    class Shout:
        at_ms = 4.0

        def apply(self, simulation: Any) -> None:
            simulation.say(1, (1, 1))

    run = stage(
        members=2, messages=0, workload=all_senders(), faults=(Shout(),), delay=Constant(10)
    )
    run.run()
    assert [packet.src for packet in run.machines[0].packets()] == [1, 1]


@pytest.mark.parametrize("protocol", ["reliable", "vector", "sequencer_pb", "sequencer_bb"])
@pytest.mark.parametrize(
    ("groups", "faults"),
    [
        ((GroupConfig(members=(0, 1, 2, 3)),), (Crash(2, 20, 0.5), FlushTo(1, (0, 1, 3), 30))),
        ((GroupConfig(members=(0, 1, 2)),), (FlushTo(1, (0, 1, 2, 3), 10),)),
        ((GroupConfig(members=(0, 1, 2, 3)),), (Crash(0, 20, 0.5), FlushTo(1, (1, 2, 3), 30))),
    ],
    ids=["crash", "join", "dead-leader"],
)
def test_after_a_view_change_a_run_drains_and_keeps_what_its_protocol_promises(
    protocol: str, groups: tuple[GroupConfig, ...], faults: tuple[Any, ...]
) -> None:
    config = SimulationConfig(
        protocol=protocol, members=4, messages=25, groups=groups, faults=faults, seed=11
    )
    outcome = simulate(config)
    assert outcome.quiescent and outcome.statistics.faults == 0
    found = judge(outcome.events())
    for name in (*outcome.groups[0].declaration.promises, "wellformed", "views", "vsync"):
        assert found[name].verdict == "ok", (name, found[name], config.seed)


def test_a_group_of_several_sequencers_changes_only_in_a_cluster() -> None:
    with pytest.raises(ConfigError, match="simulate it as a cluster"):
        SimulationConfig(protocol="sequencing", members=3, faults=(FlushTo(1, (0, 1), at_ms=5),))
