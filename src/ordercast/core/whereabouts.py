"""Where a node is: which site, and whether it offers to be the gateway of that site.

The nodes of one site that are in a group form a subgroup of it, where the protocol has subgroups.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId


class Whereabouts(msgspec.Struct, frozen=True, array_like=True):
    """As the node says itself. It holds for as long as its number does."""

    site: str = ""  # empty: it does not say
    gateway: bool = False  # it is well connected: others of its site are asked only without it


NOWHERE = Whereabouts()

Subgroups = tuple[tuple[ProcessId, ...], ...]
"""the members of a group by where they are; the first of each is its gateway"""


def is_partition(members: tuple[ProcessId, ...], subgroups: Subgroups) -> bool:
    """Is each member in exactly one subgroup? No subgroups at all are right, too."""
    listed = [p for inside in subgroups for p in inside]
    return not subgroups or (all(subgroups) and sorted(listed) == sorted(members))
