"""The header types of TOTAL, as in the appendix of its description (003).

    REQUEST        a frame for the sequencer, which broadcasts it
    BCAST          a frame with its number
    NEW_VIEW       the first number of the view         NEW_VIEW_ACK   ... is known
    CUM_SEQ_ACK    consumed up to this number
    RESEND         a number that is missing

Two types of the appendix have no header here. UNICAST marks a packet that is not for this layer;
none ever gets to it. SEQ_ACK acknowledges a single message; as in the source it is not used.
New are STATUS, the last number given, and ACCEPTED for guests: both as in `sequencer_headers`.

No header names its view: every packet of a group carries the era, which is the view's id.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId


class Request(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: broadcast my frame n. Of this view's frames my first is `first`."""

    n: int
    first: int


class Bcast(msgspec.Struct, frozen=True, array_like=True):
    """Number N goes to frame n of `origin`; all have delivered the numbers up to `stable`."""

    N: int
    origin: ProcessId
    n: int
    stable: int


class NewView(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer: the numbers of this view begin with `first`."""

    first: int


class NewViewAck(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: I know where the numbers of this view begin."""


class CumSeqAck(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: all numbers up to N were consumed here. From a guest: where do I stand?"""

    N: int


class Resend(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: send me number N again."""

    N: int
