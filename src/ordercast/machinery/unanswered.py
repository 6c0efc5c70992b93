"""The words in a sequenced group that have no answer yet, and when to say them again.

A STATUS that knows less than was reported does not show that a report is lost: the two may have
crossed. If each such STATUS were answered with a report, and each repeated report with a STATUS,
then the two would go on for as long as anybody speaks, and every message would add a pair. So only
time decides that a word is lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from ordercast.core.ids import ProcessId
from ordercast.core.patience import Patience
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState

LATE = 4  # an answer may take so many times as long as the options say, without a loss ...
LATEST_MS = 2000  # ... but no longer than this, unless the options say more


def _latest(ms: int) -> int:
    """How long an answer may take where nothing is repeated before `ms`."""
    return max(ms, min(LATE * ms, LATEST_MS))


class Unanswered(PlainState):
    """What a member asked, reported and fetched; what the sequencer expects to be reported."""

    def __init__(self, options: Options) -> None:
        self.requests = Patience(options.retry_ms, _latest(options.retry_ms))
        self.oldest = 0  # own frame that had no number when last looked at
        self.reports = Patience(options.retry_ms, _latest(options.retry_ms))
        self.standing: tuple[int, ...] = ()  # what was known when the wait for an answer began
        self.noted = 0  # the number that the last STATUS says was reported by this member
        self.fetches = Patience(options.gap_ms, _latest(options.gap_ms))
        self.horizon = 0  # the highest number known when the wait for missing ones began
        self.fetched = -1  # the last number delivered when missing ones were fetched last
        self.statuses = Patience(options.status_ms, options.retry_ms)
        self.numbered = 0  # at the sequencer: the last number, when the wait for reports began
        self.due = 0  # ... and the one by which it measures how long reports take

    def begin(self, number: int) -> None:
        """The numbers up to this one are of the past."""
        self.noted = self.horizon = self.numbered = self.due = number
        self.fetched = -1
        self.standing = ()

    # -- a member ---------------------------------------------------------------------------------

    def is_request_lost(self, oldest: int) -> bool:
        """The timer for requests rang. Our frame `oldest` is the first without a number; 0: none.

        A long queue is not a loss: if another was the oldest before, requests come through.
        """
        before, self.oldest = self.oldest, oldest
        if not oldest or oldest != before:
            self.requests.answered()
            return False
        self.requests.said_again()
        return True

    def is_report_lost(self, standing: tuple[int, ...]) -> bool:
        """The timer for reports rang, and there is more to hear. `standing` is what is known."""
        before, self.standing = self.standing, standing
        if standing != before:
            self.reports.answered()
            return False
        self.reports.said_again()
        return True

    def fetches_again(self, delivered: int) -> None:
        """Numbers are fetched; all up to `delivered` were delivered before."""
        if delivered > self.fetched:
            self.fetches.answered()
        else:
            self.fetches.said_again()
        self.fetched = delivered

    # -- the sequencer ----------------------------------------------------------------------------

    def late(self, behind: Mapping[ProcessId, int], N: int) -> list[ProcessId]:
        """The timer for reports of others rang. Of those who have not reported all N numbers: who
        has not reported what was numbered when the timer was started?"""
        late = [p for p, R in behind.items() if self.numbered > R]
        if all(self.due <= R for R in behind.values()):
            self.due = N
            self.statuses.answered()
        elif late:
            self.statuses.said_again()
        return late
