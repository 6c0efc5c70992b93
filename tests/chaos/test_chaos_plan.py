"""Plans: a seed stands for one plan, and all kinds of fault have their turn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from chaos.lane import ARRIVALS, Scene
from chaos.network import CUTS, RELAYED, SHAPES
from chaos.plan import COORDINATOR, JOINS, KINDS, SEQUENCER, Plan, plan_of
from chaos.promises import DEFAULTS, promises_of
from ordercast.protocols.registry import PROTOCOLS, choose

ROOT = Path(__file__).parent.parent.parent


def test_a_seed_gives_the_same_plan_under_every_hash_seed() -> None:
    program = "from chaos.plan import plan_of; print([plan_of(seed) for seed in range(50)])"
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1] and told[0]


def test_seeds_in_a_row_go_through_all_kinds_of_fault() -> None:
    first = [set(plan_of(seed).kinds) for seed in range(1000, 1000 + len(KINDS))]
    assert set().union(*first) == set(KINDS)


def test_a_plan_can_be_written_down_and_read_again() -> None:
    for seed in range(100):
        plan = plan_of(seed)
        assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan


def test_the_lane_knows_how_to_carry_out_every_kind_of_fault() -> None:
    for kind in KINDS:
        by_network = kind in (*CUTS, *SHAPES)
        assert by_network or kind == "arrival" or hasattr(Scene, f"_{kind.split()[0]}"), kind
    assert set(RELAYED) <= {*CUTS, *SHAPES}


def test_faults_are_about_members_roles_or_newcomers() -> None:
    for seed in range(300):
        plan = plan_of(seed)
        allowed = {*plan.names, *ARRIVALS, COORDINATOR, SEQUENCER}
        assert all(set(fault.who) <= allowed for fault in plan.faults), plan
        assert set(plan.groups[0].members) <= set(plan.names)


def test_the_judge_knows_what_every_way_to_join_promises() -> None:
    """In words of its own; here they are compared with what the protocols declare."""
    for join in JOINS:
        promised = promises_of(join)
        declared = set(PROTOCOLS[promised.protocol].declaration.promises)
        assert promised.fifo == ("fifo.group" in declared), join
        assert promised.causal == ("causal.group" in declared), join
        assert promised.total == ("total.group" in declared), join
        assert promised.causal_across == ("causal.global" in declared), join
        assert promised.total_across == ("total.pairwise" in declared), join


def test_the_judge_knows_which_protocol_an_order_gets() -> None:
    for order, protocol in DEFAULTS.items():
        assert choose(order, None) is PROTOCOLS[protocol]
