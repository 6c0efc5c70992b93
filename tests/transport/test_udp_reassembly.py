"""Pieces come in any order, twice, or not at all; whatever a peer sends, memory is bounded."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.transport.reassembly import PIECE_COST, REMEMBERED, Reassembly

MAX_PACKET = 1_000
MAX_BYTES = 3_000


def reassembly() -> Reassembly:
    return Reassembly(MAX_PACKET, MAX_BYTES)


def cut(packet: bytes, size: int) -> list[bytes]:
    return [packet[start : start + size] for start in range(0, len(packet), size)]


@given(st.binary(min_size=2, max_size=60), st.integers(4, 20), st.randoms(use_true_random=False))
def test_pieces_in_any_order_and_twice_make_the_packet_once(packet: bytes, size: int, rng: Random):
    pieces = list(enumerate(cut(packet, size)))
    arriving = [*pieces, *pieces]
    rng.shuffle(arriving)
    box = reassembly()
    made = [box.add(9, place, len(pieces), piece, 0.0) for place, piece in arriving]
    assert [packet_made for packet_made in made if packet_made is not None] == [packet]
    assert box.used == 0 and box.pending == 0 and not box.incomplete


@given(
    st.lists(
        st.tuples(
            st.integers(0, 50),
            st.integers(0, 2**32 - 1),
            st.integers(1, 2**32 - 1),
            st.integers(1, 1200),
        ),
        max_size=80,
    )
)
def test_whatever_a_peer_sends_memory_stays_within_the_limit(pieces):
    box = reassembly()
    for packet_id, place, count, size in pieces:
        try:
            box.add(packet_id, min(place, count - 1), count, bytes(size), 0.0)
        except FrameError:
            continue
        assert box.used <= MAX_BYTES
        assert box.used == sum(packet.cost for packet in box.incomplete.values())
        assert all(packet.size <= MAX_PACKET for packet in box.incomplete.values())


def test_a_bomb_of_fragments_drives_out_only_the_oldest_of_its_own_peer():
    box = reassembly()
    for packet_id in range(10_000):
        box.add(packet_id, 0, 2, bytes(400), 0.0)
    assert box.used <= MAX_BYTES
    assert box.expired == 10_000 - len(box.incomplete)
    assert next(reversed(box.incomplete)) == 9_999


def test_tiny_pieces_cost_more_than_their_content():
    box = reassembly()
    for place in range(100):
        box.add(1, place, 1000, b"x", 0.0)
    assert len(box.incomplete) <= 1 and box.pending <= MAX_BYTES // (1 + PIECE_COST)


@pytest.mark.parametrize(("place", "count", "size"), [(0, 1, 1001), (0, 4, 400), (999, 1001, 1)])
def test_a_packet_that_must_become_too_large_is_refused_at_its_first_piece(place, count, size):
    box = reassembly()
    with pytest.raises(FrameError, match="bytes or more"):
        box.add(1, place, count, bytes(size), 0.0)
    assert not box.incomplete


def test_a_packet_that_grows_too_large_is_refused():
    box = reassembly()
    box.add(1, 1, 2, bytes(600), 0.0)
    with pytest.raises(FrameError, match="1200 bytes or more"):
        box.add(1, 0, 2, bytes(600), 0.0)


def test_a_packet_whose_count_changes_is_refused():
    box = reassembly()
    box.add(1, 0, 3, b"x", 0.0)
    with pytest.raises(FrameError, match="of 3 pieces, now of 4"):
        box.add(1, 1, 4, b"x", 0.0)


def test_what_is_missing_is_asked_for_with_growing_patience():
    box = reassembly()
    box.add(1, 1, 4, b"x", 0.0)
    assert box.missing(0.9, 1.0, 9) == []
    assert box.missing(1.0, 1.0, 9) == [(1, [0, 2, 3])]
    assert box.missing(2.9, 1.0, 9) == []
    assert box.missing(3.0, 1.0, 2) == [(1, [0, 2])]
    box.add(1, 0, 4, b"x", 4.0)
    assert box.missing(5.0, 1.0, 9) == [(1, [2, 3])]


def test_asking_for_pieces_of_a_huge_count_names_a_few():
    box = Reassembly(2**40, MAX_BYTES)
    box.add(1, 0, 2**32 - 1, b"x", 0.0)
    assert box.missing(1.0, 1.0, 3) == [(1, [1, 2, 3])]


def test_a_packet_of_which_nothing_comes_is_forgotten_and_counted():
    box = reassembly()
    box.add(1, 0, 2, b"x", 0.0)
    box.add(2, 0, 2, b"x", 0.5)
    box.expire(1.0, 1.0)
    assert list(box.incomplete) == [2] and box.expired == 1
    assert box.add(1, 1, 2, b"y", 1.0) is None


def test_a_repeat_of_a_packet_that_was_complete_begins_nothing():
    box = reassembly()
    for packet_id in range(REMEMBERED + 1):
        box.add(packet_id, 0, 2, b"x", 0.0)
        assert box.add(packet_id, 1, 2, b"y", 0.0) == b"xy"
    box.add(REMEMBERED, 0, 2, b"x", 0.0)
    assert not box.incomplete
    box.add(0, 0, 2, b"x", 0.0)  # too long ago to be known
    assert list(box.incomplete) == [0]


def test_a_piece_that_comes_again_counts_once():
    box = reassembly()
    for _ in range(3):
        assert box.add(1, 0, 3, bytes(100), 0.0) is None
    assert box.used == 100 + PIECE_COST
    assert box.incomplete[1].size == 100
    assert box.pending == 1


def test_a_piece_that_comes_again_is_no_sign_of_life():
    box = reassembly()
    box.add(1, 0, 2, b"x", 0.0)
    box.add(1, 0, 2, b"x", 0.9)
    box.expire(1.0, 1.0)
    assert not box.incomplete


def test_the_repeat_of_a_piece_does_not_make_its_packet_too_large():
    box = reassembly()
    assert box.add(1, 0, 2, bytes(600), 0.0) is None
    assert box.add(1, 0, 2, bytes(600), 0.0) is None
    assert box.add(1, 1, 2, bytes(400), 0.0) == bytes(1000)
