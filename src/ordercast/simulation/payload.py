"""What a simulated message says: who it is among its sender's, and how deep in a conversation.

A protocol's own numbers restart with each era, so a trace takes the identity of a message from
the message itself.
"""

from __future__ import annotations

from struct import Struct

HEAD = Struct(">IB")  # number among the sender's messages to that group, depth of the reply
MAX_DEPTH = 255

unpack = HEAD.unpack_from
"""payload -> (number, depth)"""


def pack(number: int, depth: int, size: int) -> bytes:
    """A payload of `size` bytes."""
    return HEAD.pack(number, depth).ljust(size, b".")
