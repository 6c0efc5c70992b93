"""Uniform delivery and the send rule, each with the runs that go wrong without it."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from machines import FLUSHED
from ordercast.core.protocol import Options
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import (
    Crash,
    FlushTo,
    SimulationConfig,
    Uniform,
    Workload,
    overlapping_groups,
    simulate,
)
from ordercast.trace.oracle import judge
from sweep.arenas import ARENAS
from sweep.trial import complaints

UNIFORM = ARENAS["uniform"]
# In a run of block_total everybody has spoken after a frame before it is delivered, so everybody
# has it; `uniform` has the rule built in; `agreed` delivers what all have proposed a number for.
SELDOM_BROKEN = ("block_total", "uniform", "agreed")
SEEDS = range(60)

P = 6  # processes 0 to 5 in three groups of four


@pytest.mark.parametrize("name", [name for name in FLUSHED if name not in SELDOM_BROKEN])
def test_without_a_gate_the_dead_have_delivered_what_the_living_never_do(name: str) -> None:
    protocol = PROTOCOLS[name]
    for seed in SEEDS:
        config = UNIFORM.config(protocol, seed)
        ungated = msgspec.structs.replace(config, options=Options())
        found = complaints(simulate(ungated), UNIFORM, UNIFORM.wanted(protocol))
        if found:
            assert {guarantee for guarantee, _ in found} <= set(UNIFORM.wanted(protocol))
            assert all(guarantee.endswith(".uniform") for guarantee, _ in found)
            assert not complaints(simulate(config), UNIFORM, UNIFORM.wanted(protocol))
            return
    raise AssertionError(f"none of {len(SEEDS)} runs of {name} needs the gate")


def struck_down(seed: int, resilience: int | None, crashes: int) -> SimulationConfig:
    """One dies just after it has said something; others at about the same time."""
    rng = Random(f"struck down {seed}")
    calm = SimulationConfig(
        protocol="cbcast",
        members=P,
        groups=overlapping_groups(P, 3, 4),
        messages=12,
        workload=Workload(senders=tuple(range(P)), reply=1.2, depth=4, burst=2, every_us=3000.0),
        delay=Uniform(300, rng.choice((1500, 4000))),
        seed=seed,
        options=Options(resilience=resilience),
    )
    said = [e for e in simulate(calm).events() if e.kind == "send" and (e.time or 0) > 6e6]
    last = rng.choice(said)
    assert last.time is not None and last.process is not None
    at_ms, speaker = last.time / 1e6 + rng.uniform(0.2, 3), int(last.process[1:-2])
    dead = (speaker, *rng.sample([q for q in range(P) if q != speaker], crashes - 1))
    faults = tuple(Crash(q, at_ms=at_ms + rng.uniform(0, 1), lose=0.8) for q in dead)
    living = tuple(q for q in calm.groups[0].members if q not in dead)
    flush = FlushTo(1, living, at_ms=at_ms + rng.uniform(6, 12))
    return msgspec.structs.replace(calm, faults=(*faults, flush))


def gaps(seed: int, resilience: int | None, crashes: int = 1) -> bool:
    outcome = simulate(struck_down(seed, resilience, crashes))
    assert outcome.quiescent and not outcome.first_faults
    return judge(outcome.events(), only=("causal.global",))["causal.global"].verdict == "violated"


def test_one_crash_leaves_a_causal_gap_only_where_the_send_rule_is_off() -> None:
    broken = [seed for seed in SEEDS if gaps(seed, 0)]
    assert broken
    for resilience in (None, 1):
        assert not [seed for seed in SEEDS if gaps(seed, resilience)]


def test_two_crashes_need_two_more_holders() -> None:
    assert any(gaps(seed, 0, crashes=2) for seed in SEEDS)
    assert not [seed for seed in SEEDS if gaps(seed, 2, crashes=2)]


def test_a_trace_at_protocol_level_says_how_many_copies_a_frame_lacks() -> None:
    config = SimulationConfig(
        protocol="cbcast", members=4, messages=3, trace="protocol", options=Options(uniform=True)
    )
    notes = [e.note or "" for e in simulate(config).events() if e.kind == "hold"]
    assert any("waits for copies from 2 more members of g1" in note for note in notes)
