"""What a proof of the key depends on."""

from __future__ import annotations

import pytest

from ordercast.wire.control import Challenge, Hello, Proof
from ordercast.wire.opening import pack_opening, split_opening
from ordercast.wire.proof import content_of, prove

KEY, C, A = b"k" * 16, b"c" * 32, b"a" * 32
HELLO = Hello(cluster="c", name="alice", incarnation=1, advertise="h:1", session=b"12345678")


def test_a_proof_is_what_it_was_in_the_first_release_that_had_it():
    assert prove(KEY, "connects", C, A, b"").hex() == (
        "4474aa47d958a593eef7f22e97d8a37a77b77c453f3f329cf1e2c6a6f290dbea"
    )


def test_a_challenge_and_a_proof_are_written_as_in_the_first_release_that_had_them():
    body = "0023" + "91" + "c420"  # size, an array of one, 32 bytes
    challenge, proof = bytes.fromhex("4f43535402" + body), bytes.fromhex("4f43535403" + body)
    assert split_opening(challenge + bytes(range(32))) == (Challenge(bytes(range(32))), 42)
    assert pack_opening(Challenge(C)) == challenge + C
    assert pack_opening(Proof(A)) == proof + A


def test_a_proof_depends_on_the_key_the_side_both_numbers_and_the_content():
    variants = [
        prove(KEY, "connects", C, A, b""),
        prove(b"K" * 16, "connects", C, A, b""),
        prove(KEY, "accepts", C, A, b""),
        prove(KEY, "connects", A, C, b""),
        prove(KEY, "connects", C, C, b""),
        prove(KEY, "connects", A, A, b""),
        prove(KEY, "connects", C, A, b"content"),
    ]
    assert len(set(variants)) == len(variants)


@pytest.mark.parametrize("field", [f for f in Hello.__struct_fields__ if f != "proof"])
def test_the_proof_of_a_hello_covers_everything_that_the_hello_says(field):
    other = {
        "version_min": 0, "version_max": 9, "cluster": "d", "name": "bob", "incarnation": 2,
        "advertise": "h:2", "session": b"87654321",
    }  # fmt: skip
    fields = {name: getattr(HELLO, name) for name in Hello.__struct_fields__}
    assert content_of(Hello(**{**fields, field: other[field]})) != content_of(HELLO)
