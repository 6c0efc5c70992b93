"""The two datagrams by which a newcomer finds a cluster: its question, a node's answer.

    "OCDY"  version  kind  size | body (msgpack) | proof | zeros
    4       u8       u8    u16    size bytes       16

A question has exactly QUESTION_BYTES: the zeros make it at least as long as any answer, so that
nobody gains by asking in another's name. An answer has no zeros. The answer repeats the number that
the question drew, so it can only come from somebody who saw the question.

The proof is a keyed hash of all that stands before it, or 16 zeros where the cluster has no key.
With a key, whatever lacks the right proof is `Unproved` before its body is looked at. A recorded
question can be sent again by a stranger: it then learns names and addresses, and no more.
"""

from __future__ import annotations

import hmac
from struct import Struct
from typing import Annotated, TypeVar

import msgspec

from ordercast.core.ids import MAX_NAME_BYTES, check_name
from ordercast.errors import FrameError
from ordercast.wire.codec import MALFORMED

MAGIC = b"OCDY"
VERSION = 1
QUESTION_BYTES = 1024
NONCE_BYTES = 16
PROOF_BYTES = 16
MAX_HOST_BYTES = MAX_NAME_BYTES - len(":65535")

PREFIX = Struct("!4sBBH")

Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]


class Question(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who is in this cluster?"""

    nonce: Nonce  # drawn anew for each search
    cluster: str

    def __post_init__(self) -> None:
        check_name("cluster", self.cluster)


class Answer(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """I am in a cluster, perhaps in another one than you asked for; and I listen here."""

    nonce: Nonce  # of the question
    cluster: str
    name: str
    address: str  # host:port

    def __post_init__(self) -> None:
        check_name("cluster", self.cluster)
        check_name("node", self.name)
        check_name("advertised", self.address)
        host, _, port = self.address.rpartition(":")
        numeric = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
        if not numeric or not 0 < len(host.encode()) <= MAX_HOST_BYTES:
            raise ValueError(f"{self.address!r} is not host:port")


Datagram = Question | Answer
KINDS: tuple[type[Datagram], ...] = (Question, Answer)
D = TypeVar("D", Question, Answer)


class Unproved(FrameError):
    """A datagram of somebody who does not know the key."""


_encode = msgspec.msgpack.Encoder().encode


def pack_datagram(message: Datagram, key: bytes) -> bytes:
    """The bytes to send. `key=b""`: there is none."""
    body = _encode(message)
    said = PREFIX.pack(MAGIC, VERSION, KINDS.index(type(message)), len(body)) + body
    datagram = said + _proof(said, key)
    assert len(datagram) <= QUESTION_BYTES, len(datagram)
    return datagram.ljust(QUESTION_BYTES, b"\0") if isinstance(message, Question) else datagram


def unpack_datagram(data: bytes, kind: type[D], key: bytes) -> D:
    """The one message of this kind in the datagram; `FrameError` if there is none."""
    if len(data) < PREFIX.size or data[: len(MAGIC)] != MAGIC:
        raise FrameError("not a datagram of ours")
    _, version, number, size = PREFIX.unpack_from(data)
    if version != VERSION:
        raise FrameError(f"version {version} of discovery; this node speaks {VERSION}")
    if number != KINDS.index(kind):
        raise FrameError(f"kind {number} is not that of {kind.__name__}")
    end = PREFIX.size + size
    _check_length(len(data), end + PROOF_BYTES, kind)
    said, proof = data[:end], data[end : end + PROOF_BYTES]
    if key and not hmac.compare_digest(proof, _proof(said, key)):
        raise Unproved(f"{kind.__name__} without proof of the key")
    try:
        return msgspec.msgpack.decode(said[PREFIX.size :], type=kind)
    except MALFORMED as error:
        raise FrameError(f"the {kind.__name__} is malformed: {error}") from None


def _check_length(length: int, needed: int, kind: type[Datagram]) -> None:
    right = QUESTION_BYTES if kind is Question else needed
    if length != right or needed > length:
        raise FrameError(f"{kind.__name__} of {length} bytes; it says that it has {needed}")


def _proof(said: bytes, key: bytes) -> bytes:
    return hmac.digest(key, said, "sha256")[:PROOF_BYTES] if key else bytes(PROOF_BYTES)
