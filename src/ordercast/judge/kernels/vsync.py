"""vsync: who goes from one view to the same next one has delivered the same messages between.

Sets are compared by fingerprints that do not depend on the order: how many messages, and two
64-bit hashes of their numbers, each combined by exclusive or. The sets themselves are only
fetched where fingerprints differ, to name the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.findings import Evidence, Findings
from ordercast.judge.kernels.membership import Membership
from ordercast.judge.kernels.run import VIEW, Ints, Run, Turn

SHOWN_MESSAGES = 100  # of a difference between two sets, per side
SHOWN_EVENTS_OF = 3  # messages of a difference

Change = tuple[int, int, int]  # group, view, next view
Fingerprint = tuple[int, ...]  # of a set of messages


@dataclass(frozen=True, slots=True)
class Stay:
    """A process between two of its views: rows first to last."""

    process: int
    first: int
    last: int


BySet = dict[Fingerprint, list[Stay]]  # who delivered the set


def check_vsync(run: Run, members: Membership, limit: int) -> Findings:
    """Judge every change of view that two processes share."""
    found = Findings(limit)
    seen: dict[Change, BySet] = {}
    marks = _hashes(run.message_count) if members.views else np.empty((0, 2), np.uint64)
    for p in range(len(run.processes)):
        _note_stays(run, p, marks, seen)
    for change, by_set in sorted(seen.items()):
        if len(by_set) > 1:
            _compare_sets(run, change, by_set, found)
    return found


def _note_stays(run: Run, p: int, marks: Ints, seen: dict[Change, BySet]) -> None:
    turns = [turn for turn in run.turns[p] if turn.kind == VIEW]
    if len(turns) < 2:
        return
    here = run.deliveries(p)
    messages = run.delivered[here]
    prints = np.zeros((len(turns), 3), np.uint64)
    _fingerprints.for_size(len(run))(
        run.delivered_row[here], messages, run.group_of[messages], marks,
        np.array([turn.row for turn in turns], np.int64),
        np.array([turn.group for turn in turns], np.int64),
        np.zeros((len(run.groups), 3), np.uint64), prints,
    )  # fmt: skip
    last: dict[int, Turn] = {}  # group -> its last view so far
    for two, one_set in zip(turns, prints.tolist(), strict=True):
        one = last.get(two.group)
        if one is not None:
            by_set = seen.setdefault((two.group, one.view, two.view), {})
            by_set.setdefault(tuple(one_set), []).append(Stay(p, one.row, two.row))
        last[two.group] = two


def _hashes(count: int) -> Ints:
    """Two mixed 64-bit numbers per message (the finalizer of splitmix64)."""
    mixed = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).reshape(count, 2)


@kernel
def _fingerprints(
    rows: Ints, messages: Ints, groups: Ints, marks: Ints,
    turn_rows: Ints, turn_groups: Ints, current: Ints, prints: Ints,
) -> None:  # fmt: skip
    """`prints`: per view, what was delivered of its group since the view before; `current`:
    per group, what was delivered since its last view."""
    at = 0
    for turn in range(len(turn_rows)):
        while at < len(rows) and rows[at] < turn_rows[turn]:
            g, m = groups[at], messages[at]
            current[g, 0] ^= marks[m, 0]
            current[g, 1] ^= marks[m, 1]
            current[g, 2] += np.uint64(1)
            at += 1
        g = turn_groups[turn]
        for k in range(3):
            prints[turn, k] = current[g, k]
            current[g, k] = 0


def _compare_sets(run: Run, change: Change, by_set: BySet, found: Findings) -> None:
    sure = {
        one: known
        for one, stays in by_set.items()
        if (known := [stay for stay in stays if not run.lost[stay.process]])
    }
    if pair := _two_of(sure):
        found.violated(_sets_differ, run, change, *pair)
    elif _two_of(by_set):
        found.doubt(_lost_difference, run, change)


def _two_of(by_set: BySet) -> tuple[Stay, Stay] | None:
    """Two different processes with two different sets, if there are."""
    stays = [(one, stay) for one, them in by_set.items() for stay in them]
    if len(by_set) < 2 or len({stay.process for _, stay in stays}) < 2:
        return None
    return next(
        (stay, other)
        for one, stay in stays
        for another, other in stays
        if another != one and other.process != stay.process
    )


def _sets_differ(run: Run, change: Change, one: Stay, two: Stay) -> Evidence:
    group, view, next_view = change
    p, q = one.process, two.process
    here, there = _delivered_in(run, one, group), _delivered_in(run, two, group)
    only = {who: _names(run, some) for who, some in ((p, here - there), (q, there - here))}
    shown = sorted(here ^ there)[:SHOWN_EVENTS_OF]
    events = [event for m in shown for event in run.send_event(m)]
    for m in shown:
        events += [*run.delivery_event(p, m), *run.delivery_event(q, m)]
    witness: dict[str, object] = {
        "group": run.groups[group],
        "views": [view, next_view],
        "processes": [run.processes[p], run.processes[q]],
        "messages": [*only[p], *only[q]],
        "only": {run.processes[who]: names for who, names in only.items()},
        "differing": len(here ^ there),
        "events": events,
    }
    differ = " and ".join(
        f"only {run.processes[who]} delivered {', '.join(names[:5])}"
        for who, names in only.items()
        if names
    )
    return f"between views {view} and {next_view} of {run.groups[group]} {differ}", witness


def _delivered_in(run: Run, stay: Stay, group: int) -> set[int]:
    here = run.deliveries(stay.process)
    first, last = np.searchsorted(run.delivered_row[here], (stay.first, stay.last))
    messages = run.delivered[here][first:last]
    return set(messages[run.group_of[messages] == group].tolist())


def _names(run: Run, messages: set[int]) -> list[str]:
    return [run.name(m) for m in sorted(messages)[:SHOWN_MESSAGES]]


def _lost_difference(run: Run, change: Change) -> str:
    group, view, next_view = change
    return (
        f"what was delivered between views {view} and {next_view} of {run.groups[group]} differs, "
        "but records are lost"
    )
