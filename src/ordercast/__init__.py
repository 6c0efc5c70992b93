"""Ordered, reliable group messaging for Python processes.

import ordercast as oc

async with oc.Node("alice", bootstrap=True) as node:
    prices = await node.join("prices", order="total")
    await prices.multicast(b"IBM 191.2")
    async for event in node:
        ...
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ordercast.errors import (
        AlreadyJoined,
        ConfigError,
        Excluded,
        FrameError,
        GroupClosed,
        JoinTimeout,
        MachineFailed,
        MessageTooLarge,
        NameTaken,
        NodeEnded,
        NodeOut,
        NotPrimary,
        OrdercastError,
        OrderMismatch,
        PeerError,
        ScopeError,
        StateUnavailable,
        TooSlow,
        TraceError,
        UsageError,
    )
    from ordercast.runtime.group import Group
    from ordercast.runtime.held_back import HeldBack
    from ordercast.runtime.keywords import SharedKeywords
    from ordercast.runtime.local_cluster import LocalCluster
    from ordercast.runtime.node import Node
    from ordercast.runtime.receipt import Receipt
    from ordercast.runtime.state import State
    from ordercast.runtime.status import query_status
    from ordercast.runtime.stream_events import Merge, Message, View
    from ordercast.trace.holds import WaitsFor
    from ordercast.transport.discovery import Discovery
    from ordercast.transport.settings import IpMulticast, Udp
    from ordercast.transport.tls import Tls

__all__ = [
    "AlreadyJoined",
    "ConfigError",
    "Discovery",
    "Excluded",
    "FrameError",
    "Group",
    "GroupClosed",
    "HeldBack",
    "IpMulticast",
    "JoinTimeout",
    "LocalCluster",
    "MachineFailed",
    "Merge",
    "Message",
    "MessageTooLarge",
    "NameTaken",
    "Node",
    "NodeEnded",
    "NodeOut",
    "NotPrimary",
    "OrderMismatch",
    "OrdercastError",
    "PeerError",
    "Receipt",
    "ScopeError",
    "SharedKeywords",
    "State",
    "StateUnavailable",
    "Tls",
    "TooSlow",
    "TraceError",
    "Udp",
    "UsageError",
    "View",
    "WaitsFor",
    "query_status",
]

_HOMES = {
    "Discovery": "transport.discovery",
    "Group": "runtime.group",
    "HeldBack": "runtime.held_back",
    "IpMulticast": "transport.settings",
    "LocalCluster": "runtime.local_cluster",
    "Merge": "runtime.stream_events",
    "Message": "runtime.stream_events",
    "Node": "runtime.node",
    "Receipt": "runtime.receipt",
    "SharedKeywords": "runtime.keywords",
    "State": "runtime.state",
    "Tls": "transport.tls",
    "Udp": "transport.settings",
    "View": "runtime.stream_events",
    "WaitsFor": "trace.holds",
    "query_status": "runtime.status",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the pipeline alone needs no sockets."""
    if name not in __all__:
        raise AttributeError(f"module 'ordercast' has no attribute {name!r}")
    value = getattr(import_module(f"ordercast.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value
