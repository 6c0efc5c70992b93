"""Who is here and who is missing, as one node and those that it hears tell it.

It asks for nothing that needs a majority: a node that is cut off answers as well.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.reasons import why_unreachable
from ordercast.runtime.status import query_status


class Missing(msgspec.Struct, frozen=True):
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
    missing: tuple[Missing, ...]
    here: tuple[Holding, ...]


async def survey(address: str, *, timeout: float = 5.0, **security: Any) -> Survey:
    """Ask that node, and each node that it hears. `UsageError` if it is not in a cluster."""
    told = await query_status(address, timeout=timeout, **security)
    if "stats" not in told:
        raise UsageError(f"the node at {address} is not in the cluster now ({told['state']})")
    stats = told["stats"]
    view, silent, voters = stats["node_view"], stats["suspicions"], stats["node_view"]["voters"]
    addresses = {f"{node['name']}#{node['incarnation']}": node["address"] for node in told["nodes"]}
    missing = tuple(
        Missing(
            identity,
            addresses.get(identity, ""),
            stats["silent_ms"].get(identity, 0) / 1000,
            identity in voters,
        )
        for identity in silent
    )
    asked = f"{told['name']}#{told['incarnation']}"
    others = [who for who in view["members"] if who not in silent and who != asked]
    answers = await asyncio.gather(
        *(_ask(who, addresses.get(who, ""), timeout, security) for who in others)
    )
    here = (_holding(asked, address, told), *answers)
    return Survey(asked, view["number"], not stats["blocked"], missing, here)


async def _ask(identity: str, address: str, timeout: float, security: dict[str, Any]) -> Holding:
    try:
        told = await query_status(address, timeout=timeout, **security)
        return _holding(identity, address, told)
    except (OSError, PeerError, ValueError) as reason:
        return Holding(identity, address, "", (), why_unreachable(reason))


def _holding(identity: str, address: str, told: dict[str, Any]) -> Holding:
    stats = told.get("stats")
    if stats is None:
        return Holding(identity, address, "", (), f"it is {told['state']}")
    view = stats["node_view"]
    groups = (f"{name} at view {group['view']}" for name, group in stats["groups"].items())
    return Holding(identity, address, f"{view['number']}/{view['generation']}", tuple(groups))
