"""The packets between a sequencer and the others, beside the requests of each protocol."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId


class Accept(msgspec.Struct, frozen=True, array_like=True):
    """Number N goes to frame n of `origin`; its body follows. All have delivered up to `stable`."""

    N: int
    origin: ProcessId
    n: int
    stable: int


class Accepted(msgspec.Struct, frozen=True, array_like=True):
    """To a guest: your frames up to n are numbered, those up to `stable` delivered by all."""

    n: int
    stable: int


class Fetch(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: send me the entries first..last again."""

    first: int
    last: int


class Status(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer: N numbers were given, all up to `stable` is delivered by all, and of the
    receiver it knows that it delivered all up to R."""

    N: int
    stable: int
    R: int


class Delivered(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: all numbers up to R were delivered, and consumed, here."""

    R: int
