"""Datagrams as bytes: what is written is read, and nothing else is."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.transport.datagram import (
    FRAGMENT,
    FRAMES,
    HEADER,
    MAX_AUDIENCE_BYTES,
    MAX_DATAGRAM,
    PROBE,
    count_pieces,
    is_addressed,
    pack_audience,
    pack_datagram,
    pack_piece,
    pack_want,
    read_datagram,
    read_piece,
    read_seen,
    read_want,
)
from ordercast.transport.outgoing import Queue, Repairs
from ordercast.wire.frame import Splitter, pack

SESSION = b"12345678"

pids = st.integers(0, 2**32 - 1)


@given(st.integers(0, PROBE), pids, st.integers(0, 2**64 - 1), st.binary(max_size=99))
def test_a_datagram_comes_back_as_it_was(kind, sender, number, body):
    audience = pack_audience((3, 9))
    data = pack_datagram(kind, sender, SESSION, number, audience, body)
    assert read_datagram(data) == (kind, sender, SESSION, number, audience, body)


def test_a_datagram_of_version_1_has_these_bytes():
    audience = pack_audience((3, 9))
    data = pack_datagram(FRAMES, 5, SESSION, 258, audience, b"frames")
    assert data == (
        b"OCDG\x01\x00\x00\x05\x00\x00\x00\x0512345678\x00\x00\x00\x00\x00\x00\x01\x02"
        b"\x00\x00\x00\x03\x41frames"
    )
    assert pack_piece(bytes(range(30)), 7, 1, 12 + 20) == (
        b"\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x02" + bytes(range(20, 30))
    )
    assert pack_want(7, [1, 256]) == b"\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x01\x00"


@given(st.binary(max_size=80))
def test_random_bytes_are_refused(noise):
    with pytest.raises(FrameError):
        read_datagram(noise)


@pytest.mark.parametrize(
    ("place", "byte", "says"),
    [(0, 0, "begins with"), (4, 2, "of version 2"), (5, PROBE + 1, "kind"), (6, 9, "audience")],
)
def test_a_wrong_header_is_refused_and_named(place, byte, says):
    data = bytearray(pack_datagram(FRAMES, 1, SESSION, 1, b"", b"body"))
    data[place] = byte
    with pytest.raises(FrameError, match=says):
        read_datagram(bytes(data))


@given(st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=20), pids)
def test_an_audience_has_exactly_its_processes(to, other):
    audience = pack_audience(tuple(to))
    if audience is None:
        assert max(to) - min(to) >= 8 * MAX_AUDIENCE_BYTES
        return
    assert all(is_addressed(audience, p) for p in to)
    assert is_addressed(audience, other) == (other in to)
    assert not is_addressed(audience, -1)


def test_without_an_audience_everybody_is_meant_and_a_cut_one_means_nobody():
    assert is_addressed(b"", 7)
    assert not is_addressed(b"\x00\x00\x07", 7)


@given(st.binary(min_size=1, max_size=500), st.integers(13, 120))
def test_the_pieces_of_a_packet_make_the_packet(packet, room):
    count = count_pieces(packet, room)
    pieces = [pack_piece(packet, 5, place, room) for place in range(count)]
    assert all(len(piece) <= room for piece in pieces)
    read = [read_piece(piece) for piece in pieces]
    assert [(i, n, of) for i, n, of, _ in read] == [(5, place, count) for place in range(count)]
    assert b"".join(piece for *_, piece in read) == packet


@pytest.mark.parametrize(
    "body",
    [b"", bytes(12), pack_piece(b"x", 1, 0, 99)[:12], bytes(13), b"\0" * 7 + b"\1" + b"\0" * 9],
)
def test_a_piece_that_is_none_is_refused(body):
    with pytest.raises(FrameError):
        read_piece(body)


@given(st.integers(0, 99), st.lists(st.integers(0, 2**32 - 1)))
def test_a_request_for_pieces_comes_back_as_it_was(packet_id, places):
    assert read_want(pack_want(packet_id, places)) == (packet_id, places)


@pytest.mark.parametrize("body", [b"", b"123", b"12345"])
def test_a_request_or_a_receipt_of_an_odd_length_is_refused(body):
    with pytest.raises(FrameError):
        read_want(body)
    with pytest.raises(FrameError):
        read_seen(body)


def test_a_piece_that_claims_a_billion_others_takes_no_room():
    body = b"\0\0\0\1" + b"\0\0\0\0" + b"\xff\xff\xff\xff" + b"x"
    tracemalloc.start()
    read_piece(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


# -- the queue ------------------------------------------------------------------------------------


def bodies(queue: Queue) -> list[tuple[int, bytes]]:
    found = []
    while (head := queue.head()) is not None:
        found.append(head)
        queue.sent()
    return found


@given(st.lists(st.integers(0, 900), max_size=30), st.booleans())
def test_packets_leave_in_order_in_datagrams_as_full_as_can_be(sizes, several):
    to = (1, 2) if several else (1,)
    repairs = Repairs(10_000_000)
    queue = Queue(to, 512, repairs)
    packets = [pack(7, 0, 1, b"", bytes([size % 256]) * size) for size in sizes]
    for packet in packets:
        queue.put(packet, None)
    sent = bodies(queue)
    room = 512 - HEADER.size - len(queue.audience)
    assert all(len(body) <= room for _, body in sent)
    whole = [body if kind == FRAMES else read_piece(body)[3] for kind, body in sent]
    assert b"".join(whole) == b"".join(packets)
    for (kind, body), (following, after) in pairwise(sent):
        if kind == following == FRAMES:  # the first packet of the next one had no room
            [first, *_] = Splitter(10_000).feed(after)
            assert len(body) + 18 + len(first[4]) > room


def test_pieces_that_were_asked_for_leave_first_and_once():
    repairs = Repairs(10_000)
    queue = Queue((1,), 512, repairs)
    packet = bytes(range(256)) * 4
    queue.put(packet, None)
    first = bodies(queue)
    queue.put(b"later", None)
    queue.put_again(repairs.find(1, 1, [1, 0, 99]))
    queue.put_again(repairs.find(1, 1, [1]))
    assert bodies(queue) == [first[1], first[0], (FRAMES, b"later")]
    assert repairs.resent == 2


def test_a_process_that_was_not_meant_gets_no_pieces():
    repairs = Repairs(10_000)
    repairs.keep((1, 2), bytes(1000), 500)
    assert repairs.find(2, 1, [0]) == [(1, 0)]
    assert repairs.find(3, 1, [0]) == []
    assert repairs.find(2, 8, [0]) == []


def test_packets_kept_for_repairs_are_bounded_and_the_oldest_goes_first():
    repairs = Repairs(2_500)
    queue = Queue((1,), 512, repairs)
    for _ in range(3):
        repairs.keep((1,), bytes(1000), 500)
    queue.put_again([(1, 0), (2, 0)])
    assert repairs.used == 2000
    assert [read_piece(body)[0] for _, body in bodies(queue)] == [2]


def test_what_waits_can_be_told_until_it_leaves():
    queue = Queue((1,), 512, Repairs(1000))
    queue.put(b"packet", "content")
    queue.put(b"other", None)
    assert queue.waiting == {"content"} and queue.size == 11
    queue.head()
    assert not queue.waiting and not queue.size


def test_the_largest_datagram_is_what_udp_carries():
    assert MAX_DATAGRAM == 2**16 - 1 - 8 - 20
    assert pack_datagram(FRAGMENT, 1, SESSION, 1, b"", b"")[:4] == b"OCDG"
