"""What protects the connections of a node: the key of its cluster, TLS, both or neither."""

from __future__ import annotations

from typing import Self

from ordercast.transport.tls import Tls, TlsContexts, as_tls

MIN_KEY_BYTES, MAX_KEY_BYTES = 16, 1024


class Security:
    """Checked once, when it is made. The key is in no text that this object gives of itself."""

    __slots__ = ("contexts", "key", "tls")

    def __init__(self, *, key: bytes = b"", tls: Tls | None = None) -> None:
        self.key = key
        self.tls = tls
        self.contexts = None if tls is None else TlsContexts(tls)

    @classmethod
    def given(cls, key: object, tls: object) -> Self:
        """Of what was given as `key=` and `tls=`."""
        return cls(key=_checked_key(key), tls=as_tls(tls))

    def __repr__(self) -> str:
        return f"<Security: key {'given' if self.key else 'none'}, tls {self.tls}>"


NONE = Security()


def _checked_key(key: object) -> bytes:
    if key is None:
        return b""
    if not isinstance(key, str | bytes):
        raise TypeError(f"key is bytes or a str, not {type(key).__name__}")
    data = key.encode() if isinstance(key, str) else key
    if not MIN_KEY_BYTES <= len(data) <= MAX_KEY_BYTES:
        raise ValueError(
            f"the key has {len(data)} bytes; it must have {MIN_KEY_BYTES} to {MAX_KEY_BYTES}, "
            "which nobody can guess: openssl rand -hex 32"
        )
    return data
