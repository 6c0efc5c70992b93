"""What a join asks for, and whether it fits the groups that the node is in already.

An order across groups holds between groups of one protocol that keeps it there. Between two groups
of the same order in any other case nothing is promised: the node must show that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ordercast.errors import ScopeError
from ordercast.protocols.registry import PROTOCOLS, across_groups, choose

SCOPES = ("group", "domain")


class RequestedOrder(NamedTuple):
    """The order of a group, by which protocol, and the scope that was asked for."""

    order: str
    protocol: str
    scope: str | None

    @property
    def spans_groups(self) -> bool:
        """Does its protocol keep the order across groups?"""
        return PROTOCOLS[self.protocol].declaration.scope == "domain"

    def agrees_with(self, other: RequestedOrder) -> bool:
        """Is what is promised between a group of each the same as what was asked for?"""
        if self.order == "none":  # it promises nothing between two messages, in whatever groups
            return True
        if self.order != other.order or "group" in (self.scope, other.scope):
            return True
        return self.protocol == other.protocol and self.spans_groups


def requested_order(order: str | None, protocol: str | None, scope: str | None) -> RequestedOrder:
    """What was asked for, with what it leaves open filled in."""
    if scope is not None and scope not in SCOPES:
        raise ValueError(f"scope={scope!r} is unknown; use 'group' or 'domain'")
    declared = choose(order, protocol).declaration
    chosen = RequestedOrder(order or declared.order, declared.name, scope)
    if protocol is None and scope == "domain" and not chosen.spans_groups:
        return chosen._replace(protocol=next(iter(across_groups(chosen.order)), declared.name))
    return chosen


def check_scope(name: str, asked: RequestedOrder, others: Mapping[str, RequestedOrder]) -> None:
    """Raise `ScopeError` if the protocols promise less than the caller may believe."""
    if asked.scope == "domain" and not asked.spans_groups:
        raise ScopeError(
            f"protocol {asked.protocol!r} keeps order {asked.order!r} inside one group only; "
            f"{_offer(asked.order)}. Inside one group: join {name!r} with scope='group'"
        )
    for other, had in others.items():
        if not asked.agrees_with(had):
            raise ScopeError(
                f"this node is in group {other!r} with order {asked.order!r} by protocol "
                f"{had.protocol!r}, or about to be: between {other!r} and {name!r}, by "
                f"{asked.protocol!r}, nothing would be promised; {_offer(asked.order)}. "
                f"If an order inside each group is enough, join {name!r} with scope='group'"
            )


def _offer(order: str) -> str:
    names = across_groups(order)
    if not names:
        return f"no protocol promises order {order!r} across groups"
    return f"across groups it is kept by {', '.join(names)}, if all groups use the same one"
