"""One row of a log, in its turn: every check that it can decide."""

from __future__ import annotations

from ordercast.pipeline.streaming.live import (
    cycles,
    membership,
    memory,
    pairs,
    predecessors,
    views,
    waiting,
)
from ordercast.pipeline.streaming.live.ledger import recheck, tell, withdraw
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    NOBODY,
    HeldRow,
    Limits,
    Message,
    Process,
    RunState,
    Trail,
)


def take(run: RunState, limits: Limits, p: Process, row: HeldRow) -> list[Process]:
    """Judge the row; returns the processes that need not wait any longer."""
    p.position += 1
    match row.kind:
        case "send":
            return _send(run, limits, p, row)
        case "deliver":
            _deliver(run, limits, p, row)
        case "view":
            membership.change_membership(run, limits, p, row)
            views.install(run, limits, p, row)
        case "join" | "leave":
            membership.change_membership(run, limits, p, row)
        case "crash":
            p.crashed = True
            recheck(run)
        case "lost":
            records_missing(run, p)
        case "end":
            return _end(run, limits, p)
    return []


def _send(run: RunState, limits: Limits, p: Process, row: HeldRow) -> list[Process]:
    run.upcoming.pop(row.message, None)
    m = run.message(row.message)
    if (m is not None and m.sender != NOBODY) or row.message in run.forgotten:
        tell(
            run, limits, "wellformed", ("sent twice", row.message),
            f"{row.message} was sent more than once.",
            {"message": row.message, "processes": [p.name]},
        )  # fmt: skip
        return []
    if m is None:
        m = run.new_message(row.message)
    else:
        _sent_after_all(run, m)
    _number(run, p, m, row)
    woken = [run.processes[n] for n in run.waiting.pop(m.id, ())]
    for q in woken:
        q.blocked_ms = -1
    return woken


def _sent_after_all(run: RunState, m: Message) -> None:
    run.doubt("sends read after a delivery had been judged without them")
    withdraw(
        run,
        lambda f: f.by_end_of >= 0 and f.witness.get("message") == m.id,
        "its send was read",
    )
    m.said = {}


def _number(run: RunState, p: Process, m: Message, row: HeldRow) -> None:
    g = run.group(row.group)
    m.sender, m.at, m.group = p.number, p.position, g.number
    stay = p.stays.get(g.number)
    change = membership.last_change(stay, p.position)
    if change is not None and change.inside:
        m.view = change.current
    m.clock = predecessors.stamp(p, EVERYTHING)
    if "causal.group" in run.checks:
        m.group_clock = predecessors.stamp(p, g.number)
    for scope in (EVERYTHING, g.number):
        trail = p.sent.get(scope)
        if trail is None:
            trail = p.sent[scope] = Trail()
        trail.add(p.position, m.number)


def _deliver(run: RunState, limits: Limits, q: Process, row: HeldRow) -> None:
    m = run.message(row.message)
    if row.message in q.forgotten if m is None else q.number in m.got:
        tell(
            run, limits, "no_duplication", (q.name, row.message),
            f"{q.name} delivered {row.message} more than once.",
            {"process": q.name, "message": row.message},
        )  # fmt: skip
        return
    if m is None and row.message in run.forgotten:
        run.doubt("deliveries of messages that were forgotten")
        q.forgotten.add(row.message)
        views.deliver_unknown(run, q, row.group)
        return
    if m is None or m.sender == NOBODY:
        m = _deliver_unsent(run, limits, q, row, m or run.new_message(row.message))
    else:
        _deliver_sent(run, limits, q, row, m)
    pairs.deliver(run, limits, q, m)
    cycles.deliver(run, limits, q, m)
    m.got[q.number] = q.position
    if m.group != NOBODY and "total.gapless" in run.checks:
        trail = q.delivered.get(m.group)
        if trail is None:
            trail = q.delivered[m.group] = Trail()
        trail.add(q.position, m.number)


def _deliver_unsent(run: RunState, limits: Limits, q: Process, row: HeldRow, m: Message) -> Message:
    views.deliver_unknown(run, q, row.group)
    m.said[q.number] = row.sender or ""
    if waiting.was_never_sent(run, row):
        _tell_never_sent(run, limits, q, m)
    return m


def _tell_never_sent(run: RunState, limits: Limits, q: Process, m: Message) -> None:
    sender = m.said[q.number]
    tell(
        run, limits, "no_creation", (q.name, m.id),
        f"{q.name} delivered {m.id}, of which there is no send.",
        {"process": q.name, "message": m.id, "sender": sender},
        by_end_of=run.process_numbers[sender],
    )  # fmt: skip


def _deliver_sent(run: RunState, limits: Limits, q: Process, row: HeldRow, m: Message) -> None:
    g = run.groups[m.group]
    if row.group != g.name:
        tell(
            run, limits, "no_creation", (q.name, m.id, "group"),
            f"{q.name} delivered {m.id} in {row.group}; it was sent to {g.name}.",
            {"process": q.name, "message": m.id, "delivered_in": row.group,
             "sent_to": g.name},
        )  # fmt: skip
    membership.delivered_in(run, limits, q, m.group, m.id)
    if membership.is_member(run, q, m.group, q.position) is False:
        membership.not_a_member(run, limits, q, g, m.id)
    views.deliver(run, limits, q, m)
    predecessors.deliver(run, limits, q, m)
    memory.arrived(run, q, m)


def _end(run: RunState, limits: Limits, p: Process) -> list[Process]:
    p.ended = True
    if p.noted:
        recheck(run)
    if not waiting.is_complete(run, p):
        return []
    for m in run.messages.values():
        if m.sender == NOBODY and m.id not in run.upcoming:
            for number, sender in m.said.items():
                if sender == p.name:
                    _tell_never_sent(run, limits, run.processes[number], m)
    freed = [q for q in waiting.blocked(run) if waiting.was_never_sent(run, q.held[0])]
    for q in freed:
        waiting.unblock(run, q)
    return freed


def records_missing(run: RunState, p: Process) -> None:
    """What rests on p's log being complete does not stand any longer."""
    p.lost = True
    why = f"records of {p.name} are missing"
    withdraw(run, lambda f: f.gap is not None and f.gap.process == p.number, why)
    withdraw(run, lambda f: f.by_end_of == p.number, why)
    withdraw(
        run,
        lambda f: (
            f.property == "vsync"
            and any(all(run.processes[n].lost for n in one) for one in f.observers)
        ),
        why,
    )
