"""Which members form a subgroup, and which of them is its gateway.

Who makes a view decides it from where the nodes say they are (`Whereabouts`), and puts it into the
view (`View.subgroups`). So all members of a view have the same subgroups, whatever they know of
each other. Where no member says where it is, the member list is cut into about as many runs as a
run is long: 002 finds that the work of a gateway is least then.

A gateway that is gone is in no view any more. The next view names the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isqrt

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.whereabouts import NOWHERE, Subgroups, Whereabouts


def subgroups_of(
    members: tuple[ProcessId, ...], whereabouts: Mapping[ProcessId, Whereabouts]
) -> Subgroups:
    """The subgroups of a view, in the order of their first members; each with its gateway first."""
    sites: dict[str, list[ProcessId]] = {}
    for p in members:
        sites.setdefault(whereabouts.get(p, NOWHERE).site, []).append(p)
    if set(sites) <= {NOWHERE.site}:
        return even_runs(members)
    return tuple(_gateway_first(inside, whereabouts) for inside in sites.values())


def _gateway_first(
    inside: list[ProcessId], whereabouts: Mapping[ProcessId, Whereabouts]
) -> tuple[ProcessId, ...]:
    offer = (p for p in inside if whereabouts.get(p, NOWHERE).gateway)
    gateway = next(offer, inside[0])
    return (gateway, *(p for p in inside if p != gateway))


def even_runs(members: tuple[ProcessId, ...]) -> Subgroups:
    """About sqrt(n) runs of about sqrt(n) members."""
    n, root = len(members), isqrt(len(members))
    k = root + (n > root * root + root)  # the integer nearest to sqrt(n)
    return tuple(members[i * n // k : (i + 1) * n // k] for i in range(k))


class Layout(msgspec.Struct, frozen=True):
    """The subgroups of a view, and where each member stands. Nobody changes it."""

    subgroups: Subgroups
    gateways: tuple[ProcessId, ...]
    site: dict[ProcessId, int]  # i of p_iu
    column: dict[ProcessId, int]  # u of p_iu
    place: dict[ProcessId, int]  # in the member list


NOBODY_ANYWHERE = Layout((), (), {}, {}, {})


@lru_cache(maxsize=64)
def layout_of(members: tuple[ProcessId, ...], subgroups: Subgroups) -> Layout:
    """One for all who install the same view: simulated processes share it."""
    return Layout(
        subgroups,
        tuple(inside[0] for inside in subgroups),
        {p: i for i, inside in enumerate(subgroups) for p in inside},
        {p: u for inside in subgroups for u, p in enumerate(inside)},
        {p: place for place, p in enumerate(members)},
    )
