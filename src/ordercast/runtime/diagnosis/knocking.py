"""Finds out what listens at an address when no node says hello there.

Several kinds of first messages are sent, each on a connection of its own, until an answer comes.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from typing import Literal

import msgspec

from ordercast.errors import FrameError
from ordercast.transport.contract import Address
from ordercast.wire.control import NONCE_BYTES, Challenge, Hello, Opening
from ordercast.wire.opening import MAX_OPENING, pack_opening, split_opening, what_speaks

NOBODY = Hello(cluster="unknown", name="doctor", incarnation=0)  # whoever listens learns nothing
HTTP_QUESTION = b"GET / HTTP/1.0\r\n\r\n"

Silence = Literal["silent", "closed"]


class Heard(msgspec.Struct, frozen=True):
    """What came back."""

    opening: Opening | None = None  # of a node
    raw: bytes = b""  # of something else
    ending: Silence = "silent"  # if nothing came


class Nature(msgspec.Struct, frozen=True):
    """What listens at an address, as far as it shows."""

    kind: Literal["plain", "keyed", "tls", "stranger", "mute", "closing"]
    text: str


async def nature_of(address: Address, patience: float, tls: ssl.SSLContext | None = None) -> Nature:
    """Say hello, ask for a key, for TLS and for a web page, all at once."""
    challenge = Challenge(secrets.token_bytes(NONCE_BYTES))
    words = (pack_opening(NOBODY), pack_opening(challenge), HTTP_QUESTION)
    heard, tls_there = await asyncio.gather(
        asyncio.gather(*(knock(address, said, patience, tls) for said in words)),
        tls_at(address, patience),
    )
    opening = next((one.opening for one in heard if one.opening is not None), None)
    if opening is not None:
        return _node_of(opening)
    if tls is None and tls_there:
        return Nature("tls", f"it speaks {tls_there}")
    raw = next((one.raw for one in heard if one.raw), b"")
    if raw:
        return _stranger(raw)
    if any(one.ending == "closed" for one in heard):
        return Nature("closing", "it accepts connections, and closes them without an answer")
    return Nature("mute", "it accepts connections, and sends nothing")


def _node_of(opening: Opening) -> Nature:
    if isinstance(opening, Challenge):
        return Nature("keyed", "a node that asks for a proof of the key")
    return Nature("plain", "a node without a key")


def _stranger(raw: bytes) -> Nature:
    first = raw[:16].split(b"\r")[0]
    return Nature("stranger", f"{what_speaks(raw)} answers there, not a node (it sent {first!r})")


async def knock(
    address: Address, words: bytes, patience: float, tls: ssl.SSLContext | None = None
) -> Heard:
    """Say these first words, and listen."""
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(*address, ssl=tls)
    except OSError:
        return Heard(ending="closed")
    try:
        writer.write(words)
        return await _listen(reader, patience)
    finally:
        writer.transport.abort()


async def _listen(reader: asyncio.StreamReader, patience: float) -> Heard:
    heard = b""
    try:
        async with asyncio.timeout(patience):
            while len(heard) < MAX_OPENING and (more := await reader.read(MAX_OPENING)):
                heard += more
                try:
                    found = split_opening(heard)
                except FrameError:
                    return Heard(raw=heard)
                if found is not None:
                    return Heard(opening=found[0])
    except TimeoutError:
        return Heard(raw=heard, ending="silent")
    except OSError:
        return Heard(raw=heard, ending="closed")
    return Heard(raw=heard, ending="closed")


async def tls_at(address: Address, patience: float) -> str:
    """Which TLS answers there; empty if none. No certificate is checked, and none is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(patience):
            _, writer = await asyncio.open_connection(*address, ssl=context)
    except ssl.SSLError as error:
        return "TLS" if "ALERT" in (error.reason or "") else ""  # it knows TLS, and refused
    except OSError:
        return ""
    version: str = writer.get_extra_info("ssl_object").version()
    writer.transport.abort()
    return version
