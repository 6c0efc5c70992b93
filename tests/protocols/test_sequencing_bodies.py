"""The sequencing service when senders bring their bodies to the members themselves."""

from __future__ import annotations

import pytest

from ordercast.core.events import Receive
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import Accept, Fetch, Number, Spread
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import S, Served, T

MEMBERS = (1, 2, 3)
APART = Options(resilience=0, bodies_apart=True)
every = pytest.mark.parametrize(
    "protocol", [Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal]
)


def one_group(protocol: type[SequencingService] = Sequencing, leader: int = S) -> Served:
    return Served(protocol, {1: (MEMBERS, leader)}, others=(T, 4), options=APART)


@every
def test_the_body_leaves_its_sender_once_for_all_and_the_sequencer_sends_numbers(
    protocol: type[SequencingService],
) -> None:
    b = one_group(protocol)
    b.tell(1, 1, "a")
    assert [(p.dst, p.receive.payload) for p in b.find(1)] == [(S, b"a"), (2, b"a"), (3, b"a")]
    b.bring(1)
    assert [(type(p.header), p.receive.payload) for p in b.find(S)] == [(Number, b"")] * 3
    b.settle()
    assert [b.texts(p) for p in MEMBERS] == [["a"]] * 3
    assert b.faults == []


@pytest.mark.parametrize("leader", [S, 2])
def test_a_number_waits_for_its_body_and_a_body_for_its_number(leader: int) -> None:
    b = one_group(leader=leader)
    b.tell(1, 1, "a", "b")
    b.bring(1, leader)
    b.bring(leader, 3)
    assert b.texts(3) == []
    b.bring(1, 3)
    assert b.texts(3) == ["a", "b"]
    b.settle()
    assert [b.texts(p) for p in MEMBERS] == [["a", "b"]] * 3


def test_a_body_that_does_not_come_is_fetched_from_the_sequencer() -> None:
    b = one_group()
    b.tell(1, 1, "a")
    b.lose(1, 3)
    b.bring(1)
    b.bring(S)
    assert (b.texts(2), b.texts(3)) == (["a"], [])
    b.ring(3, "gap", 1)
    b.bring(3, S, Fetch)
    assert [p.receive.payload for p in b.find(S, 3, Accept)] == [b"a"]
    b.settle()
    assert b.texts(3) == ["a"]
    seat = b.services[3].member.seats[1]
    assert (seat.bodies, seat.bodyless) == ({}, {})


def test_a_request_that_is_lost_everywhere_is_repeated() -> None:
    b = one_group()
    b.tell(1, 1, "a")
    b.flight.clear()
    b.ring(1, "retry", 1)
    b.settle()
    assert [b.texts(p) for p in MEMBERS] == [["a"]] * 3


def test_who_joins_meanwhile_gets_the_body_all_the_same() -> None:
    b = one_group()
    b.tell(1, 1, "a")
    b.change({1: ((*MEMBERS, 4), S)})
    b.settle()
    assert [b.texts(p) for p in (*MEMBERS, 4)] == [["a"]] * 4


@every
def test_a_group_moves_while_bodies_and_numbers_are_under_way(
    protocol: type[SequencingService],
) -> None:
    b = one_group(protocol)
    for p in MEMBERS:
        b.tell(p, 1, f"a{p}", f"b{p}")
    b.bring(1, S)
    b.change({1: (MEMBERS, 2)})
    for p in MEMBERS:
        b.tell(p, 1, f"c{p}")
    b.settle()
    assert sorted(b.texts(1)) == sorted(f"{text}{p}" for text in "abc" for p in MEMBERS)
    assert b.texts(1) == b.texts(2) == b.texts(3)
    assert b.faults == []


def test_a_request_that_overtakes_the_change_that_names_its_sequencer_waits_there() -> None:
    b = one_group()
    coming = b.end({1: (MEMBERS, 2)})
    b.prepare(coming)
    b.install(coming, 1, 3, S)
    b.tell(1, 1, "a")
    b.bring(1, 2)
    assert not b.numbers()
    b.install(coming, 2)
    b.settle()
    assert [b.texts(p) for p in MEMBERS] == [["a"]] * 3


def test_a_guests_body_goes_through_the_sequencer() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, guests={1: (5,)}, options=APART)
    b.tell(5, 1, "a")
    assert [p.dst for p in b.find(5)] == [S]
    b.settle()
    assert [b.texts(p) for p in MEMBERS] == [["a"]] * 3


def test_requests_far_ahead_leave_nothing_behind() -> None:
    b = one_group()
    b.step(S, Receive(1, 1, 1, Spread(S, 2**40, 1), b"a"))
    assert len(b.faults) == 1
    assert not b.services[S].sequencer.waiting.get(1)
