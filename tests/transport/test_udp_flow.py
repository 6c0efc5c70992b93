"""How much may be under way to a peer, and what happens when it says nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import PeerError
from ordercast.transport.flow import (
    DATAGRAM_COST,
    LEAST_UNDER_WAY,
    REPORT_BYTES,
    Flow,
    check_seen,
)

LIMIT = 4 * LEAST_UNDER_WAY
SIZE = 1400
COST = SIZE + DATAGRAM_COST


def fill(flow: Flow, first: int = 1, now: float = 0.0) -> int:
    number = first - 1
    while not flow.is_full:
        number += 1
        flow.sent(number, SIZE, now)
    return number


def test_no_more_is_sent_than_the_receiver_can_keep():
    flow = Flow(LIMIT, 0.0)
    last = fill(flow)
    assert (last - 1) * COST < LIMIT <= last * COST


def test_what_was_seen_makes_room_also_for_what_was_lost_before_it():
    flow = Flow(LIMIT, 0.0)
    last = fill(flow)
    flow.seen(last - 1, 1.0)
    assert flow.used == COST and not flow.is_full


def test_an_older_receipt_that_comes_late_changes_nothing():
    flow = Flow(LIMIT, 0.0)
    fill(flow)
    flow.seen(5, 1.0)
    used = flow.used
    flow.seen(3, 2.0)
    assert flow.used == used and flow.since == 1.0


def test_a_peer_is_silent_only_while_others_wait_for_it():
    flow = Flow(LIMIT, 0.0)
    flow.sent(1, SIZE, 0.0)
    assert not flow.is_silent(100.0, 1.0)
    fill(flow, 2, now=100.0)
    assert not flow.is_silent(100.9, 1.0)
    assert flow.is_silent(101.0, 1.0)


def test_after_a_long_silence_half_as_much_is_tried_and_it_grows_again():
    flow = Flow(LIMIT, 0.0)
    last = fill(flow)
    flow.give_up(0.5, 1.0)
    assert flow.is_full
    flow.give_up(1.0, 1.0)
    assert flow.used == 0 and flow.room == LIMIT // 2 and flow.timeouts == 1
    for number in range(last + 1, last + 1000):
        flow.sent(number, SIZE, 2.0)
        flow.seen(number, 2.0)
    assert flow.room == LIMIT


def test_however_long_it_is_silent_something_is_tried():
    flow = Flow(LIMIT, 0.0)
    for now in range(1, 20):
        fill(flow, now=now - 1)
        flow.give_up(now, 1.0)
    assert flow.room == LEAST_UNDER_WAY


def test_the_limit_follows_the_number_of_peers_but_never_stops_a_report():
    flow = Flow(LIMIT, 0.0)
    flow.set_limit(2 * LEAST_UNDER_WAY)
    assert flow.room == 2 * LEAST_UNDER_WAY
    flow.set_limit(1)
    assert flow.room == LEAST_UNDER_WAY >= 2 * REPORT_BYTES


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=40))
def test_a_full_sender_is_always_owed_a_report(sizes):
    sender, receiver = Flow(1, 0.0), Flow(1, 0.0)
    number = 0
    while not sender.is_full:
        size = sizes[number % len(sizes)]
        number += 1
        sender.sent(number, size, 0.0)
        receiver.came(number, size)
        if receiver.owes_report:
            sender.seen(receiver.report(), 0.0)
        if number > 200:
            return
    raise AssertionError("the receiver read everything, and the sender stands still")


def test_what_was_never_sent_cannot_be_seen():
    check_seen(7, 7)
    with pytest.raises(PeerError, match="only 7 were sent"):
        check_seen(8, 7)
