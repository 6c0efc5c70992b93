"""Who is a member when, and who owes what, as far as the logs have been read.

A later row can change the past: a first view in a group that had none, a `join` of a process that
was taken as a member from the start. What was told on the old understanding is then withdrawn.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.live.ledger import tell, withdraw
from ordercast.pipeline.streaming.live.notices import Finding, Gap
from ordercast.pipeline.streaming.live.state import (
    FROM_THE_START,
    MOST_CHANGES,
    Change,
    Group,
    HeldRow,
    Limits,
    Message,
    Process,
    RunState,
    Stay,
)

OTHERWISE = "its membership turned out otherwise"


def stay_of(q: Process, group: int) -> Stay:
    stay = q.stays.get(group)
    if stay is None:
        stay = q.stays[group] = Stay()
    return stay


def last_change(stay: Stay | None, x: int) -> Change | None:
    """The latest membership event before position x."""
    if stay is not None:
        for change in reversed(stay.changes):
            if change.at < x:
                return change
    return None


def is_member(run: RunState, q: Process, group: int, x: int) -> bool | None:
    """At position x of q's log; None: nothing is declared, and q has delivered nothing of it."""
    stay = q.stays.get(group)
    if stay is not None and stay.style:
        change = last_change(stay, x)
        return stay.begins_inside if change is None else change.inside
    declared = run.groups[group].declared
    if declared:
        return q.name in declared
    return True if stay is not None and stay.first_delivery else None


def owes(run: RunState, q: Process, m: Message, x: int) -> Gap | bool | None:
    """Must q have delivered m before its position x? If so, a `Gap` that says why.

    None: it does if it turns out to be a member. False also where too much was forgotten to tell.
    """
    member = is_member(run, q, m.group, x)
    if not member:
        return member
    g, stay = run.groups[m.group], q.stays.get(m.group)
    change = last_change(stay, x)
    if g.views:
        if m.view is None or change is None or stay is None:
            return False
        installed = any(c.installed == m.view and c.at < x for c in stay.changes)
        if not installed or not _in_views(q, g, m.view, change.highest):
            return False
        return Gap(q.number, m.group, False, m.view, change.highest)
    since = FROM_THE_START if change is None else change.since
    if since == FROM_THE_START:
        return Gap(q.number, m.group, True)
    knows_it = q.number < len(m.clock) and m.clock[q.number] >= since
    return Gap(q.number, m.group, False) if knows_it else False


def _in_views(q: Process, g: Group, lowest: int, highest: int) -> bool:
    if g.views_forgotten is not None and lowest <= g.views_forgotten:
        return False
    return all(
        q.name in members
        for view, lists in g.views.items()
        if lowest <= view <= highest
        for members in lists
    )


def declare(run: RunState, limits: Limits, name: str, members: list[str]) -> None:
    """A `group` row: its members are members from the start, unless their logs say otherwise."""
    g = run.group(name)
    first = not g.declared
    new = {member for member in set(members) - g.declared if not _has_events(run, member, g)}
    g.declared |= set(members)
    for member in members:
        run.process(member)
    if not g.declared:
        return
    withdraw(
        run,
        lambda f: f.property == "membership" and _names(run, f, g) and f.witness["process"] in new,
        "it was declared a member",
    )
    for q in run.processes:
        stay = q.stays.get(g.number)
        if stay is None or stay.style:
            continue
        if q.name in new:
            _was_a_member(run, limits, q, stay)
        elif first and q.name not in g.declared:
            _never_a_member(run, limits, q, g, stay)


def _has_events(run: RunState, name: str, g: Group) -> bool:
    """Does its own log say when it was a member?"""
    stay = run.process(name).stays.get(g.number)
    return stay is not None and bool(stay.style)


def _names(run: RunState, finding: Finding, g: Group) -> bool:
    return finding.witness.get("group") == g.name


def _never_a_member(run: RunState, limits: Limits, q: Process, g: Group, stay: Stay) -> None:
    """It was taken as a member because it delivered; now there is a list without it."""
    _withdraw_gaps(run, q.number, g.number)
    if stay.first_delivery:
        not_a_member(run, limits, q, g, stay.first_delivery)


def not_a_member(run: RunState, limits: Limits, q: Process, g: Group, message: str) -> None:
    """Tell that q delivered it outside of a membership."""
    tell(
        run, limits, "membership", (q.name, message),
        f"{q.name} delivered {message} of {g.name} while it was no member.",
        {"process": q.name, "message": message, "group": g.name},
    )  # fmt: skip


def _was_a_member(
    run: RunState, limits: Limits, q: Process, stay: Stay, arriving: str = ""
) -> None:
    """What it went past while nobody knew whether it was a member: it owed that."""
    perhaps, stay.perhaps = stay.perhaps, []
    for name, number, delivered in perhaps:
        a = run.messages.get(number)
        if a is None or q.number in a.got or a.id == arriving:
            continue
        gap = owes(run, q, a, q.position + 1)
        if isinstance(gap, Gap):
            tell_gap(run, limits, name, q, a, delivered, gap)


