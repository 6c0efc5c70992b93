"""The sockets of datagrams: one for this node alone, one for the multicast group."""

from __future__ import annotations

import contextlib
import errno
import socket

from ordercast.errors import ConfigError
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
    interface = _interface(settings, bound_to)
    request = socket.inet_aton(host) + socket.inet_aton(interface)
    _set(sock, "IP_ADD_MEMBERSHIP", request, interface)
    return sock


def prepare_to_multicast(sock: socket.socket, settings: IpMulticast, bound_to: str) -> None:
    """What this socket sends to the group goes out of the interface, and back to this machine."""
    if sock.family != socket.AF_INET:
        raise ConfigError(
            f"bind={bound_to!r} with IpMulticast({settings.group!r}): multicast is for IPv4 only; "
            "bind the node to an IPv4 address"
        )
    interface = _interface(settings, bound_to)
    _set(sock, "IP_MULTICAST_IF", socket.inet_aton(interface), interface)
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


def _set(sock: socket.socket, option: str, value: int | bytes, interface: str = "") -> None:
    try:
        sock.setsockopt(socket.IPPROTO_IP, getattr(socket, option), value)
    except OSError as error:
        sock.close()
        if interface and error.errno in (errno.EADDRNOTAVAIL, errno.ENODEV):
            raise ConfigError(f"interface={interface!r} {_trouble(interface)}") from error
        raise OSError(error.errno, f"{option} failed: {error}") from error


def _trouble(interface: str) -> str:
    if interface == EVERYWHERE:
        return "leads nowhere: this machine has no route for multicast; give interface='address'"
    return "is no address of this machine, or of an interface without multicast"
