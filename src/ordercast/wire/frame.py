"""The frame: the unit that travels. See docs/WIRE.md for the layout.

    length  version  tag  channel  era  header size | header (msgpack) | payload
    u32     u8       u8   u32      u32  u32

The length counts the whole frame. It is checked as soon as the fixed part is in, before room is
made for the rest.
"""

from __future__ import annotations

from struct import Struct

from ordercast.errors import FrameError

WIRE_VERSION = 1

Frame = tuple[int, int, int, bytes, bytes]
"""(channel, tag, era, header bytes, payload bytes)"""

FIXED = Struct("!IBBIII")
FIXED_SIZE = FIXED.size

CHANNEL = Struct("!I")
CHANNEL_AT = 6  # bytes before it

_pack_fixed = FIXED.pack
_unpack_fixed = FIXED.unpack_from


def pack(channel: int, tag: int, era: int, header: bytes, payload: bytes) -> bytes:
    """One contiguous frame."""
    size = len(header)
    length = FIXED_SIZE + size + len(payload)
    return _pack_fixed(length, WIRE_VERSION, tag, channel, era, size) + header + payload


def channel_of(frame: bytes) -> int:
    """On which channel a whole frame travels."""
    channel: int = CHANNEL.unpack_from(frame, CHANNEL_AT)[0]
    return channel


class Splitter:
    """Bytes of one peer in, frames out. After a `FrameError` the stream has no meaning any more."""

    __slots__ = ("_tail", "_wanted", "max_frame")

    def __init__(self, max_frame: int) -> None:
        self.max_frame = max_frame  # bytes of a whole frame
        self._tail = bytearray()  # an incomplete frame
        self._wanted = 0  # so many bytes of the tail tell more than is known now

    @property
    def pending(self) -> int:
        """Bytes of an incomplete frame."""
        return len(self._tail)

    def feed(self, data: bytes) -> list[Frame]:
        """All frames that are complete now. Nothing in them refers to `data`."""
        if self._tail:
            if len(self._tail) + len(data) < self._wanted:
                self._tail += data
                return []
            data = b"".join((self._tail, data))
            self._tail.clear()
        frames: list[Frame] = []
        start = 0
        size = len(data)
        wanted = FIXED_SIZE
        while size - start >= FIXED_SIZE:
            length, version, tag, channel, era, header_size = _unpack_fixed(data, start)
            body = FIXED_SIZE + header_size
            if version != WIRE_VERSION or not body <= length <= self.max_frame:
                raise self._fault(length, version, header_size)
            end = start + length
            if end > size:
                wanted = length
                break
            body += start
            frames.append((channel, tag, era, data[start + FIXED_SIZE : body], data[body:end]))
            start = end
        if start < size:
            self._tail += data[start:] if start else data
            self._wanted = wanted
        return frames

    def _fault(self, length: int, version: int, header_size: int) -> FrameError:
        if version != WIRE_VERSION:
            return FrameError(f"a frame of wire version {version}; this side reads {WIRE_VERSION}")
        if length > self.max_frame:
            return FrameError(f"a frame of {length} bytes; the limit is {self.max_frame}")
        return FrameError(f"a frame of {length} bytes with a header of {header_size} bytes")
