"""views, vsync, sending_view: the promises of group membership."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from ordercast.pipeline.kernels.findings import Evidence, Findings
from ordercast.pipeline.kernels.membership import Membership
from ordercast.pipeline.kernels.run import VIEW, Run, Turn


def check_views(run: Run, members: Membership, limit: int) -> Findings:
    """One list per view; ids grow; a process is in its views, save a notice of its exclusion."""
    found = Findings(limit)
    for group, views in members.views.items():
        for view, lists in sorted(views.lists.items()):
            if len(lists) > 1:
                found.violated(_lists_differ, run, group, view, lists)
    for p in range(len(run.logs)):
        for rows in _view_rows(members, p).values():
            _check_log(run, p, rows, found)
    return found


def _view_rows(members: Membership, p: int) -> dict[int, list[Turn]]:
    rows = {g: [t for t in turns if t.kind == VIEW] for g, turns in members.turns[p].items()}
    return {g: turns for g, turns in rows.items() if turns}


def _check_log(run: Run, p: int, rows: list[Turn], found: Findings) -> None:
    name = run.processes[p]
    if name not in rows[0].members:
        found.violated(_not_in_it, run, p, rows[0])
    for previous, turn in pairwise(rows):
        if turn.view <= previous.view:
            found.violated(_not_growing, run, p, previous, turn)
        if name not in turn.members and name not in previous.members:
            found.violated(_not_in_it, run, p, turn)


def _lists_differ(run: Run, group: int, view: int, lists: set[tuple[str, ...]]) -> Evidence:
    a, b = sorted(lists)[:2]
    return (
        f"view {view} of {run.groups[group]} has two member lists: {', '.join(a)} and "
        f"{', '.join(b)}",
        {"group": run.groups[group], "view": view, "lists": [list(a), list(b)]},
    )


def _not_growing(run: Run, p: int, previous: Turn, turn: Turn) -> Evidence:
    return (
        f"{run.processes[p]} installs view {turn.view} of {run.groups[turn.group]} after view "
        f"{previous.view}",
        {
            "process": run.processes[p],
            "group": run.groups[turn.group],
            "views": [previous.view, turn.view],
            "events": [_event(run, p, previous), _event(run, p, turn)],
        },
    )


def _not_in_it(run: Run, p: int, turn: Turn) -> Evidence:
    return (
        f"{run.processes[p]} installs view {turn.view} of {run.groups[turn.group]} without being "
        "in it",
        {
            "process": run.processes[p],
            "group": run.groups[turn.group],
            "view": turn.view,
            "members": list(turn.members),
            "events": [_event(run, p, turn)],
        },
    )


def _event(run: Run, p: int, turn: Turn) -> dict[str, object]:
    row = run.event(p, turn.position, "view", -1)
    return {**row, "group": run.groups[turn.group], "view": turn.view}


Change = tuple[int, int, int]  # group, view, next view


def check_vsync(run: Run, members: Membership, limit: int) -> Findings:
    """Who goes from one view to the same next one has delivered the same messages between."""
    found = Findings(limit)
    seen: dict[Change, dict[frozenset[int], list[int]]] = {}  # set delivered -> by whom
    for p in range(len(run.logs)):
        for change, delivered in _between_views(run, members, p):
            seen.setdefault(change, {}).setdefault(delivered, []).append(p)
    for change, by_set in sorted(seen.items()):
        if len(by_set) > 1:
            _compare_sets(run, change, by_set, found)
    return found


def _between_views(
    run: Run, members: Membership, p: int
) -> Iterator[tuple[Change, frozenset[int]]]:
    log = run.logs[p]
    for group, rows in _view_rows(members, p).items():
        for one, two in pairwise(rows):
            first = bisect_left(log.delivered_at, one.position)
            last = bisect_left(log.delivered_at, two.position)
            between = log.deliveries[first:last]
            own = frozenset(m for m in between if run.group_of[m] == group)
            yield (group, one.view, two.view), own


def _compare_sets(
    run: Run, change: Change, by_set: dict[frozenset[int], list[int]], found: Findings
) -> None:
    sure = {
        delivered: known
        for delivered, all_of_them in by_set.items()
        if (known := [p for p in all_of_them if not run.logs[p].lost])
    }
    if _two_processes(sure):
        found.violated(_sets_differ, run, change, sure)
    elif _two_processes(by_set):
        found.doubt(_lost_difference, run, change)


def _two_processes(by_set: dict[frozenset[int], list[int]]) -> bool:
    """Do two different processes stand behind two different sets?"""
    return len(by_set) > 1 and len({p for them in by_set.values() for p in them}) > 1


def _sets_differ(run: Run, change: Change, by_set: dict[frozenset[int], list[int]]) -> Evidence:
    group, view, next_view = change
    (p, here), (q, there) = _two_of(by_set)
    only_p = [run.messages[m] for m in sorted(here - there)]
    only_q = [run.messages[m] for m in sorted(there - here)]
    events = [event for m in sorted(here ^ there)[:3] for event in run.send_event(m)]
    for m in sorted(here ^ there)[:3]:
        events += [*run.delivery_event(p, m), *run.delivery_event(q, m)]
    witness: dict[str, object] = {
        "group": run.groups[group],
        "views": [view, next_view],
        "processes": [run.processes[p], run.processes[q]],
        "messages": [*only_p, *only_q],
        "only": {run.processes[p]: only_p, run.processes[q]: only_q},
        "events": events,
    }
    differ = " and ".join(
        f"only {run.processes[who]} delivered {', '.join(what[:5])}"
        for who, what in ((p, only_p), (q, only_q))
        if what
    )
    return (
        f"between views {view} and {next_view} of {run.groups[group]} {differ}",
        witness,
    )


def _two_of(
    by_set: dict[frozenset[int], list[int]],
) -> tuple[tuple[int, frozenset[int]], tuple[int, frozenset[int]]]:
    pairs = [(p, delivered) for delivered, them in by_set.items() for p in them]
    first = pairs[0]
    second = next(
        (pair for pair in pairs if pair[0] != first[0] and pair[1] != first[1]), pairs[-1]
    )
    return first, second


def _lost_difference(run: Run, change: Change) -> str:
    group, view, next_view = change
    return (
        f"what was delivered between views {view} and {next_view} of {run.groups[group]} differs, "
        "but records are lost"
    )


def check_sending_view(run: Run, members: Membership, limit: int) -> Findings:
    """A message sent by a member is delivered in the view it was sent in."""
    found = Findings(limit)
    for q, log in enumerate(run.logs):
        for m, at in zip(log.deliveries, log.delivered_at, strict=True):
            sent_in = members.sent_in[m]
            if sent_in is None:
                continue
            view = members.view_at(q, run.group_of[m], at)
            if view is None or view.view != sent_in:
                found.violated(_other_view, run, q, m, sent_in, view)
    return found


def _other_view(run: Run, q: int, m: int, sent_in: int, view: Turn | None) -> Evidence:
    where = "in no view" if view is None else f"in view {view.view}"
    return (
        f"{run.processes[q]} delivers {run.messages[m]} {where}, it was sent in view {sent_in} of "
        f"{run.groups[run.group_of[m]]}",
        {
            "process": run.processes[q],
            "group": run.groups[run.group_of[m]],
            "messages": [run.messages[m]],
            "sent_in": sent_in,
            "delivered_in": None if view is None else view.view,
            "events": [*run.send_event(m), *run.delivery_event(q, m)],
        },
    )
