"""Who is a member of which group when, in which view, and who owes which message.

A span is a stretch of rows [first, last) of one process; last = OPEN means "to the end".
`owed(q, g, messages)` gives the spans at whose deliveries q must already have delivered them.

Only `view`, `join` and `leave` change anything, and they are few. So a question about many rows
of a process is answered in one walk along those rows, with a value per group at hand.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordercast.judge.kernels.causality import Causality
from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.recorded import NO_VIEW, Installed, Views, recorded_views
from ordercast.judge.kernels.run import JOIN, LEAVE, NONE, VIEW, Bools, Ints, Run, Turn
from ordercast.judge.kernels.sends import first_sends, sends_before

OPEN = 1 << 62

Change = tuple[int, int, int]  # row, group, what holds for the group from then on


@dataclass(frozen=True, slots=True)
class Span:
    """A membership interval: rows [first, last) of one process."""

    first: int
    last: int
    opener: int = NONE  # row of the event that opened it; NONE: open from the start

    def __contains__(self, row: int) -> bool:
        return self.first <= row < self.last


class Membership:
    """Membership, views and debts of one run."""

    def __init__(self, run: Run, causality: Causality) -> None:
        self._run = run
        self._causality = causality  # the full relation, with the columns of `joiners(run)`
        self.views = recorded_views(run)  # by group, for those that have views at all
        self.turns = [_by_group(turns) for turns in run.turns]  # process -> group -> its turns
        self._spans: dict[tuple[int, int], list[Span]] = {}
        self._installed_by: dict[tuple[int, int], Installed] = {}

    # Intervals.

    def spans(self, process: int, group: int) -> list[Span]:
        """The membership intervals of `process` in `group`, in order."""
        key = (process, group)
        if key not in self._spans:
            self._spans[key] = self._find_spans(process, group)
        return self._spans[key]

    def open_span(self, process: int, group: int) -> Span | None:
        """The interval that is never closed."""
        spans = self.spans(process, group)
        return spans[-1] if spans and spans[-1].last == OPEN else None

    def joined(self, process: int) -> list[int]:
        """The groups of which `process` ever was a member, ascending."""
        varied = {group for group in self.turns[process] if self.spans(process, group)}
        return sorted(varied | self._steady[process])

    def inside(self, process: int, rows: Ints, groups: Ints) -> Bools:
        """Is `process` a member at each of its `rows` (ascending), of the group beside it?"""
        at_first = np.zeros(len(self._run.groups), np.int64)
        at_first[list(self._steady[process])] = 1
        changes: list[Change] = []
        for group in self.turns[process]:
            member, turns = self._memberships(process, group)
            at_first[group] = member
            changes += [(row, group, int(inside)) for row, inside in turns]
        return np.asarray(self._along(rows, groups, sorted(changes), at_first) == 1)

    def _find_spans(self, process: int, group: int) -> list[Span]:
        first = int(self._run.start[process])
        if group not in self.turns[process]:
            return [Span(first, OPEN)] if group in self._steady[process] else []
        member, changes = self._memberships(process, group)
        return _stretches(first, changes, member=member)

    def _memberships(self, process: int, group: int) -> tuple[bool, list[tuple[int, bool]]]:
        """Is the process a member at first, and what does each of its turns make it?"""
        turns, name = self.turns[process][group], self._run.processes[process]
        if any(turn.kind == VIEW for turn in turns):
            return False, [(t.row, name in t.members) for t in turns if t.kind != JOIN]
        return turns[0].kind == LEAVE, [(t.row, t.kind == JOIN) for t in turns]

    @cached_property
    def _steady(self) -> list[set[int]]:
        """Per process, the groups of which it is a member all the time, without any turn."""
        run = self._run
        declared: dict[str, set[int]] = {name: set() for name in run.processes}
        for group, names in run.declared.items():
            for name in names:
                declared[name].add(group)
        undeclared = {g for g in range(len(run.groups)) if not run.declared.get(g)}
        found = []
        for p, name in enumerate(run.processes):
            delivers = _groups_delivered(run, p) if undeclared else set()
            found.append((declared[name] | (delivers & undeclared)) - self.turns[p].keys())
        return found

    # Views.

    def view_rows(self, process: int, group: int) -> list[Turn]:
        """The views of `group` that `process` installs, in order."""
        return [turn for turn in self.turns[process].get(group, ()) if turn.kind == VIEW]

    def view_at(self, process: int, rows: Ints, groups: Ints) -> Views:
        """The current view of `process` before each of its `rows` (ascending), of the group
        beside it; NO_VIEW before the first and after a `leave`."""
        changes = [
            (t.row, t.group, t.view if t.kind == VIEW else NO_VIEW)
            for t in self._run.turns[process]
            if t.kind != JOIN
        ]
        return self._views_along(rows, groups, changes)

    def _own_view_at(self, process: int, rows: Ints, groups: Ints) -> Views:
        """The same, and NO_VIEW where the process is not in its current view."""
        name = self._run.processes[process]
        changes = [
            (t.row, t.group, t.view if name in t.members else NO_VIEW)
            for t in self._run.turns[process]
            if t.kind != JOIN
        ]
        return self._views_along(rows, groups, changes)

    def _views_along(self, rows: Ints, groups: Ints, changes: list[Change]) -> Views:
        return self._along(rows, groups, changes, np.full(len(self._run.groups), NO_VIEW, np.int64))

    @cached_property
    def sent_in(self) -> Views:
        """Per message: the sender's view of its group at the send, if the sender is in it."""
        run = self._run
        found = np.full(run.message_count, NO_VIEW, np.int64)
        for p in self._viewers:
            rows, messages = first_sends(run, p)
            found[messages] = self._own_view_at(p, rows, run.group_of[messages])
        return found

    @cached_property
    def view_of(self) -> Views:
        """V(m): the view it was sent in, else the lowest current view at a first delivery."""
        run, found = self._run, self.sent_in.copy()
        for q in self._viewers:
            here = run.deliveries(q)
            places = np.flatnonzero(self.sent_in[run.delivered[here]] == NO_VIEW)
            messages, rows = run.delivered[here][places], run.delivered_row[here][places]
            views = self.view_at(q, rows, run.group_of[messages])
            found[messages] = np.minimum(found[messages], views)
        return found

    @property
    def _viewers(self) -> list[int]:
        """The processes that record views."""
        return [p for p, turns in enumerate(self._run.turns) if any(t.kind == VIEW for t in turns)]

    def _along(self, rows: Ints, groups: Ints, changes: list[Change], at_first: Views) -> Views:
        """What holds before each row for the group beside it."""
        if not changes:
            return at_first[groups]
        found = np.empty(len(rows), np.int64)
        follow = _follow.for_size(len(self._run))
        follow(rows, groups, np.array(changes, np.int64), at_first, found)
        return found

    # Debts.

    def owed(self, process: int, group: int, messages: Ints) -> list[tuple[Span, Ints]]:
        """Where must `process` have delivered which of these messages of `group` already?"""
        spans = self.spans(process, group)
        if group not in self.views:
            blocks = [(span, self._known(process, span, messages)) for span in spans]
            return [(span, block) for span, block in blocks if len(block)]
        return self._owed_by_view(process, group, messages) if spans else []

    def owed_live(self, process: int, group: int, messages: Ints) -> Bools:
        """Which of these messages of `group` must `process` deliver by the end of the run?"""
        span = self.open_span(process, group)
        if span is None:
            return np.zeros(len(messages), np.bool_)
        if group not in self.views:
            return self._began_before(process, span, messages)
        run, views = self._run, self.view_of[messages]
        live: Bools = views != NO_VIEW
        without = self.views[group].without(run.processes[process])
        if len(without):
            live &= views > without[-1]
        cut = not (run.crashed[process] or run.ended[process])
        if not (cut or run.lost[process]):
            live &= np.isin(views, list(self._installed(process, group).first))
        return live

    def _known(self, process: int, span: Span, messages: Ints) -> Ints:
        if span.opener == NONE:
            return messages
        return np.asarray(messages[self._began_before(process, span, messages)])

    def _began_before(self, process: int, span: Span, messages: Ints) -> Bools:
        """The span begins with the log, or what opened it happened before send(m)."""
        if span.opener == NONE:
            return np.ones(len(messages), np.bool_)
        next_send = sends_before(self._run, process, span.opener) + 1
        return self._causality.known(process, messages, next_send)

    def _owed_by_view(self, process: int, group: int, messages: Ints) -> list[tuple[Span, Ints]]:
        found = []
        spans = self.spans(process, group)
        ends = [span.last for span in spans]
        for view, block in alike(messages, self.view_of[messages]):
            if view == NO_VIEW:
                continue
            start, end = self._view_debt(process, group, view)
            for span in spans[bisect_right(ends, start) :]:
                if span.first >= end:
                    break
                cut = Span(max(span.first, start), min(span.last, end), span.opener)
                if cut.first < cut.last:
                    found.append((cut, block))
        return found

    def _view_debt(self, process: int, group: int, view: int) -> tuple[int, int]:
        """From where to where `process` owes messages of `view`, as far as views decide it."""
        installed = self._installed(process, group)
        without = self.views[group].without(self._run.processes[process])
        later = int(np.searchsorted(without, view))
        last = None if later == len(without) else installed.first_from(int(without[later]))
        first = installed.first.get(view)
        return OPEN if first is None else first + 1, OPEN if last is None else last

    def _installed(self, process: int, group: int) -> Installed:
        key = (process, group)
        if key not in self._installed_by:
            self._installed_by[key] = Installed(self.view_rows(process, group))
        return self._installed_by[key]


