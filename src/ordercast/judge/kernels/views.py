"""views, sending_view: what is recorded of views, and in which view messages are delivered."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from ordercast.judge.kernels.findings import Evidence, Findings
from ordercast.judge.kernels.membership import Membership
from ordercast.judge.kernels.recorded import NO_VIEW
from ordercast.judge.kernels.run import VIEW, Run, Turn


def check_views(run: Run, members: Membership, limit: int) -> Findings:
    """One list per view; ids grow; a process is in its views, save a notice of its exclusion."""
    found = Findings(limit)
    for group, views in members.views.items():
        for view, lists in sorted(views.lists.items()):
            if len(lists) > 1:
                found.violated(_lists_differ, run, group, view, lists)
    for p, turns in enumerate(members.turns):
        for group in turns:
            _check_log(run, p, members.view_rows(p, group), found)
    return found


def _check_log(run: Run, p: int, rows: list[Turn], found: Findings) -> None:
    name = run.processes[p]
    if rows and name not in rows[0].members:
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
        {
            "group": run.groups[group],
            "view": view,
            "lists": [list(a), list(b)],
            "events": [_event(run, _recorded(run, group, view, members)) for members in (a, b)],
        },
    )


def _recorded(run: Run, group: int, view: int, members: tuple[str, ...]) -> Turn:
    """The first row that records this list."""
    return next(
        turn
        for turns in run.turns
        for turn in turns
        if turn.kind == VIEW and (turn.group, turn.view, turn.members) == (group, view, members)
    )


def _not_growing(run: Run, p: int, previous: Turn, turn: Turn) -> Evidence:
    return (
        f"{run.processes[p]} installs view {turn.view} of {run.groups[turn.group]} after view "
        f"{previous.view}",
        {
            "process": run.processes[p],
            "group": run.groups[turn.group],
            "views": [previous.view, turn.view],
            "events": [_event(run, previous), _event(run, turn)],
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
            "events": [_event(run, turn)],
        },
    )


def _event(run: Run, turn: Turn) -> dict[str, object]:
    return {**run.event(turn.row), "view": turn.view}


def check_sending_view(run: Run, members: Membership, limit: int) -> Findings:
    """A message sent by a member is delivered in the view it was sent in."""
    found = Findings(limit)
    if not members.views:
        return found
    for q in range(len(run.processes)):
        here = run.deliveries(q)
        messages = run.delivered[here]
        sent_in = members.sent_in[messages]
        views = members.view_at(q, run.delivered_row[here], run.group_of[messages])
        wrong = np.flatnonzero((sent_in != NO_VIEW) & (views != sent_in))
        found.violated_many(
            partial(_other_view, run, q),
            np.stack((messages[wrong], sent_in[wrong], views[wrong]), axis=1),
        )
    return found


def _other_view(run: Run, q: int, wrong: list[int]) -> Evidence:
    m, sent_in, view = wrong
    where = "in no view" if view == NO_VIEW else f"in view {view}"
    return (
        f"{run.processes[q]} delivers {run.name(m)} {where}, it was sent in view {sent_in} of "
        f"{run.groups[run.group_of[m]]}",
        {
            "process": run.processes[q],
            "group": run.groups[run.group_of[m]],
            "messages": [run.name(m)],
            "sent_in": sent_in,
            "delivered_in": None if view == NO_VIEW else view,
            "events": [*run.send_event(m), *run.delivery_event(q, m)],
        },
    )
