"""Who is a member of which group when, in which view, and who owes which message.

A span is a stretch of positions [first, last) of a log; last = OPEN means "to the end".
`owed(q, m)` gives the spans of L_q at whose deliveries q must already have delivered m.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

from ordercast.pipeline.kernels.causality import Causality
from ordercast.pipeline.kernels.run import JOIN, LEAVE, NONE, VIEW, Run, Turn

OPEN = 1 << 62


@dataclass(frozen=True, slots=True)
class Span:
    """A membership interval: positions [first, last) of a log."""

    first: int
    last: int
    opener: int = NONE  # position of the event that opened it; NONE: open from the start

    def __contains__(self, position: int) -> bool:
        return self.first <= position < self.last


@dataclass
class GroupViews:
    """All views recorded for one group."""

    lists: dict[int, set[tuple[str, ...]]] = field(default_factory=dict)  # view -> its lists

    def first_without(self, name: str, view: int) -> int | None:
        """The lowest recorded view from `view` on of which `name` is not surely a member."""
        return min(
            (v for v, lists in self.lists.items()
             if v >= view and not all(name in members for members in lists)),
            default=None,
        )  # fmt: skip


class Membership:
    """Membership, views and debts of one run."""

    def __init__(self, run: Run, causality: Causality) -> None:
        self._run = run
        self._causality = causality  # the full relation, over all groups
        self.views: dict[int, GroupViews] = {}  # groups that have views at all
        self.turns: list[dict[int, list[Turn]]] = []  # process -> group -> its turns, in order
        for log in run.logs:
            by_group: dict[int, list[Turn]] = {}
            for turn in log.turns:
                by_group.setdefault(turn.group, []).append(turn)
                if turn.kind == VIEW:
                    lists = self.views.setdefault(turn.group, GroupViews()).lists
                    lists.setdefault(turn.view, set()).add(turn.members)
            self.turns.append(by_group)
        self._spans: dict[tuple[int, int], list[Span]] = {}
        self._view_debts: dict[tuple[int, int, int], tuple[int, int]] = {}

    # Intervals.

    def spans(self, process: int, group: int) -> list[Span]:
        """The membership intervals of `process` in `group`, in order."""
        key = (process, group)
        if key not in self._spans:
            self._spans[key] = self._find_spans(process, group)
        return self._spans[key]

    def span_at(self, process: int, group: int, position: int) -> Span | None:
        """The interval that contains `position` of the log of `process`."""
        return next((s for s in self.spans(process, group) if position in s), None)

    def open_span(self, process: int, group: int) -> Span | None:
        """The interval that is never closed."""
        spans = self.spans(process, group)
        return spans[-1] if spans and spans[-1].last == OPEN else None

    def _find_spans(self, process: int, group: int) -> list[Span]:
        turns = self.turns[process].get(group, [])
        name = self._run.processes[process]
        if any(turn.kind == VIEW for turn in turns):
            changes = [(t.position, name in t.members) for t in turns if t.kind != JOIN]
            return _stretches(changes, member=False)
        if turns:
            changes = [(t.position, t.kind == JOIN) for t in turns]
            return _stretches(changes, member=turns[0].kind == LEAVE)
        declared = self._run.declared.get(group)
        member = name in declared if declared else process in self._deliverers.get(group, ())
        return [Span(0, OPEN)] if member else []

    @cached_property
    def _deliverers(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for p, log in enumerate(self._run.logs):
            for m in log.deliveries:
                found.setdefault(self._run.group_of[m], set()).add(p)
        return found

    # Views.

    def view_at(self, process: int, group: int, position: int) -> Turn | None:
        """The current view of `process` before `position`: none after `leave`."""
        places, turns = self._view_turns.get((process, group), ((), ()))
        last = bisect_left(places, position) - 1
        return turns[last] if last >= 0 and turns[last].kind == VIEW else None

    @cached_property
    def _view_turns(self) -> dict[tuple[int, int], tuple[list[int], list[Turn]]]:
        """Per process and group, its views and leaves, with their positions."""
        found = {}
        for p, by_group in enumerate(self.turns):
            for g, turns in by_group.items():
                own = [turn for turn in turns if turn.kind != JOIN]
                found[p, g] = ([turn.position for turn in own], own)
        return found

    @cached_property
    def sent_in(self) -> list[int | None]:
        """Per message: the sender's view of its group at the send, if the sender is in it."""
        run = self._run
        found: list[int | None] = [None] * len(run.messages)
        if not self.views:
            return found
        for p, log in enumerate(run.logs):
            for m, at in zip(log.sends, log.sent_at, strict=True):
                if run.group_of[m] in self.views:
                    view = self.view_at(p, run.group_of[m], at)
                    if view is not None and log.name in view.members:
                        found[m] = view.view
        return found

    @cached_property
    def view_of(self) -> list[int | None]:
        """V(m): the view it was sent in, else the lowest current view at a first delivery."""
        run, found = self._run, list(self.sent_in)
        for q, log in enumerate(run.logs if self.views else ()):
            for m, at in zip(log.deliveries, log.delivered_at, strict=True):
                if self.sent_in[m] is None and run.group_of[m] in self.views:
                    view = self.view_at(q, run.group_of[m], at)
                    if view is not None:
                        lowest = found[m]
                        found[m] = view.view if lowest is None else min(lowest, view.view)
        return found

    # Debts.

    def owed(self, process: int, message: int) -> list[Span]:
        """Where in its log must `process` have delivered `message` already?"""
        group = self._run.group_of[message]
        spans = self.spans(process, group)
        if group not in self.views:
            return [span for span in spans if self._began_before(process, span, message)]
        view = self.view_of[message]
        if view is None or not spans:
            return []
        first, last = self._view_debt(process, group, view)
        cut = (Span(max(s.first, first), min(s.last, last), s.opener) for s in spans)
        return [span for span in cut if span.first < span.last]

    def owed_live(self, process: int, message: int) -> bool:
        """Must `process` have delivered `message` by the end of the run?"""
        group = self._run.group_of[message]
        span = self.open_span(process, group)
        if span is None:
            return False
        if group not in self.views:
            return self._began_before(process, span, message)
        view = self.view_of[message]
        if view is None:
            return False
        log = self._run.logs[process]
        believed = log.cut or log.lost or self._view_debt(process, group, view)[0] < OPEN
        return believed and self.views[group].first_without(log.name, view) is None

    def _began_before(self, process: int, span: Span, message: int) -> bool:
        """The span begins with the log, or what opened it happened before send(message)."""
        if span.opener == NONE:
            return True
        next_send = bisect_left(self._run.logs[process].sent_at, span.opener) + 1
        return self._causality.reaches(process, next_send, message)

    def _view_debt(self, process: int, group: int, view: int) -> tuple[int, int]:
        """From where to where `process` owes messages of `view`, as far as views decide it."""
        key = (process, group, view)
        if key not in self._view_debts:
            log = self._run.logs[process]
            without = self.views[group].first_without(log.name, view)
            first, last = OPEN, OPEN
            for turn in reversed(self.turns[process].get(group, ())):
                if turn.kind == VIEW and turn.view == view:
                    first = turn.position + 1
                if turn.kind == VIEW and without is not None and turn.view >= without:
                    last = turn.position
            self._view_debts[key] = first, last
        return self._view_debts[key]


def _stretches(changes: list[tuple[int, bool]], *, member: bool) -> list[Span]:
    """The spans during which the last change said "member"."""
    found: list[Span] = []
    opener: int | None = NONE if member else None
    for position, inside in changes:
        if inside and opener is None:
            opener = position
        elif not inside and opener is not None:
            found.append(Span(opener + 1, position, opener))
            opener = None
    if opener is not None:
        found.append(Span(opener + 1, OPEN, opener))
    return found


def missing(run: Run, members: Membership, process: int) -> list[int]:
    """The messages of groups in which `process` ever was a member that it never delivered."""
    where = run.logs[process].where
    joined = {g for g in range(len(run.groups)) if members.spans(process, g)}
    return [m for m, g in enumerate(run.group_of) if g in joined and m not in where]
