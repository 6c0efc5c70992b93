"""Rows are judged in the order of happened-before.

Each log is taken in the order of its indexes, and a delivery only after the send of its message.
Logs are read at different speeds, so a log waits at a delivery whose send has not been read. It
goes on without the send if the named sender's log is complete, if the sends of several logs wait
for one another (then the trace contradicts itself), or when the stability time is over.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.live import waiting
from ordercast.pipeline.streaming.live.ledger import tell
from ordercast.pipeline.streaming.live.notices import LIMIT, Notice
from ordercast.pipeline.streaming.live.rows import take
from ordercast.pipeline.streaming.live.state import Limits, Process, RunState


def go_on(run: RunState, limits: Limits, give_up_ms: int) -> None:
    """Judge all that can be judged; what waits since `give_up_ms` goes on without a send."""
    ready = [p for p in run.processes if p.held and p.blocked_ms < 0]
    while True:
        _pump(run, limits, ready)
        ready = _contradictions(run, limits) or _given_up(run, limits, give_up_ms)
        if not ready:
            break


def _pump(run: RunState, limits: Limits, ready: list[Process]) -> None:
    while ready:
        p = ready.pop()
        done = 0
        for row in p.held:
            if row.kind == "deliver" and waiting.must_wait(run, p, row):
                waiting.block(run, p, row.message)
                break
            done += 1
            ready += take(run, limits, p, row)
        del p.held[:done]


def _given_up(run: RunState, limits: Limits, give_up_ms: int) -> list[Process]:
    """Those who waited too long, after their next row has been taken without its send."""
    too_many = sum(len(p.held) for p in run.processes) > limits.held_rows
    if too_many and run.doubt("deliveries judged without their send, for lack of room"):
        text = f"more than {limits.held_rows} rows wait for a send that was not read"
        run.notices.append(Notice(LIMIT, "", "held rows", text))
    freed = []
    for p in waiting.blocked(run):
        waited = p.blocked_ms <= give_up_ms or too_many
        if waited and p.held[0].message not in run.upcoming:
            waiting.unblock(run, p)
            run.doubt("deliveries judged without their send")
            freed += take(run, limits, p, p.held.pop(0))
            freed.append(p)
    return freed


def _contradictions(run: RunState, limits: Limits) -> list[Process]:
    """Logs that wait for one another for ever: each delivery happened before its send."""
    for p in waiting.blocked(run):
        circle: list[int] = []
        here: int | None = p.number
        while here is not None and here not in circle:
            circle.append(here)
            q = run.processes[here]
            here = run.upcoming.get(q.held[0].message) if q.blocked_ms >= 0 else None
        if here is not None:
            return _break(run, limits, [run.processes[n] for n in circle[circle.index(here) :]])
    return []


def _break(run: RunState, limits: Limits, circle: list[Process]) -> list[Process]:
    run.doubt("circles of happened-before")
    said = ", then ".join(f"{p.name} delivered {p.held[0].message}" for p in circle)
    tell(
        run, limits, "wellformed", ("circle",),
        f"An event happened before itself: {said}, then the first again.",
        {"cycle": [[p.name, p.held[0].message] for p in circle]},
    )  # fmt: skip
    freed = []
    for p in circle:
        message = p.held[0].message
        tell(
            run, limits, "no_creation", (p.name, message, "before its send"),
            f"The delivery of {message} at {p.name} happened before its send.",
            {"process": p.name, "message": message},
        )  # fmt: skip
        waiting.unblock(run, p)
        freed += take(run, limits, p, p.held.pop(0))
    return freed + circle
