"""The node that cannot get in, as it would be started."""

from __future__ import annotations

import ssl
from typing import Any

import msgspec

from ordercast.core.ids import check_name
from ordercast.protocols.registry import choose
from ordercast.runtime.addresses import Address, parse_address
from ordercast.runtime.keywords import unknown
from ordercast.runtime.options import NodeOptions
from ordercast.transport.security import NONE, Security
from ordercast.wire.control import Hello

ANONYMOUS = "doctor"  # the name under which questions are asked if the node's is not known
PATIENCE = 3.0  # seconds that each step of a probe gets


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the node. What is not given is not checked."""

    name: str | None = None
    cluster: str = "ordercast"
    bind: str | None = None
    group: str | None = None
    order: str | None = None
    protocol: str | None = None
    options: dict[str, Any] = {}  # of the node, by name: max_message, heartbeat_ms, ...
    security: Security = NONE  # its key and its TLS
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        check_name("cluster", self.cluster)
        if self.name is not None:
            check_name("node", self.name)
        if self.bind is not None:
            parse_address("bind", self.bind)
        self._check_group()
        if wrong := unknown(self.options, NodeOptions.__struct_fields__):
            raise ValueError(f"a Node has {wrong}")
        self.node_options()
        if not self.patience > 0:
            raise ValueError(f"timeout={self.patience} must be positive")

    def _check_group(self) -> None:
        if self.group is not None:
            check_name("group", self.group)
        if self.order is not None:
            choose(self.order, self.protocol)
        if self.group is None and (self.order or self.protocol):
            raise ValueError(f"order={self.order!r} without a group: name the group to join")

    def node_options(self) -> NodeOptions:
        """All options, as the node would have them; a `ConfigError` if they contradict."""
        return NodeOptions.given(self.options)

    def shared(self) -> dict[str, object]:
        """The options given that must be the same on all nodes."""
        return {k: v for k, v in self.node_options().shared().items() if k in self.options}

    @property
    def listens_at(self) -> Address | None:
        """Host and port of `bind`."""
        return None if self.bind is None else parse_address("bind", self.bind)

    @property
    def tls(self) -> ssl.SSLContext | None:
        """For connections from here; None: in plain text."""
        contexts = self.security.contexts
        return None if contexts is None else contexts.connecting

    def hello(self) -> Hello:
        """How it introduces itself before it was let in."""
        return Hello(cluster=self.cluster, name=self.name or ANONYMOUS, incarnation=0)
