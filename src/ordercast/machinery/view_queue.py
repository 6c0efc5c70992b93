"""The queue of a member of a view whose frames are numbered by one of its members.

    the view ends (flush)      deliver what has no gap in the union of what the survivors hold;
                               then what guests have said, as if it had the next numbers

Numbers hold for one view. Where they begin is told by the one who numbers, so a member that has not
heard of it holds everything back. A member's own frames that got no number are its own affair: it
asks again in the next view. A guest sees no numbers and cannot know which of its frames to ask for
again. It reports them when the view ends, and the flush delivers them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.errors import PeerError
from ordercast.machinery.numbered_queue import NumberedQueue
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sent_frames import SentFrames


class ViewQueue(NumberedQueue):
    """What a member has of one group, by numbers of the view in force."""

    def __init__(self, me: ProcessId, options: Options) -> None:
        super().__init__(me, options)
        self.first = 0  # the first number of this view; 0: not told yet
        self.last: dict[ProcessId, int] = {}  # last frame delivered in this view, per origin

    def begin_at(self, first: int) -> None:
        """The numbers of this view begin here. What waits below is of no view."""
        self.first = first
        self.R = self.stable = self.taken = self.acked = first - 1
        self.arrived = {N: entry for N, entry in self.arrived.items() if first <= N}
        self.top = max((self.R, *self.arrived))

    def hold(self, N: int, entry: Numbered) -> bool:
        """Put an entry at its number; False if it was there already."""
        if N in self.arrived or (self.first and N <= self.R):
            return False
        room = self.R + self.options.max_held >= N if self.first else self._has_room()
        if N < 1 or not room:
            raise PeerError(f"number {N} lies more than max_held above {self.R}")
        self.arrived[N] = entry
        self.top = max(self.top, N)
        return True

    def _has_room(self) -> bool:
        return len(self.arrived) < self.options.max_held

    def deliver_in_turn(self, g: GroupId, sent: SentFrames, out: Output) -> None:
        """wait until N = R + 1;  deliver it;  R := N"""
        while self.first and self.R + 1 in self.arrived:
            self.deliver_next(g, self.arrived.pop(self.R + 1), sent, out)

    def deliver_next(self, g: GroupId, entry: Numbered, sent: SentFrames, out: Output) -> None:
        """deliver it;  R := N;  what this process sent is pending no longer"""
        self.deliver(g, entry, out)
        self.last[entry.origin] = entry.n
        if entry.origin == self.me:
            sent.pending.pop(entry.n, None)

    def missing(self) -> Iterator[int]:
        return super().missing() if self.first else iter(())

    # -- the view ends ----------------------------------------------------------------------------

    def frames(self) -> tuple[Kept, ...]:
        """What some member may lack, with the stamp (number, first number or 0)."""
        return tuple(
            Kept(e.origin, e.n, (N, self.first), e.payload)
            for N, e in sorted(self.unstable().items())
        )

    def is_plausible(self, stamp: tuple[int, ...]) -> bool:
        """A member judges a stamp as it judges packets; one that only leads looks at the form."""
        if len(stamp) != 2 or not 0 <= stamp[1] <= stamp[0]:
            return False
        N, first = stamp
        known = self.first in (0, first) or not first
        return N >= 1 and known and (not self.first or self.R + self.options.max_held >= N)

    def flush(self, view: View, frames: Sequence[Kept], sent: SentFrames, out: Output) -> None:
        """Deliver the contiguous part; nobody alive can fill the gap behind it. Then the guests'.

        The union decides where the numbers begin, not what is known here: q holds 10 and 11 and
        was not told the first number; p was told 10 and holds nothing. If p delivered 10 and 11
        from the union, q, which cannot know that 10 is the first, would not. Who *delivered*
        something knows the first number, and says so in its report.
        """
        numbered = [kept for kept in frames if kept.stamp]
        first = max((kept.stamp[1] for kept in numbered), default=0)
        self.arrived.clear()
        if first:
            if not self.first:
                self.begin_at(first)
            for kept in numbered:
                if kept.stamp[0] > self.R:
                    self.arrived[kept.stamp[0]] = Numbered(kept.origin, kept.n, kept.payload)
            self.deliver_in_turn(view.group, sent, out)
            self.arrived.clear()
        for kept in sorted(kept for kept in frames if kept.origin in view.guests):
            if kept.n == self.last.get(kept.origin, kept.n - 1) + 1:
                said = Numbered(kept.origin, kept.n, kept.payload)
                self.deliver_next(view.group, said, sent, out)

    def end(self) -> None:
        """The flush has delivered what the view left. R goes on: any number will do."""
        self.handed = deque(0 for _ in self.handed)
        self.first = self.top = 0
        self.acked = self.taken  # nobody waits for a word on the old view
        for table in (self.arrived, self.kept, self.last, self.own):
            table.clear()
