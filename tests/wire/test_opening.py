"""The first bytes of a connection."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.core.ids import Identity
from ordercast.errors import FrameError
from ordercast.wire.control import (
    MAX_PROOF_BYTES,
    MAX_REFUSE_TEXT_BYTES,
    Challenge,
    Hello,
    Proof,
    Refuse,
    objection,
)
from ordercast.wire.opening import MAGIC, MAX_OPENING, PREFIX, pack_opening, split_opening

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(str.isprintable)
node_names = names.map(lambda name: name.replace("/", "-"))
hellos = st.builds(
    Hello,
    version_min=st.integers(0, 255),
    version_max=st.integers(0, 255),
    cluster=names,
    name=node_names,
    incarnation=st.integers(0, 2**63 - 1),
    proof=st.binary(max_size=MAX_PROOF_BYTES),
    advertise=st.one_of(st.just(""), names),
)
refusals = st.builds(Refuse, names, names)
numbers = st.binary(min_size=32, max_size=32)
openings = st.one_of(hellos, refusals, st.builds(Challenge, numbers), st.builds(Proof, numbers))


def hello(**fields: object) -> Hello:
    return Hello(**{"cluster": "c", "name": "alice", "incarnation": 1, **fields})


@given(openings, st.binary(max_size=50))
def test_an_opening_comes_back_and_says_where_it_ends(message, following):
    opening = pack_opening(message)
    assert split_opening(opening + following) == (message, len(opening))


@given(openings)
def test_every_beginning_of_an_opening_is_incomplete_and_not_an_error(message):
    opening = pack_opening(message)
    assert all(split_opening(opening[:end]) is None for end in range(len(opening)))


def test_the_longest_hello_and_the_longest_refusal_fit_into_the_limit():
    longest = hello(
        version_min=255,
        version_max=255,
        cluster="c" * 255,
        name="n" * 255,
        incarnation=2**64 - 1,
        proof=bytes(MAX_PROOF_BYTES),
        advertise="a" * 255,
    )
    assert len(pack_opening(longest)) <= MAX_OPENING
    assert len(pack_opening(Refuse("r" * 255, "t" * MAX_REFUSE_TEXT_BYTES))) <= MAX_OPENING


def test_a_stranger_is_known_by_the_first_letter():
    for noise in (b"G", b"GET / HTTP/1.1\r\n", b"OCSX", b"\x16\x03\x01"):
        with pytest.raises(FrameError, match="the connection opens with"):
            split_opening(noise)


def test_an_opening_over_the_limit_is_refused_before_it_has_come():
    with pytest.raises(FrameError, match=r"an opening of 65542 bytes; the limit is 1024"):
        split_opening(PREFIX.pack(MAGIC, 0, 65535))


def test_an_unknown_kind_of_opening_is_refused():
    with pytest.raises(FrameError, match="unknown kind 4"):
        split_opening(PREFIX.pack(MAGIC, 4, 0))


@given(openings, st.data())
def test_a_changed_byte_gives_an_opening_or_a_frame_error(message, data):
    opening = bytearray(pack_opening(message))
    opening[data.draw(st.integers(0, len(opening) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = split_opening(bytes(opening))
    except FrameError:
        return
    assert found is None or type(found[0]) in (Hello, Refuse, Challenge, Proof)


@pytest.mark.parametrize(
    "fields",
    [
        {"cluster": ""},
        {"name": ""},
        {"name": "n" * 256},
        {"name": "a\nb"},
        {"advertise": "a" * 256},
        {"proof": bytes(MAX_PROOF_BYTES + 1)},
    ],
    ids=["no cluster", "no name", "long name", "newline", "long address", "long proof"],
)
def test_a_hello_beyond_its_limits_can_neither_be_made_nor_taken(fields):
    with pytest.raises(ValueError):
        hello(**fields)
    good = msgspec.to_builtins(hello(), builtin_types=(bytes,))
    bad = [fields.get(f, v) for f, v in zip(Hello.__struct_fields__, good, strict=True)]
    body = msgspec.msgpack.encode(bad)
    with pytest.raises(FrameError, match="the Hello is malformed"):
        split_opening(PREFIX.pack(MAGIC, 0, len(body)) + body)


@pytest.mark.parametrize("text", ["t" * (MAX_REFUSE_TEXT_BYTES + 1), "two\nlines"])
def test_a_refusal_beyond_its_limits_can_neither_be_made_nor_taken(text):
    with pytest.raises(ValueError):
        Refuse("cluster", text)
    body = msgspec.msgpack.encode(("cluster", text))
    with pytest.raises(FrameError, match="the Refuse is malformed"):
        split_opening(PREFIX.pack(MAGIC, 1, len(body)) + body)


@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_challenge_and_a_proof_have_one_size(kind, size):
    body = msgspec.msgpack.encode((bytes(size),))
    with pytest.raises(FrameError, match=f"is malformed: a .* has 32 bytes, not {size}"):
        split_opening(PREFIX.pack(MAGIC, kind, len(body)) + body)


def test_a_hello_of_a_later_version_with_more_fields_is_readable():
    body = msgspec.msgpack.encode((1, 2, "c", "alice", 1, b"", "", b"", "added", 5))
    assert split_opening(PREFIX.pack(MAGIC, 0, len(body)) + body) == (
        hello(version_max=2),
        PREFIX.size + len(body),
    )


def test_a_hello_of_an_earlier_release_without_a_session_is_readable():
    body = msgspec.msgpack.encode((1, 1, "c", "alice", 1, b"", ""))
    assert split_opening(PREFIX.pack(MAGIC, 0, len(body)) + body) == (
        hello(session=b""),
        PREFIX.size + len(body),
    )


@pytest.mark.parametrize("session", [b"1234567", b"123456789"])
def test_a_session_of_another_length_is_refused(session):
    with pytest.raises(ValueError, match="a session has 8 bytes"):
        hello(session=session)


def test_a_hello_names_the_node():
    assert hello(incarnation=2).identity == Identity("alice", 2)


def test_two_of_one_cluster_with_a_common_version_have_no_objection():
    old, new = hello(version_min=1, version_max=2), hello(version_min=2, version_max=3)
    assert objection(old, new) is None
    assert objection(new, old) is None


def test_another_cluster_is_refused_and_both_are_named():
    refuse = objection(hello(cluster="red"), hello(cluster="blue"))
    assert refuse == Refuse("cluster", "this is cluster 'red', not 'blue'")


def test_versions_without_overlap_are_refused_from_both_sides_and_both_are_named():
    old, new = hello(version_min=1, version_max=2), hello(version_min=3, version_max=4)
    text = "this node speaks wire versions 1 to 2, not 3 to 4"
    assert objection(old, new) == Refuse("version", text)
    assert objection(new, old) is not None


def test_a_refusal_about_the_longest_names_still_fits():
    refuse = objection(
        hello(cluster="\N{GREEK SMALL LETTER ALPHA}" * 127), hello(cluster="b" * 255)
    )
    assert refuse is not None
    assert len(pack_opening(refuse)) <= MAX_OPENING
