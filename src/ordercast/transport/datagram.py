"""The datagram: what one UDP packet of ours holds. See docs/WIRE.md for the layout.

    "OCDG"  version  kind  audience size  sender  session  number | audience | body
    4       u8       u8    u16            u32     8        u64

The session is what the sender said in its Hello. The audience is there only in a datagram for
several processes: whoever is not in it looks no further. The body is one of these:

    FRAMES     whole frames, one after the other
    FRAGMENT   packet id, place, count | a piece of one frame that is larger than a datagram
    WANT       packet id, places of pieces that are missing
    SEEN       the highest number that came from the receiver of this
    PROBE      nothing: say what you have seen. Its number is that of the last datagram sent
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct

from ordercast.core.ids import ProcessId
from ordercast.errors import FrameError

MAGIC = b"OCDG"
DATAGRAM_VERSION = 1

FRAMES, FRAGMENT, WANT, SEEN, PROBE = range(5)

HEADER = Struct("!4sBBHI8sQ")
AUDIENCE = Struct("!I")  # the first process; then one bit for it and for each one after it
PIECE = Struct("!III")
NUMBER = Struct("!Q")
PLACE = Struct("!I")

MAX_AUDIENCE_BYTES = 256  # the ids of an audience span at most 2,048 numbers
MAX_DATAGRAM = 65_507  # what UDP can carry over IPv4
MIN_DATAGRAM = 512  # the largest audience, and room for something to say

Datagram = tuple[int, ProcessId, bytes, int, bytes, bytes]
"""(kind, sender, session, number, audience, body)"""

Body = tuple[int, bytes]
"""(kind, bytes)"""


def pack_datagram(
    kind: int, sender: ProcessId, session: bytes, number: int, audience: bytes, body: bytes
) -> bytes:
    """The bytes of one datagram."""
    head = HEADER.pack(MAGIC, DATAGRAM_VERSION, kind, len(audience), sender, session, number)
    return head + audience + body


def read_datagram(data: bytes) -> Datagram:
    """Its parts; a `FrameError` if it is none of ours. The body is not looked at."""
    if len(data) < HEADER.size:
        raise FrameError(f"a datagram of {len(data)} bytes; a header has {HEADER.size}")
    magic, version, kind, size, sender, session, number = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise FrameError(f"a datagram begins with {magic!r}, not with {MAGIC!r}")
    if version != DATAGRAM_VERSION:
        raise FrameError(f"a datagram of version {version}; this side reads {DATAGRAM_VERSION}")
    start = HEADER.size + size
    if kind > PROBE or len(data) < start or size > AUDIENCE.size + MAX_AUDIENCE_BYTES:
        raise FrameError(f"a datagram of kind {kind} with {size} bytes of audience")
    return kind, sender, session, number, data[HEADER.size : start], data[start:]


# -- who is meant ---------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def pack_audience(to: tuple[ProcessId, ...]) -> bytes | None:
    """These processes as bits; None if their ids lie too far apart for that."""
    first = min(to)
    bits = 0
    if max(to) - first >= 8 * MAX_AUDIENCE_BYTES:
        return None
    for p in to:
        bits |= 1 << (p - first)
    return AUDIENCE.pack(first) + bits.to_bytes((bits.bit_length() + 7) // 8, "little")


@lru_cache(maxsize=1024)
def is_addressed(audience: bytes, me: ProcessId) -> bool:
    """Is this process meant? Without an audience everybody who gets it is."""
    if not audience:
        return True
    if len(audience) < AUDIENCE.size:
        return False
    place = me - AUDIENCE.unpack_from(audience)[0]
    byte = AUDIENCE.size + place // 8
    return place >= 0 and byte < len(audience) and bool(audience[byte] >> place % 8 & 1)


# -- bodies ---------------------------------------------------------------------------------------


def count_pieces(packet: bytes, room: int) -> int:
    """Into how many pieces it is cut."""
    return -(-len(packet) // (room - PIECE.size))


def pack_piece(packet: bytes, packet_id: int, place: int, room: int) -> bytes:
    """The body of one piece, of at most `room` bytes."""
    size = room - PIECE.size
    start = place * size
    head = PIECE.pack(packet_id, place, count_pieces(packet, room))
    return head + packet[start : start + size]


def read_piece(body: bytes) -> tuple[int, int, int, bytes]:
    """(packet id, place, count, piece)."""
    if len(body) <= PIECE.size:
        raise FrameError("a fragment without a piece")
    packet_id, place, count = PIECE.unpack_from(body)
    if place >= count:
        raise FrameError(f"piece {place} of a packet of {count}")
    return packet_id, place, count, body[PIECE.size :]


def pack_want(packet_id: int, places: Sequence[int]) -> bytes:
    """The body that asks for these pieces."""
    return b"".join(map(PLACE.pack, (packet_id, *places)))


def read_want(body: bytes) -> tuple[int, list[int]]:
    """(packet id, places)."""
    if len(body) < PLACE.size or len(body) % PLACE.size:
        raise FrameError(f"a request for pieces of {len(body)} bytes")
    packet_id, *places = (number for (number,) in PLACE.iter_unpack(body))
    return packet_id, places


def read_seen(body: bytes) -> int:
    """The number that has come."""
    if len(body) != NUMBER.size:
        raise FrameError(f"a receipt of {len(body)} bytes")
    number: int = NUMBER.unpack(body)[0]
    return number
