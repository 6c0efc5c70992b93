"""Bodies: bytes by default, or whatever the node's codec can write. Pickle never."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ordercast.errors import FrameError
from ordercast.runtime.options import CodecName
from ordercast.wire.codec import MALFORMED

_ENCODERS: dict[CodecName, Callable[[Any], bytes]] = {
    "json": msgspec.json.Encoder().encode,
    "msgpack": msgspec.msgpack.Encoder().encode,
}
_DECODERS: dict[CodecName, Callable[[bytes], Any]] = {
    "json": msgspec.json.Decoder().decode,
    "msgpack": msgspec.msgpack.Decoder().decode,
}


class Bodies:
    """Turns what the application gives into bytes, and back."""

    def __init__(self, codec: CodecName | None) -> None:
        self.codec = codec
        self.plain = codec is None  # bytes stay as they are

    def encode(self, body: Any) -> bytes:
        """The bytes that travel."""
        if self.codec is not None:
            return _ENCODERS[self.codec](body)
        if isinstance(body, bytes | bytearray | memoryview):
            return bytes(body)
        raise TypeError(
            f"a body is bytes, not {type(body).__name__}; encode it, or give the node "
            "codec='json' or codec='msgpack'"
        )

    def encode_all(self, bodies: Iterable[Any]) -> list[bytes]:
        """The same for many; bytes are not touched."""
        listed = list(bodies)
        if self.plain and set(map(type, listed)) == {bytes}:
            return listed
        return [self.encode(body) for body in listed]

    def decode(self, raw: bytes) -> Any:
        """What the application gets."""
        if self.codec is None:
            return raw
        try:
            return _DECODERS[self.codec](raw)
        except MALFORMED as error:
            raise FrameError(f"a body is not {self.codec}: {error}") from None
