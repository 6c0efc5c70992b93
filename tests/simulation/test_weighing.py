"""Header bytes in the trace of a simulated run, beside what the protocols declare."""

from __future__ import annotations

import re
from statistics import mean
from typing import Any

import pytest

from machines import FLUSHED
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import (
    Crash,
    FlushTo,
    GroupConfig,
    Outcome,
    SimulationConfig,
    Workload,
    simulate,
)
from ordercast.trace.schema import Event
from ordercast.wire.frame import FIXED_SIZE

LISTS = {"vector": 2, "nak": 2, "cbcast": 2, "global_fifo": 2, "fast": 2}  # a byte each; else 1
CRASH = (Crash(2, 20, 0.5), FlushTo(1, (0, 1, 3), 70))
FORMULA = re.compile(r"(?:(n)\+)?(\d+)(?:\+(\d+)c)?")  # n+1, 3, 2+3c


def run(protocol: str, members: int, **settings: Any) -> Outcome:
    """Few enough messages that every number in a header takes one byte."""
    config: dict[str, Any] = {"messages": 60, "workload": Workload(reply=0), "fifo": True}
    config |= {"trace": "protocol", "seed": 3, **settings}
    return simulate(SimulationConfig(protocol=protocol, members=members, **config))


def deliveries(outcome: Outcome) -> list[Event]:
    """Of messages of others: nobody's own message travels to it."""
    return [e for e in outcome.events() if e.kind == "deliver" and e.sender != e.process]


def header_bytes(outcome: Outcome) -> list[int]:
    return [event.overhead for event in deliveries(outcome) if event.overhead is not None]


@pytest.mark.parametrize("members", [2, 6, 12])
@pytest.mark.parametrize(
    "protocol",
    ["basic", "reliable", "fifo", "slow", "nak", "vector", "global_fifo", "cbcast", "fast"],
)
def test_the_bytes_of_a_header_are_the_integers_that_the_protocol_declares(
    protocol: str, members: int
) -> None:
    formula = FORMULA.fullmatch(PROTOCOLS[protocol].declaration.header)
    assert formula is not None
    fixed = (members if formula[1] else 0) + int(formula[2])
    per_entry = int(formula[3] or 0)
    sizes = set(header_bytes(run(protocol, members)))
    integers = {size - FIXED_SIZE - LISTS.get(protocol, 1) for size in sizes}
    assert integers and integers <= {fixed + per_entry * c for c in range(members + 1)}


@pytest.mark.parametrize("protocol", ["vector", "cbcast", "fast"])
def test_what_names_members_costs_more_bytes_in_a_larger_group(protocol: str) -> None:
    small, large = (mean(header_bytes(run(protocol, members))) for members in (2, 6))
    assert small < large


def test_a_vector_costs_a_byte_for_each_member() -> None:
    means = [mean(header_bytes(run("vector", members))) for members in (3, 6, 12)]
    assert [size - means[0] for size in means] == [0, 3, 9]


def test_header_bytes_of_slow_do_not_depend_on_the_members() -> None:
    assert set(header_bytes(run("slow", 3))) == set(header_bytes(run("slow", 12)))


@pytest.mark.parametrize("protocol", FLUSHED)
def test_every_delivery_of_somebody_elses_message_has_header_bytes(protocol: str) -> None:
    group = GroupConfig(members=(0, 1, 2, 3))
    settings = {"groups": (group,), "loss": 0.1, "fifo": False}
    outcome = run(protocol, 4, **settings)
    assert all(e.overhead is not None and e.overhead > FIXED_SIZE for e in deliveries(outcome))
    own = [e for e in outcome.events() if e.kind == "deliver" and e.sender == e.process]
    assert own and all(event.overhead is None for event in own)


@pytest.mark.parametrize("protocol", ["sequencer_bb", "slow", "agreed"])
def test_a_row_is_written_for_every_packet_that_reaches_a_living_process(protocol: str) -> None:
    group = GroupConfig(members=(0, 1, 2, 3))
    settings = {"groups": (group,), "loss": 0.1, "duplicate": 0.1, "fifo": False}
    outcome = run(protocol, 4, faults=CRASH, **settings)
    told = outcome.statistics
    assert told.lost and told.duplicates and told.missed
    received = [event for event in outcome.events() if event.kind == "receive"]
    assert len(received) == told.packets - told.lost - told.cut + told.duplicates - told.missed
    assert all(event.overhead is not None for event in received)


def test_without_the_protocol_level_nothing_is_weighed() -> None:
    outcome = run("vector", 3, trace="application")
    assert deliveries(outcome) and not header_bytes(outcome)


def test_weighing_changes_nothing_else() -> None:
    plain, weighed = run("cbcast", 4, trace="application"), run("cbcast", 4)
    kinds = {"send", "deliver", "view"}

    def course(outcome: Outcome) -> list[tuple[Any, ...]]:
        events = (event for event in outcome.events() if event.kind in kinds)
        return [(e.process, e.kind, e.message, e.time, e.seq) for e in events]

    assert course(plain) == course(weighed)
    assert plain.statistics == weighed.statistics
