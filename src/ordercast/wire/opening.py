"""The first bytes of a connection, in each direction: one Hello, or one Refuse.

With a key, a Challenge and a Proof go before it.

    "OCST"  kind  size | body (msgpack)
    4       u8    u16

This layout never changes, so that two versions of the package can always tell each other why
they do not get on. Whatever does not begin with these four letters is not one of us.
"""

from __future__ import annotations

from struct import Struct

import msgspec

from ordercast.errors import FrameError
from ordercast.wire.codec import MALFORMED
from ordercast.wire.control import Challenge, Hello, Opening, Proof, Refuse

MAGIC = b"OCST"
MAX_OPENING = 1024  # bytes; nothing more is kept of a peer that has not said Hello

PREFIX = Struct("!4sBH")
KINDS = (Hello, Refuse, Challenge, Proof)

STRANGERS = (
    (b"HTTP", "an HTTP server"),
    (b"GET ", "an HTTP client"),
    (b"SSH-", "an SSH server"),
    (b"220", "a mail or FTP server"),
    (b"\x15\x03", "TLS"),  # an alert: it did not like what came
    (b"\x16\x03", "TLS"),  # a handshake
)

_encode = msgspec.msgpack.Encoder().encode
_decoders = tuple(msgspec.msgpack.Decoder(kind) for kind in KINDS)


def pack_opening(message: Opening) -> bytes:
    """The bytes that open a connection, or refuse it."""
    body = _encode(message)
    opening = PREFIX.pack(MAGIC, KINDS.index(type(message)), len(body)) + body
    assert len(opening) <= MAX_OPENING, len(opening)
    return opening


def split_opening(data: bytes) -> tuple[Opening, int] | None:
    """The opening at the start of `data`, and how many bytes it took; None if more must come."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise FrameError(
            f"the connection opens with {data[: len(MAGIC)]!r}, not with {MAGIC!r}: "
            f"{what_speaks(data)} speaks there, no node"
        )
    if len(data) < PREFIX.size:
        return None
    _, kind, size = PREFIX.unpack_from(data)
    end = PREFIX.size + size
    if end > MAX_OPENING:
        raise FrameError(f"an opening of {end} bytes; the limit is {MAX_OPENING}")
    if kind >= len(KINDS):
        raise FrameError(f"an opening of the unknown kind {kind}")
    if len(data) < end:
        return None
    try:
        return _decoders[kind].decode(data[PREFIX.size : end]), end
    except MALFORMED as error:
        raise FrameError(f"the {KINDS[kind].__name__} is malformed: {error}") from None


def what_speaks(data: bytes) -> str:
    """A guess, for people, from the first bytes of something that is not one of us."""
    return next((name for start, name in STRANGERS if data.startswith(start)), "something else")
