"""What applications say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ordercast.core.events import Consumed, Multicast
from ordercast.simulation import (
    GroupConfig,
    SimulationConfig,
    Workload,
    all_senders,
    bursts,
    conversations,
    one_sender,
    overlapping_groups,
    simulate,
)
from ordercast.simulation.log import Sent
from ordercast.simulation.payload import pack, unpack
from ordercast.trace.schema import Event

Stage = Callable[..., Any]


def test_a_payload_says_its_number_and_depth_and_has_its_size() -> None:
    payload = pack(70_000, 3, 20)
    assert unpack(payload) == (70_000, 3)
    assert len(payload) == 20


def test_the_same_seed_plans_the_same_messages_and_another_seed_others() -> None:
    groups_of = dict.fromkeys(range(4), (1, 2))
    plan = Workload().plan(50, groups_of, Random(1))
    assert plan == Workload().plan(50, groups_of, Random(1))
    assert plan != Workload().plan(50, groups_of, Random(2))


def test_as_many_messages_are_planned_as_were_asked_for() -> None:
    plan = bursts(7).plan(50, {0: (1,), 1: (1, 2)}, Random(1))
    assert sum(len(planned.groups) for planned in plan) == 50
    assert max(len(planned.groups) for planned in plan) == 7


def test_a_burst_goes_in_turn_to_all_groups_of_its_sender() -> None:
    plan = bursts(4).plan(40, {0: (1, 2), 1: ()}, Random(1))
    assert {planned.process for planned in plan} == {0}
    assert {planned.groups for planned in plan} <= {(1, 2, 1, 2), (2, 1, 2, 1)}


def test_one_sender_is_one_and_all_senders_are_all() -> None:
    groups_of = dict.fromkeys(range(5), (1,))
    assert {p.process for p in one_sender(3).plan(99, groups_of, Random(1))} == {3}
    assert {p.process for p in all_senders().plan(99, groups_of, Random(1))} == set(range(5))


def test_an_answer_is_sent_in_the_instant_of_the_delivery_and_never_too_deep(stage: Stage) -> None:
    run = stage(members=3, messages=40, workload=Workload(reply=2.0, depth=2), seed=4)
    run.run()
    log = run.simulation.log
    depths = set()
    for machine in run.machines:
        for event in machine.handed:
            if isinstance(event, Multicast):
                depths.add(unpack(event.payload)[1])
    assert depths == {0, 1, 2}
    at: dict[int, set[int]] = {p: set() for p in range(3)}  # ticks with a delivery of another's
    for p, tick, row in log.rows():
        if type(row) is tuple and row[1] != p:
            at[p].add(tick)
    planned = [1 for p, tick, row in log.rows() if isinstance(row, Sent) and tick not in at[p]]
    sends = sum(isinstance(row, Sent) for _, _, row in log.rows())
    assert sends > 3 * len(planned)


def test_the_mean_number_of_answers_does_not_depend_on_the_size_of_the_group(stage: Stage) -> None:
    for members in (5, 50):
        run = stage(members=members, messages=400, workload=Workload(reply=0.5, depth=1), seed=1)
        run.run()
        sends = sum(isinstance(row, Sent) for _, _, row in run.simulation.log.rows())
        assert sends == pytest.approx(600, rel=0.1)


def happened_before_pairs(events: list[Event]) -> tuple[int, int]:
    """(pairs a -> b of messages by different senders, length of the longest chain of answers)."""
    before: dict[str, set[str]] = {}  # by message: all that happened before its sending
    known: dict[str, set[str]] = {}  # by process: all that it has sent or delivered, and before
    depth: dict[str, int] = {}
    pairs = 0
    for event in events:
        if event.kind not in ("send", "deliver"):
            continue
        assert event.process is not None and event.message is not None
        mine = known.setdefault(event.process, set())
        if event.kind == "send":
            before[event.message] = set(mine)
            sender = event.message.split("/")[0]
            pairs += sum(other.split("/")[0] != sender for other in mine)
            chain = [depth[m] for m in mine if m.split("/")[0] != sender]
            depth[event.message] = 1 + max(chain, default=0)
        else:
            mine |= before[event.message]
        mine.add(event.message)
    return pairs, max(depth.values())


def test_answers_make_long_causal_chains_and_silence_makes_none() -> None:
    config = SimulationConfig(
        protocol="vector", members=5, messages=20, workload=conversations(0.9, 8), seed=6
    )
    pairs, longest = happened_before_pairs(simulate(config).events())
    assert pairs > 1000
    assert longest >= 8
    silent = SimulationConfig(
        protocol="vector", members=5, messages=1, workload=all_senders(), seed=6
    )
    assert happened_before_pairs(simulate(silent).events()) == (0, 1)


def test_answers_also_go_to_other_groups_of_who_answers() -> None:
    config = SimulationConfig(
        protocol="reliable",
        members=6,
        groups=overlapping_groups(6, 3, 4),
        messages=30,
        workload=conversations(),
        seed=2,
    )
    events = simulate(config).events()
    groups: dict[str, set[str | None]] = {}
    for event in events:
        if event.kind == "send":
            assert event.process is not None
            groups.setdefault(event.process, set()).add(event.group)
    assert any(len(found) > 1 for found in groups.values())


def test_overlapping_groups_share_neighbours() -> None:
    groups = overlapping_groups(6, 3, 4)
    assert [group.members for group in groups] == [(0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 0, 1)]


def test_a_window_holds_messages_back_until_earlier_ones_are_stable(stage: Stage) -> None:
    run = stage(members=2, messages=10, workload=bursts(10), window=4)
    run.run()
    assert sum(len(machine.packets()) for machine in run.machines) == 4
    assert run.simulation.unsent() == 6
    config = SimulationConfig(
        protocol="sequencer_pb", members=3, messages=40, workload=bursts(20), window=2
    )
    outcome = simulate(config)
    assert outcome.quiescent
    assert (outcome.statistics.multicasts, outcome.statistics.unsent) == (40, 0)


def test_what_is_delivered_is_consumed_later_and_completely(stage: Stage) -> None:
    run = stage(members=3, messages=30, workload=all_senders(every_us=100), consume_ms=2)
    run.run()
    for machine in run.machines:
        consumed = [event for event in machine.handed if isinstance(event, Consumed)]
        assert sum(event.frames for event in consumed) == 30
        assert len(consumed) < 30
    slow = SimulationConfig(protocol="sequencer_bb", members=3, messages=30, consume_ms=3)
    assert simulate(slow).quiescent


def test_a_slow_consumer_takes_its_time_and_the_others_theirs(stage: Stage) -> None:
    slow = ((1, 40.0),)
    run = stage(
        members=3,
        messages=30,
        workload=all_senders(every_us=1000),
        consume_ms=2,
        slow_consumers=slow,
    )
    run.run()
    consumed = [
        [event.frames for event in machine.handed if isinstance(event, Consumed)]
        for machine in run.machines
    ]
    assert [sum(frames) for frames in consumed] == [30, 30, 30]
    assert len(consumed[1]) <= 3 < 8 <= min(len(consumed[0]), len(consumed[2]))


def test_what_is_stable_follows_the_slowest_consumer() -> None:
    settings = {"protocol": "sequencer_pb", "members": 3, "messages": 20, "window": 1}
    fast = simulate(SimulationConfig(**settings, consume_ms=1))
    slow = simulate(SimulationConfig(**settings, consume_ms=1, slow_consumers=((2, 100.0),)))
    assert slow.quiescent
    assert slow.statistics.simulated_ms > 2 * fast.statistics.simulated_ms


def test_a_group_may_have_a_leader_that_is_no_member() -> None:
    groups = (GroupConfig(members=(0, 1, 2), leader=3),)
    config = SimulationConfig(protocol="sequencer_pb", members=4, groups=groups, messages=10)
    outcome = simulate(config)
    assert outcome.quiescent
    assert outcome.statistics.deliveries == 3 * outcome.statistics.multicasts
