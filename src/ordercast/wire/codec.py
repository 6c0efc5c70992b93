"""Headers to bytes and back, for the one protocol that a channel carries.

The tag of a frame is the index of its header's type in the protocol's fixed list of headers.
A header that wraps another one (a field `header: msgspec.Struct`, as a link's does) travels with
the pair (tag, bytes) of the inner header in that field's place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import msgspec

from ordercast.errors import FrameError
from ordercast.wire.frame import FIXED_SIZE, pack

MAX_HEADERS = 256  # the tag is one byte

MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)
"""What msgspec raises for bytes that are not what they should be."""

Closed = tuple[Annotated[int, msgspec.Meta(ge=0)], bytes]
"""(tag, bytes) of a wrapped header"""

_encode = msgspec.msgpack.Encoder().encode


class ChannelCodec:
    """The headers of one protocol."""

    def __init__(self, headers: tuple[type[msgspec.Struct], ...]) -> None:
        assert len(set(headers)) == len(headers) <= MAX_HEADERS, headers
        self.headers = headers
        self._tags: dict[type, int] = {header: tag for tag, header in enumerate(headers)}
        self._wrappers = {h: _Wrapper(h) for h in headers if _wraps(h)}
        self._decoders: list[Callable[[bytes], Any]] = [
            self._wrapper_decoder(h) if h in self._wrappers else msgspec.msgpack.Decoder(h).decode
            for h in headers
        ]

    def encode(self, channel: int, era: int, header: msgspec.Struct, payload: bytes) -> bytes:
        """One frame."""
        tag, raw = self.encode_header(header)
        return pack(channel, tag, era, raw, payload)

    def encode_header(self, header: msgspec.Struct) -> tuple[int, bytes]:
        """The tag and the bytes of a header."""
        kind = type(header)
        if self._wrappers and kind in self._wrappers:
            inner = header.header  # type: ignore[attr-defined]
            header = self._wrappers[kind].close(header, self.encode_header(inner))
        return self._tags[kind], _encode(header)

    def overhead(self, header: msgspec.Struct) -> int:
        """Bytes of a frame with this header, beside its payload."""
        return FIXED_SIZE + len(self.encode_header(header)[1])

    def decode(self, tag: int, header: bytes) -> msgspec.Struct:
        """The header, with every field of its declared type; else a `FrameError`."""
        try:
            decoder = self._decoders[tag]
        except IndexError:
            raise FrameError(f"no header has the tag {tag} on this channel") from None
        try:
            decoded: msgspec.Struct = decoder(header)
        except MALFORMED as error:
            name = self.headers[tag].__name__
            raise FrameError(f"the header {name} is malformed: {error}") from None
        return decoded

    def _wrapper_decoder(self, kind: type[msgspec.Struct]) -> Callable[[bytes], msgspec.Struct]:
        wrapper = self._wrappers[kind]

        def decode(raw: bytes) -> msgspec.Struct:
            closed = wrapper.decode(raw)
            tag, inner = closed.header
            # A header wrapped again and again would cost a stack frame for every few bytes.
            if tag < len(self.headers) and self.headers[tag] in self._wrappers:
                raise FrameError(f"the header {kind.__name__} wraps one that wraps another")
            return wrapper.open(closed, self.decode(tag, inner))

        return decode


def _wraps(header: type[msgspec.Struct]) -> bool:
    return (
        "header" in header.__struct_fields__ and get_type_hints(header)["header"] is msgspec.Struct
    )


class _Wrapper:
    """A header type, and its twin whose inner header is the pair (tag, bytes)."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        hints = get_type_hints(kind, include_extras=True)
        hints["header"] = Closed
        fields = [(name, hints[name]) for name in kind.__struct_fields__]
        self.kind = kind
        self.twin = msgspec.defstruct(kind.__name__, fields, frozen=True, array_like=True)
        self.decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(self.twin).decode

    def close(self, header: msgspec.Struct, inner: tuple[int, bytes]) -> msgspec.Struct:
        return self.twin(**{**msgspec.structs.asdict(header), "header": inner})

    def open(self, twin: msgspec.Struct, inner: msgspec.Struct) -> msgspec.Struct:
        return self.kind(**{**msgspec.structs.asdict(twin), "header": inner})
