"""views, vsync, sending_view."""

from __future__ import annotations

from itertools import combinations, pairwise

from ordercast.trace.oracle.findings import Findings
from ordercast.trace.oracle.logs import Run
from ordercast.trace.oracle.membership import current_view, sending_view, view_id, view_rows
from ordercast.trace.schema import Judgement


def viewed_groups(run: Run) -> list[str]:
    """The groups of which somebody logged a view."""
    return sorted({e.group or "" for log in run.logs.values() for e in log if e.kind == "view"})


def views(run: Run) -> Judgement:
    """Same (g, view) => same member list; ids strictly increase per process; self in members.

    Self may be absent if p was in its previous view: a notice of its own exclusion.
    """
    found = Findings("views")
    for g in viewed_groups(run):
        _same_lists(run, g, found)
        for p in run.logs:
            _increasing_ids(run, p, g, found)
            _self_in_members(run, p, g, found)
    return found.judgement()


def _same_lists(run: Run, g: str, found: Findings) -> None:
    rows = [(p, event) for p in run.logs for _, event in view_rows(run, p, g)]
    for (p, one), (q, other) in combinations(rows, 2):
        if view_id(one) == view_id(other) and (one.members or ()) != (other.members or ()):
            found.violated(
                f"{p} and {q} have different members for view {one.view} of {g}.",
                processes=[p, q], group=g, view=one.view,
                first=list(one.members or ()), second=list(other.members or ()),
            )  # fmt: skip


def _increasing_ids(run: Run, p: str, g: str, found: Findings) -> None:
    rows = [event for _, event in view_rows(run, p, g)]
    for previous, event in pairwise(rows):
        if view_id(event) <= view_id(previous):
            found.violated(
                f"{p} installed view {event.view} of {g} after view {previous.view}.",
                process=p, group=g, first=previous.view, second=event.view,
            )  # fmt: skip


def _self_in_members(run: Run, p: str, g: str, found: Findings) -> None:
    was_in_previous = False
    for _, event in view_rows(run, p, g):
        is_in = p in (event.members or ())
        if not is_in and not was_in_previous:
            found.violated(
                f"{p} installed view {event.view} of {g}, which it is not in.",
                process=p, group=g, view=event.view,
            )  # fmt: skip
        was_in_previous = is_in


def vsync(run: Run) -> Judgement:
    """p, q both install v and then the same next view v' => same set of g's messages between.

    A difference that involves a log with `lost` is inconclusive.
    """
    found = Findings("vsync")
    for g in viewed_groups(run):
        for p, q in combinations(run.logs, 2):
            for v, v_next, here in _between_views(run, p, g):
                for w, w_next, there in _between_views(run, q, g):
                    if (v, v_next) == (w, w_next) and here != there:
                        found.missing(
                            not run.lost(p) and not run.lost(q),
                            f"Between views {v} and {v_next} of {g}, {p} and {q} delivered "
                            f"different messages.",
                            processes=[p, q], group=g, view=v, next_view=v_next,
                            first=sorted(here - there), second=sorted(there - here),
                        )  # fmt: skip
    return found.judgement()


def _between_views(run: Run, p: str, g: str) -> list[tuple[int, int, set[str]]]:
    """For each two neighbouring views of g in L_p: both ids, and g's messages between them."""
    rows = view_rows(run, p, g)
    return [
        (
            view_id(event),
            view_id(next_event),
            {
                m
                for m, position in run.deliveries[p].items()
                if at < position < next_at and run.group_of(m) == g
            },
        )
        for (at, event), (next_at, next_event) in pairwise(rows)
    ]


def sent_and_delivered_in_one_view(run: Run) -> Judgement:
    """m sent in view v by a member is delivered only in v; a delivery in no view is not in v."""
    found = Findings("sending_view")
    for m in run.sends:
        v = sending_view(run, m)
        if v is None:
            continue
        for q, first in run.deliveries.items():
            if m not in first:
                continue
            current = current_view(run, q, run.group_of(m), first[m])
            if current is None or view_id(current) != v:
                where = "no view" if current is None else f"view {current.view}"
                found.violated(
                    f"{m} was sent in view {v} and delivered by {q} in {where}.",
                    process=q, message=m, view=v,
                    delivered_in=None if current is None else current.view,
                )  # fmt: skip
    return found.judgement()
