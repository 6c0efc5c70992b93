"""fifo and causal order: what a process has gone past, and what it missed on the way.

For each sender a process keeps the highest position of the sender's log that it knows of through
what it delivered. In FIFO order a message tells of its own send, in causal order of everything in
its clock. Delivering b raises that mark; what the sender sent below it and was not delivered has
been passed: a gap if it was owed, and an inversion as soon as it comes.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.live.ledger import tell
from ordercast.pipeline.streaming.live.membership import owes, stay_of, tell_gap
from ordercast.pipeline.streaming.live.notices import Gap
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    Limits,
    Message,
    Passed,
    Process,
    RunState,
)

MOST_PERHAPS = 1_000  # missed messages of a group whose members are not known, per process


def deliver(run: RunState, limits: Limits, q: Process, m: Message) -> None:
    """q delivers m, whose send was read."""
    for scope, kind in ((EVERYTHING, "global"), (m.group, "group")):
        fifo, causal = f"fifo.{kind}", f"causal.{kind}"
        if fifo in run.checks:
            passed = _passed(q, q.fifo, scope)
            _inversion(run, limits, fifo, q, m, passed)
            _learn(run, limits, fifo, q, m, passed, m.sender, m.at, scope)
        if causal in run.checks:
            passed = _passed(q, q.causal, scope)
            _inversion(run, limits, causal, q, m, passed)
            clock = m.clock if scope == EVERYTHING else m.group_clock
            for sender, upto in enumerate(clock):
                _learn(run, limits, causal, q, m, passed, sender, upto, scope)
        elif scope == EVERYTHING:  # who owes what depends on it
            _merge(_passed(q, q.causal, scope), m.clock)


def _passed(q: Process, marks: dict[int, Passed], scope: int) -> Passed:
    passed = marks.get(scope)
    if passed is None:
        passed = marks[scope] = Passed()
    epoch = q.changes_before + len(q.changed_at)
    if passed.epoch != epoch:  # another membership: what was not owed before may be owed now
        passed.epoch = epoch
        passed.compared = [-1] * len(passed.compared)
    return passed


def _inversion(
    run: RunState, limits: Limits, name: str, q: Process, m: Message, passed: Passed
) -> None:
    if m.sender < len(passed.clock) and passed.clock[m.sender] >= m.at:
        b = passed.by[m.sender]
        tell(
            run, limits, name, (q.name, m.id),
            f"{q.name} delivered {b} before {m.id}.",
            {"process": q.name, "first": m.id, "second": b, "what": "inversion"},
            [[q.number]],
        )  # fmt: skip


def _learn(
    run: RunState,
    limits: Limits,
    name: str,
    q: Process,
    b: Message,
    passed: Passed,
    sender: int,
    upto: int,
    scope: int,
) -> None:
    """By delivering b, q knows of the sender's log up to this position."""
    short = sender + 1 - len(passed.clock)
    if short > 0:
        passed.clock += [-1] * short
        passed.by += [""] * short
        passed.compared += [-1] * short
    after = passed.compared[sender]
    if upto <= after:
        return
    passed.compared[sender] = upto
    if upto > passed.clock[sender]:
        passed.clock[sender] = upto
        passed.by[sender] = b.id
    trail = run.processes[sender].sent.get(scope)
    for number in () if trail is None else trail.between(after, upto):
        if number != b.number:
            a = run.messages.get(number)
            if a is not None and q.number not in a.got:
                _missed(run, limits, name, q, a, b)


def _merge(passed: Passed, clock: list[int]) -> None:
    short = len(clock) - len(passed.clock)
    if short > 0:
        passed.clock += [-1] * short
    for sender, upto in enumerate(clock):
        if upto > passed.clock[sender]:
            passed.clock[sender] = upto


def _missed(run: RunState, limits: Limits, name: str, q: Process, a: Message, b: Message) -> None:
    gap = owes(run, q, a, q.position)
    if isinstance(gap, Gap):
        tell_gap(run, limits, name, q, a, b.id, gap)
    elif gap is None:
        perhaps = stay_of(q, a.group).perhaps
        perhaps.append((name, a.number, b.id))
        if len(perhaps) > MOST_PERHAPS:
            del perhaps[0]


def stamp(q: Process, scope: int) -> list[int]:
    """What happened before q's event at its present position."""
    passed = q.causal.get(scope)
    clock = [] if passed is None else passed.clock[:]
    clock += [-1] * (q.number + 1 - len(clock))
    clock[q.number] = q.position
    return clock
