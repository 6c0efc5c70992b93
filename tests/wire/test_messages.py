"""Several messages in one payload."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.wire.messages import LARGEST, pack_messages, unpack_messages

numbers = st.integers(0, LARGEST - 20)
bodies = st.lists(st.binary(max_size=300), max_size=20)


@given(numbers, bodies)
def test_messages_come_back_as_they_were_packed(first, sent):
    payload = pack_messages(first, sent)
    assert unpack_messages(payload) == (first, sent)


@given(numbers, bodies)
def test_every_truncation_is_a_frame_error(first, sent):
    payload = pack_messages(first, sent)
    for end in range(len(payload)):
        with pytest.raises(FrameError):
            unpack_messages(payload[:end])


@given(numbers, bodies, st.data())
def test_a_changed_byte_gives_messages_or_a_frame_error(first, sent, data):
    payload = bytearray(pack_messages(first, sent))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        number, got = unpack_messages(bytes(payload))
    except FrameError:
        return
    assert type(number) is int
    assert all(type(body) is bytes for body in got)


@pytest.mark.parametrize(
    "value", [None, 1, [], [1], [1, b"x"], ["1", []], [1, ["text"]], [1, [1]], [-1, []]]
)
def test_anything_but_a_number_and_bodies_is_refused(value):
    payload = msgspec.msgpack.encode(value)
    with pytest.raises(FrameError, match="not a list of messages"):
        unpack_messages(payload)


def test_numbers_end_where_a_trace_cannot_write_them():
    assert unpack_messages(pack_messages(LARGEST, [b"the last"])) == (LARGEST, [b"the last"])
    for first, count in ((LARGEST, 2), (LARGEST - 1, 3), (LARGEST + 1, 0), (2**64 - 1, 1)):
        with pytest.raises(FrameError):
            unpack_messages(pack_messages(first, [b""] * count))


@pytest.mark.parametrize("payload", [b"", b"\x92", b"\x92\xa1\xff\x90", b"\x92\xff\x90"])
def test_a_malformed_payload_is_a_frame_error(payload):
    with pytest.raises(FrameError):
        unpack_messages(payload)


def test_a_claimed_count_of_4_billion_bodies_takes_no_room():
    tracemalloc.start()
    with pytest.raises(FrameError):
        unpack_messages(b"\x92\x01\xdd\xff\xff\xff\xff" + b"\xc4\x00" * 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
