"""How a sequencer or a node is to run: every key, its default, and what is wrong with a value.

Where the values come from is the matter of `ordercast.service.layers`.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel
from ordercast.errors import ConfigError
from ordercast.protocols.registry import choose
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.options import NodeOptions
from ordercast.transport.tls import Tls

LogFormat = Literal["logfmt", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

OFF = "off"
ADDRESSES = ("listen", "advertise", "http")
NAMES = {"name": "node", "cluster": "cluster", "site": "site"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said about every process that runs a node."""

    name: str = ""  # how the cluster knows it; by default the host's name and the port
    listen: str = "127.0.0.1:7700"  # where other nodes connect to
    advertise: str = ""  # the same as others see it, behind NAT or in a container
    peers: tuple[str, ...] = ()  # nodes of the cluster, itself too if you like: one must run
    bootstrap: bool = False  # start the cluster, if none of the peers runs
    cluster: str = "ordercast"  # the name of the cluster; nodes of another one are refused
    key_file: str = ""  # file with the key of the cluster; or put the key into `ORDERCAST_KEY`
    tls_cert: str = ""  # its certificate (PEM); all three of these, or none
    tls_key: str = ""  # the private key of its certificate (PEM)
    tls_ca: str = ""  # certificate of the cluster's authority (PEM)
    insecure: bool = False  # speak in plain text to other machines too
    http: str = "127.0.0.1:9464"  # where `/healthz`, `/readyz` and `/metrics` are; "off": nowhere
    log_format: LogFormat = "logfmt"  # lines on the standard error: "logfmt" or "json"
    log_level: LogLevel = "info"  # "debug", "info", "warning" or "error"
    node: dict[str, Any] = {}  # limits and delays of the node, as in API.md

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        """As `Node` takes them, beside where the cluster is."""
        return {
            "name": self.node_name,
            "bind": self.listen,
            "advertise": self.advertise or None,
            "cluster": self.cluster,
            "key": key,
            "tls": self.tls,
            "insecure": self.insecure,
            **self.node,
        }

    @property
    def node_name(self) -> str:
        """The name that was given, or one that is unique among daemons."""
        return self.name or f"{socket.gethostname()}-{self.listen.rpartition(':')[2]}"

    @property
    def tls(self) -> Tls | None:
        """The three files, if there are any."""
        if not self.tls_cert:
            return None
        return Tls(self.tls_cert, self.tls_key, self.tls_ca)

    @property
    def other_peers(self) -> tuple[str, ...]:
        """The peers without this one: the same list can be given to all."""
        return tuple(p for p in self.peers if p not in (self.listen, self.advertise))

    def given_key(self, from_environment: str | None) -> str | None:
        """The key of the file, or else of the environment. Space around it is no part of it."""
        if not self.key_file:
            return from_environment
        return Path(self.key_file).read_text(encoding="utf-8").strip()


class SequencerSettings(Settings, frozen=True, kw_only=True):
    """Everything that can be said about a sequencer."""

    drain_timeout: float = 30.0  # seconds that a stop gives to hand its groups to others

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        return {**super().node_arguments(key), "sequencer": True}


class NodeSettings(Settings, frozen=True, kw_only=True):
    """Everything that can be said about a node that is a member of groups."""

    http: str = "off"  # where `/healthz`, `/readyz` and `/metrics` are; "off": nowhere
    site: str = ""  # where it is, for groups with subgroups
    gateway: bool = False  # it offers to be the gateway of its site
    group: tuple[str, ...] = ()  # groups to join; what is typed goes to the first
    order: str = ""  # of its groups
    protocol: str = ""  # of its groups, if not the usual one of their order
    delivery_level: DeliveryLevel | Literal[""] = ""  # of `two_layered`: "causal", "preack", "ack"
    trace: str = ""  # directory to record to

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        where = {"site": self.site, "gateway": self.gateway, "trace": self.trace or None}
        return {**super().node_arguments(key), **where}

    def join_arguments(self) -> dict[str, Any]:
        """As `Node.join` takes them. Several groups are joined knowing what holds between them."""
        order, protocol = self.order or None, self.protocol or None
        alone = choose(order, protocol).declaration.scope == "group"
        return {
            "order": order,
            "protocol": protocol,
            "scope": "group" if alone else None,
            "delivery_level": self.delivery_level or None,
        }


