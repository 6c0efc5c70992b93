"""The sockets of datagrams: one for this node alone, one for the multicast group."""

from __future__ import annotations

import contextlib
import socket

from ordercast.transport.contract import Address
from ordercast.transport.settings import IpMulticast

EVERYWHERE = "0.0.0.0"


def unicast_socket(address: Address, buffer_bytes: int) -> socket.socket:
    """Bound to the same host and port as the node's listener. `OSError` if that is taken."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    return _bound(socket.socket(family, socket.SOCK_DGRAM), address, buffer_bytes)


def multicast_socket(settings: IpMulticast, bound_to: str) -> socket.socket:
    """Hears what is sent to the group. All nodes of one machine share the port."""
    host, port = settings.address
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for option in ("SO_REUSEADDR", "SO_REUSEPORT"):
        if hasattr(socket, option):
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, option), 1)
    _bound(sock, (host, port), settings.socket_buffer)
    request = socket.inet_aton(host) + socket.inet_aton(_interface(settings, bound_to))
    _set(sock, "IP_ADD_MEMBERSHIP", request)
    return sock


def prepare_to_multicast(sock: socket.socket, settings: IpMulticast, bound_to: str) -> None:
    """What this socket sends to the group goes out of the interface, and back to this machine."""
    if sock.family != socket.AF_INET:
        raise OSError(f"bound to {bound_to}: an IPv4 multicast group needs an IPv4 address")
    _set(sock, "IP_MULTICAST_IF", socket.inet_aton(_interface(settings, bound_to)))
    _set(sock, "IP_MULTICAST_TTL", settings.ttl)
    _set(sock, "IP_MULTICAST_LOOP", 1)


def _interface(settings: IpMulticast, bound_to: str) -> str:
    return settings.interface or (EVERYWHERE if ":" in bound_to else bound_to)


def _bound(sock: socket.socket, address: Address, buffer_bytes: int) -> socket.socket:
    try:
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            with contextlib.suppress(OSError):  # the system grants what it likes
                sock.setsockopt(socket.SOL_SOCKET, option, buffer_bytes)
        sock.bind(address)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"UDP bind to {address[0]}:{address[1]}: {error}") from error
    return sock


def _set(sock: socket.socket, option: str, value: int | bytes) -> None:
    try:
        sock.setsockopt(socket.IPPROTO_IP, getattr(socket, option), value)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"{option} failed: {error}") from error
