"""A report that names what its origin, which reports too, never sent."""

from __future__ import annotations

import pytest

from machines import G, change, stacks
from ordercast.core.changing import Ending, FrameId, FramesHeld
from ordercast.core.events import Multicast
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.uniting import unite
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import PROTOCOLS

NUMBERED = (
    "sequencer_pb",
    "sequencer_bb",
    "javagroups",
)  # the sequencer may have what origins lack
LAYERED = ("two_layered",)
ANSWERED = [
    name
    for name, page in PROTOCOLS.items()
    if page.together is None and name not in (*NUMBERED, *LAYERED)
]


def test_where_no_sequencer_and_no_gateway_speaks_for_others_origins_answer() -> None:
    assert {name for name, page in PROTOCOLS.items() if page.origins_answer} == set(ANSWERED)


def held(*frames: FrameId) -> FramesHeld:
    return FramesHeld(1, frames, True)


def said(name: str) -> FrameId:
    """Frame 1 of process 1, as one that has it reports it."""
    b = stacks(PROTOCOLS[name], 1, 2, 3)
    b.view(1, 2, 3)
    b.step(1, Multicast(G, b"m"))
    [kept] = page_of(b.machines[1]).unstable(G)
    return FrameId(kept.origin, kept.n, page_of(b.machines[1]).stamped(kept).stamp)


def page_of(machine: object) -> OrderingProtocol:
    assert isinstance(machine, GivenGroups)
    return machine.groups.machines[G]


@pytest.mark.parametrize("name", ANSWERED)
def test_what_a_living_origin_does_not_report_is_left_out_and_its_body_is_told_by_it(
    name: str,
) -> None:
    true = said(name)
    forged = FrameId(1, 2, true.stamp)
    for order in ((1, 2, 3), (3, 2, 1)):
        reports = {1: held(true), 2: held(true), 3: held(true, forged)}
        ending = Ending(1, {p: reports[p] for p in order}, frozenset())
        [(_, end)] = unite(PROTOCOLS[name], {G: ending})
        assert [(f.origin, f.n, f.holder) for f in end.frames] == [(1, 1, 1)]
        del reports[1]
        [(_, end)] = unite(PROTOCOLS[name], {G: Ending(1, reports, frozenset({1}))})
        assert [f.n for f in end.frames] == [1, 2], "a dead origin denies nothing"


@pytest.mark.parametrize("name", ["vector", "cbcast", "global_fifo", "fast"])
def test_the_stamp_of_a_living_origin_counts(name: str) -> None:
    true = said(name)
    false = FrameId(1, 1, tuple(x + 1 for x in true.stamp) or (7,))
    for order in ((1, 3), (3, 1)):
        reports = {1: held(true), 3: held(false)}
        ending = Ending(1, {p: reports[p] for p in order}, frozenset())
        [(_, end)] = unite(PROTOCOLS[name], {G: ending})
        assert [(f.stamp, f.holder) for f in end.frames] == [(true.stamp, 1)]


@pytest.mark.parametrize("name", ANSWERED)
def test_what_all_have_delivered_is_left_out_and_nothing_is_lost(name: str) -> None:
    b = stacks(PROTOCOLS[name], 1, 2, 3)
    b.view(1, 2, 3)
    b.say(1, "a", "b")
    b.settle()
    b.say(1, "c")
    b.bring(1, 2, text="c")
    b.flight.clear()
    change(b, PROTOCOLS[name])
    assert [b.texts(p) for p in (1, 2, 3)] == [["a", "b", "c"]] * 3
