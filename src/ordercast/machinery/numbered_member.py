"""A member of a view whose frames are numbered by one of its members: what it holds and keeps.

    number N is here           wait until N = R + 1;  deliver it;  R := N;  keep it until stable
    the application took it    soon: acknowledge
    stable(N) is told          forget the numbers up to N
    the view ends (flush)      deliver what has no gap in the union of what the survivors hold;
                               then what guests have said, as if it had the next numbers

Numbers hold for one view. Where they begin is told by the one who numbers, so a member that has not
heard of it holds everything back. A member's own frames that got no number are its own affair: it
asks again in the next view. A guest sees no numbers and cannot know which of its frames to ask for
again. It reports them when the view ends, and the flush delivers them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.sequenced_waiting import ExplainedMember, ahead_frames, held_ahead
from ordercast.machinery.unanswered import Unanswered

Role = Literal["member", "guest", "outside"]


class NumberedMember(ExplainedMember):
    """Total order in one group by numbers that hold for one view: the part of every member."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.role: Role = "outside"  # in the view in force
        self.leader: ProcessId = me  # the sequencer of this view
        self.first = 0  # the first number of this view; 0: not told yet
        self.R = 0  # last number delivered here
        self.top = 0  # highest number known to be given in this view
        self.stable = 0  # numbers up to here are delivered by all
        self.arrived: dict[int, Numbered] = {}  # numbered, not in turn yet
        self.kept: dict[int, Numbered] = {}  # delivered here, not known stable
        self.last: dict[ProcessId, int] = {}  # last frame delivered in this view, per origin
        self.S = 0  # frames this process sent, in this stay
        self.requests: dict[int, bytes] = {}  # own frames n, not delivered; of a guest, not stable
        self.numbered = 0  # of a guest: its frames up to this one have numbers
        self.own: deque[tuple[int, int]] = deque()  # (number, n) of own frames, not stable
        self.handed: deque[int] = deque()  # numbers delivered, not consumed yet
        self.taken = 0  # last number consumed by the application
        self.acked = 0  # ... and told to the sequencer
        self.running: set[str] = set()  # timers
        self.unanswered = Unanswered(self.options)
        self.book: Numbering | None = None  # at the sequencer only

    @abstractmethod
    def acknowledge(self, g: GroupId) -> None:
        """Tell the sequencer how far the application has come: `taken`."""

    # -- delivering -------------------------------------------------------------------------------

    def begin_at(self, first: int) -> None:
        """The numbers of this view begin here. What waits below is of no view."""
        self.first = first
        self.R = self.stable = self.taken = self.acked = first - 1
        self.unanswered.begin(self.R)
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

    def deliver_in_turn(self, g: GroupId) -> None:
        """wait until N = R + 1;  deliver it;  R := N"""
        while self.first and self.R + 1 in self.arrived:
            self.deliver_next(g)

    def deliver_next(self, g: GroupId) -> None:
        """deliver it;  R := N;  keep it until stable"""
        self.R = N = self.R + 1
        self.kept[N] = entry = self.arrived.pop(N)
        origin, n = entry.origin, entry.n
        self.last[origin] = n
        self.out.deliveries.append((g, origin, n, N, entry.payload))
        if origin == self.me:
            self.requests.pop(n, None)
            self.own.append((N, n))
        if self.options.driver_consumes:
            self.handed.append(N)
        else:
            self.taken = N

    def missing(self) -> Iterator[int]:
        """Numbers that were given, and are not here."""
        given = range(self.R + 1, self.top + 1) if self.first else ()
        return (N for N in given if N not in self.arrived)

    # -- what all have delivered ------------------------------------------------------------------

    def on_consumed(self, g: GroupId, frames: int) -> None:
        for _ in range(frames):
            self.taken = max(self.taken, self.handed.popleft())
        self.acknowledge_soon(g)

    def acknowledge_soon(self, g: GroupId) -> None:
        """After a few more, or a moment later."""
        if self.taken - self.acked >= self.options.ack_every:
            self.acknowledge(g)
        elif self.taken > self.acked:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    def learn_stable(self, g: GroupId, stable: int) -> None:
        """All numbers up to this one are consumed by all: forget them."""
        if not self.first or stable <= self.stable:
            return
        if stable > self.taken:
            raise PeerError(f"number {stable} is called stable, but was not acknowledged here")
        for N in range(self.stable + 1, stable + 1):
            self.kept.pop(N, None)
        self.stable = stable
        n = 0
        while self.own and self.own[0][0] <= stable:
            _, n = self.own.popleft()
        if n:
            self.out.stable.append((g, n))

    def learn_as_guest(self, g: GroupId, n: int, stable: int) -> None:
        """Our frames up to n have numbers, those up to `stable` are delivered by all."""
        if n > self.numbered:
            self.numbered = n
            self.out.ordered.append((g, n))
        settled = list(takewhile(stable.__ge__, self.requests))  # they stand in order
        for k in settled:
            del self.requests[k]
        if settled:
            self.out.stable.append((g, stable))
        if self.requests:
            self.await_stability(g)

    def await_stability(self, g: GroupId) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if "repeat" not in self.running:
            self.unanswered.standing = self._standing()
            self.start_timer(g, "repeat", self.unanswered.reports.wait)

    def _standing(self) -> tuple[int, ...]:
        return (self.stable, self.unanswered.noted, self.numbered, len(self.requests))

    def repeat_report(self, g: GroupId) -> None:
        """A word may be lost."""
        if not (self.kept or (self.role == "guest" and self.requests)):
            self.unanswered.reports.answered()
        elif self.unanswered.is_report_lost(self._standing()):
            self.acknowledge(g)
        else:
            self.await_stability(g)

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    # -- views ------------------------------------------------------------------------------------

    def end_view(self, view: View) -> None:
        """The flush has delivered what the old view left: all that is stable. `view` begins."""
        g = view.group
        if self.role == "guest":
            self.learn_as_guest(g, self.S, self.S)
        elif self.own:
            self.out.stable.append((g, self.own[-1][1]))
        if self.role == "outside":  # a stay begins: nothing is reported of one before
            self.handed.clear()
        self.handed = deque(0 for _ in self.handed)
        self.first = self.top = 0
        self.acked = self.taken  # nobody waits for a word on the old view
        for table in (self.arrived, self.kept, self.last, self.own, self.running):
            table.clear()
        if self.me not in view.senders:  # our last view: nothing after it is for us
            self.S = self.numbered = 0
            self.requests = {}
            self.views[g] = View(g, view.number, (), self.me, view.era)
        self.role = self._role_in(view)

    def _role_in(self, view: View) -> Role:
        if self.me in view.members:
            return "member"
        return "guest" if self.me in view.guests else "outside"

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Numbered frames with the stamp (number, first number or 0); of a guest its own, bare."""
        numbered = (
            Kept(e.origin, e.n, (N, self.first), e.payload)
            for N, e in sorted({**self.kept, **self.arrived}.items())
        )
        said = self.requests.items() if self.role == "guest" else ()
        return (*numbered, *(Kept(self.me, n, (), m) for n, m in said))

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        if frame.origin not in senders or frame.n < 1:
            return False
        if not frame.stamp:
            return True
        if len(frame.stamp) != 2 or not 0 <= frame.stamp[1] <= frame.stamp[0]:
            return False
        N, first = frame.stamp
        known = self.first in (0, first) or not first
        return N >= 1 and known and (not self.first or self.R + self.options.max_held >= N)

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        """With a number before without, and with the first number of the view before without."""
        return max(one, other, key=lambda kept: kept.stamp)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """Deliver the contiguous part; nobody alive can fill the gap behind it. Then the guests'.

        The union decides where the numbers begin, not what is known here: q holds 10 and 11 and
        was not told the first number; p was told 10 and holds nothing. If p delivered 10 and 11
        from the union, q, which cannot know that 10 is the first, would not. Who *delivered*
        something knows the first number, and says so in its report.
        """
        view = self.views[g]
        frames = [kept for kept in union if self.plausible(g, view.senders, kept)]
        numbered = [kept for kept in frames if kept.stamp]
        first = max((kept.stamp[1] for kept in numbered), default=0)
        self.arrived.clear()
        if first:
            if not self.first:
                self.begin_at(first)
            for kept in numbered:
                if kept.stamp[0] > self.R:
                    self.arrived[kept.stamp[0]] = Numbered(kept.origin, kept.n, kept.payload)
            self.deliver_in_turn(g)
            self.arrived.clear()
        for kept in sorted(kept for kept in frames if kept.origin in view.guests):
            if kept.n == self.last.get(kept.origin, kept.n - 1) + 1:
                self.arrived[self.R + 1] = Numbered(kept.origin, kept.n, kept.payload)
                self.deliver_next(g)

    # -- why it is held back ----------------------------------------------------------------------

    def first_gaps(self, g: GroupId) -> list[tuple[int, Awaited]]:
        if self.first:
            return super().first_gaps(g)
        return [(0, Awaited("first", g, self.leader, 0))]

    def holdings(self, g: GroupId) -> Holdings:
        said = len(self.requests) if self.role == "guest" else 0
        ahead, history = 0, 0
        if self.book is not None:
            ahead, history = sum(map(len, self.book.ahead.values())), len(self.book.history)
        return Holdings(len(self.arrived) + ahead, len(self.kept) + said, history)

    def held_back(self) -> list[Waiting]:
        """At the sequencer also the frames that overtook their predecessors."""
        ahead = (w for g in self.views for w in held_ahead(g, self.book)) if self.book else ()
        return [*super().held_back(), *ahead]

    def waiting_frames(self) -> list[WaitingFrame]:
        ahead = (f for g in self.views for f in ahead_frames(g, self.book)) if self.book else ()
        return [*super().waiting_frames(), *ahead]
