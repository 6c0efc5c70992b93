"""What a node answers about itself, read with suspicion: it came from the network.

Everything that reads a status or a table reads it here. Whatever is wrong with it becomes a
`PeerError` that names the address.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ordercast.errors import PeerError
from ordercast.runtime.diagnosis.report import Report

MAX_DEPTH = 32  # lists in lists; an honest status has about eight
MAX_INTEGER = 2**64

Shape = TypeVar("Shape")

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def decode_status(address: str, payload: bytes) -> dict[str, Any]:
    """The status that came from that address, with everything that this release knows of it.

    What later releases add stays as it is, if it can be shown: not too deep, no endless numbers.
    """
    status: dict[str, Any] = decode_answer(address, payload, dict[str, Any])
    try:
        _check_values(list(status.values()))
    except ValueError as reason:
        raise _unreadable(address, "status", reason) from None
    parts_of_status(address, status, Report)
    return status


def parts_of_status(address: str, status: dict[str, Any], shape: type[Shape]) -> Shape:
    """The parts of a status that matter to somebody."""
    try:
        return msgspec.convert(status, shape)
    except UNREADABLE as reason:
        raise _unreadable(address, "status", reason) from None


def decode_answer(address: str, payload: bytes, shape: type[Shape], what: str = "status") -> Shape:
    """JSON of that shape."""
    try:
        return msgspec.json.decode(payload, type=shape)
    except UNREADABLE as reason:
        raise _unreadable(address, what, reason) from None


def _unreadable(address: str, what: str, reason: Exception) -> PeerError:
    return PeerError(f"the {what} of {address} is not readable: {reason}")


def _check_values(values: list[Any]) -> None:
    """Level by level, so that their depth costs no stack."""
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for value in values:
            if isinstance(value, dict):
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, int) and abs(value) > MAX_INTEGER:
                raise ValueError(f"a number has {value.bit_length()} bits")
        if not inner:
            return
        values = inner
    raise ValueError(f"it is more than {MAX_DEPTH} levels deep")
