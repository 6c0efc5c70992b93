"""Two processes, two messages: total.pairwise, the same within a group, and total.gapless.

Of every two processes p and q the judge keeps the latest place, in each log, of a message that
both have delivered. A message that q delivers now is the latest in q's log; if p delivered it
before that latest common place, the two disagree. This finds every disagreement of two processes,
in whatever order their logs are read, and remembers two places per pair.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.live.ledger import tell
from ordercast.pipeline.streaming.live.membership import owes, tell_gap
from ordercast.pipeline.streaming.live.notices import Gap
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    NOBODY,
    Limits,
    Message,
    Process,
    RunState,
    Top,
    Walk,
)


def deliver(run: RunState, limits: Limits, q: Process, m: Message) -> None:
    """q delivers m for the first time; m.got does not have q yet."""
    everywhere = not run.checks.isdisjoint(("total.pairwise", "total.global"))
    gapless = m.group != NOBODY and "total.gapless" in run.checks
    in_group = gapless or (m.group != NOBODY and "total.group" in run.checks)
    for number, at in m.got.items():
        p = run.processes[number]
        if everywhere:
            _compare(run, limits, p, q, m, at, EVERYTHING)
        if in_group:
            _compare(run, limits, p, q, m, at, m.group)
        if gapless:
            _walk(run, limits, p, q, m, at, q.position)
            _walk(run, limits, q, p, m, q.position, at)


def _compare(
    run: RunState, limits: Limits, p: Process, q: Process, m: Message, at: int, scope: int
) -> None:
    there, here = _top(p, scope, q.number), _top(q, scope, p.number)
    if at < there.at:
        _disagree(run, limits, p, q, m.id, there.message, scope)
    else:
        there.at, there.message = at, m.id
    here.at, here.message = q.position, m.id


def _top(p: Process, scope: int, other: int) -> Top:
    tops = p.tops.setdefault(scope, {})
    top = tops.get(other)
    if top is None:
        top = tops[other] = Top()
    return top


def _disagree(
    run: RunState, limits: Limits, p: Process, q: Process, a: str, b: str, scope: int
) -> None:
    """p delivered a before b, q b before a."""
    sentence = f"{p.name} delivered {a} before {b}, {q.name} {b} before {a}."
    witness: dict[str, object] = {"processes": [p.name, q.name], "first": a, "second": b}
    both = sorted((p.name, q.name))
    observers = [[p.number], [q.number]]
    if scope == EVERYTHING:
        tell(run, limits, "total.pairwise", (*both,), sentence, witness, observers)
        tell(run, limits, "total.global", (*both,), sentence, witness, observers)
    else:
        g = run.groups[scope].name
        tell(run, limits, "total.group", (g, *both), sentence, witness, observers)
        tell(run, limits, "total.gapless", (g, *both), sentence, witness, observers)


def _walk(
    run: RunState, limits: Limits, p: Process, q: Process, b: Message, at: int, x: int
) -> None:
    """total.gapless: what p delivered before b must have come before b at q, if q owes it."""
    trail = p.delivered.get(b.group)
    if trail is None:
        return
    walks = p.walks.setdefault(b.group, {})
    walk = walks.get(q.number)
    if walk is None:
        walk = walks[q.number] = Walk()
    epoch = q.epoch(x)
    start = walk.at if walk.epoch == epoch else -1
    for number in trail.between(start, at):
        a = run.messages.get(number)
        if a is not None and a is not b and q.number not in a.got:
            a.passed.append((q.number, x, b.id, p.number))
            if a.number < run.young_from:
                tell_passed(run, limits, a)
    walk.at = max(start, at)
    walk.epoch = epoch


def tell_passed(run: RunState, limits: Limits, a: Message) -> None:
    """total.gapless: q delivered b, at that position, without a, which p delivered before b.

    It is told once the stability time of a is over. If q delivers a before, the two processes
    disagree, and that is told: whose log is read first must not decide who is blamed.
    """
    passed, a.passed = a.passed, []
    for number, x, b, seen_by in passed:
        q = run.processes[number]
        if number not in a.got:
            gap = owes(run, q, a, x)
            if isinstance(gap, Gap):
                tell_gap(run, limits, "total.gapless", q, a, b, gap, seen_by=seen_by)
