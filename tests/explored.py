"""What the tests of the explorer share: scenarios by script, and the largest that fits."""

from __future__ import annotations

from typing import Any

from ordercast.core.protocol import OrderingProtocol
from ordercast.exploration import (
    Exploration,
    Scenario,
    default_scripts,
    explore,
    one_group,
    two_overlapping_groups,
)

SCRIPTS = ("free", "replies", "burst")
FITS = 10_000  # states
MORE_FIT = 4_000  # ... where more messages than needed are tried


def scenario(
    protocol: type[OrderingProtocol],
    script: str,
    messages: int = 3,
    *,
    processes: int = 3,
    overlap: bool = False,
    rounds_after: int = 0,
    **faults: Any,
) -> Scenario:
    """Processes in one group or two, and one of the scripts."""
    groups = two_overlapping_groups(processes) if overlap else one_group(processes)
    sayings = default_scripts(groups, messages)[script]
    return Scenario(
        protocol=protocol,
        processes=processes,
        groups=groups,
        script=sayings,
        rounds_after=rounds_after,
        **faults,
    )


def largest_that_fits(
    protocol: type[OrderingProtocol], script: str, *, most: int = 3, least: int = 1, **more: Any
) -> Exploration:
    """With `most` messages, or fewer where that is too much; at least with `least`."""
    found = None
    for messages in range(most, least - 1, -1):
        limit = FITS if messages == least else MORE_FIT
        found = explore(scenario(protocol, script, messages, **more), limit=limit)
        if found.complete or found.violated:
            break
    assert found is not None
    return found


def told(found: Exploration) -> str:
    """For the message of an assertion: what happened, and how to see it."""
    if found.schedule is None:
        return f"stopped at {found.states} states"
    return "\n".join(
        (f"{found.schedule.property}: {found.schedule.sentence}", *found.schedule.steps)
    )
