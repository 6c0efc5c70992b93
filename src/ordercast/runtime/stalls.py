"""How long the event loop of a node stood still: what blocks it delays its heartbeats too."""

from __future__ import annotations

import asyncio

LOOK_SECONDS = 0.25  # a stall is measured up to this much too short
NOTABLE_SECONDS = 0.05  # what is shorter happens to every process of a busy machine


class Stalls:
    """A timer that notes how late it is called."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.count = 0  # of notable ones
        self.longest = 0.0  # seconds
        self._when = 0.0  # the longest one ended
        self._look_at(self._loop.time() + LOOK_SECONDS)

    def _look_at(self, due: float) -> None:
        self._timer = self._loop.call_at(due, self._look, due)

    def _look(self, due: float) -> None:
        now = self._loop.time()
        self.note(now - due, now)
        self._look_at(now + LOOK_SECONDS)

    def note(self, late: float, now: float) -> None:
        """The timer was called so many seconds late."""
        if late >= NOTABLE_SECONDS:
            self.count += 1
        if late > self.longest:
            self.longest, self._when = late, now

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def stats(self) -> dict[str, float]:
        """The longest one, how long ago it ended, and how many were notable."""
        ago = self._loop.time() - self._when if self.longest else 0.0
        return {
            "longest_ms": round(1000 * self.longest, 1),
            "seconds_ago": round(ago, 1),
            "notable": self.count,
        }
