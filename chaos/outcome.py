"""What was done in a run and how it ended: what the judge must know that no program can write."""

from __future__ import annotations

import msgspec


class Outcome(msgspec.Struct):
    """Moments are seconds of the monotonic clock."""

    seed: int
    began: float = 0.0  # everybody was in; the times of the plan count from here
    over: float = 0.0  # the last fault was mended
    settled: float | None = None  # all was quiet after a fresh message came through to everybody
    recovery: float | None = None  # seconds from `over` until that message was everywhere
    wanted: dict[str, list[str]] = {}  # by group: who lives and should be in it at the end
    killed: list[str] = []  # processes, "name.life"
    departed: list[str] = []  # processes that were asked to leave in order
    living: list[str] = []  # processes that run at the end
    ended: dict[str, int] = {}  # processes that ended by themselves, with their exit status
    unclosed: list[str] = []  # processes that did not end in time when they were asked to
    given_up: str = ""  # a known rule because of which nobody waited for recovery
    happened: list[str] = []  # what was done, with its moment and the targets that were found
