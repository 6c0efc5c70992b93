"""Which transport carries the packets of groups, as an application chooses it.

    Node(..., transport="tcp")                              the default
    Node(..., transport="udp")                              the same as Udp()
    Node(..., transport=Udp(max_datagram=60_000))
    Node(..., transport=IpMulticast("239.7.7.7:7700"))

The nodes' own affairs (who is in, who is gone) travel over TCP in every case.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address
from typing import Annotated, Literal

import msgspec

from ordercast.transport.contract import Address, MiB
from ordercast.transport.datagram import MAX_DATAGRAM, MIN_DATAGRAM

CHOICES = "'tcp', 'udp', Udp(...), IpMulticast('239.x.y.z:port', ...)"


class Datagrams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What both kinds of datagrams have in common. Sizes are bytes.

    `max_datagram` fits the MTU of common networks; on the loopback interface 60_000 is faster.
    The `inject_` options are for tests.
    """

    max_datagram: Annotated[
        int, "Size of the largest datagram, with our own header, but without those of IP and UDP."
    ] = 1400
    socket_buffer: Annotated[
        int,
        "The system is asked for a buffer of this size for each direction; it may grant less.",
    ] = 4 * MiB
    queue_bytes: Annotated[
        int,
        "Number of bytes that may wait for one receiver or audience. "
        "Packets beyond that are dropped and counted.",
    ] = 16 * MiB
    reassembly_bytes: Annotated[
        int, "Number of bytes of incomplete packets that are kept for each peer."
    ] = 16 * MiB
    reassembly_ms: Annotated[
        int, "An incomplete packet is dropped if no piece of it comes for this long."
    ] = 1000
    repair_bytes: Annotated[
        int, "Number of bytes of large packets that a sender keeps, to send lost pieces again."
    ] = 8 * MiB
    repair_ms: Annotated[int, "After this delay, a node asks for a piece that is missing."] = 10
    inject_loss: Annotated[
        float, "For tests: this share of the datagrams that arrive is dropped."
    ] = 0.0
    inject_duplicates: Annotated[
        float, "For tests: this share of the datagrams that arrive is taken twice."
    ] = 0.0
    inject_reordering: Annotated[
        float, "For tests: this share of the datagrams that arrive is taken after the next one."
    ] = 0.0
    seed: Annotated[int, "For tests: this number and the node's name decide what is injected."] = 0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name.startswith("inject_"):
                _check_share(name, value)
            elif name == "seed":
                _check_whole(name, value)
            elif name not in ("group", "interface"):
                _check_size(name, value)
        if not MIN_DATAGRAM <= self.max_datagram <= MAX_DATAGRAM:
            raise ValueError(
                f"max_datagram={self.max_datagram} must lie between {MIN_DATAGRAM} and "
                f"{MAX_DATAGRAM}, which UDP can carry"
            )


class Udp(Datagrams, frozen=True, kw_only=True, tag="udp"):
    """Packets of groups travel as UDP datagrams, to each member by itself."""

    @property
    def label(self) -> str:
        """What all nodes of a cluster must agree on."""
        return "udp"


class IpMulticast(Datagrams, frozen=True, tag="multicast"):
    """A packet for several members leaves once, to an IPv4 multicast group that all nodes join."""

    group: Annotated[
        str, 'IPv4 multicast group and port, as "239.7.7.7:7700". The same at all nodes.'
    ]
    interface: Annotated[
        str,
        "Address (not name) of the network interface. "
        "Without it, the one that the node is bound to.",
    ] = ""
    ttl: Annotated[int, "Number of networks that a packet may cross, its own included."] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.address  # noqa: B018  checks it
        if self.interface and _ipv4(self.interface) is None:
            raise ValueError(
                f"interface={self.interface!r} is not an IPv4 address; give the address of the "
                "interface, not its name"
            )
        if not 1 <= self.ttl <= 255:
            raise ValueError(f"ttl={self.ttl} must lie between 1 and 255")

    @property
    def address(self) -> Address:
        """Host and port of the group."""
        if not isinstance(self.group, str):
            raise TypeError(f"group is a str like '239.7.7.7:7700', not {self.group!r}")
        host, _, port = self.group.rpartition(":")
        numeric = port.isascii() and port.isdigit() and 0 < int(port) < 65_536
        ip = _ipv4(host)
        if not numeric or ip is None or not ip.is_multicast:
            raise ValueError(
                f"group={self.group!r} is not an IPv4 multicast address; write it like "
                "'239.7.7.7:7700' (224.0.0.0 to 239.255.255.255, port 1 to 65535)"
            )
        return host, int(port)

    @property
    def label(self) -> str:
        """What all nodes of a cluster must agree on."""
        return f"ip multicast {self.group}"


Transport = Literal["tcp"] | Udp | IpMulticast


def as_transport(choice: object) -> Transport:
    """What was chosen, checked; also in the form that JSON makes of it."""
    if choice == "tcp":
        return "tcp"
    if choice == "udp":
        return Udp()
    if isinstance(choice, Udp | IpMulticast):
        return choice
    if isinstance(choice, Mapping):
        return msgspec.convert(choice, Udp | IpMulticast)
    raise ValueError(f"transport={choice!r} is unknown; use one of {CHOICES}")


def label_of(transport: Transport) -> str:
    """As it is compared between nodes, and told to people."""
    return transport if isinstance(transport, str) else transport.label


def _check_whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    return value


def _check_size(name: str, value: object) -> None:
    if _check_whole(name, value) <= 0:
        raise ValueError(f"{name}={value} must be positive")


def _check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a share between 0 and 1, not {value!r}")
    if not 0 <= value < 1:
        raise ValueError(f"{name}={value} must be at least 0 and below 1")


def _ipv4(text: object) -> IPv4Address | None:
    try:
        return IPv4Address(text) if isinstance(text, str) else None
    except AddressValueError:
        return None
