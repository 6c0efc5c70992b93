"""The incremental judge of one run: rows in, notices out."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.pipeline.streaming.live import intake, memory, progress
from ordercast.pipeline.streaming.live.ledger import is_violated
from ordercast.pipeline.streaming.live.notices import Notice
from ordercast.pipeline.streaming.live.state import Limits, RunState
from ordercast.trace.schema import Event


class LiveJudge:
    """Judges one run, batch by batch. Its whole memory is `state`, which is plain data."""

    def __init__(
        self, state: RunState, *, stable_ms: int = 5_000, limits: Limits | None = None
    ) -> None:
        self.state = state
        self.stable_ms = stable_ms
        self.limits = limits or Limits()

    def feed(self, rows: Iterable[Event], now_ms: int) -> list[Notice]:
        """Judge these rows at this time; returns what is new. Rows may also be none at all."""
        run = self.state
        run.now_ms = max(now_ms, run.now_ms)
        intake.read(run, self.limits, rows)
        progress.go_on(run, self.limits, run.now_ms - self.stable_ms)
        memory.tidy(run, self.limits, self.stable_ms)
        notices, run.notices = run.notices, []
        return notices

    def violated(self, name: str) -> bool:
        """Does something stand against this property?"""
        return is_violated(self.state, name)

    def is_idle(self) -> bool:
        """Time alone will bring nothing new: only rows will."""
        run = self.state
        return (
            not any(p.held for p in run.processes)
            and run.young_from == run.next_message
            and all(run.messages[number].debtors for number in run.old if number in run.messages)
        )