def joiners(run: Run) -> list[int]:
    """The processes whose debts depend on whether a join happened before a send.

    Their columns of the clock are what `Membership` asks of `Causality`.
    """
    views = {turn.group for turns in run.turns for turn in turns if turn.kind == VIEW}
    return [
        p
        for p, turns in enumerate(run.turns)
        if any(turn.kind == JOIN and turn.group not in views for turn in turns)
    ]


def alike(items: Ints, values: Ints) -> list[tuple[int, Ints]]:
    """Each value that occurs beside the items, and the items beside it, in their order."""
    if not len(items):
        return []
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    firsts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    blocks = np.split(items[order], firsts)
    return list(zip(ordered[[0, *firsts]].tolist(), blocks, strict=True))


def _by_group(turns: list[Turn]) -> dict[int, list[Turn]]:
    found: dict[int, list[Turn]] = {}
    for turn in turns:
        found.setdefault(turn.group, []).append(turn)
    return found


def _groups_delivered(run: Run, process: int) -> set[int]:
    groups = run.group_of[run.delivered[run.deliveries(process)]]
    return set(np.flatnonzero(np.bincount(groups, minlength=1)).tolist())


def _stretches(first: int, changes: list[tuple[int, bool]], *, member: bool) -> list[Span]:
    """The spans during which the last change said "member"."""
    found: list[Span] = []
    span: Span | None = Span(first, OPEN) if member else None
    for row, inside in changes:
        if inside and span is None:
            span = Span(row + 1, OPEN, row)
        elif not inside and span is not None:
            found.append(Span(span.first, row, span.opener))
            span = None
    return found if span is None else [*found, span]


@kernel
def _follow(rows: Ints, groups: Ints, changes: Ints, holds: Ints, found: Ints) -> None:
    """`holds`: per group, what the last change said; it is changed on the way."""
    at = 0
    for k in range(len(rows)):
        while at < len(changes) and changes[at, 0] < rows[k]:
            holds[changes[at, 1]] = changes[at, 2]
            at += 1
        found[k] = holds[groups[k]]
