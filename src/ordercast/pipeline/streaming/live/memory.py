"""What is owed for too long, and what can be forgotten.

A message is remembered until everybody who owes it has delivered it and the stability time has
passed since it was read, so that a log which is read a little later than the others is judged like
them. After that only its id is remembered, for duplicates.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.live import cycles, pairs
from ordercast.pipeline.streaming.live.membership import owes
from ordercast.pipeline.streaming.live.notices import ARRIVED, LIMIT, OVERDUE, RELEASED, Gap, Notice
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    NOBODY,
    Limits,
    Message,
    Process,
    RunState,
    Trail,
)

NEVER = "deliveries that are owed by logs which ended without them"
MOST_LOOKS = 20_000  # old messages looked at again per batch


def tidy(run: RunState, limits: Limits, stable_ms: int) -> None:
    """Tell what is overdue, forget what is settled, keep within the limit."""
    _grow_old(run, stable_ms)
    again, rest = run.old[:MOST_LOOKS], run.old[MOST_LOOKS:]
    run.old = rest + [number for number in again if not _look(run, limits, number)]
    while len(run.messages) > limits.messages:
        oldest = run.messages[next(iter(run.messages))]
        if run.doubt("messages forgotten before everybody had delivered them"):
            text = (
                f"more than {limits.messages} messages are not delivered everywhere: the oldest "
                "are forgotten, and what is missing of them is not told"
            )
            run.notices.append(Notice(LIMIT, "", "messages", text))
        forget(run, oldest)


def _grow_old(run: RunState, stable_ms: int) -> None:
    while run.young_from < run.next_message:
        m = run.messages.get(run.young_from)
        if m is not None:
            if m.since_ms + stable_ms > run.now_ms:
                return
            run.old.append(m.number)
        run.young_from += 1


def _look(run: RunState, limits: Limits, number: int) -> bool:
    """Is it settled? Then it is forgotten."""
    m = run.messages.get(number)
    if m is None:
        return True
    pairs.tell_passed(run, limits, m)
    late = [] if m.group == NOBODY else debtors(run, m)
    m.debtors = len(late)
    owing = {q.number for q in late}
    for q in late:
        if q.number not in m.overdue and q.overdue_told < limits.overdue:
            m.overdue.append(q.number)
            q.overdue_told += 1
            _say(run, OVERDUE, q, m, f"{q.name} has not delivered {m.id} yet.")
    for other in [n for n in m.overdue if n not in owing]:
        m.overdue.remove(other)
        q = run.processes[other]
        q.overdue_told -= 1
        if not q.ended:
            _say(run, RELEASED, q, m, f"{q.name} does not owe {m.id} any more.")
    if late:
        for graph in run.graphs.values():
            cycles.step_over(graph, m.number)
        return False
    if not cycles.is_out(run, m):
        return False
    _tell_never_delivered(run, limits, m)
    forget(run, m)
    return True


def _tell_never_delivered(run: RunState, limits: Limits, m: Message) -> None:
    """Logs that ended without a delivery that they owe. Whether that is a violation verify says."""
    if m.group == NOBODY:
        return
    for q in run.processes:
        if q.ended and _owes(run, q, m):
            run.doubt(NEVER)
            if run.doubts[NEVER] <= limits.overdue:
                _say(run, OVERDUE, q, m, f"The log of {q.name} ended without {m.id}.", "|end")


def debtors(run: RunState, m: Message) -> list[Process]:
    """Who is alive, owes m now and has not delivered it."""
    return [q for q in run.alive() if _owes(run, q, m)]


def _owes(run: RunState, q: Process, m: Message) -> bool:
    return q.number not in m.got and isinstance(owes(run, q, m, q.position + 1), Gap)


def arrived(run: RunState, q: Process, m: Message) -> None:
    """q delivers m; if that was overdue, say that it came."""
    if q.number in m.overdue:
        m.overdue.remove(q.number)
        q.overdue_told -= 1
        _say(run, ARRIVED, q, m, f"{q.name} has delivered {m.id} after all.")


def _say(run: RunState, kind: str, q: Process, m: Message, sentence: str, when: str = "") -> None:
    witness: dict[str, object] = {
        "process": q.name, "missing": m.id, "group": run.groups[m.group].name,
        "sender": run.processes[m.sender].name,
    }  # fmt: skip
    run.notices.append(Notice(kind, "agreement", f"{q.name}|{m.id}{when}", sentence, witness))


def forget(run: RunState, m: Message) -> None:
    """Remember only who delivered it."""
    del run.messages[m.number]
    del run.message_numbers[m.id]
    for number in m.got:
        q = run.processes[number]
        q.forgotten.add(m.id)
        _shrink(run, q.delivered.get(m.group))
    if m.sender != NOBODY:
        run.forgotten.add(m.id)
        sent = run.processes[m.sender].sent
        _shrink(run, sent.get(EVERYTHING))
        _shrink(run, sent.get(m.group))
    for number in m.overdue:
        run.processes[number].overdue_told -= 1
    for graph in run.graphs.values():
        cycles.forget(graph, m.number)


def _shrink(run: RunState, trail: Trail | None) -> None:
    if trail is None:
        return
    trail.dead += 1
    if 2 * trail.dead > len(trail.numbers) + 64:
        kept = [i for i, number in enumerate(trail.numbers) if number in run.messages]
        trail.at = [trail.at[i] for i in kept]
        trail.numbers = [trail.numbers[i] for i in kept]
        trail.dead = 0
