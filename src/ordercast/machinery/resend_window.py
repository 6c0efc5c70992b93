"""Which missing numbers to ask for, and when again: a window that slides, and a back-off for each.

    a number is missing      ask for it, if it is among the first `size` that are missing
    still missing            ask again after 1 period, then 2, 4, 8, ... up to MAX_BACKOFF
    it came, asked for       the way is open: the others are due in the next period again, and
                             the window moves on to numbers that were missing already at the end
                             of the last period; what is missing only since may be under way

Asking for everything in every period costs most when it helps least: while the one who could
answer is cut off. A window alone does not help against that, a back-off alone not against a long
gap that is asked for all at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, takewhile

from ordercast.core.state import PlainState

MAX_BACKOFF = 16  # periods between two requests for the same number


class ResendWindow(PlainState):
    """The requests under way. It has no clock: its owner says when a period is over."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.horizon = 0  # the highest number that was known of at the end of the last period
        self.pause: dict[int, int] = {}  # per number asked for: periods from the last request on
        self.left: dict[int, int] = {}  # ... and how many of them are left

    def period_over(self, missing: Iterable[int], top: int) -> list[int]:
        """The numbers to ask for now, of those that are missing, in ascending order, up to top."""
        self.horizon = top
        self.left = {N: left - 1 for N, left in self.left.items()}
        return self._due(missing)

    def came(self, N: int, missing: Iterable[int]) -> list[int]:
        """N is here; the numbers to ask for now."""
        if N not in self.left:
            return []
        self.pause = dict.fromkeys(self.pause, 1)
        self.left = dict.fromkeys(self.left, 1)
        return self._due(missing)

    def _due(self, missing: Iterable[int]) -> list[int]:
        known = takewhile(lambda N: self.horizon >= N, missing)
        window = list(islice(known, self.size))
        due = [N for N in window if self.left.get(N, 0) <= 0]
        for N in due:
            self.pause[N] = self.left[N] = min(2 * self.pause.get(N, 0) or 1, MAX_BACKOFF)
        self.pause = {N: self.pause[N] for N in window}
        self.left = {N: self.left[N] for N in window}
        return due