KINDS: tuple[type[Settings], ...] = (SequencerSettings, NodeSettings)

NOT_SETTABLE: dict[type[Settings], tuple[str, ...]] = {
    SequencerSettings: (
        "sequencer", "discover", "codec", "resilience", "uniform", "site", "gateway",
        "wide_batch_ms", "wide_batch_bytes",
    ),
    NodeSettings: ("sequencer", "discover", "codec", "site", "gateway"),
}  # fmt: skip
"""Options of a node that it has by itself, as keys of their own, or that do not concern it."""


def node_options(kind: type[Settings]) -> tuple[str, ...]:
    """The options that can stand under `[node]`."""
    return tuple(key for key in NodeOptions.__struct_fields__ if key not in NOT_SETTABLE[kind])


# -- one value ------------------------------------------------------------------------------------


def checked(key: str, value: object) -> Any:
    """The value of that key; `ValueError` says what would be right."""
    kind = kind_of(key)
    if kind == "switch" and not isinstance(value, bool):
        raise ValueError(f"{key} = {value!r} is wrong; write true or false")
    if kind == "whole number" and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{key} = {value!r} is wrong; write a whole number")
    if kind == "number":
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"{key} = {value!r} is wrong; write a positive number")
        return float(value)
    if kind == "list":
        return _checked_list(key, value)
    return _checked_text(key, value) if kind == "text" else value


def _checked_list(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        example = "10.0.0.5:7700" if key == "peers" else "orders"
        raise ValueError(f"{key} = {value!r} is wrong; write a list like ['{example}']")
    for one in value:
        if key == "peers":
            parse_address(key, one)
        else:
            check_name(key, one)
    return tuple(value)


def _checked_text(key: str, value: object) -> str:
    choices = _choices(key)
    if choices and value not in choices:
        listed = " or ".join(map(repr, choices))
        raise ValueError(f"{key} = {value!r} is wrong; write {listed}")
    if not isinstance(value, str):
        example = "an address like '127.0.0.1:7700'" if key in ADDRESSES else "text in quotes"
        raise ValueError(f"{key} = {value!r} is wrong; write {example}")
    if key in ADDRESSES and value and not (key == "http" and value == OFF):
        parse_address(key, value)
    if key in NAMES and value:
        check_name(NAMES[key], value)
    return value


def kind_of(key: str) -> str:
    """Which kind of value a key has: text, switch, number, whole number or list."""
    table, _, option = key.rpartition(".")
    owners = (NodeOptions,) if table else (Settings, *KINDS)
    annotation = next(
        owner.__annotations__[option] for owner in owners if option in owner.__annotations__
    )
    kinds = {"bool": "switch", "int": "whole number", "float": "number", "tuple[str, ...]": "list"}
    return kinds.get(annotation, "text")


def _choices(key: str) -> tuple[str, ...]:
    kinds: dict[str, Any] = {
        "log_format": LogFormat, "log_level": LogLevel, "delivery_level": DeliveryLevel,
    }  # fmt: skip
    return get_args(kinds[key]) if key in kinds else ()


# -- all values together --------------------------------------------------------------------------


def contradictions(settings: Settings) -> list[str]:
    """What is wrong with these values together."""
    found = []
    if not settings.bootstrap and not settings.other_peers:
        found.append(
            "neither bootstrap nor peers: name the address of a node that runs in peers, or say "
            "bootstrap = true to start the cluster here"
        )
    files = {key: getattr(settings, key) for key in ("tls_cert", "tls_key", "tls_ca")}
    missing = [key for key, file in files.items() if not file]
    if missing and len(missing) < len(files):
        found.append(f"TLS needs all three of {', '.join(files)}; {', '.join(missing)} is missing")
    try:
        NodeOptions.given(settings.node)
    except (ConfigError, ValueError, TypeError) as reason:
        found.append(f"[node]: {reason}")
    if isinstance(settings, NodeSettings):
        found += _contradictions_of_a_member(settings)
    return found


def _contradictions_of_a_member(settings: NodeSettings) -> list[str]:
    found = []
    if settings.gateway and not settings.site:
        found.append("gateway without site: say which site's, as site = 'tokyo'")
    if not settings.group:
        found.append("no group: name in group what this node is to join")
    else:
        try:
            settings.join_arguments()
        except ValueError as reason:
            found.append(str(reason))
    return found
