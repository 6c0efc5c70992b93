"""Frames: packing, and splitting a byte stream whatever way it was cut."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.wire.frame import FIXED, FIXED_SIZE, WIRE_VERSION, Frame, Splitter, pack

LIMIT = 4096

u8 = st.integers(0, 2**8 - 1)
u32 = st.integers(0, 2**32 - 1)
frames = st.tuples(u32, u8, u32, st.binary(max_size=40), st.binary(max_size=200))


def split(data: bytes) -> list[Frame]:
    return Splitter(LIMIT).feed(data)


@given(frames)
def test_a_frame_comes_back_as_it_was_packed(frame):
    assert split(pack(*frame)) == [frame]


@given(st.lists(frames, max_size=8), st.data())
def test_any_cutting_of_the_stream_gives_the_same_frames(sent, data):
    stream = b"".join(pack(*frame) for frame in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    splitter = Splitter(LIMIT)
    got: list[Frame] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += splitter.feed(stream[start:end])
    assert got == sent
    assert splitter.pending == 0


def test_a_stream_fed_byte_by_byte_gives_the_same_frames():
    sent = [(7, 1, 2, b"head", b"p" * 30), (8, 2, 3, b"", b""), (9, 3, 4, b"h", b"")]
    splitter = Splitter(LIMIT)
    got = []
    for byte in b"".join(pack(*frame) for frame in sent):
        got += splitter.feed(bytes([byte]))
    assert got == sent


@given(frames)
def test_every_beginning_of_a_frame_is_incomplete_and_not_an_error(frame):
    stream = pack(*frame)
    for end in range(len(stream)):
        splitter = Splitter(LIMIT)
        assert splitter.feed(stream[:end]) == []
        assert splitter.pending == end
        assert splitter.feed(stream[end:]) == [frame]


@given(st.lists(frames, min_size=1, max_size=4), st.data())
def test_changed_bytes_give_other_frames_or_a_frame_error_and_nothing_else(sent, data):
    stream = bytearray(b"".join(pack(*frame) for frame in sent))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(u8)
    splitter = Splitter(LIMIT)
    try:
        splitter.feed(bytes(stream))
    except FrameError:
        return
    assert splitter.pending <= LIMIT


@given(st.binary(max_size=400))
def test_random_bytes_give_frames_or_a_frame_error_and_nothing_else(noise):
    try:
        split(noise)
    except FrameError:
        return


def test_a_frame_of_exactly_the_limit_is_taken_and_one_byte_more_is_refused():
    fits = b"x" * (LIMIT - FIXED_SIZE)
    assert split(pack(1, 0, 0, b"", fits)) == [(1, 0, 0, b"", fits)]
    with pytest.raises(FrameError, match=r"4097 bytes; the limit is 4096"):
        split(pack(1, 0, 0, b"", fits + b"x"))


def test_a_claimed_length_of_4_gib_is_refused_before_room_is_made_for_it():
    claim = FIXED.pack(2**32 - 1, WIRE_VERSION, 0, 1, 1, 0)
    tracemalloc.start()
    with pytest.raises(FrameError, match=r"4294967295 bytes; the limit is"):
        Splitter(16 * 2**20).feed(claim)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_a_claimed_length_within_the_limit_takes_no_room_until_the_bytes_come():
    claim = FIXED.pack(15 * 2**20, WIRE_VERSION, 0, 1, 1, 0)
    tracemalloc.start()
    splitter = Splitter(16 * 2**20)
    assert splitter.feed(claim) == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert splitter.pending == FIXED_SIZE


def test_an_oversized_frame_is_refused_when_its_fixed_part_is_in():
    splitter = Splitter(LIMIT)
    start = FIXED.pack(LIMIT + 1, WIRE_VERSION, 0, 1, 1, 0)
    assert splitter.feed(start[:-1]) == []
    with pytest.raises(FrameError):
        splitter.feed(start[-1:])


def test_another_wire_version_is_named():
    frame = FIXED.pack(FIXED_SIZE, WIRE_VERSION + 1, 0, 1, 1, 0)
    with pytest.raises(FrameError, match=r"wire version 2; this side reads 1"):
        split(frame)


@pytest.mark.parametrize("length", [0, FIXED_SIZE - 1, FIXED_SIZE + 4])
def test_a_header_longer_than_its_frame_is_refused(length):
    with pytest.raises(FrameError, match=r"header of 5 bytes"):
        split(FIXED.pack(length, WIRE_VERSION, 0, 1, 1, 5) + bytes(64))


def test_frames_do_not_depend_on_what_they_were_cut_from():
    data = pack(1, 2, 3, b"head", b"body")
    [(_, _, _, header, payload)] = split(data)
    assert type(header) is bytes
    assert type(payload) is bytes
