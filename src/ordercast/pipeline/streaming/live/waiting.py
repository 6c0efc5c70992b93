"""Deliveries whose send was not read yet: which must wait, and who waits for what."""

from __future__ import annotations

from ordercast.pipeline.streaming.live.state import HeldRow, Process, RunState


def block(run: RunState, p: Process, message: str) -> None:
    """Its next row waits for the send of this message."""
    p.blocked_ms = run.now_ms
    run.waiting.setdefault(message, []).append(p.number)


def must_wait(run: RunState, p: Process, row: HeldRow) -> bool:
    """Has the send of this delivery still to be read?"""
    if row.message in run.message_numbers or row.message in run.forgotten:
        return False
    return row.message not in p.forgotten and not was_never_sent(run, row)


def was_never_sent(run: RunState, row: HeldRow) -> bool:
    """Is the log of the sender that this delivery names complete, without such a send?"""
    number = run.process_numbers.get(row.sender or "")
    return (
        number is not None
        and row.message not in run.upcoming
        and is_complete(run, run.processes[number])
    )


def is_complete(run: RunState, s: Process) -> bool:
    """Would every send of s be known?"""
    return s.ended and not s.crashed and not s.lost and not run.forgotten.forgotten


def blocked(run: RunState) -> list[Process]:
    """Those whose next row waits for a send."""
    return [p for p in run.processes if p.blocked_ms >= 0]


def unblock(run: RunState, p: Process) -> None:
    """Its next row need not wait any longer."""
    p.blocked_ms = -1
    message = p.held[0].message
    others = run.waiting[message]
    others.remove(p.number)
    if not others:
        del run.waiting[message]
