"""What it costs to keep a frame, in bytes: its body, and the places that it names.

A frame may name as many places as there are groups. Tens of thousands of small frames with long
contexts are far more than their number, or their bodies, would tell.
"""

from __future__ import annotations

from collections.abc import Sized

from ordercast.core.events import Receive
from ordercast.protocols.sequencing.headers import Accept, Asked, Number, Request, Spread

PLACE_BYTES = 160  # a tuple with three numbers
FRAME_BYTES = 256  # a frame without any of this


def weight(m: bytes, *named: Sized) -> int:
    """A frame with this body, that names these places."""
    return FRAME_BYTES + len(m) + PLACE_BYTES * sum(map(len, named))


def weight_of_request(asked: Asked) -> int:
    """One that waits at its sequencer."""
    _, _, request, m = asked
    return weight(m, request.context, request.after)


def weight_of_packet(packet: Receive) -> int:
    """One of an era that has not begun."""
    header = packet.header
    if isinstance(header, Request | Spread):
        return weight(packet.payload, header.context, header.after)
    if isinstance(header, Accept | Number):
        return weight(packet.payload, header.context, header.needs)
    return weight(packet.payload)
