"""Packets per message: bounded by what a protocol declares, whatever the network and the rate.

Runs are long, so that what grows with time shows; they are not judged for their order here. A
protocol that enters the registry is picked up.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.orders import Sequencing, SequencingHybrid
from ordercast.simulation import Outcome, SimulationConfig, Uniform, all_senders, simulate
from sweep import packets
from sweep.arenas import LIVE_OPTIONS

MEMBERS = 4

MACHINES = {**PROTOCOLS, "sequencing": Sequencing, "sequencing_hybrid": SequencingHybrid}

PLAIN, ON_TCP, ON_UDP = LIVE_OPTIONS
LONE: dict[str, Any] = {"messages": 40, "workload": all_senders(every_us=500_000)}
STREAM: dict[str, Any] = {"messages": 300, "workload": all_senders(every_us=10_000)}
FLOOD: dict[str, Any] = {"messages": 400, "workload": all_senders(every_us=500)}
LOSSY: dict[str, Any] = {"loss": 0.05, "duplicate": 0.02}
SLOW: dict[str, Any] = {"slow_consumers": ((1, 300.0),)}


def line(one_way_ms: float) -> dict[str, Any]:
    """A network with about this delay."""
    return {"delay": Uniform(900 * one_way_ms, 1100 * one_way_ms), "fifo": True}


CASES: dict[str, dict[str, Any]] = {
    "lone, 0.1 ms": {**LONE, **line(0.1), "options": ON_TCP},
    "lone, 10 ms": {**LONE, **line(10), "options": ON_TCP},
    "lone, 150 ms": {**LONE, **line(150), "options": ON_TCP},
    "lone, 150 ms, simulated": {**LONE, **line(150), "options": PLAIN},
    "lone, 150 ms, eight members": {**LONE, **line(150), "options": ON_TCP, "members": 8},
    "lone, 50 ms, lossy": {**LONE, **line(50), **LOSSY, "options": ON_UDP},
    "stream, 0.1 ms": {**STREAM, **line(0.1), "options": ON_TCP},
    "stream, 10 ms": {**STREAM, **line(10), "options": ON_TCP},
    "stream, 10 ms, slow": {**STREAM, **line(10), **SLOW, "options": ON_TCP},
    "stream, 150 ms": {**STREAM, **line(150), "options": ON_TCP},
    "stream, 150 ms, lossy": {**STREAM, **line(150), **LOSSY, "options": ON_UDP},
    "flood, 10 ms": {**FLOOD, **line(10), "options": ON_TCP},
    "flood, 150 ms, slow": {**FLOOD, **line(150), **SLOW, "options": PLAIN},
}


def config_of(protocol: str, case: str, **changed: Any) -> SimulationConfig:
    plain = {"protocol": MACHINES[protocol], "members": MEMBERS, "consume_ms": 1.0, "seed": 1}
    return SimulationConfig(**{**plain, **CASES[case], **changed})


@cache
def run(protocol: str, case: str) -> Outcome:
    return simulate(config_of(protocol, case))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", MACHINES)
def test_a_message_costs_no_more_packets_than_declared(protocol: str, case: str) -> None:
    outcome = run(protocol, case)
    assert outcome.statistics.consumptions > 0
    assert outcome.quiescent, outcome.ended
    said = packets.complaint(config_of(protocol, case), outcome.statistics)
    assert not said, f"{protocol}, {case}: {said}"


@pytest.mark.parametrize("case", ["stream, 10 ms", "stream, 150 ms"])
@pytest.mark.parametrize("protocol", MACHINES)
def test_a_message_costs_no_more_packets_as_time_goes_on(protocol: str, case: str) -> None:
    early = run(protocol, case).statistics
    late = simulate(config_of(protocol, case, messages=3 * STREAM["messages"])).statistics
    later = (late.packets - early.packets) / (late.multicasts - early.multicasts)
    assert later <= 1.1 * early.packets_per_message


@pytest.mark.parametrize("protocol", MACHINES)
def test_a_stream_costs_no_more_packets_than_lone_messages(protocol: str) -> None:
    stream, lone = (
        run(protocol, "stream, 10 ms").statistics,
        run(protocol, "lone, 10 ms").statistics,
    )
    assert stream.packets_per_message <= lone.packets_per_message


@pytest.mark.parametrize(
    "protocol", ["sequencing", "sequencing_hybrid", "sequencer_pb", "javagroups"]
)
def test_many_members_that_are_all_slow_ask_for_nothing_twice(protocol: str) -> None:
    members = 32
    slow = tuple((p, 40.0) for p in range(members))
    config = config_of(
        protocol, "stream, 0.1 ms", members=members, messages=64, slow_consumers=slow
    )
    statistics = simulate(config).statistics
    assert statistics.consumptions > 0
    assert not packets.complaint(config, statistics)


@pytest.mark.parametrize(
    ("formula", "value"),
    [("n-1", 3), ("2n", 8), ("n(n-1)", 12), ("3(n-1)", 9), ("(n-1)(n+1)", 15), ("1+n, NULLs", 5)],
)
def test_a_formula_has_a_value(formula: str, value: int) -> None:
    assert packets.evaluate(formula, 4) == value


def test_what_is_no_formula_is_refused() -> None:
    with pytest.raises(ValueError, match="is no part of a formula"):
        packets.evaluate("n-k", 4)
