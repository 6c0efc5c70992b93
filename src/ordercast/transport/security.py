"""What protects the connections of a node: the key of its cluster, TLS, both or neither.

Without TLS a node speaks in plain text, and does that on its own machine only, unless it was given
`insecure=True`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Self

from ordercast.transport.tls import Tls, TlsContexts, as_tls

MIN_KEY_BYTES, MAX_KEY_BYTES = 16, 1024


class Security:
    """Checked once, when it is made. Its `repr` does not show the key."""

    __slots__ = ("contexts", "insecure", "key", "tls")

    def __init__(self, *, key: bytes = b"", tls: Tls | None = None, insecure: bool = False) -> None:
        self.key = key
        self.tls = tls
        self.insecure = insecure  # plain text may leave this machine
        self.contexts = None if tls is None else TlsContexts(tls)

    @classmethod
    def given(cls, key: object, tls: object, insecure: object = False) -> Self:
        """Of what was given as `key=`, `tls=` and `insecure=`."""
        if not isinstance(insecure, bool):
            raise TypeError(f"insecure is True or False, not {insecure!r}")
        return cls(key=_checked_key(key), tls=as_tls(tls), insecure=insecure)

    def may_speak_to(self, host: str) -> bool:
        """Would what is said there be encrypted, or stay on this machine, or is that meant?"""
        return self.tls is not None or self.insecure or is_loopback(host)

    def __repr__(self) -> str:
        return f"<Security: key {'given' if self.key else 'none'}, tls {self.tls}>"


NONE = Security()


def is_loopback(host: str) -> bool:
    """An address of this machine that no other can reach. Names are not looked up."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _checked_key(key: object) -> bytes:
    if key is None:
        return b""
    if not isinstance(key, str | bytes):
        raise TypeError(f"key is bytes or a str, not {type(key).__name__}")
    data = key.encode() if isinstance(key, str) else key
    if not MIN_KEY_BYTES <= len(data) <= MAX_KEY_BYTES:
        raise ValueError(
            f"the key has {len(data)} bytes; it must have {MIN_KEY_BYTES} to {MAX_KEY_BYTES}, "
            "and nobody must be able to guess it: openssl rand -hex 32 makes one"
        )
    return data
