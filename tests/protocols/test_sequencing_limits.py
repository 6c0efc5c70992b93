"""What a peer can make the sequencing service keep, or send: bounded in bytes, whatever it says."""

from __future__ import annotations

import pytest

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Receive, View
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import Accept, Fetch, Marks, Number, Request, Spread
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.sequencing.sequencer import FETCH_BYTES
from ordercast.protocols.sequencing.weights import FRAME_BYTES, PLACE_BYTES

ROOM = 100_000  # bytes
WIDE = tuple((g, 9, 1) for g in range(2, 102))  # a context of eras that have not begun
WEIGHT = FRAME_BYTES + PLACE_BYTES * len(WIDE)  # of a frame that names it, without a body
MOST = ROOM // WEIGHT


def machine(me, **options):
    """Of group 1 = {0, 1}, which 2 numbers. All 2 knows of the groups of a wide context is that
    another era of them is in force."""
    made = SequencingHybrid(me, Options(max_held_bytes=ROOM, **options))
    groups = [1] if me != 2 else [1, *(g for g, _, _ in WIDE)]
    begin(made, *(View(g, 1, (0, 1), 2) for g in groups))
    return made


def begin(made, *views):
    made.change(views[0].number, [NextEra(view, NumbersEnd(0, 2)) for view in views])
    made.out.clear()


def hear(made, src, header, m=b"", g=1, era=1):
    made.handle(Receive(src, g, era, header, m))
    made.invariants()


def delivered(made):
    return [item[4] for item in made.out.deliveries if not isinstance(item, View)]


def test_requests_that_wait_are_bounded_with_the_places_that_they_name():
    sequencer = machine(2)
    for n in range(1, 100):
        hear(sequencer, 0, Request(n, 1, WIDE))
    assert len(sequencer.sequencer.waiting[0]) == MOST
    assert [by for by, _ in sequencer.out.faults] == [0] * (99 - MOST)
    assert f"{ROOM} bytes" in sequencer.out.faults[0][1]
    hear(sequencer, 1, Request(1, 1), b"m")
    assert sequencer.sequencer.books[1].N == 1


def test_a_request_that_is_said_again_cannot_grow_beyond_the_room_of_its_sender():
    sequencer = machine(2)
    hear(sequencer, 0, Request(1, 1, WIDE))
    hear(sequencer, 0, Request(1, 1, WIDE), bytes(ROOM))
    assert [by for by, _ in sequencer.out.faults] == [0]
    assert sequencer.sequencer.waiting_bytes == {0: WEIGHT}


def test_a_request_that_waited_and_cannot_be_is_the_fault_of_its_sender_and_of_nobody_else():
    """It names the next era, and a number that no honest process would. The change that begins the
    era must not fail by it: its coordinator would be blamed, and the era be begun by half."""
    sequencer = machine(2)
    hear(sequencer, 0, Request(2**40, 1), era=2)
    hear(sequencer, 1, Request(1, 1), b"m", era=2)
    assert not sequencer.out.faults
    sequencer.change(2, [NextEra(View(1, 2, (0, 1), 2, era=2), NumbersEnd(0, 2))])
    assert [by for by, _ in sequencer.out.faults] == [0]
    assert sequencer.sequencer.books[1].last == {1: 1} and not sequencer.sequencer.waiting
    sequencer.invariants()


@pytest.mark.parametrize(
    "header",
    [Accept(1, 1, 1, 0, 0, WIDE), Number(1, 1, 1, 0, 0, (), WIDE)],
    ids=lambda h: str(h)[:6],
)
def test_packets_of_eras_to_come_are_bounded_with_the_places_that_they_name(header):
    member = machine(0)
    for _ in range(100):
        hear(member, 2, header, g=5)
    assert len(member.early) == MOST and len(member.out.faults) == 100 - MOST
    hear(member, 1, Marks(0, 0, 0), g=5)
    assert len(member.early) == MOST + 1 and len(member.out.faults) == 100 - MOST


@pytest.mark.parametrize("lossy", [False, True])
def test_numbers_ahead_of_a_gap_take_so_many_bytes_and_the_rest_is_fetched(lossy):
    """Nobody is at fault: on a network that loses, an honest sequencer may be far ahead."""
    member = machine(0, lossy=lossy)
    accepts = {N: Accept(N, 1, N, N, 0, WIDE) for N in range(1, 101)}
    for N in range(2, 101):
        hear(member, 2, accepts[N], b"%d" % N)
    seat = member.member.seats[1]
    assert len(seat.ahead) == MOST and seat.turned_away == 99 - MOST and not member.out.faults
    assert sum(
        kind == "drop" and "max_held_bytes" in why for kind, _, _, _, why in member.out.notes
    )
    for _ in range(100):
        if seat.got == 100:
            break
        member.out.clear()
        assert (1, "gap") in member.timers.running
        member.on_timer(1, "gap")
        for _, _, _, header, _ in list(member.out.transmits):
            if isinstance(header, Fetch):
                for N in range(header.first, header.last + 1):
                    hear(member, 2, accepts[N], b"%d" % N)
    assert seat.got == 100 and seat.ahead_bytes == 0


def test_a_member_that_sends_bodies_without_end_fills_its_room_and_ends_nothing():
    member = machine(0, bodies_apart=True)
    for n in range(1, 50):
        hear(member, 1, Spread(2, n, n), bytes(ROOM // 4))
    seat = member.member.seats[1]
    assert seat.bodies_bytes <= ROOM and len(seat.bodies) == 3 and seat.turned_away == 46
    hear(member, 2, Number(1, 1, 40, 1, 0))
    assert (1, 40) in seat.bodyless
    hear(member, 2, Accept(1, 1, 40, 1, 0), b"fetched")
    assert delivered(member) == [b"fetched"] and not seat.bodyless


def test_numbers_without_bodies_are_bounded_with_the_places_that_they_name():
    member = machine(0, bodies_apart=True, lossy=False)
    for N in range(1, 101):
        hear(member, 2, Number(N, 1, N, 0, 0, WIDE))
    seat = member.member.seats[1]
    assert len(seat.bodyless) == MOST and seat.ahead_bytes <= ROOM
    assert (1, "gap") in member.timers.running and seat.missing() == (1, 100)
    assert not member.out.faults


def test_one_word_brings_out_no_more_than_so_many_bytes_of_frames():
    sequencer = machine(2)
    size = FETCH_BYTES // 10
    for n in range(1, 41):
        hear(sequencer, 1, Request(n, n), bytes(size))
    asked = Fetch(1, 40)
    sequencer.out.clear()
    hear(sequencer, 0, asked)
    sent = sum(len(payload) for _, _, _, _, payload in sequencer.out.transmits)
    assert FETCH_BYTES - size <= sent < FETCH_BYTES + size


def test_of_a_request_that_waits_what_was_said_last_counts():
    """It named a group that has moved away since, and is repeated without."""
    sequencer = machine(2)
    hear(sequencer, 0, Request(1, 1, WIDE), b"m")
    hear(sequencer, 0, Request(2, 1, WIDE), b"n")
    assert sequencer.sequencer.books[1].N == 0
    hear(sequencer, 0, Request(1, 1), b"m")
    assert sequencer.sequencer.books[1].N == 1
    assert len(sequencer.sequencer.waiting[0]) == 1
    hear(sequencer, 0, Request(2, 1), b"n")
    assert sequencer.sequencer.books[1].N == 2
    assert not sequencer.sequencer.waiting and not sequencer.sequencer.waiting_bytes
