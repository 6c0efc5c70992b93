"""The settings of a sequencer and of a node: every key, its default, and checks of the values.

`ordercast.service.layers` finds the values.
"""

from __future__ import annotations

import socket
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from ordercast.core.ids import check_name
from ordercast.core.protocol import DeliveryLevel
from ordercast.errors import ConfigError
from ordercast.protocols.registry import DEFAULTS, choose
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.keywords import NodeKeywords, meanings
from ordercast.runtime.options import NodeOptions
from ordercast.transport.tls import Tls

LogFormat = Literal["logfmt", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

OFF = "off"
ADDRESSES = ("listen", "advertise", "http")
KINDS_OF_VALUES: dict[Any, str] = {
    bool: "switch",
    int: "whole number",
    int | None: "whole number",
    float: "number",
    tuple[str, ...]: "list",
}
NAMES = {"name": "node", "cluster": "cluster", "site": "site"}

NODE = meanings(NodeKeywords)  # a daemon says it in the same words
HTTP = (
    "Health and metrics (`/healthz`, `/readyz`, `/metrics`) are served at this `host:port`; with "
    '"off", they are not served.'
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of every process that runs a node."""

    name: Annotated[
        str, "Name of the node in its cluster. Without it, it is made of the host's name and port."
    ] = ""
    listen: Annotated[str, "The node listens at this `host:port`."] = "127.0.0.1:7700"
    advertise: Annotated[str, NODE["advertise"]] = ""
    peers: Annotated[
        tuple[str, ...],
        "Addresses of nodes of the cluster. One that runs is enough; the node's own address does "
        "no harm.",
    ] = ()
    bootstrap: Annotated[bool, "The node starts the cluster if none of the `peers` is running."] = (
        False
    )
    cluster: Annotated[str, NODE["cluster"]] = "ordercast"
    key_file: Annotated[
        str, "File with the key of the cluster. Without it, the key is read from `ORDERCAST_KEY`."
    ] = ""
    tls_cert: Annotated[
        str, "File with your certificate (PEM). TLS needs all three of these files."
    ] = ""
    tls_key: Annotated[str, "File with the private key of your certificate (PEM)."] = ""
    tls_ca: Annotated[str, "File with the certificate of the cluster's authority (PEM)."] = ""
    insecure: Annotated[bool, NODE["insecure"]] = False
    http: Annotated[str, HTTP] = "127.0.0.1:9464"
    log_format: Annotated[
        LogFormat, 'Form of the lines on the standard error: "logfmt" or "json".'
    ] = "logfmt"
    log_level: Annotated[
        LogLevel, 'Lowest level that is logged: "debug", "info", "warning" or "error".'
    ] = "info"
    node: Annotated[dict[str, Any], "Other options of the node; API.md lists them."] = {}

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        """The arguments of `Node`, except those that say where the cluster is."""
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
    """The settings of a sequencer."""

    drain_timeout: Annotated[
        float,
        "A sequencer that stops takes at most this many seconds to hand its groups to others.",
    ] = 30.0

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        return {**super().node_arguments(key), "sequencer": True}


class NodeSettings(Settings, frozen=True, kw_only=True):
    """The settings of a node that is a member of groups."""

    http: Annotated[str, HTTP] = "off"
    site: Annotated[str, NODE["site"]] = ""
    gateway: Annotated[bool, NODE["gateway"]] = False
    group: Annotated[
        tuple[str, ...], "Groups that the node joins. Lines of its input go to the first of them."
    ] = ()
    order: Annotated[str, f"Order of the messages in its groups: {', '.join(DEFAULTS)}."] = ""
    protocol: Annotated[
        str, "Protocol of its groups. Without it, the default protocol of their order."
    ] = ""
    delivery_level: Annotated[
        DeliveryLevel | Literal[""],
        'When `two_layered` delivers: at once ("causal"), when all members have the message '
        '("preack"), or when all know that all have it ("ack").',
    ] = ""
    trace: Annotated[str, NODE["trace"]] = ""

    def node_arguments(self, key: str | None = None) -> dict[str, Any]:
        where = {"site": self.site, "gateway": self.gateway, "trace": self.trace or None}
        return {**super().node_arguments(key), **where}

    def join_arguments(self) -> dict[str, Any]:
        """The arguments of `Node.join`. Where groups are ordered apart, `scope` says so."""
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
    annotation = next(types[option] for types in map(_types, owners) if option in types)
    return KINDS_OF_VALUES.get(annotation, "text")


@cache
def _types(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)


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
            "neither bootstrap nor peers: give in peers the address of a node that runs, or say "
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
        found.append("gateway without site: name the site of the gateway, as site = 'tokyo'")
    if not settings.group:
        found.append("no group: list in group what this node is to join, as group = ['orders']")
    else:
        try:
            settings.join_arguments()
        except ValueError as reason:
            found.append(str(reason))
    return found
