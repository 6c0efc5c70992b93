"""The views that a run records: their member lists, and where a process installs them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ordercast.judge.kernels.run import VIEW, Run, Turn

NO_VIEW = (1 << 63) - 1  # above every view, so that the lowest of some views is a plain minimum

Views = npt.NDArray[np.int64]


@dataclass
class GroupViews:
    """All views recorded for one group."""

    lists: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)  # view -> its lists
    _without: dict[str, Views] = field(default_factory=dict)

    def without(self, name: str) -> Views:
        """The recorded views of which `name` is not surely a member, ascending."""
        if name not in self._without:
            views = [view for view, members in self._sure.items() if name not in members]
            self._without[name] = np.array(sorted(views), np.int64)
        return self._without[name]

    @cached_property
    def _sure(self) -> dict[int, set[str]]:
        """Per view, the members that are in every list of it."""
        return {view: set.intersection(*map(set, lists)) for view, lists in self.lists.items()}


def recorded_views(run: Run) -> dict[int, GroupViews]:
    """The groups that have views, and all their lists."""
    found: dict[int, GroupViews] = {}
    for turns in run.turns:
        for turn in turns:
            if turn.kind == VIEW:
                lists = found.setdefault(turn.group, GroupViews()).lists
                lists.setdefault(turn.view, set()).add(turn.members)
    return found


class Installed:
    """The views of one group that one process installs."""

    def __init__(self, turns: list[Turn]) -> None:
        self.first = {turn.view: turn.row for turn in reversed(turns)}  # view -> its first row
        self._rows = [turn.row for turn in turns]
        self._highest = list(accumulate((turn.view for turn in turns), max))

    def first_from(self, view: int) -> int | None:
        """The first row that installs `view` or a higher one."""
        at = bisect_left(self._highest, view)
        return self._rows[at] if at < len(self._rows) else None
