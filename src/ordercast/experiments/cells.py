"""Groups whose overlap is clustered: processes live in cells, and groups keep to a cell, mostly.

Groups that are drawn from all processes at random hang together nearly all. In cells it can be said
how much they do.
"""

from __future__ import annotations

from random import Random

from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import ConfigError


def celled_groups(
    *, members: int, cell: int, groups: int, size: int, outside: float, rng: Random
) -> dict[GroupId, frozenset[ProcessId]]:
    """In turn to each cell; this share of the members of a group is drawn from outside its cell."""
    if members % cell or members == cell:
        raise ConfigError(
            f"members = {members} and cell = {cell}: there must be several full cells"
        )
    if size > min(cell, members - cell):
        raise ConfigError(f"group_size = {size} and cell = {cell}: a cell has too few for a group")
    found: dict[GroupId, frozenset[ProcessId]] = {}
    for g in range(1, groups + 1):
        first = g % (members // cell) * cell
        own = range(first, first + cell)
        chosen = {p for p in rng.sample(own, size) if rng.random() >= outside}
        elsewhere = [p for p in range(members) if p not in own]
        chosen.update(rng.sample(elsewhere, size - len(chosen)))
        found[g] = frozenset(chosen)
    return found
