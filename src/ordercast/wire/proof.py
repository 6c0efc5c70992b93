"""How two nodes prove to each other that they have the key of the cluster, and never say it.

    digest = HMAC-SHA256(key, label | side | nonce of the side that connects | nonce of the other
                              | content)

Both nonces are new for every connection, so a proof is good for one connection only. The side
stands in it, so nobody's proof can be sent back to it as an answer. The content is empty in a
`Proof`; in a Hello it is what the Hello says, so nobody on the way can change it.
"""

from __future__ import annotations

from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Literal

import msgspec

from ordercast.wire.control import Hello

LABEL = b"ordercast proof 1\0"
Side = Literal["connects", "accepts"]
SIDES: dict[Side, bytes] = {"connects": b"C", "accepts": b"A"}

_encode = msgspec.msgpack.Encoder().encode


def prove(key: bytes, side: Side, connecting: bytes, accepting: bytes, content: bytes) -> bytes:
    """The proof of that side of the connection with these two nonces."""
    return hmac_digest(key, LABEL + SIDES[side] + connecting + accepting + content, "sha256")


def proves(given: bytes, wanted: bytes) -> bool:
    """Are they equal? Takes as long for a near miss as for a far one."""
    return compare_digest(given, wanted)


def content_of(hello: Hello) -> bytes:
    """What a Hello says, as its proof covers it. Fields of later versions are not in it."""
    return _encode(
        (
            hello.version_min, hello.version_max, hello.cluster, hello.name, hello.incarnation,
            hello.advertise, hello.session,
        )
    )  # fmt: skip
