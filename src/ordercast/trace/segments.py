"""The segment file: how a recorder's compact records lie on disk, and how they are read back.

    file    = head block*
    head    = magic(8) version(u16) length(u32) crc32 of text(u32) crc32 of these four(u32)  text
    text    = {"run", "process", "segment"} as JSON
    block   = length(u32) records(u32) crc32 of payload(u32) crc32 of these three(u32)  payload
    payload = records x 68 bytes, then the names defined in this block (JSON list of strings)

All numbers are little-endian. One block is one flush of the recorder. An empty block marks the
segment as finished; nothing follows it.

A record is one run of consecutive messages. It names groups, senders and texts by number:
name 0 is "none", name k is the k-th name defined in the segment. So a segment can be read
without the ones before it.

What a reader accepts at the end of an unfinished segment is what a killed process or a power
cut leaves: a block that is not all there, a last block whose checksum fails, or zeros. That
tail is cut. Anything else that does not add up is damage and a `TraceError`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import msgspec

from ordercast.errors import TraceError

T = TypeVar("T")

MAGIC = b"OCASTSEG"
VERSION = 1

RECORD = struct.Struct("<B3xIIIIIIqqqqq")
RECORD_FIELDS = (
    "kind", "group", "sender", "text", "count", "size", "overhead",
    "first", "index", "time", "seq", "view",
)  # fmt: skip

# The code of a kind is its place here. Append only: recorded files stay readable.
RECORD_KINDS = (
    "group", "send", "deliver", "view", "join", "leave", "crash", "end", "lost",
    "receive", "forward", "drop", "retransmit", "nack", "ack", "hold", "null",
)  # fmt: skip
KIND_CODES = {kind: code for code, kind in enumerate(RECORD_KINDS)}
NONE = -1  # an absent `seq` or `view`; an absent `overhead` is 0

_HEAD = struct.Struct("<8sHII")
_BLOCK = struct.Struct("<III")
_CHECK = struct.Struct("<I")
_LONGEST_HEAD = 1 << 16  # that `segment_run` looks at
_HEAD_BYTES = _HEAD.size + _CHECK.size
_BLOCK_BYTES = _BLOCK.size + _CHECK.size


class Head(msgspec.Struct, frozen=True):
    """Whose records a segment holds."""

    run: str
    process: str  # with incarnation: "alice#2"
    segment: int  # from 1, without holes


class Declaration(msgspec.Struct, frozen=True):
    """The text of a `group` record."""

    members: tuple[str, ...]
    order: str | None
    protocol: str | None
    scope: str | None


class Segment(msgspec.Struct, frozen=True):
    """All that is readable of one segment file."""

    path: Path
    head: Head | None  # None: killed before the head was written, so there are no records
    names: list[str | None]  # names[0] is None
    records: bytes
    finished: bool  # the recorder went on to another segment or was closed


def encode_head(head: Head) -> bytes:
    """The first bytes of a segment."""
    body = msgspec.json.encode(head)
    front = _HEAD.pack(MAGIC, VERSION, len(body), crc32(body))
    return b"".join((front, _CHECK.pack(crc32(front)), body))


def encode_block(records: bytes | bytearray | memoryview, names: Sequence[str]) -> bytes:
    """One flush: packed records, and the names they are the first to use."""
    text = msgspec.json.encode(names) if names else b""
    front = _BLOCK.pack(
        len(records) + len(text), len(records) // RECORD.size, crc32(text, crc32(records))
    )
    return b"".join((front, _CHECK.pack(crc32(front)), records, text))


FINISHED = encode_block(b"", ())


def read_segment(path: Path) -> Segment:
    """Read one segment file up to its torn tail, if it has one."""
    return decode_segment(path.read_bytes(), path)


def segment_run(path: Path) -> str | None:
    """The run that a segment names in its head; None if it has no whole head yet."""
    with path.open("rb") as file:
        head, _ = _decode_head(file.read(_LONGEST_HEAD), path)
    return None if head is None else head.run


def decode_segment(data: bytes, path: Path) -> Segment:
    """Like `read_segment`, for bytes at hand; `path` is for error messages."""
    head, offset = _decode_head(data, path)
    names: list[str | None] = [None]
    records: list[bytes] = []
    finished = False
    while head is not None and not finished and not _is_torn(data, offset, path):
        length, count, _ = _BLOCK.unpack_from(data, offset)
        start, offset = offset + _BLOCK_BYTES, offset + _BLOCK_BYTES + length
        split = start + count * RECORD.size
        records.append(data[start:split])
        if split < offset:
            names += _decode(data[split:offset], list[str], path)
        finished = length == 0
    if finished and offset < len(data):
        raise TraceError(path, None, None, f"bytes follow the end of the segment at byte {offset}")
    return Segment(path, head, names, b"".join(records), finished)


def _decode_head(data: bytes, path: Path) -> tuple[Head | None, int]:
    """The head and where it ends; None if the file ends before its head does."""
    if data[:8] != MAGIC[: len(data)] and data.strip(b"\0"):
        raise TraceError(path, None, None, f"not a trace segment: it does not begin with {MAGIC!r}")
    if len(data) < _HEAD_BYTES or not data.strip(b"\0"):
        return None, 0
    _, version, length, check = _HEAD.unpack_from(data)
    if version != VERSION:
        raise TraceError(
            path, None, None, f"segment format version {version}; this reader knows {VERSION}"
        )
    (own_check,) = _CHECK.unpack_from(data, _HEAD.size)
    end = _HEAD_BYTES + length
    if crc32(data[: _HEAD.size]) != own_check:
        raise TraceError(path, None, None, "the head of the segment is damaged (checksum)")
    if end > len(data):
        return None, 0
    if crc32(data[_HEAD_BYTES:end]) != check:
        raise TraceError(path, None, None, "the head of the segment is damaged (checksum)")
    return _decode(data[_HEAD_BYTES:end], Head, path), end


def _is_torn(data: bytes, offset: int, path: Path) -> bool:
    """Does the readable part of the segment end at `offset`? Raises where there is damage."""
    front = data[offset : offset + _BLOCK_BYTES]
    if len(front) < _BLOCK_BYTES:
        return True
    if not front.strip(b"\0") and not data[offset:].strip(b"\0"):
        return True  # the power failed before the bytes reached the disk
    length, count, check = _BLOCK.unpack_from(data, offset)
    (own_check,) = _CHECK.unpack_from(data, offset + _BLOCK.size)
    if crc32(front[: _BLOCK.size]) != own_check or count * RECORD.size > length:
        raise TraceError(path, None, None, f"damaged at byte {offset}: not the start of a block")
    end = offset + _BLOCK_BYTES + length
    if end > len(data):
        return True
    if crc32(memoryview(data)[offset + _BLOCK_BYTES : end]) == check:
        return False
    if end == len(data):
        return True
    raise TraceError(path, None, None, f"damaged: checksum of the block at byte {offset} is wrong")


def _decode(body: bytes, shape: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.DecodeError as reason:
        raise TraceError(path, None, None, f"damaged: {reason}") from reason
