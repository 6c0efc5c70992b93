"""Work that takes time: one processor per process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.core.events import Consumed, Receive, Timer, View
from ordercast.errors import ConfigError
from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import (
    Constant,
    CostModel,
    Crash,
    FlushTo,
    GroupConfig,
    SimulationConfig,
    Workload,
    one_sender,
    overlapping_groups,
    read_costs,
    simulate,
)
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import ClusterConfig, simulate_cluster
from ordercast.simulation.costs import Calibration, entries_of
from ordercast.simulation.run import outcome as outcome_of
from ordercast.trace.oracle import judge

Stage = Callable[..., Any]

A_MS = 1000.0
SOME = CostModel(
    receive_us=30, receive_entry_us=1, send_us=20, send_entry_us=1, destination_us=15,
    byte_us=0.01, multicast_us=10, delivery_us=5, event_us=10,
)  # fmt: skip


def overlapping(**settings: Any) -> SimulationConfig:
    base = {
        "protocol": "sequencer_pb",
        "members": 6,
        "groups": overlapping_groups(6, 3, 4),
        "messages": 100,
        "workload": Workload(every_us=200),
        "seed": 4,
    }
    return SimulationConfig(**{**base, **settings})


def silent(stage: Stage, costs: CostModel, members: int = 2, *, broadcast: bool = False) -> Any:
    """Nobody says anything by himself; packets take 100 us."""
    workload = Workload(size=100, reply=0.0)
    return stage(
        members=members, messages=0, workload=workload, delay=Constant(100), costs=costs,
        broadcast=broadcast,
    )  # fmt: skip


def delivered_at(outcome: Any, p: int) -> list[float]:
    """When p delivered something, in ms."""
    rows = outcome.log.rows()
    return [tick / TICKS_PER_MS for q, tick, row in rows if q == p and type(row) is tuple]


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("consume_ms", [None, 2.0])
@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast", "fifo"])
def test_a_model_in_which_all_is_free_changes_nothing(
    protocol: str, consume_ms: float | None, loss: float
) -> None:
    faults = (Crash(5, at_ms=8, lose=0.5),)
    settings = {"protocol": protocol, "consume_ms": consume_ms, "loss": loss, "faults": faults}
    bare = simulate(overlapping(**settings, limit_ms=300))
    free = simulate(overlapping(**settings, limit_ms=300, costs=CostModel()))
    assert free.log.records == bare.log.records
    assert (free.ended, free.statistics) == (bare.ended, bare.statistics)


def test_a_cluster_in_which_all_is_free_is_the_same_cluster() -> None:
    config = ClusterConfig(protocol=PROTOCOLS["cbcast"], hosts=3, messages=20, until_ms=1500)
    free = msgspec.structs.replace(config, costs=CostModel())
    assert simulate_cluster(free).log.records == simulate_cluster(config).log.records


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [simulate(overlapping(costs=SOME)) for _ in range(2)]
    assert runs[0].log.records == runs[1].log.records
    assert runs[0].performance() == runs[1].performance()
    assert runs[0].log.records != simulate(overlapping()).log.records


@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast", "agreed"])
def test_orders_hold_when_processes_are_overloaded(protocol: str) -> None:
    costs = msgspec.structs.replace(SOME, receive_us=800)
    outcome = simulate(overlapping(protocol=protocol, messages=50, costs=costs, loss=0.02))
    assert outcome.quiescent and not outcome.statistics.faults
    assert outcome.performance().longest_line > 10
    promises = PROTOCOLS[protocol].declaration.promises
    found = judge(outcome.events(), only=promises)
    assert {name: each.verdict for name, each in found.items()} == dict.fromkeys(found, "ok")


def test_a_process_that_needs_a_millisecond_per_packet_gets_a_thousand_packets_a_second(
    stage: Stage,
) -> None:
    flood = one_sender(0, every_us=100)
    run = stage(members=2, messages=200, workload=flood, costs=CostModel(receive_us=A_MS))
    ended = run.run()
    times = delivered_at(run.simulation, 1)
    assert len(times) == 200
    assert times[-1] - times[0] == pytest.approx(199, abs=0.02)
    figures = outcome_of(run.config, run.simulation, ended).performance()
    assert figures.throughput == pytest.approx(1000, rel=0.02)
    assert figures.busy[1] == pytest.approx(1.0, abs=0.02)
    assert figures.busy[0] == 0.0
    assert figures.longest_line > 100


def test_each_packet_waits_for_those_before_it(stage: Stage) -> None:
    run = silent(stage, CostModel(receive_us=250))
    run.simulation.agenda.acts[10].append(lambda: run.simulation.say(0, (1, 1, 1)))
    run.run()
    times = delivered_at(run.simulation, 1)
    assert times == pytest.approx([0.1 + 0.1 + 0.25 * k for k in (1, 2, 3)])  # said, sent, in line


def test_costs_below_a_tick_add_up(stage: Stage) -> None:
    run = silent(stage, CostModel(receive_us=1))
    run.simulation.agenda.acts[10].append(lambda: run.simulation.say(0, (1,) * 1000))
    run.run()
    assert delivered_at(run.simulation, 1)[-1] == pytest.approx(0.1 + 0.1 + 1.0)


def test_a_packet_leaves_when_it_has_been_sent_to_all_its_destinations(stage: Stage) -> None:
    costs = CostModel(multicast_us=500, send_us=1000, destination_us=200, byte_us=1)
    run = silent(stage, costs, members=3)
    run.simulation.agenda.acts[100].append(lambda: run.simulation.say(0, (1,)))
    run.run()
    sent_ms = 1 + 0.5 + 1.0 + 2 * (0.2 + 0.1)
    assert delivered_at(run.simulation, 0) == [1.0]
    assert delivered_at(run.simulation, 2) == [pytest.approx(sent_ms + 0.1 + 0.1)]


@pytest.mark.parametrize(("broadcast", "copies"), [(False, 3), (True, 1)])
def test_a_broadcast_network_takes_a_packet_once_for_all_destinations(
    stage: Stage, broadcast: bool, copies: int
) -> None:
    costs = CostModel(send_us=1000, destination_us=200, destination_entry_us=50, byte_us=1)
    run = silent(stage, costs, members=4, broadcast=broadcast)
    run.simulation.agenda.acts[100].append(lambda: run.simulation.say(0, (1,)))
    run.run()
    sent_ms = 1 + 1.0 + copies * (0.2 + 0.05 + 0.1)  # the header is one number
    assert delivered_at(run.simulation, 2) == [pytest.approx(sent_ms + 0.1 + 0.1)]


def test_the_delay_to_all_is_that_of_the_last_member(stage: Stage) -> None:
    run = silent(stage, CostModel(receive_us=250), members=3)
    run.simulation.agenda.acts[100].append(lambda: run.simulation.say(0, (1,)))
    run.simulation.agenda.acts[100].append(lambda: run.simulation.say(1, (1,)))
    figures = outcome_of(run.config, run.simulation, run.run()).performance()
    assert figures.delay_all_ms == pytest.approx(0.1 + 0.25)  # process 2 reads both, one by one
    run.simulation.agenda.acts[2000].append(lambda: run.simulation.say(0, (1, 1, 1)))
    figures = outcome_of(run.config, run.simulation, run.run()).performance()
    assert figures.delay_all_ms == pytest.approx(0.1 + 2 * 0.25)


def test_entries_of_a_header_cost_time(stage: Stage) -> None:
    costs = CostModel(send_entry_us=1000, receive_entry_us=2000)
    run = silent(stage, costs)
    run.simulation.agenda.acts[100].append(lambda: run.simulation.say(0, (1,)))
    run.run()
    assert delivered_at(run.simulation, 1) == [
        pytest.approx(1 + 1 + 0.1 + 2)
    ]  # the header is one number


def test_entries_are_counted_through_vectors_maps_and_wrapped_headers() -> None:
    class Inner(msgspec.Struct):
        vector: tuple[int, ...]
        pairs: tuple[tuple[int, int], ...]

    class Outer(msgspec.Struct):
        n: int
        header: msgspec.Struct
        known: dict[int, int]

    assert entries_of(Outer(1, Inner((1, 2, 3), ((1, 2), (3, 4))), {5: 6})) == 1 + 3 + 4 + 2


def test_a_timer_that_is_cancelled_while_it_waits_does_not_fire(stage: Stage) -> None:
    """Work is due at 1 ms for 5 ms; `tea`, due at 3 ms, waits, and is cancelled by `work`."""
    run = stage(members=1, messages=0, costs=CostModel(event_us=5 * A_MS))
    run.machines[0].timers_wanted = {
        "view": [(1, "work", 1), (1, "tea", 3), (1, "late", 3)],
        "work": [(1, "tea", -1)],
    }
    run.run()
    fired = [event.name for event in run.machines[0].handed if isinstance(event, Timer)]
    assert fired == ["work", "late"]


def test_deliveries_cost_time(stage: Stage) -> None:
    run = silent(stage, CostModel(delivery_us=A_MS))
    run.simulation.agenda.acts[10].append(lambda: run.simulation.say(0, (1, 1)))
    run.run()
    assert delivered_at(run.simulation, 0) == [0.1, 0.1]  # both are said in one instant
    first, second = delivered_at(run.simulation, 1)
    assert (first, second) == pytest.approx((0.1 + 1 + 0.1, 0.1 + 2 + 0.1))


def test_the_word_that_messages_were_taken_waits_for_the_packets_before_it(stage: Stage) -> None:
    """The first packet is read at 5.2 ms, taken 1 ms later, when the second is half read."""
    workload = Workload(reply=0.0)
    costs = CostModel(receive_us=5 * A_MS)
    settings = {"messages": 0, "workload": workload, "delay": Constant(100), "consume_ms": 1}
    run = stage(members=2, **settings, costs=costs)
    run.simulation.agenda.acts[10].append(lambda: run.simulation.say(0, (1, 1)))
    run.run()
    handed = [event for event in run.machines[1].handed if not isinstance(event, View)]
    assert [type(event) for event in handed] == [Receive, Receive, Consumed]
    assert handed[-1].frames == 2


def test_who_crashes_while_packets_wait_reads_none_of_them(stage: Stage) -> None:
    settings = {"members": 2, "messages": 100, "workload": one_sender(0, every_us=100)}
    run = stage(**settings, costs=CostModel(receive_us=A_MS), faults=(Crash(1, at_ms=20),))
    run.run()
    times = delivered_at(run.simulation, 1)
    assert 10 < len(times) < 20 and times[-1] <= 20
    assert run.simulation.missed + len(times) == 100


def test_a_view_change_in_one_instant_does_not_wait_in_line() -> None:
    faults = (Crash(0, at_ms=10), FlushTo(1, (1, 2, 3), at_ms=15))
    config = SimulationConfig(
        protocol="sequencer_pb",
        members=4,
        messages=100,
        workload=Workload(every_us=200),
        faults=faults,
        costs=msgspec.structs.replace(SOME, receive_us=400),
    )
    outcome = simulate(config)
    assert outcome.quiescent and not outcome.statistics.faults
    found = judge(outcome.events(), only=["total.group"])
    assert found["total.group"].verdict == "ok"


def test_throughput_is_that_of_the_slowest_member_of_each_group() -> None:
    groups = tuple(GroupConfig(members=(p, p + 1)) for p in (0, 2, 4))
    config = SimulationConfig(
        protocol="sequencer_pb",
        members=6,
        groups=groups,
        messages=60,
        workload=Workload(reply=0.0),
        costs=SOME,
    )
    figures = simulate(config).performance()
    assert figures.throughput == pytest.approx(60 / figures.span_ms * 1000)
    assert 0 < figures.delay_p50_ms < figures.delay_p99_ms


def test_a_member_that_crashed_is_the_slowest() -> None:
    config = SimulationConfig(
        protocol="basic",
        members=3,
        messages=40,
        workload=one_sender(0),
        faults=(Crash(2, at_ms=20),),
        limit_ms=200,
        costs=SOME,
    )
    outcome = simulate(config)
    figures = outcome.performance()
    got = len(delivered_at(outcome, 2))
    assert 0 < got < len(delivered_at(outcome, 1))
    assert figures.throughput == pytest.approx(got / figures.span_ms * 1000)


def test_a_run_in_which_nothing_is_said_has_no_throughput() -> None:
    figures = simulate(overlapping(messages=0, costs=SOME)).performance()
    assert (figures.throughput, figures.span_ms, figures.delay_p99_ms) == (0, 0, 0)
    assert simulate(overlapping(messages=1)).performance().busy == ()


def test_a_busy_node_of_a_cluster_is_not_taken_for_dead() -> None:
    config = ClusterConfig(
        protocol=PROTOCOLS["cbcast"],
        hosts=3,
        messages=40,
        cluster=ClusterOptions(heartbeat_ms=20, suspect_ms=200),
        costs=SOME,
    )
    outcome = simulate_cluster(config)
    assert set(outcome.standing.values()) == {"in"}
    assert max(outcome.performance().busy) > 0


def test_costs_are_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / "new" / "costs.json"
    Calibration(costs=SOME, protocols=("vector",), steps=7).write(file)
    assert read_costs(file) == SOME
    file.write_text('{"costs": {"receive_us": 3.5}}')
    assert read_costs(file) == CostModel(receive_us=3.5)


def test_a_file_that_is_no_cost_model_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.json: no such file.*ordercast calibrate"):
        read_costs(tmp_path / "nothing.json")
    file = tmp_path / "wrong.json"
    for text in ('{"costs": {"recieve_us": 1}}', '{"costs": {"receive_us": -1}}', "[]"):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"wrong\.json is no cost model: "):
            read_costs(file)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_cost_is_a_time(value: float) -> None:
    with pytest.raises(ValueError, match="send_us"):
        CostModel(send_us=value)
