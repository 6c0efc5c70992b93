"""Which nodes are here and which are missing, as one node and the nodes that it hears see it.

It asks for nothing that needs a majority: a node that is cut off answers as well.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.diagnosis.report import NodeSeen
from ordercast.runtime.foreign_text import printable
from ordercast.runtime.reasons import why_unreachable
from ordercast.runtime.status import query_status
from ordercast.runtime.status_decoding import parts_of_status

MAX_OTHERS = 4096  # nodes that are asked because one node names them


class MissingNode(msgspec.Struct, frozen=True):
    """A node of the node view of which nothing is heard."""

    identity: str
    address: str
    silent_seconds: float
    votes: bool


class Holding(msgspec.Struct, frozen=True):
    """What a node that is here holds."""

    identity: str
    address: str
    node_view: str  # number/generation
    groups: tuple[str, ...]  # each with the number of its view
    trouble: str = ""  # why it did not answer


class Survey(msgspec.Struct, frozen=True):
    """As one node sees its cluster."""

    asked: str  # the identity of that node
    view: int  # the number of its node view
    has_majority: bool
    missing: tuple[MissingNode, ...]
    here: tuple[Holding, ...]


class ViewTold(msgspec.Struct, frozen=True):
    """The node view, in a status."""

    number: int
    members: list[str]
    voters: list[str]
    generation: int = 0


class GroupTold(msgspec.Struct, frozen=True):
    """A group that a node is in."""

    view: int


class NodeStats(msgspec.Struct, frozen=True):
    """The figures of a node that is in a cluster."""

    node_view: ViewTold
    suspicions: list[str] = []
    blocked: list[str] = []
    silent_ms: dict[str, float] = {}
    groups: dict[str, GroupTold] = {}


class NodeStatus(msgspec.Struct, frozen=True):
    """What matters of a status."""

    state: str
    name: str = ""
    incarnation: int = 0
    nodes: list[NodeSeen] = []
    stats: NodeStats | None = None


async def survey(address: str, *, timeout: float = 5.0, **security: Any) -> Survey:
    """Ask that node, and each node that it hears. `UsageError` if it is not in a cluster."""
    told = await _status(address, timeout, security)
    if told.stats is None:
        state = printable(told.state)
        raise UsageError(f"the node at {address} is not in the cluster now ({state})")
    view, silent, silent_ms = told.stats.node_view, told.stats.suspicions, told.stats.silent_ms
    addresses = {node.identity: node.address for node in told.nodes}
    missing = tuple(
        MissingNode(who, addresses.get(who, ""), silent_ms.get(who, 0.0) / 1000, who in view.voters)
        for who in silent
    )
    asked = f"{told.name}#{told.incarnation}"
    others = [who for who in view.members if who not in silent and who != asked]
    if len(others) > MAX_OTHERS:
        raise PeerError(f"{address} knows of {len(others)} nodes: that cannot be")
    answers = await asyncio.gather(
        *(_ask(who, addresses.get(who, ""), timeout, security) for who in others)
    )
    here = (_holding(asked, address, told), *answers)
    return Survey(asked, view.number, not told.stats.blocked, missing, here)


async def _status(address: str, timeout: float, security: dict[str, Any]) -> NodeStatus:
    status = await query_status(address, timeout=timeout, **security)
    return parts_of_status(address, status, NodeStatus)


async def _ask(identity: str, address: str, timeout: float, security: dict[str, Any]) -> Holding:
    try:
        return _holding(identity, address, await _status(address, timeout, security))
    except (OSError, PeerError, ValueError) as reason:
        return Holding(identity, address, "", (), why_unreachable(reason))


def _holding(identity: str, address: str, told: NodeStatus) -> Holding:
    if told.stats is None:
        return Holding(identity, address, "", (), f"it is {told.state}")
    view = told.stats.node_view
    groups = (f"{name} at view {group.view}" for name, group in told.stats.groups.items())
    return Holding(identity, address, f"{view.number}/{view.generation}", tuple(groups))
