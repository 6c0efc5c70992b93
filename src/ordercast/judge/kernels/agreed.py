"""An order of the messages of each group that most observers follow, and those who do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.merge import merge, orders_by_group, whole_orders
from ordercast.judge.kernels.run import Bools, Ints, Run


@dataclass(frozen=True)
class Agreed:
    """Who is no stray delivers the messages of a group by ascending rank."""

    rank: Ints  # by message; NONE: nobody delivers it
    strays: dict[int, Ints]  # group -> processes

    def is_stray(self, group: int, processes: Ints) -> Bools:
        """Which of the processes do not follow the order of this group?"""
        strays = self.strays.get(group)
        return np.zeros(len(processes), np.bool_) if strays is None else np.isin(processes, strays)


def agree(run: Run) -> Agreed:
    """One order for everything if that is possible, else one for each group."""
    whole = whole_orders(run)
    merged = merge(run, whole, np.ones(len(whole), np.bool_), to_the_end=False)
    if not merged.stuck.any():
        return Agreed(merged.rank, {})
    by_group = orders_by_group(run)
    merged = merge(run, by_group, np.ones(len(by_group), np.bool_), to_the_end=True)
    strays: dict[int, Ints] = {}
    for scope in np.flatnonzero(merged.stuck).tolist():
        lost = [s for s in by_group.in_scope(scope) if not merged.fits(by_group.of(s))]
        strays[by_group.groups[scope]] = by_group.process[lost]
    return Agreed(merged.rank, strays)
