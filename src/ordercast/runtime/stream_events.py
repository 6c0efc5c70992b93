"""What a node's stream yields."""

from __future__ import annotations

from typing import Any

import msgspec


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message, in its place in the group's order."""

    group: str
    sender: str  # name of the node that sent it
    body: Any  # bytes, or what the node's codec made of them


class View(msgspec.Struct, frozen=True):
    """From here on these are the members of the group."""

    group: str
    number: int  # rises with every change; all members agree on the list of a number
    members: tuple[str, ...]  # in the order in which they came
    joined: tuple[str, ...] = ()  # since the previous view of this node
    left: tuple[str, ...] = ()  # gone since then, by leaving or by exclusion
    start: int = 0  # place in the protocol's numbering: a joiner gets what comes after; 0: none


class Merge(msgspec.Struct, frozen=True):
    """Two sides of a partition are one group again; the view that follows unites them."""

    group: str
    sides: tuple[tuple[str, ...], ...]  # the members of each, the chosen side first
    chosen: tuple[str, ...]  # the side whose state counts: the others join it


Event = Message | View | Merge
