"""Who is a member of which group when, and who must have delivered what."""

from __future__ import annotations

from typing import NamedTuple

from ordercast.trace.oracle.logs import Place, Run, looked_up_once
from ordercast.trace.schema import Event

FROM_THE_START = -1  # an interval that no event of the log opens


class Interval(NamedTuple):
    """A stretch of a log during which its process is a member."""

    start: int  # position of the event that opens it, or FROM_THE_START
    stop: int | None  # position of the event that closes it; None: open to the end

    def contains(self, position: int) -> bool:
        return self.start < position and (self.stop is None or position < self.stop)


@looked_up_once
def intervals(run: Run, p: str, g: str) -> list[Interval]:
    """Membership of p in g: by p's own views, else its joins and leaves, else as declared.

    Where nothing is declared for g, every process that delivers in g is a member.
    """
    log = run.logs[p]
    rows = [(at, event) for at, event in enumerate(log) if event.group == g]
    if any(event.kind == "view" for _, event in rows):
        return _by_views(p, rows)
    if any(event.kind in ("join", "leave") for _, event in rows):
        return _by_joins(rows)
    if run.declared.get(g):
        member = p in run.declared[g]
    else:
        member = any(run.group_of(m) == g for m in run.deliveries[p])
    return [Interval(FROM_THE_START, None)] if member else []


def _by_views(p: str, rows: list[tuple[int, Event]]) -> list[Interval]:
    """From a view containing p until a view without p or `leave`."""
    changes = [
        (at, event.kind == "view" and p in (event.members or ()))
        for at, event in rows
        if event.kind in ("view", "leave")
    ]
    return _stretches(changes, member_at_start=False)


def _by_joins(rows: list[tuple[int, Event]]) -> list[Interval]:
    """From `join` until `leave`; from the start, declared or not, if the first is `leave`."""
    changes = [(at, event.kind == "join") for at, event in rows if event.kind in ("join", "leave")]
    first_is_join = changes[0][1]
    return _stretches(changes, member_at_start=not first_is_join)


def _stretches(changes: list[tuple[int, bool]], *, member_at_start: bool) -> list[Interval]:
    """The intervals during which the last change said "member"."""
    found: list[Interval] = []
    start = FROM_THE_START if member_at_start else None
    for at, member in changes:
        if member and start is None:
            start = at
        elif not member and start is not None:
            found.append(Interval(start, at))
            start = None
    if start is not None:
        found.append(Interval(start, None))
    return found


def interval_at(run: Run, p: str, g: str, position: int) -> Interval | None:
    """The interval of p's membership in g that contains this position of L_p."""
    for interval in intervals(run, p, g):
        if interval.contains(position):
            return interval
    return None


def open_interval(run: Run, p: str, g: str) -> Interval | None:
    """The interval of p's membership in g that is never closed."""
    for interval in intervals(run, p, g):
        if interval.stop is None:
            return interval
    return None


# Views.


@looked_up_once
def view_rows(run: Run, p: str, g: str) -> list[tuple[int, Event]]:
    """The `view` rows of g in L_p, with their positions."""
    return [(at, e) for at, e in enumerate(run.logs[p]) if e.kind == "view" and e.group == g]


def view_id(event: Event) -> int:
    return event.view if event.view is not None else 0


def current_view(run: Run, p: str, g: str, position: int) -> Event | None:
    """p's last `view` of g before that position; none after `leave`."""
    current = None
    for event in run.logs[p][:position]:
        if event.group == g and event.kind == "view":
            current = event
        elif event.group == g and event.kind == "leave":
            current = None
    return current


@looked_up_once
def recorded_views(run: Run, g: str) -> dict[int, list[tuple[str, ...]]]:
    """Every view of g in the run, with each list recorded for it."""
    lists: dict[int, list[tuple[str, ...]]] = {}
    for p in run.logs:
        for _, event in view_rows(run, p, g):
            lists.setdefault(view_id(event), []).append(event.members or ())
    return lists


def sending_view(run: Run, m: str) -> int | None:
    """The sender's view of group(m) at the send, if the sender is in it."""
    if m not in run.sends:
        return None
    sender, position = run.sends[m]
    view = current_view(run, sender, run.group_of(m), position)
    return view_id(view) if view is not None and sender in (view.members or ()) else None


@looked_up_once
def view_of_message(run: Run, m: str) -> int | None:
    """V(m): the sender's view at the send if the sender is in it.

    Else the lowest current view of a process at its first delivery of m, whether or not the
    process is in it. None if there is neither.
    """
    sent_in = sending_view(run, m)
    if sent_in is not None:
        return sent_in
    at_delivery = [
        view_id(view)
        for q, first in run.deliveries.items()
        if m in first and (view := current_view(run, q, run.group_of(m), first[m])) is not None
    ]
    return min(at_delivery, default=None)


# Who owes what.


def owes(run: Run, q: str, m: str, x: int) -> bool:
    """Must q have delivered m before its position x?

    q is a member of group(m) at x, in an interval starting at a, and
      g has views:  q installed V(m) before x, and is a member of every recorded view of g from
                    V(m) up to the highest that q installed before x;
      otherwise:    a is the start of the log, or event a -> send(m).
    """
    g = run.group_of(m)
    interval = interval_at(run, q, g, x)
    if interval is None:
        return False
    if not recorded_views(run, g):
        return _began_before_send(run, q, interval, m)
    installed = [view_id(event) for at, event in view_rows(run, q, g) if at < x]
    v_m = view_of_message(run, m)
    return v_m is not None and v_m in installed and _in_views(run, q, g, v_m, max(installed))


def owes_live(run: Run, q: str, m: str) -> bool:
    """owes at the end of the run, for an interval that is never closed.

    With views: q is in every one from V(m) up to the highest of g, and installed V(m); a q that is
    cut or has `lost` is taken to have installed it.
    """
    g = run.group_of(m)
    interval = open_interval(run, q, g)
    if interval is None:
        return False
    recorded = recorded_views(run, g)
    if not recorded:
        return _began_before_send(run, q, interval, m)
    v_m = view_of_message(run, m)
    if v_m is None:
        return False
    installed = v_m in [view_id(event) for _, event in view_rows(run, q, g)]
    believed = installed or run.cut(q) or run.lost(q)
    return believed and _in_views(run, q, g, v_m, max(recorded))


def _began_before_send(run: Run, q: str, interval: Interval, m: str) -> bool:
    """The interval begins with the log, or the event that opens it happened before send(m)."""
    if interval.start == FROM_THE_START:
        return True
    return m in run.sends and run.sends[m] in run.before[Place(q, interval.start)]


def _in_views(run: Run, q: str, g: str, lowest: int, highest: int) -> bool:
    """q is in every list recorded for every view of g from `lowest` up to `highest`."""
    return all(
        q in members
        for view, lists in recorded_views(run, g).items()
        if lowest <= view <= highest
        for members in lists
    )
