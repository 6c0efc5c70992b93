"""How long the event loop of a node stood still: what blocks it delays its heartbeats too."""

from __future__ import annotations

import asyncio

LOOK_SECONDS = 0.25  # a stall is measured up to this much too short
NOTABLE_SECONDS = 0.05  # what is shorter happens to every process of a busy machine
WINDOW_SECONDS = 300.0  # after twice this, a stall is forgotten


class Stalls:
    """A timer that notes how late it is called."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notable = 0  # of all times
        self._window = self._before = (0.0, self._loop.time())  # the longest of each
        self._window_ends = self._loop.time() + WINDOW_SECONDS
        self._look_at(self._loop.time() + LOOK_SECONDS)

    def _look_at(self, due: float) -> None:
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        now = self._loop.time()
        self.note(now - due, now)
        self._look_at(now + LOOK_SECONDS)

    def note(self, late: float, now: float) -> None:
        """The timer was called so many seconds late."""
        if now >= self._window_ends:
            self._before, self._window = self._window, (0.0, now)
            self._window_ends = now + WINDOW_SECONDS
        if late >= NOTABLE_SECONDS:
            self._notable += 1
        self._window = max(self._window, (late, now))

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def stats(self) -> dict[str, float]:
        """The longest of late, how long ago it ended, and how many were notable so far."""
        longest, ended = max(self._before, self._window)
        return {
            "longest_ms": round(1000 * longest, 1),
            "seconds_ago": round(self._loop.time() - ended, 1),
            "notable": self._notable,
        }
