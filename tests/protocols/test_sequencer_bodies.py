"""What differs between the two sequencer protocols: the way of the body."""

from __future__ import annotations

from machines import Bench, G, bench
from ordercast.core.events import Receive, View
from ordercast.core.protocol import Options
from ordercast.machinery.sequencer_headers import Accept, Fetch
from ordercast.protocols.sequencer_bb import Body, Order, SequencerBB
from ordercast.protocols.sequencer_pb import Request, SequencerPB


def bb(b: Bench, p: int) -> SequencerBB:
    found = b.machines[p]
    assert isinstance(found, SequencerBB)
    return found


def test_pb_the_body_goes_to_the_sequencer_and_from_there_to_all_members() -> None:
    b = bench(SequencerPB, 1, 2, 3)
    b.say(2, "m")
    assert [(p.dst, p.header) for p in b.flight] == [(1, Request(1))]
    b.carry()
    b.say(2, "n")
    b.bring(2, 1)
    accepts = [(p.dst, p.header) for p in b.find(1, text="n")]
    assert accepts == [(2, Accept(2, 2, 2, 0)), (3, Accept(2, 2, 2, 0))]


def test_bb_b_multicast_m_and_its_identifier_to_the_group_and_the_sequencer() -> None:
    b = bench(SequencerBB, 2, 3, leader=1)
    b.say(2, "m")
    assert sorted((p.dst, p.header) for p in b.flight) == [(1, Body(1)), (3, Body(1))]


def test_bb_the_sequencer_multicasts_the_order_without_the_body() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "m")
    b.bring(2, 1)
    assert [(p.dst, p.header, p.receive.payload) for p in b.find(1)] == [
        (2, Order(1, 2, 1, 0), b""),
        (3, Order(1, 2, 1, 0), b""),
    ]


def test_bb_place_m_in_the_hold_back_queue_and_wait_for_its_order() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "m")
    b.bring(2, 3)
    assert b.texts(3) == []
    b.bring(2, 1)
    b.bring(1, 3)
    assert b.texts(3) == ["m"]


def test_bb_an_order_waits_for_its_body() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "m")
    b.bring(2, 1)
    b.bring(1, 3)
    assert b.texts(3) == []
    b.bring(2, 3)
    assert b.texts(3) == ["m"]
    assert (bb(b, 3).apart.bodies, bb(b, 3).apart.bodiless) == ({}, {})


def test_sequencer_bb_D7_an_order_whose_body_does_not_come_is_fetched_from_the_sequencer() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "m")
    b.lose(2, 3)
    b.carry()
    assert b.texts(3) == []
    b.ring(3, "gap")
    b.bring(3, 1, Fetch(1, 1))
    b.bring(1, 3, Accept)
    assert b.texts(3) == ["m"]
    assert bb(b, 3).apart.bodiless == {}


def test_bb_a_repeated_order_or_body_delivers_nothing_twice() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    b.say(2, "m")
    b.repeat(*b.find(2, 3), *b.find(2, 3))
    b.bring(2, 1)
    b.repeat(*b.find(1, 3), *b.find(1, 3))
    b.carry()
    assert b.texts(3) == ["m"]
    assert (bb(b, 3).apart.bodies, bb(b, 3).apart.bodiless) == ({}, {})


def test_bb_an_order_far_ahead_is_a_fault_and_harms_nothing() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    before = bb(b, 3).fingerprint()
    b.step(3, Receive(1, G, 1, Order(2**60, 2, 1, 0)))
    assert len(b.faults) == 1
    assert bb(b, 3).fingerprint() == before


def test_bb_bodies_that_came_after_their_fetched_entry_make_room() -> None:
    b = bench(SequencerBB, 1, 2, 3, options=Options(max_held=2))
    b.say(2, "a", "b")
    b.bring(2, 1)
    b.step(3, Receive(1, G, 1, Accept(2, 2, 2, 0), b"b"))  # waits for number 1
    b.bring(2, 3)
    b.bring(1, 3, header=Order(1, 2, 1, 0))
    assert b.texts(3) == ["a", "b"]
    assert list(bb(b, 3).apart.bodies) == [(2, 2)]
    b.say(1, "c", "d")
    b.bring(1, 3, header=Body)
    assert not b.faults
    assert list(bb(b, 3).apart.bodies) == [(1, 1), (1, 2)]


def test_bb_more_bodies_without_an_order_than_the_limit_are_the_senders_fault() -> None:
    b = bench(SequencerBB, 1, 2, 3, options=Options(max_held=2))
    b.say(2, "a", "b", "c")
    b.bring(2, 3)
    assert b.faults == [(3, 2, "more than 2 bodies without an order")]
    b.carry()
    b.settle()
    assert b.texts(3) == ["a", "b", "c"]  # the third was fetched


def test_bb_orders_without_bodies_are_bounded_though_they_have_one_number() -> None:
    b = bench(SequencerBB, 1, 2, 3, options=Options(max_held=2))
    for n in (1, 2, 3):
        b.step(3, Receive(1, G, 1, Order(1, 2, n, 0)))
    assert b.faults == [(3, 1, "more than 2 orders without a body")]
    assert len(bb(b, 3).apart.bodiless) == 2


def test_bb_a_guest_keeps_no_order() -> None:
    b = bench(SequencerBB, 1, 2)
    b.machines[9] = SequencerBB(9)
    b.machines[9].step([View(G, 1, (1, 2), 1, guests=(9,))])
    before = bb(b, 9).fingerprint()
    b.machines[9].step([Receive(1, G, 1, Order(1, 2, 1, 0))])
    assert bb(b, 9).fingerprint() == before
