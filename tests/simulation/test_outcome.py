"""What a run leaves behind, and what is refused before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.errors import ConfigError
from ordercast.simulation import (
    Constant,
    Crash,
    Exponential,
    FlushTo,
    GroupConfig,
    Join,
    Leave,
    LogNormal,
    Partition,
    SimulationConfig,
    Uniform,
    Workload,
    all_senders,
    one_sender,
    overlapping_groups,
    simulate,
)
from ordercast.trace.oracle.judge import judge
from ordercast.trace.read import read_events
from ordercast.trace.schema import STATISTICAL_KINDS, Event

PROTOCOLS = ["basic", "reliable", "fifo", "vector", "sequencer_bb", "sequencer_pb"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("network", [{}, {"loss": 0.15, "duplicate": 0.1}, {"fifo": True}],
                         ids=["N1", "N0", "N2"])  # fmt: skip
def test_a_run_drains_and_its_trace_shows_what_the_protocol_promises(
    protocol: str, network: dict[str, Any]
) -> None:
    config = SimulationConfig(protocol=protocol, members=4, messages=20, seed=9, **network)
    outcome = simulate(config)
    assert outcome.ended == "quiescent" and outcome.statistics.faults == 0
    found = judge(outcome.events())
    for name in ("wellformed", "views", *outcome.groups[0].declaration.promises):
        assert found[name].verdict == "ok", (name, found[name], config.seed)
    assert outcome.statistics.deliveries == 4 * outcome.statistics.multicasts


def test_a_trace_names_processes_groups_and_messages_and_says_what_was_promised() -> None:
    groups = (GroupConfig(members=(0, 1)), GroupConfig(members=(1, 2), protocol="vector"))
    config = SimulationConfig(
        protocol="sequencer_pb", members=3, groups=groups, messages=8, workload=Workload(size=50)
    )
    events = simulate(config).events()
    assert events[:2] == [
        Event(None, None, "group", None, "g1", "seed-0", members=("p0#1", "p1#1"),
              order="total", protocol="sequencer_pb", scope="group"),
        Event(None, None, "group", None, "g2", "seed-0", members=("p1#1", "p2#1"),
              order="causal", protocol="vector", scope="group"),
    ]  # fmt: skip
    assert events[2].kind == "view" and events[2].members == ("p0#1", "p1#1")
    send = next(event for event in events if event.kind == "send")
    assert send.message == f"{send.process}/{send.group}/1"
    assert (send.size, send.sender, send.view) == (50, None, None)
    delivered = [event for event in events if event.message == send.message and event is not send]
    assert {event.kind for event in delivered} == {"deliver"}
    assert {event.sender for event in delivered} == {send.process}
    assert len(delivered) == 2
    logs: dict[str | None, list[Event]] = {}
    for event in events[2:]:
        logs.setdefault(event.process, []).append(event)
    for log in logs.values():
        assert [event.index for event in log] == list(range(1, len(log) + 1))
        assert log[-1].kind == "end"
        assert [event.time for event in log] == sorted(event.time or 0 for event in log)


def test_figures_show_what_was_held_back() -> None:
    def figures(delay: Any) -> tuple[int, int]:
        config = SimulationConfig(
            protocol="fifo", messages=100, workload=one_sender(0, every_us=100), delay=delay
        )
        statistics = simulate(config).statistics
        return statistics.held_back, statistics.most_held_back

    assert figures(Constant(1000)) == (0, 0)
    held_back, most = figures(Uniform(10, 2000))
    assert held_back > 100 and 1 < most < 100


def test_a_run_that_hits_a_limit_says_which_and_leaves_its_logs_cut() -> None:
    for limit, reason in (
        ({"limit_ms": 8.0}, "time limit"),
        ({"limit_events": 60}, "event limit"),
    ):
        outcome = simulate(SimulationConfig(protocol="sequencer_pb", messages=50, **limit))
        assert outcome.ended == reason
        assert not outcome.quiescent
        assert "end" not in {event.kind for event in outcome.events()}


def test_notes_of_the_protocol_are_in_the_trace_only_when_asked_for() -> None:
    def kinds(trace: Any) -> set[str]:
        config = SimulationConfig(
            protocol="sequencer_pb", messages=40, loss=0.2, trace=trace, seed=1
        )
        outcome = simulate(config)
        assert outcome.statistics.retransmissions > 0
        return {event.kind for event in outcome.events()}

    assert kinds("application") == {"group", "view", "send", "deliver", "end"}
    noted = kinds("protocol") - kinds("application")
    assert "retransmit" in noted
    assert noted <= set(STATISTICAL_KINDS)


@pytest.mark.parametrize("target", ["trace.jsonl", "deep/er/trace.csv", "trace.parquet", "folder"])
def test_a_written_trace_reads_back_as_the_same_events(tmp_path: Path, target: str) -> None:
    if target in ("trace.parquet", "folder"):
        pytest.importorskip("pyarrow")
    outcome = simulate(SimulationConfig(protocol="vector", members=3, messages=10))
    files = outcome.write(tmp_path / target)
    assert all(file.is_file() for file in files)
    assert by_place(read_events([tmp_path / target])) == by_place(outcome.events())


def by_place(events: Any) -> list[Event]:
    return sorted(events, key=lambda e: (e.process or "", e.index or 0, e.group or ""))


def test_a_trace_is_not_written_under_a_suffix_nobody_reads(tmp_path: Path) -> None:
    outcome = simulate(SimulationConfig(protocol="basic", members=2, messages=1))
    with pytest.raises(ValueError, match=r"trace\.txt: a trace is written to FILE\.jsonl"):
        outcome.write(tmp_path / "trace.txt")


def test_a_machine_that_breaks_names_the_seed_that_replays_it() -> None:
    def broken(packet: Any) -> Any:
        raise RuntimeError("no")

    config = SimulationConfig(protocol="basic", messages=3, transform=broken, seed=77)
    with pytest.raises(RuntimeError) as error:
        simulate(config)
    assert "seed=77" in error.value.__notes__[0]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"protocol": "paxos"}, "unknown protocol 'paxos'; built are basic"),
        ({"members": 0}, "members=0 must be greater than 0"),
        ({"messages": -1}, "messages=-1 must not be negative"),
        ({"loss": 1.0}, "loss=1.0 must be a probability below 1"),
        ({"duplicate": -0.1}, "duplicate=-0.1 must be a probability below 1"),
        ({"window": 0}, "window=0 must be at least 1"),
        ({"consume_ms": 0}, "consume_ms=0 must be greater than 0"),
        ({"slow_consumers": ((1, 5.0),)}, "slow_consumers and consume_ms=None"),
        ({"consume_ms": 1, "slow_consumers": ((1, 0),)}, "0 ms of process 1 must be greater than"),
        ({"consume_ms": 1, "slow_consumers": ((7, 1),)}, "slow_consumers names process 7"),
        ({"limit_ms": 0}, "limit_ms=0 must be greater than 0"),
        ({"trace": "all"}, "trace='all' must be 'application' or 'protocol'"),
        ({"groups": (GroupConfig(members=()),)}, "group 1 has no members"),
        ({"groups": (GroupConfig(members=(1, 1)),)}, "group 1 names a member twice"),
        ({"groups": (GroupConfig(members=(1,), resilience=1),)}, "only groups of a cluster do"),
        ({"groups": (GroupConfig(members=(1,), delivery_level="ack"),)}, "of a cluster do; give"),
        ({"groups": (GroupConfig(members=(9,)),)}, "group 1 names process 9, but members=5"),
        ({"groups": (GroupConfig(members=(0,), leader=7),)}, "names process 7, but members=5"),
        ({"workload": Workload(senders=(6,))}, "workload.senders names process 6"),
        ({"faults": (Crash(5, 1),)}, "names process 5, but members=5"),
        ({"faults": (Crash(0, -1),)}, "at_ms=-1 must not be negative"),
        ({"faults": (Crash(0, 1, 2.0),)}, "lose=2.0 is no probability"),
        ({"faults": (Partition(((8,),), 1),)}, "names process 8"),
        ({"faults": (FlushTo(2, (1,), 1),)}, "group 2 is none of 1 to 1"),
        ({"faults": (Join(1, 1, 1),)}, "do not come and go; simulate a cluster"),
        ({"faults": (Leave(1, 1, 1),)}, "do not come and go; simulate a cluster"),
        ({"faults": (FlushTo(1, (), 1),)}, "a view needs at least one member"),
    ],
)
def test_a_wrong_config_is_refused_with_the_value_and_the_rule(
    wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError) as error:
        SimulationConfig(**{"protocol": "basic", **wrong})
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Uniform(5, 4), "least_us=5 exceeds most_us=4"),
        (lambda: Uniform(0, 4), "least_us=0 must be greater than 0"),
        (lambda: Exponential(5, 5), "mean_us=5 does not exceed least_us=5"),
        (lambda: LogNormal(5, 0), "sigma=0 must be greater than 0"),
        (lambda: Workload(every_us=0), "every_us=0 must be greater than 0"),
        (lambda: Workload(burst=0), "burst=0 must be at least 1"),
        (lambda: Workload(reply=-1), "reply=-1 must not be negative"),
        (lambda: Workload(depth=256), "depth=256 must lie between 0 and 255"),
        (lambda: Workload(size=4), "size=4 is too small: a message needs 5 bytes"),
        (lambda: Workload(start_ms=-1), "start_ms=-1 must not be negative"),
        (lambda: overlapping_groups(3, 2, 4), "size=4 and members=3"),
        (lambda: overlapping_groups(3, 0, 2), "groups=0 must be at least 1"),
    ],
)
def test_a_wrong_part_of_a_config_is_refused_with_the_value_and_the_rule(
    make: Any, says: str
) -> None:
    with pytest.raises(ValueError) as error:
        make()
    assert says in str(error.value)


@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_packets_are_counted_by_what_they_carry_over_links_too(loss: float) -> None:
    config = SimulationConfig(
        protocol="basic", members=3, messages=20, workload=all_senders(), loss=loss, consume_ms=1
    )
    counted = simulate(config).statistics
    assert counted.packets == sum(counted.packets_of.values())
    assert counted.packets_of["BasicData"] >= 2 * 20
    assert ("LinkAck" in counted.packets_of) == bool(loss)
    assert counted.packets_per_message == counted.packets / 20


def test_options_that_contradict_each_other_are_a_config_error() -> None:
    options = msgspec.structs.replace(
        SimulationConfig(protocol="basic").options, driver_consumes=True
    )
    with pytest.raises(ConfigError, match=r"driver_consumes=True and consume_ms=None"):
        SimulationConfig(protocol="basic", options=options)


def test_senders_that_are_in_no_group_are_refused() -> None:
    config = SimulationConfig(
        protocol="basic",
        groups=(GroupConfig(members=(0, 1)),),
        workload=Workload(senders=(3,)),
    )
    with pytest.raises(ValueError, match=r"senders=\(3,\): none of them is in a group"):
        simulate(config)
