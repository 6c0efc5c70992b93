"""Could the cluster have recovered? Computed from what the programs saw and who was killed.

With `partition="primary"` a cluster goes on where more than half of its last node view is left, or
half of it with its first node. If processes of the view that are gone make that impossible, nobody
can tell a crash from a cut, and nothing comes back by itself: `majority lost`.

The same happens when they die while the next view is made: whoever had agreed to it cannot know
whether the dead have begun it, and waits for them: `majority lost in a view change`.

These are rules of the present design. When restarted nodes count for their old vote, they must go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chaos.logs import Entry, Log
from chaos.outcome import Outcome
from chaos.plan import Plan

MAJORITY_LOST = "majority lost"
LOST_IN_A_CHANGE = "majority lost in a view change"
FAILED = "a program failed"  # explains nothing: the failure is a finding of its own


def majority_is_lost(plan: Plan, logs: Sequence[Log], outcome: Outcome) -> bool:
    """Is the rest of the newest node view too small to go on?"""
    killed, departed = outcome.killed, outcome.departed
    if plan.merges:
        return False
    view = newest_node_view(logs)
    if view is None:
        return False
    lives = lives_of_identities(logs)
    counted = [one for one in view[3] if lives.get(one) not in departed]
    left = [one for one in counted if lives.get(one) not in killed]
    half_with_the_first = 2 * len(left) == len(counted) and counted[0] in left
    return bool(counted) and 2 * len(left) <= len(counted) and not half_with_the_first


def lost_in_a_change(plan: Plan, logs: Sequence[Log], outcome: Outcome) -> bool:
    """Are all who know of the newest view stuck in one that nobody has seen begin?

    They say so: they lack nodes of a view with a higher number, and all of these were killed. And
    it is possible: some next view of the newest one would have lost its majority by these kills.
    """
    view, killed = newest_node_view(logs), outcome.killed
    if plan.merges or view is None:
        return False
    alive = [log for log in logs if log.process not in killed]
    waits = [waiting for log in alive if (waiting := _waits_for(log)) is not None]
    dead = {process.split(".")[0] for process in killed}
    stuck = [missing for number, missing in waits if number > view[2] and missing <= dead]
    lives = lives_of_identities(logs)
    gone = sum(lives.get(one) in killed for one in view[3])
    return bool(stuck) and len(stuck) == len(waits) and _some_next_view_is_lost(len(view[3]), gone)


def _waits_for(log: Log) -> tuple[int, set[str]] | None:
    """The view that it is stuck in and the names that it lacks, by its last word."""
    last = None
    for entry in log.of_kind("out", "view"):
        last = entry
    if last is None or last[1:3] != ["out", "NotPrimary"]:
        return None
    return int(last[4]), set(last[5])


def _some_next_view_is_lost(nodes: int, gone: int) -> bool:
    """A next view has a majority of the `nodes`. The `gone` are in it, with as few as possible."""
    others = max(0, nodes // 2 + 1 - gone)
    return gone > 0 and others <= gone


def a_program_failed(plan: Plan, logs: Sequence[Log], outcome: Outcome) -> bool:
    """Was something raised in a living program that ended a part of it?"""
    return any(any(log.of_kind("failed")) for log in logs if log.process not in outcome.killed)


def newest_node_view(logs: Sequence[Log]) -> Entry | None:
    """The one with the highest number that any node had."""
    views = [entry for log in logs for entry in log.of_kind("node")]
    return max(views, key=lambda entry: int(entry[2]), default=None)


def lives_of_identities(logs: Sequence[Log]) -> dict[str, str]:
    """Which process was "name#incarnation": each writes down its own incarnations."""
    lives: dict[str, str] = {}
    for log in logs:
        for entry in log.of_kind("up", "node", "send", "view"):
            lives[f"{log.name}#{entry[-1]}"] = log.process
    return lives


HOPELESS: dict[str, tuple[float, Callable[[Plan, Sequence[Log], Outcome], bool]]] = {
    MAJORITY_LOST: (3.0, majority_is_lost),
    LOST_IN_A_CHANGE: (10.0, lost_in_a_change),
    FAILED: (3.0, a_program_failed),
}
"""By rule: seconds without recovery after which it is asked, and what holds then."""
