"""Why is it held back? What the two sequencer protocols answer."""

from __future__ import annotations

import pytest

from machines import Bench, G, bench, change
from ordercast.core.waiting import Awaited, Holdings, Waiting
from ordercast.machinery.sequenced import SequencedProtocol
from ordercast.protocols.sequencer_bb import Order, SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB

both = pytest.mark.parametrize("protocol", [SequencerPB, SequencerBB])


def machine(b: Bench, p: int) -> SequencedProtocol:
    found = b.machines[p]
    assert isinstance(found, SequencedProtocol)
    return found


def held(b: Bench, p: int) -> list[Waiting]:
    return machine(b, p).held_back()


def number(N: int) -> Awaited:
    return Awaited("number", G, 1, N)


def order(n: int) -> Awaited:
    return Awaited("order", G, 1, n)


@both
def test_an_own_frame_waits_for_the_sequencer_to_number_it(protocol) -> None:
    b = bench(protocol, 1, 2, 3)
    b.say(2, "a")
    assert held(b, 2) == [Waiting(G, 2, 1, (order(1),), b"a")]
    b.carry()
    assert held(b, 2) == []


def test_a_frame_behind_a_gap_waits_for_every_number_that_is_missing() -> None:
    b = bench(SequencerPB, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 3, text="c")
    assert held(b, 3) == [Waiting(G, 1, 3, (number(1), number(2)), b"c")]
    b.bring(1, 3, text="a")
    assert held(b, 3) == [Waiting(G, 1, 3, (number(2),), b"c")]
    b.bring(1, 3, text="b")
    assert held(b, 3) == []


def test_an_own_frame_behind_a_gap_waits_for_the_gap_and_not_for_a_number() -> None:
    b = bench(SequencerPB, 1, 2, 3)
    b.say(1, "a")
    b.say(2, "b")
    b.bring(2, 1)
    b.bring(1, 2, text="b")
    assert held(b, 2) == [Waiting(G, 2, 1, (number(1),), b"b")]


@both
def test_at_the_sequencer_a_frame_waits_for_its_predecessors(protocol) -> None:
    b = bench(protocol, 1, 2, 3)
    b.say(2, "a", "b", "c", "d")
    b.bring(2, 1, text="b")
    b.bring(2, 1, text="d")
    first, third = Awaited("frame", G, 2, 1), Awaited("frame", G, 2, 3)
    assert held(b, 1) == [
        Waiting(G, 2, 2, (first,), b"b"),
        Waiting(G, 2, 4, (first, third), b"d"),
    ]


@both
def test_the_sequencer_counts_what_is_ahead_and_what_is_in_its_history(protocol) -> None:
    b = bench(protocol, 1, 2, 3)
    b.say(2, "a", "b", "c", "d")
    b.bring(2, 1, text="a")
    b.bring(2, 1, text="c")
    b.bring(2, 1, text="d")
    assert machine(b, 1).holdings(G) == Holdings(held=2, kept=1, history=1)
    b.settle()
    assert machine(b, 1).holdings(G) == machine(b, 3).holdings(G) == Holdings(0, 0)


def test_a_member_counts_what_is_behind_a_gap_and_what_may_lack_elsewhere() -> None:
    b = bench(SequencerPB, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 3, text="a")
    b.bring(1, 3, text="c")
    assert machine(b, 3).holdings(G) == Holdings(held=1, kept=1)


def test_bb_a_member_counts_bodies_without_an_order() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "a")
    b.bring(2, 3)
    assert machine(b, 3).holdings(G) == Holdings(held=1, kept=0)


def test_bb_a_body_waits_for_its_order() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "a")
    b.bring(2, 3)
    assert held(b, 3) == [Waiting(G, 2, 1, (order(1),), b"a")]


def test_bb_an_order_waits_for_its_body() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "a")
    b.bring(2, 1)
    b.bring(1, 3, header=Order)
    assert held(b, 3) == [Waiting(G, 2, 1, (Awaited("body", G, 2, 1),), b"")]
    b.bring(2, 3)
    assert held(b, 3) == []


def test_bb_what_comes_after_an_order_without_its_body_waits_for_that_body() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "a", "b")
    b.bring(2, 1)
    b.bring(1, 3, header=Order)
    b.bring(2, 3, text="b")
    missing = Awaited("body", G, 2, 1)
    assert sorted(held(b, 3)) == [
        Waiting(G, 2, 1, (missing,), b""),
        Waiting(G, 2, 2, (missing,), b"b"),
    ]


def test_bb_a_body_of_one_who_is_gone_waits_for_nothing() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "a")
    b.bring(2, 3)
    b.lose(2, 1)
    b.crash(2)
    change(b, SequencerBB, dead=(2,))
    assert held(b, 3) == []
