"""One seed replays everything, byte for byte, in every interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ordercast.simulation import SimulationConfig, all_senders, simulate

SCRIPT = """
import hashlib, sys
import msgspec
from ordercast.simulation import *

config = SimulationConfig(
    protocol=sys.argv[1],
    members=9,
    groups=overlapping_groups(9, 3, 5),
    messages=60,
    workload=conversations(),
    loss=0.1,
    duplicate=0.1,
    delay=LogNormal(800, 0.7),
    faults=(Crash(4, 20, 0.5), Partition(((0, 1, 2),), 30), Heal(60), FlushTo(2, (3, 5, 6, 7), 70)),
    trace="protocol",
    consume_ms=float(sys.argv[3]) or None,
    slow_consumers=((5, 30.0),) if float(sys.argv[3]) else (),
    seed=int(sys.argv[2]),
)
outcome = simulate(config)
digest = hashlib.sha256()
for event in outcome.events():
    digest.update(msgspec.json.encode(event))
print(digest.hexdigest(), outcome.statistics.events, outcome.ended, list({"a", "b", "c", "d"}))
"""


def replay(protocol: str, seed: int, hash_seed: int, consume_ms: float) -> tuple[str, str]:
    """(what the run came to, the order in which that interpreter iterates over a set)."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, protocol, str(seed), str(consume_ms)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    outcome, order = done.stdout.split("[")
    return outcome, order


@pytest.mark.parametrize("consume_ms", [0, 2.5])
@pytest.mark.parametrize("protocol", ["vector", "reliable", "nak", "sequencer_pb", "sequencer_bb"])
def test_two_interpreters_with_different_hash_seeds_give_the_same_trace(
    protocol: str, consume_ms: float
) -> None:
    (one, one_order), (other, other_order) = (replay(protocol, 5, h, consume_ms) for h in (1, 4242))
    assert one_order != other_order, "the two interpreters do not differ: the test shows nothing"
    assert one == other
    assert int(one.split()[1]) > 1000


def test_another_seed_gives_another_run() -> None:
    def trace(seed: int) -> list[object]:
        config = SimulationConfig(protocol="sequencer_pb", messages=20, seed=seed)
        return [(e.process, e.kind, e.message, e.time) for e in simulate(config).events()]

    assert trace(1) == trace(1)
    assert trace(1) != trace(2)


def test_another_network_does_not_change_what_is_planned() -> None:
    def sent(**network: float) -> list[tuple[str | None, int | None]]:
        config = SimulationConfig(
            protocol="reliable", messages=20, workload=all_senders(), **network
        )
        return [(e.message, e.time) for e in simulate(config).events() if e.kind == "send"]

    assert sent() == sent(loss=0.3, duplicate=0.2)
