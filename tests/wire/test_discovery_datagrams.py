"""The datagrams of discovery: exact lengths, strict bodies, proofs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.errors import FrameError
from ordercast.wire.discovery import (
    PREFIX,
    PROOF_BYTES,
    QUESTION_BYTES,
    Answer,
    Question,
    Unproved,
    pack_datagram,
    unpack_datagram,
)

NONCE = bytes(range(16))
QUESTION = Question(NONCE, "prod")
ANSWER = Answer(NONCE, "prod", "alice", "10.0.0.5:7700")
KEYS = (b"", b"secret")


def replaced(data: bytes, at: int, by: bytes) -> bytes:
    return data[:at] + by + data[at + len(by) :]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("message", [QUESTION, ANSWER])
def test_what_was_packed_is_what_comes_out(message: Any, key: bytes) -> None:
    assert unpack_datagram(pack_datagram(message, key), type(message), key) == message


def test_the_bytes_of_version_1_stay_readable() -> None:
    answer = bytes.fromhex(
        "4f434459 01 01 002c 94 c410 000102030405060708090a0b0c0d0e0f a4 70726f64"
        "a5 616c696365 ad 31302e302e302e353a37373030 00000000000000000000000000000000"
    )
    assert unpack_datagram(answer, Answer, b"") == ANSWER
    assert pack_datagram(ANSWER, b"") == answer


def test_the_longest_answer_is_no_longer_than_any_question() -> None:
    longest = Answer(NONCE, "c" * 255, "n" * 255, "a" * 249 + ":65535")
    assert len(pack_datagram(longest, b"secret")) <= QUESTION_BYTES
    assert len(pack_datagram(QUESTION, b"")) == QUESTION_BYTES
    assert len(pack_datagram(Question(NONCE, "c" * 255), b"secret")) == QUESTION_BYTES


@pytest.mark.parametrize("theirs", [b"", b"other"])
def test_with_a_key_whatever_lacks_its_proof_is_unproved(theirs: bytes) -> None:
    with pytest.raises(Unproved, match="Question without proof of the key"):
        unpack_datagram(pack_datagram(QUESTION, theirs), Question, b"secret")
    with pytest.raises(Unproved, match="Answer without proof of the key"):
        unpack_datagram(pack_datagram(ANSWER, theirs), Answer, b"secret")


def test_the_proof_covers_every_byte_before_it() -> None:
    datagram = pack_datagram(ANSWER, b"secret")
    for at in range(PREFIX.size, len(datagram)):
        with pytest.raises(Unproved):
            unpack_datagram(replaced(datagram, at, bytes([datagram[at] ^ 1])), Answer, b"secret")


def test_a_node_without_a_key_reads_what_one_with_a_key_sent() -> None:
    """So that it can be told apart from a network without multicast."""
    assert unpack_datagram(pack_datagram(QUESTION, b"secret"), Question, b"") == QUESTION


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (b"", "not a datagram of ours"),
        (b"OCDY", "not a datagram of ours"),
        (replaced(pack_datagram(ANSWER, b""), 0, b"M"), "not a datagram of ours"),
        (replaced(pack_datagram(ANSWER, b""), 4, b"\2"), "version 2 of discovery"),
        (replaced(pack_datagram(ANSWER, b""), 5, b"\0"), "kind 0 is not that of Answer"),
        (replaced(pack_datagram(ANSWER, b""), 5, b"\7"), "kind 7 is not that of Answer"),
        (replaced(pack_datagram(ANSWER, b""), 6, b"\xff\xff"), "it says that it has 65559"),
        (pack_datagram(ANSWER, b"") + b"\0", "69 bytes; it says that it has 68"),
        (pack_datagram(ANSWER, b"")[:-1], "67 bytes; it says that it has 68"),
        (replaced(pack_datagram(ANSWER, b""), 8, b"\x93"), "malformed"),
    ],
)
def test_a_wrong_answer_is_refused_with_the_reason(wrong: bytes, says: str) -> None:
    with pytest.raises(FrameError, match=says):
        unpack_datagram(wrong, Answer, b"")


def test_a_question_shorter_or_longer_than_all_questions_is_refused() -> None:
    datagram = pack_datagram(QUESTION, b"")
    for wrong in (datagram[:-1], datagram + b"\0", datagram[:64], replaced(datagram, 6, b"\4\0")):
        with pytest.raises(FrameError, match="Question of"):
            unpack_datagram(wrong, Question, b"")


@pytest.mark.parametrize(
    "fields",
    [
        [NONCE, "", "alice", "a:1"],
        [NONCE, "prod", "al\nice", "a:1"],
        [NONCE, "prod", "alice", "a" * 256],
        [NONCE, "prod", "alice", "a" * 250 + ":1"],
        [NONCE, "prod", "alice", ":1"],
        [NONCE, "prod", "alice", "a"],
        [NONCE, "prod", "alice", "a:0"],
        [NONCE, "prod", "alice", "a:65536"],
        [NONCE, "prod", "alice", "a:+1"],
        [NONCE[:-1], "prod", "alice", "a:1"],
        [NONCE, "prod", "alice", "a:1", "more"],
        [NONCE, "prod", "alice", 7],
    ],
)
def test_an_answer_with_a_wrong_field_is_refused(fields: list[Any]) -> None:
    body = msgspec.msgpack.encode(fields)
    datagram = PREFIX.pack(b"OCDY", 1, 1, len(body)) + body + bytes(PROOF_BYTES)
    with pytest.raises(FrameError, match="the Answer is malformed"):
        unpack_datagram(datagram, Answer, b"")


@given(st.binary(max_size=1100), st.sampled_from(KEYS), st.sampled_from((Question, Answer)))
def test_any_bytes_are_a_message_or_a_frame_error(data: bytes, key: bytes, kind: Any) -> None:
    for datagram in (data, replaced(pack_datagram(QUESTION, key), 6, data)[:QUESTION_BYTES]):
        try:
            assert isinstance(unpack_datagram(datagram, kind, key), kind)
        except FrameError:
            continue
