"""A member of a group that has a sequencer: delivers in the order of the numbers.

The other half, what the sequencer itself does, is in `machinery.sequencer`.

A view change without a crash of the sequencer is an *entry*: it has a number like a message, so
every member sees it at the same place, and nobody stops sending. If the sequencer itself is gone,
a flush ends the era: the survivors deliver the contiguous part of what they hold together, numbers
begin again at 1 with the new leader, and everybody asks again for its unnumbered frames.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, takewhile
from typing import ClassVar

from ordercast.core.events import Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, Reach, on
from ordercast.errors import PeerError
from ordercast.machinery.numbering import VIEW_ENTRY, Numbered, ViewEntry
from ordercast.machinery.sequenced_waiting import ExplainedMember
from ordercast.machinery.sequencer_headers import Accept, Accepted, Delivered, Fetch, Status
from ordercast.machinery.unanswered import Unanswered

PRUNE_EVERY = 16  # a member looks through what it keeps when so much more of it is stable


class SequencedMember(ExplainedMember):
    """Total order in one group by one process that gives out numbers: the part of a member."""

    across: ClassVar[bool] = False  # an entry may also wait for entries of other groups

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.leader: ProcessId = me  # the sequencer of this era
        self.R = 0  # last number delivered here
        self.top = 0  # highest number known to be given
        self.stable = 0  # numbers up to here are delivered by all
        self.arrived: dict[int, Numbered] = {}  # numbered, not in turn yet
        self.kept: dict[int, Numbered] = {}  # delivered here, not known stable
        self.S = 0  # frames this process sent, in all eras
        self.S_first = -1  # ... before it (last) joined; -1: it may not send
        self.requests: dict[int, bytes] = {}  # own frames n, not delivered; of a guest, not stable
        self.numbered = 0  # of a guest: its frames up to this one have numbers in this era
        self.done: dict[ProcessId, int] = {}  # last frame delivered, per origin, in all eras
        self.own: deque[tuple[int, int]] = deque()  # (number, n) of own frames, not stable
        self.handed: deque[int] = deque()  # numbers delivered, not consumed yet
        self.taken = 0  # last number consumed by the application
        self.acked = 0  # ... and told to the sequencer
        self.delivers = False  # a member; a process that only leads delivers nothing
        self.running: set[str] = set()  # timers
        self.unanswered = Unanswered(self.options)

    @abstractmethod
    def request(self, g: GroupId, n: int, m: bytes) -> None:
        """Bring our frame n to the sequencer (and perhaps to the others)."""

    def waits(self, g: GroupId, entry: Numbered) -> bool:
        """The entry is in turn: must it wait for other groups?"""
        return False

    def delivered(self, g: GroupId, N: int, entry: Numbered) -> None:
        """Where there is an order across groups: this one was delivered."""

    def came_further(self, g: GroupId) -> None:
        """Where there is an order across groups: entries of others may wait for what was
        delivered."""

    # -- a member sends ---------------------------------------------------------------------------

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.S += 1
        self.requests[self.S] = m
        self.request(g, self.S, m)
        self.await_numbers(g)

    def await_numbers(self, g: GroupId) -> None:
        """Repeat requests that have no answer after a while."""
        self.start_timer(g, "retry", self.unanswered.requests.wait)

    def _repeat_requests(self, g: GroupId) -> None:
        unnumbered = self.unnumbered()
        if self.unanswered.is_request_lost(next(iter(unnumbered), 0)):
            for n in unnumbered[: self.options.fetch_batch]:
                if n in self.requests:  # one that is asked for may bring on others
                    self.note("retransmit", g, self.me, n)
                    self.request(g, n, self.requests[n])
        if unnumbered:
            self.await_numbers(g)

    # -- a guest ----------------------------------------------------------------------------------

    @on(Accepted)
    def on_ACCEPTED(self, src: ProcessId, g: GroupId, accepted: Accepted, m: bytes) -> None:
        self._check_sequencer(src)
        if not accepted.stable <= accepted.n <= self.S:
            raise PeerError(f"{accepted} came to a process that has sent {self.S} frames")
        if self.me in self.views[g].guests:  # else it came late
            self.learn_as_guest(g, accepted.n, accepted.stable)

    def learn_as_guest(self, g: GroupId, n: int, stable: int) -> None:
        """Our frames up to n are numbered. Those not stable are kept: a sequencer may die with
        the number, and the next one must be asked again."""
        if n > self.numbered:
            self.numbered = n
            self.out.ordered.append((g, n - self.S_first))
        settled = list(takewhile(stable.__ge__, self.requests))  # they stand in order
        for k in settled:
            del self.requests[k]
        if settled:
            self.out.stable.append((g, stable - self.S_first))
        if self.requests:
            self._await_stability(g)

    def _follow_view(self, g: GroupId, entry: ViewEntry) -> None:
        """A guest learns who the members are; or that it is one itself, or a guest no longer."""
        if self.me in entry.members and self.me not in entry.joined:
            return  # it overtook the one that admits us, which is where we start
        self._start_after(entry.N)
        self.done.update(entry.last)
        if self.me in entry.members:
            self._become_member(entry)
        self.install(self._view_of(g, entry, self.views[g].era))
        self.acknowledge(g)

    def _become_member(self, entry: ViewEntry) -> None:
        """With this view. What we sent before, as a guest or in a former stay, has lower numbers:
        it is stable when this one is. We keep the view: if the sequencer dies, we may be the only
        one who has it."""
        N = entry.N
        self.kept[N] = Numbered(VIEW_ENTRY, N, b"", entry)
        last, self.numbered = self.done.get(self.me, 0), 0
        self.stable = N - 1
        if last:
            self.own.append((N, last))
        self.requests = {n: m for n, m in self.requests.items() if n > last}

    # -- a member delivers ------------------------------------------------------------------------

    @on(Accept)
    def on_ACCEPT(self, src: ProcessId, g: GroupId, accept: Accept, m: bytes) -> None:
        self._check_sequencer(src)
        self.place(g, accept.N, accept.stable, Numbered(accept.origin, accept.n, m))

    @on(ViewEntry)
    def on_VIEW(self, src: ProcessId, g: GroupId, view: ViewEntry, m: bytes) -> None:
        self._check_sequencer(src)
        if self.taken >= view.N:  # the sequencer repeats it: our acknowledgement was lost
            self.acknowledge(g)
        elif self.me in self.views[g].guests:
            self._follow_view(g, view)
        else:
            self.place(g, view.N, view.stable, Numbered(VIEW_ENTRY, view.N, b"", view))

    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        """Put an entry at its number, and deliver what is in turn."""
        if not self.delivers:
            return
        R = self.R
        if N == R + 1 and not (self.across and self.waits(g, entry)):
            self.deliver_in_turn(g, entry)
        elif N > R:
            if R + self.options.max_held < N:
                self.check_near(N)
            self.arrived[N] = entry
            if self.top < N or "gap" not in self.running:
                self.learn(g, N, stable)
        if stable >= self.stable + PRUNE_EVERY or (self.own and self.own[0][0] <= stable):
            self.learn(g, N, stable)

    def check_near(self, N: int) -> None:
        """A sequencer that is further ahead than we may hold back breaks the rules."""
        if self.delivers and self.R + self.options.max_held < N:
            raise PeerError(f"number {N} lies more than max_held above {self.R}")

    def deliver_in_turn(self, g: GroupId, entry: Numbered | None) -> None:
        """wait until N = R + 1; TO-deliver(m); R := N. Then what has waited behind it."""
        while entry is not None:
            self.R = N = self.R + 1
            self.kept[N] = entry
            if entry.view is not None:
                self._deliver_view(g, entry.view)  # after our last one nothing has arrived
            else:
                origin, n = entry.origin, entry.n
                self.done[origin] = n
                self.out.deliveries.append((g, origin, n, N, entry.payload))
                if origin == self.me:
                    self.requests.pop(n, None)
                    self.own.append((N, n))
                if self.options.driver_consumes:
                    self.handed.append(N)
                else:
                    self.taken = N
            if self.across:
                self.delivered(g, N, entry)
            entry = self._next_in_turn(g) if self.arrived else None
        owed = self.taken - self.acked
        if owed >= self.options.ack_every or (owed and "ack" not in self.running):
            self._acknowledge_soon(g)
        if self.across:
            self.came_further(g)

    def _next_in_turn(self, g: GroupId) -> Numbered | None:
        entry = self.arrived.get(self.R + 1)
        if entry is None or (self.across and self.waits(g, entry)):
            return None
        return self.arrived.pop(self.R + 1)

    def _deliver_view(self, g: GroupId, entry: ViewEntry) -> None:
        now = self.views[g]
        new = {*entry.joined, *entry.guests}
        self.done.update(pair for pair in entry.last if pair[0] in new)
        self.install(self._view_of(g, entry, now.era))
        if not self.handed:
            self.taken = self.R  # a view needs no consumption
        if not self.delivers:  # our last: nothing after it is for us
            # What was before it is kept until the era ends, or the group is closed here: if the
            # sequencer dies, others may have none of it.
            self.taken = self.top = self.R
            self.arrived.clear()
            if self.me in entry.guests:
                self.numbered = self.done.get(self.me, 0)
            self.acknowledge(g)

    def _view_of(self, g: GroupId, entry: ViewEntry, era: int) -> View:
        return View(g, entry.number, entry.members, self.leader, era, entry.N, guests=entry.guests)

    def learn(self, g: GroupId, top: int, stable: int) -> None:
        """What the sequencer's marks tell: numbers that exist, numbers that all have delivered."""
        if not self.delivers:  # it left, and keeps what others may lack
            self.kept = {N: entry for N, entry in self.kept.items() if stable < N}
            return
        if top > self.top:
            self.top = top
        if self.top > self.R and "gap" not in self.running:
            self._await_missing(g)
        if stable > self.stable:
            if stable > self.taken:
                raise PeerError(f"number {stable} is called stable, but was not acknowledged here")
            for N in range(self.stable + 1, stable + 1):
                self.kept.pop(N, None)
            self.stable = stable
            self._report_own_stable(g)

    def _report_own_stable(self, g: GroupId) -> None:
        n = 0
        while self.own and self.own[0][0] <= self.stable:
            _, n = self.own.popleft()
        if n:
            self.out.stable.append((g, n - self.S_first))

    @on(Status)
    def on_STATUS(self, src: ProcessId, g: GroupId, status: Status, m: bytes) -> None:
        self._check_sequencer(src)
        self.learn(g, min(status.N, self.R + self.options.max_held), status.stable)
        self.unanswered.noted = max(self.unanswered.noted, status.R)
        if self.taken > status.R and not self.delivers:  # it left, and repeats nothing by itself
            self.acknowledge(g)
        self.check_near(status.N)  # what is missing here is asked for all the same

    def _fetch_missing(self, g: GroupId) -> None:
        """FETCH(R+1..): what lies between the last number delivered and the next one here."""
        if self.top <= self.R:
            return
        first = self.R + 1
        last = min(self.arrived, default=self.top + 1) - 1
        last = min(last, self.R + self.options.fetch_batch)
        if first <= min(last, self.unanswered.horizon):  # else it is late, or waits for a group
            self._fetch(g, first, last)
        self._await_missing(g)

    def _fetch(self, g: GroupId, first: int, last: int) -> None:
        self.unanswered.fetches_again(self.R)
        self.note("nack", g, self.leader, 0, f"numbers {first}..{last}")
        self.send(self.leader, g, Fetch(first, last))

    def _await_missing(self, g: GroupId) -> None:
        """What is still missing when the timer ends is fetched. What is known only since may be on
        its way."""
        self.unanswered.horizon = self.top
        self.start_timer(g, "gap", self.unanswered.fetches.wait)

    def _check_sequencer(self, src: ProcessId) -> None:
        if src != self.leader:
            raise PeerError(f"process {src} speaks as the sequencer, which is {self.leader}")

    # -- a member acknowledges --------------------------------------------------------------------

    def on_consumed(self, g: GroupId, frames: int) -> None:
        for _ in range(frames):
            self.taken = max(self.taken, self.handed.popleft())
        if not self.handed:
            self.taken = self.R
        if self.taken > self.acked:
            self._acknowledge_soon(g)

    def _acknowledge_soon(self, g: GroupId) -> None:
        if self.taken - self.acked >= self.options.ack_every:
            self.acknowledge(g)
        elif "ack" not in self.running:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    def acknowledge(self, g: GroupId) -> None:
        """Tell the sequencer how far the application has come."""
        self.acked = self.taken
        self.send(self.leader, g, Delivered(self.taken))
        self._await_stability(g)

    def _await_stability(self, g: GroupId) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if "repeat" not in self.running:
            self.unanswered.standing = self._standing()
            self.start_timer(g, "repeat", self.unanswered.reports.wait)

    def _standing(self) -> tuple[int, ...]:
        return (self.stable, self.unanswered.noted, self.numbered, len(self.requests))

    def _repeat_report(self, g: GroupId) -> None:
        if not ((self.kept and self.delivers) or (self.numbered and self.requests)):
            self.unanswered.reports.answered()
        elif self.unanswered.is_report_lost(self._standing()):
            self.acknowledge(g)
        else:
            self._await_stability(g)

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        if name == "retry":
            self._repeat_requests(g)
        elif name == "gap":
            self._fetch_missing(g)
        elif name == "ack":
            if self.taken > self.acked:
                self.acknowledge(g)
        elif name == "repeat":
            self._repeat_report(g)

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    # -- views ------------------------------------------------------------------------------------

    def _keep_if_early(self, packet: Receive) -> None:
        # A joiner starts at exactly the entry that admits it. Starting at the first number seen
        # would hide a lost prefix. A repeat of the entry that began a former stay is void.
        g, header = packet.group, packet.header
        if g in self.views or not isinstance(header, ViewEntry) or not self._admits_us(header):
            super()._keep_if_early(packet)
            return
        if (packet.era, header.N) <= self.left_in.get(g, (0, 0)):
            self.note("drop", g, packet.src, 0, "former stay")
            return
        if self.admitted_by not in (None, packet.src):
            fault = f"process {packet.src} admits to a group that process {self.admitted_by} leads"
            self.out.faults.append((packet.src, fault))
            return
        self._start_after(header.N)
        self._take_up_frames(header.last)
        if self.me in header.joined:
            self._become_member(header)
        self.leader = packet.src
        self.install(self._view_of(g, header, packet.era))
        self.acknowledge(g)

    def _admits_us(self, entry: ViewEntry) -> bool:
        return self.me in entry.joined or self.me in entry.guests

    def _start_after(self, number: int) -> None:
        """The next number expected here is the one after this."""
        self.R = self.top = self.stable = self.taken = self.acked = number
        self.arrived, self.kept = {}, {}
        self.unanswered.begin(number)
        self.handed = deque(0 for _ in self.handed)  # of the era before: nobody waits for it

    def _take_up_frames(self, last: Iterable[tuple[ProcessId, int]]) -> None:
        """Of every origin, the frame that was numbered last; our own go on from there."""
        self.done.update(last)
        self.S = self.S_first = self.done.get(self.me, 0)
        self.numbered = 0

    def on_view(self, view: View) -> None:
        """A numbered view is an entry among others. One without a number begins a new era.

        Who leads a later era must know which frames were delivered, and so which of those that it
        is asked to number are new. One that was no member is told with the view.
        """
        if not view.start:
            if not self.delivers:
                self.done = {}
            self._know_frames(view.last)
            if self.me in view.senders and self.S_first < 0:  # a stay begins: counts go on
                self.S = self.S_first = self.done.get(self.me, 0)
        self.delivers = view.group in self.member_of
        if self.me not in view.senders:
            self.requests.clear()
            self.numbered = 0
        if view.start:
            self.leader = view.leader
        else:
            self._begin_era(view)
            if self.me not in view.senders:
                self.S_first = -1

    def _know_frames(self, last: Iterable[tuple[ProcessId, int]]) -> None:
        """What survivors know of others is known to all: also where a later stay begins."""
        for q, n in last:
            if n > self.done.get(q, 0):
                self.done[q] = n

    def _begin_era(self, view: View) -> None:
        """New numbers, from 1; and a number for every frame of ours that has none."""
        g = view.group
        self.leader = view.leader
        self._start_after(0)
        self.numbered = 0
        if self.own:
            self.out.stable.append((g, self.own[-1][1] - self.S_first))
            self.own.clear()
        self.running.clear()
        for n, m in list(self.requests.items()):
            self.request(g, n, m)

    def gone_for_good(self, p: ProcessId) -> None:
        self.done.pop(p, None)

    def numbers_delivered(self, g: GroupId) -> int:
        return self.R

    def frames_delivered(self, g: GroupId) -> tuple[tuple[ProcessId, int], ...]:
        return tuple(sorted(self.done.items()))

    @staticmethod
    def reach(union: Sequence[Kept], lowest: int) -> Reach:
        entries = {kept.stamp[0]: kept for kept in union if _well_formed(kept)}
        N, view, last = lowest, None, {}
        while (kept := entries.get(N + 1)) is not None:
            N += 1
            if kept.origin == VIEW_ENTRY:
                entry = _from_stamp(*kept.stamp)
                view = (entry.number, entry.members, entry.guests)
            else:
                last[kept.origin] = kept.n
        return Reach(N, view, tuple(last.items()))

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return self.as_kept({**self.kept, **self.arrived})

    @staticmethod
    def as_kept(entries: dict[int, Numbered]) -> tuple[Kept, ...]:
        """Numbered entries as they travel through a flush."""
        return tuple(
            Kept(e.origin, e.n, (N, *_stamp(e)), e.payload) for N, e in sorted(entries.items())
        )

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """Deliver the contiguous part of the union; nobody alive can fill the gap behind it."""
        self.gather(union)
        self.deliver_in_turn(g, self.arrived.pop(self.R + 1, None))
        self.arrived.clear()

    def gather(self, union: Sequence[Kept]) -> None:
        """Put the entries of the union at their numbers."""
        for kept in filter(_well_formed, union):
            if kept.stamp[0] > self.R:
                self.arrived[kept.stamp[0]] = _entry(kept)


def _stamp(entry: Numbered) -> Iterable[int]:
    """What an entry has besides its number: its context, or the view it is."""
    view = entry.view
    if view is None:
        return chain.from_iterable(entry.context)
    return (view.number, len(view.members), *view.members, *view.guests)


def _entry(kept: Kept) -> Numbered:
    N, *rest = kept.stamp
    if kept.origin == VIEW_ENTRY:
        return Numbered(kept.origin, kept.n, kept.payload, _from_stamp(N, *rest))
    context = tuple(zip(rest[::2], rest[1::2], strict=True))
    return Numbered(kept.origin, kept.n, kept.payload, None, context)


def _well_formed(kept: Kept) -> bool:
    """Is the stamp a number, and a context or a view? A peer may have made it up."""
    if kept.origin != VIEW_ENTRY:
        return len(kept.stamp) % 2 == 1
    return len(kept.stamp) >= 3 and 0 <= kept.stamp[2] <= len(kept.stamp) - 3


def _from_stamp(N: int, number: int, size: int, *processes: ProcessId) -> ViewEntry:
    return ViewEntry(N, number, processes[:size], (), (), 0, processes[size:])
