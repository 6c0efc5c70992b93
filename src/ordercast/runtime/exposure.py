"""Refuses options by which a node would send plain text to other machines without `insecure`."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.errors import ConfigError
from ordercast.runtime.addresses import parse_address
from ordercast.transport.security import Security
from ordercast.transport.settings import IpMulticast, Transport, label_of

WAYS_OUT = (
    "Give tls=Tls(...) (with transport='tcp'), or use an address of this machine "
    "(127.0.0.1, ::1, localhost), or say insecure=True if everybody on the network may read and "
    "change what the nodes say"
)


def check_exposure(
    security: Security, transport: Transport, addresses: Iterable[tuple[str, str]]
) -> None:
    """`ConfigError` if plain text would go to one of these, or if there can be no TLS.

    Each address comes with the option that it was given as.
    """
    if security.tls is not None and transport != "tcp":
        raise ConfigError(
            f"tls= with transport={label_of(transport)!r}: datagrams are not encrypted. Use "
            "transport='tcp', or leave tls= out"
        )
    for option, address in addresses:
        check_address(security, option, address)
    if isinstance(transport, IpMulticast) and transport.interface:
        _check_host(security, "interface", transport.interface, transport.interface)


def check_address(security: Security, option: str, address: str) -> None:
    """The same for one address."""
    _check_host(security, option, address, parse_address(option, address)[0])


def _check_host(security: Security, option: str, given: str, host: str) -> None:
    if not security.may_speak_to(host):
        raise ConfigError(
            f"{option}={given!r} is not an address of this machine alone, and nothing would be "
            f"encrypted. {WAYS_OUT}"
        )
