"""A pulse: one datagram that says "I live", and for how long the event loop of its node has stood.

    magic     4   OCPU
    sender    4   its number in the cluster
    number    8   rises from pulse to pulse of one sender
    stood_ms  4   how long its event loop has not turned; 0: it turns
    tag      16   BLAKE2s of all before it, keyed with what the receiver gave to the sender alone

Whoever does not have the key cannot make one, and an old one is worth nothing: its number was seen.
"""

from __future__ import annotations

from hashlib import blake2s
from hmac import compare_digest
from struct import Struct
from typing import NamedTuple

from ordercast.core.ids import ProcessId

MAGIC = b"OCPU"
KEY_BYTES = 16
TAG_BYTES = 16
MAX_STOOD_MS = 2**32 - 1

_HEAD = Struct(">4sIQI")
SIZE = _HEAD.size + TAG_BYTES


class Pulse(NamedTuple):
    """What a pulse says."""

    sender: ProcessId
    number: int
    stood_ms: int


def pack_pulse(pulse: Pulse, key: bytes) -> bytes:
    """The datagram."""
    head = _HEAD.pack(MAGIC, pulse.sender, pulse.number, min(pulse.stood_ms, MAX_STOOD_MS))
    return head + _tag(head, key)


def sender_of(datagram: bytes) -> ProcessId | None:
    """Who says to have sent it; None if it is no pulse."""
    if len(datagram) != SIZE or datagram[:4] != MAGIC:
        return None
    sender: ProcessId = _HEAD.unpack_from(datagram)[1]
    return sender


def unpack_pulse(datagram: bytes, key: bytes) -> Pulse | None:
    """What it says, if it was made with this key."""
    head, tag = datagram[: _HEAD.size], datagram[_HEAD.size :]
    if not compare_digest(tag, _tag(head, key)):
        return None
    return Pulse(*_HEAD.unpack(head)[1:])


def _tag(head: bytes, key: bytes) -> bytes:
    return blake2s(head, key=key, digest_size=TAG_BYTES).digest()
