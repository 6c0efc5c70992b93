"""Why no node answers at an address, in the same words for every error and command."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Literal

from ordercast.errors import PeerError
from ordercast.transport.tls import fault_of

Trouble = Literal[
    "unresolved", "refused", "silence", "no_route", "certificate", "tls", "hung_up", "peer", "other"
]

NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EINVAL)


def trouble_of(error: Exception) -> tuple[Trouble, str]:
    """The kind of failure, and what was seen of it."""
    if isinstance(error, socket.gaierror):
        return "unresolved", f"the name does not resolve ({error.strerror})"
    if isinstance(error, ConnectionRefusedError):
        return "refused", "connection refused: nobody listens there"
    if isinstance(error, TimeoutError):
        return "silence", f"{error or 'no answer in time'}: silence, as behind a firewall"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate", f"TLS failed: {fault_of(error)}"
    if isinstance(error, ssl.SSLError):
        return "tls", f"TLS failed: {fault_of(error)}"
    if isinstance(error, ConnectionError):
        return (
            "hung_up",
            f"it closed the connection ({error.strerror or error or type(error).__name__})",
        )
    if isinstance(error, OSError) and error.errno in NO_ROUTE:
        return "no_route", f"no route there from this machine ({error.strerror or error})"
    kind: Trouble = "peer" if isinstance(error, PeerError) else "other"
    return kind, str(error) or type(error).__name__


def why_unreachable(error: Exception) -> str:
    """In words, why no node answered at an address."""
    return trouble_of(error)[1]
