"""views, vsync and sending_view, as the rows come."""

from __future__ import annotations

from ordercast.pipeline.streaming.live.ledger import tell
from ordercast.pipeline.streaming.live.membership import last_change, stay_of
from ordercast.pipeline.streaming.live.state import (
    Group,
    HeldRow,
    Limits,
    Message,
    Process,
    RunState,
    Stay,
    Stretch,
)

MOST_STRETCHES = 64  # view changes per group whose sets of messages are remembered
MOST_BETWEEN = 100_000  # messages between two views that are remembered


def install(run: RunState, limits: Limits, p: Process, row: HeldRow) -> None:
    """A view row of p; the membership of p has been changed already."""
    g = run.group(row.group)
    stay = stay_of(p, g.number)
    _same_list(run, limits, p, g, row)
    _own_views(run, limits, p, g, stay, row)
    if stay.last_view is not None and stay.since_view is not None:
        _same_messages(run, limits, p, g, f"{stay.last_view}>{row.view}", sorted(stay.since_view))
    stay.last_view, stay.since_view = row.view, []
    stay.was_in_last_view = p.name in row.members


def _same_list(run: RunState, limits: Limits, p: Process, g: Group, row: HeldRow) -> None:
    q = run.processes[g.first_with.setdefault(row.view, p.number)]
    lists = g.views.get(row.view, [])
    if len(lists) > 1:
        tell(
            run, limits, "views", (g.name, str(row.view)),
            f"{q.name} and {p.name} have different members for view {row.view} of {g.name}.",
            {"processes": [q.name, p.name], "group": g.name, "view": row.view,
             "first": lists[0], "second": row.members},
        )  # fmt: skip
    for view in [view for view in g.first_with if view not in g.views]:
        del g.first_with[view]


def _own_views(
    run: RunState, limits: Limits, p: Process, g: Group, stay: Stay, row: HeldRow
) -> None:
    if stay.last_view is not None and row.view <= stay.last_view:
        tell(
            run, limits, "views", (p.name, g.name, str(stay.last_view), str(row.view)),
            f"{p.name} installed view {row.view} of {g.name} after view {stay.last_view}.",
            {"process": p.name, "group": g.name, "first": stay.last_view, "second": row.view},
        )  # fmt: skip
    if p.name not in row.members and not stay.was_in_last_view:
        tell(
            run, limits, "views", (p.name, g.name, str(row.view), "not in it"),
            f"{p.name} installed view {row.view} of {g.name}, which it is not in.",
            {"process": p.name, "group": g.name, "view": row.view},
        )  # fmt: skip


def _same_messages(
    run: RunState, limits: Limits, p: Process, g: Group, change: str, messages: list[str]
) -> None:
    sets = g.stretches.setdefault(change, [])
    if len(g.stretches) > MOST_STRETCHES:
        del g.stretches[next(iter(g.stretches))]
    own = next((one for one in sets if one.messages == messages), None)
    if own is None:
        own = Stretch(messages, [])
        sets.append(own)
    if p.number not in own.processes:
        own.processes.append(p.number)
    for other in sets:
        if other is not own:
            _tell_difference(run, limits, g, change, other, own)


def _tell_difference(
    run: RunState, limits: Limits, g: Group, change: str, one: Stretch, other: Stretch
) -> None:
    p = next((run.processes[n] for n in one.processes if not run.processes[n].lost), None)
    q = next(
        (run.processes[n] for n in other.processes if run.processes[n] is not p
         and not run.processes[n].lost),
        None,
    )  # fmt: skip
    if p is None or q is None:
        return
    view, _, next_view = change.partition(">")
    here, there = set(one.messages), set(other.messages)
    tell(
        run, limits, "vsync", (g.name, change),
        f"Between views {view} and {next_view} of {g.name}, {p.name} and {q.name} delivered "
        "different messages.",
        {"processes": [p.name, q.name], "group": g.name, "view": int(view),
         "next_view": int(next_view), "first": sorted(here - there),
         "second": sorted(there - here)},
        [one.processes, other.processes],
    )  # fmt: skip


def deliver(run: RunState, limits: Limits, q: Process, m: Message) -> None:
    """q delivers m, whose send was read, for the first time."""
    g = run.groups[m.group]
    stay = q.stays.get(m.group)
    if stay is not None and stay.since_view is not None:
        stay.since_view.append(m.id)
        if len(stay.since_view) > MOST_BETWEEN:
            stay.since_view = None
            run.doubt("view changes with too many messages between them")
    if m.view is None:
        return
    change = last_change(stay, q.position)
    current = None if change is None else change.current
    if current != m.view:
        where = "no view" if current is None else f"view {current}"
        tell(
            run, limits, "sending_view", (q.name, m.id),
            f"{m.id} was sent in view {m.view} and delivered by {q.name} in {where}.",
            {"process": q.name, "message": m.id, "view": m.view, "delivered_in": current,
             "group": g.name},
        )  # fmt: skip


def deliver_unknown(run: RunState, q: Process, group: str) -> None:
    """q delivers something of which there is no send: what it has since the view is not known."""
    stay = q.stays.get(run.group(group).number)
    if stay is not None:
        stay.since_view = None
