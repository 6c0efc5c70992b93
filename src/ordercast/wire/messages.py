"""Several messages of one sender in one payload.

The payload is the msgpack pair (number of the first message, bodies). The numbers of the others
follow from it, so that a message costs two to five bytes beside its body.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from ordercast.errors import FrameError
from ordercast.wire.codec import MALFORMED

LARGEST = 2**63 - 1  # number of a message: as in traces

First = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[First, list[bytes]]).decode


def pack_messages(first: int, bodies: list[bytes]) -> bytes:
    """The payload that carries `bodies`, numbered from `first`."""
    return _encode((first, bodies))


def unpack_messages(payload: bytes) -> tuple[int, list[bytes]]:
    """The number of the first message, and all bodies."""
    try:
        first, bodies = _decode(payload)
    except MALFORMED as error:
        raise FrameError(f"the payload is not a list of messages: {error}") from None
    if first > LARGEST - len(bodies) + 1:
        raise FrameError(f"{len(bodies)} messages cannot be numbered from {first}")
    return first, bodies
