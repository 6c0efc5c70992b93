"""When one component should move to another sequencer to even out the load.

A transfer costs something and the load is never still, so we move only on a clear difference that
lasts, one component at a time, with a rest after each move. A component may move only if it weighs
clearly less than the difference. Then the busier of both sequencers is relieved, and moving it back
would not help before the load has changed a lot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState

LEAST_GAP: Final = 100.0  # packets per second; a smaller difference is not worth a transfer
LEAST_GAP_SHARE: Final = 0.25  # of the busier one's load; a smaller difference is even enough
MOST_OF_GAP: Final = 0.75  # a component that weighs more would only swap the two loads
PATIENCE: Final = 2  # calls in a row that must find the load uneven
REST: Final = 2  # calls after a move that do nothing


class Placed(NamedTuple):
    """A component that may move, and where it is."""

    part: frozenset[GroupId]
    host: ProcessId
    weight: float


class Balance(PlainState):
    """Remembers what keeps the balancing calm. Ask once per window."""

    def __init__(self) -> None:
        self.uneven = 0  # calls in a row that found the load uneven, up to PATIENCE
        self.rest = 0  # calls that must still do nothing

    def is_time(self, loads: Mapping[ProcessId, float]) -> bool:
        """Has the load been uneven for long enough, and the last move long enough ago?"""
        if not loads or not _clear(max(loads.values()), min(loads.values())):
            self.uneven = 0
        else:
            self.uneven = min(self.uneven + 1, PATIENCE)
        if self.rest:
            self.rest -= 1
            return False
        return self.uneven >= PATIENCE

    def moving(self) -> None:
        """A component moves because of this."""
        self.rest = REST


def best_move(
    loads: Mapping[ProcessId, float], placed: Iterable[Placed]
) -> tuple[frozenset[GroupId], ProcessId] | None:
    """The component to take from the busiest sequencer that has a suitable one, and its new host.

    It goes to the least loaded. The best one brings the two loads nearest to each other.
    """
    idlest = min(loads, key=lambda h: (loads[h], h))
    at: dict[ProcessId, list[Placed]] = {}
    for c in placed:
        at.setdefault(c.host, []).append(c)
    for h in sorted(loads, key=lambda h: (-loads[h], h)):
        if not _clear(loads[h], loads[idlest]):
            return None
        gap = loads[h] - loads[idlest]
        fit = [c for c in at.get(h, ()) if c.weight <= MOST_OF_GAP * gap]
        if fit:
            best = min(fit, key=lambda c: (abs(gap / 2 - c.weight), min(c.part)))
            return best.part, idlest
    return None


def _clear(more: float, less: float) -> bool:
    return more - less >= max(LEAST_GAP, LEAST_GAP_SHARE * more)