def tell_gap(
    run: RunState, limits: Limits, name: str, q: Process, a: Message, b: str, gap: Gap,
    seen_by: int | None = None,
) -> None:  # fmt: skip
    """q delivered b and has not delivered a, which it owes and which comes before b."""
    if q.lost:
        return
    observers = [[q.number]] if seen_by is None else [[q.number], [seen_by]]
    tell(
        run, limits, name, (q.name, a.id),
        f"{q.name} delivered {b} without {a.id}, which comes before it.",
        {"process": q.name, "missing": a.id, "second": b, "what": "gap"},
        observers, gap=gap,
    )  # fmt: skip


def delivered_in(run: RunState, limits: Limits, q: Process, group: int, message: str) -> None:
    """q delivers a message of the group: where nothing is declared, that makes it a member."""
    stay = stay_of(q, group)
    if not stay.first_delivery:
        stay.first_delivery = message
        if not stay.style and not run.groups[group].declared:
            _was_a_member(run, limits, q, stay, arriving=message)


def change_membership(run: RunState, limits: Limits, q: Process, row: HeldRow) -> None:
    """A join, leave or view row of q."""
    g = run.group(row.group)
    stay = stay_of(q, g.number)
    if row.kind == "view":
        _record_view(run, g, row)
        if stay.style != "views":
            _first_view(run, limits, q, g, stay)
    elif stay.style == "views" and row.kind == "join":
        return
    elif not stay.style:
        _first_join_or_leave(run, limits, q, g, stay, row.kind)
    _append(q, stay, row)


def _first_view(run: RunState, limits: Limits, q: Process, g: Group, stay: Stay) -> None:
    """Before it, q was no member, whatever joins and declarations say."""
    _withdraw_gaps(run, q.number, g.number)
    if stay.first_delivery:
        not_a_member(run, limits, q, g, stay.first_delivery)
    stay.style, stay.changes, stay.begins_inside, stay.perhaps = "views", [], False, []


def _first_join_or_leave(
    run: RunState, limits: Limits, q: Process, g: Group, stay: Stay, kind: str
) -> None:
    if kind == "join":
        _withdraw_gaps(run, q.number, g.number)
        was_member = is_member(run, q, g.number, q.position)
        stay.style, stay.perhaps = "joins", []
        if was_member and stay.first_delivery:
            not_a_member(run, limits, q, g, stay.first_delivery)
        return
    if is_member(run, q, g.number, q.position) is False:  # it owed what nobody looked for
        run.doubt("members that were not on the list and became known when they left")
    stay.style, stay.begins_inside = "joins", True
    withdraw(
        run,
        lambda f: f.property == "membership" and f.witness["process"] == q.name
        and _names(run, f, g),
        "it left later, so it was a member",
    )  # fmt: skip
    _was_a_member(run, limits, q, stay)


def _append(q: Process, stay: Stay, row: HeldRow) -> None:
    here = q.position
    last = stay.changes[-1] if stay.changes else None
    was_inside = stay.begins_inside if last is None else last.inside
    since = FROM_THE_START if last is None else last.since
    highest = -1 if last is None else last.highest
    current = None if last is None else last.current
    installed = None
    if row.kind == "view":
        inside, installed, current = q.name in row.members, row.view, row.view
        highest = row.view if last is None or highest == -1 else max(highest, row.view)
    else:
        inside = row.kind == "join"
        current = None if row.kind == "leave" else current
    if inside and not was_inside:
        since = here
    stay.changes.append(Change(here, inside, since, installed, current, highest))
    q.changed_at.append(here)
    if len(stay.changes) > MOST_CHANGES:
        del stay.changes[0]
    if len(q.changed_at) > 4 * MOST_CHANGES:
        del q.changed_at[0]
        q.changes_before += 1


def _record_view(run: RunState, g: Group, row: HeldRow) -> None:
    if not g.views:
        withdraw(
            run, lambda f: f.gap is not None and f.gap.group == g.number, "the group has views"
        )
    lists = g.views.setdefault(row.view, [])
    if row.members in lists:
        return
    lists.append(row.members)
    withdraw(
        run,
        lambda f: (
            f.gap is not None
            and f.gap.group == g.number
            and f.gap.lowest <= row.view <= f.gap.highest
            and run.processes[f.gap.process].name not in row.members
        ),
        "a view without it was recorded",
    )
    if len(g.views) > MOST_CHANGES:
        oldest = min(g.views)
        del g.views[oldest]
        g.views_forgotten = max(oldest, g.views_forgotten or oldest)


def _withdraw_gaps(run: RunState, process: int, group: int) -> None:
    withdraw(
        run,
        lambda f: f.gap is not None and (f.gap.process, f.gap.group) == (process, group),
        OTHERWISE,
    )
