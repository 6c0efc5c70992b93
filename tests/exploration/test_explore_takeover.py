"""A crash at any moment of a hand-over, and the race of two joins: everything that can happen.

What is tried here in a few seconds is the smallest part; `python -m bench.takeovers` tries all.
"""

from __future__ import annotations

import pytest

from faulty_machines.sequencing import (
    HandsOverNoRequests,
    HybridHandsOverNoBodies,
    KeepsNoCopies,
    SpeaksWhileItHandsOver,
)
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.orders import Sequencing, SequencingGlobal, SequencingHybrid
from ordercast.protocols.sequencing.service import SequencingService
from placings.catalogue import NODES, ORDERS, one_group, race, spoken_of
from placings.scene import Fate, Group, Scene, moves, says
from placings.search import Found, explore

FITS = 20_000  # states
SPEAKS = (says(1, 1, "m1"),)


def searched(scene: Scene) -> Found:
    """All of it; nothing is wrong, and nothing had to wait for a timer."""
    found = explore(scene, limit=FITS)
    assert found.complete, "\n".join((found.summary, found.complaint, *found.schedule))
    assert not found.rescued
    print(found.summary)
    return found


def in_two_groups(protocol: type[SequencingService]) -> Scene:
    """2 numbers two groups and speaks in both; one of them is handed over, and 2 dies."""
    groups = {g: Group((2, 1), 2) for g in (1, 2)}
    doings = (says(2, 1, "m1"), says(2, 2, "m2"), moves(1, 1, 3))
    return Scene(protocol, NODES, groups, doings, struck=2)


def in_a_row(options: Options) -> Scene:
    """1 speaks in two groups that 2 numbers, and 2 dies."""
    groups = {g: Group((1, 3), 2) for g in (1, 2)}
    doings = (says(1, 1, "m1"), says(1, 2, "m2"))
    return Scene(SequencingHybrid, NODES, groups, doings, struck=2, options=options)


# -- a crash during a hand-over -------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ORDERS)
def test_whenever_the_source_crashes_the_survivors_go_on(protocol: type[SequencingService]) -> None:
    assert searched(one_group(protocol, SPEAKS, struck=2)).interleavings > 50_000


@pytest.mark.parametrize(
    ("struck", "fate"), [(1, "crash"), (3, "crash"), (1, "slow"), (2, "slow"), (3, "slow")]
)
def test_whoever_crashes_or_is_taken_for_dead_the_others_go_on(
    struck: ProcessId, fate: Fate
) -> None:
    assert searched(one_group(Sequencing, SPEAKS, struck, fate)).outcomes > 5


def test_no_crash_of_the_source_leaves_a_gap_in_a_causal_order() -> None:
    searched(in_two_groups(SequencingHybrid))


def test_no_crash_of_the_destination_leaves_a_gap_either() -> None:
    searched(spoken_of(SequencingHybrid, struck=3))


def test_no_crash_of_a_sequencer_turns_what_a_sender_said_round() -> None:
    searched(in_a_row(Options()))


def test_packets_of_an_era_that_has_ended_need_not_be_tried_at_every_moment() -> None:
    scene = one_group(Sequencing, (), struck=2)
    pruned, whole = explore(scene), explore(scene, prune=False)
    assert pruned.states < whole.states
    assert (pruned.outcomes, pruned.complete) == (whole.outcomes, whole.complete)


# -- the race of two joins ------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ORDERS)
def test_whoever_is_first_both_are_let_in(protocol: type[SequencingService]) -> None:
    assert searched(race(protocol)).interleavings > 900


def test_whoever_is_first_messages_meanwhile_come_in_one_order() -> None:
    searched(race(SequencingGlobal, (says(2, 1, "m1"),)))


def test_a_sequencer_that_dies_while_it_lets_one_in_keeps_nobody_out() -> None:
    searched(race(SequencingHybrid, struck=2))


# -- it can fail ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "complaint"),
    [
        (in_two_groups(HybridHandsOverNoBodies), "fifo.global: p1 delivered m2 without m1"),
        (in_two_groups(SpeaksWhileItHandsOver), "fifo.global: p1 delivered m2 without m1"),
        (spoken_of(KeepsNoCopies, struck=3), "fifo.global: p2 delivered m2 without m1"),
        (in_a_row(Options(resilience=0)), "fifo.global: p1 delivered m2 before m1"),
        (one_group(HandsOverNoRequests, SPEAKS, None), "validity: p1 sent last of 1 in 1"),
    ],
    ids=("bodies stay behind", "it speaks at once", "no copies", "resilience 0", "no requests"),
)
def test_a_machine_that_is_wrong_is_found_out(scene: Scene, complaint: str) -> None:
    found = explore(scene, limit=FITS)
    assert found.complaint.startswith(complaint)
    assert found.schedule
