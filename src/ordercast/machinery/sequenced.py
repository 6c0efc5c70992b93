"""A group that has a sequencer: a member delivers in the order of the numbers.

What the sequencer itself does is in `machinery.sequencer`, a part of the machine at the process
that leads. How the *body* travels is left to the two pages built on this: `sequencer_pb` (through
the sequencer) and `sequencer_bb` (from the sender to all).

Every change of the view is a flush, which ends the era: those who go on deliver the contiguous part
of what they hold together, numbers begin again at 1, and everybody asks again for its unnumbered
frames.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from ordercast.core.changing import LastFrames
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery import numbered_entries
from ordercast.machinery import sequenced_waiting as explain
from ordercast.machinery.numbered_queue import NumberedQueue
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sent_frames import SentFrames
from ordercast.machinery.sequencer import Sequencer
from ordercast.machinery.sequencer_headers import Accept, Accepted, Delivered, Fetch, Status
from ordercast.machinery.unanswered import Unanswered

PRUNE_EVERY = 16  # a member looks through what it keeps when so much more of it is stable


class SequencedProtocol(OrderingProtocol):
    """Total order in one group by one process that gives out numbers."""

    sequencer_type: ClassVar[type[Sequencer]] = Sequencer
    header_version = 6

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.leader: ProcessId = me  # the sequencer of this era
        self.sequencer: Sequencer | None = None  # at that process only
        self.queue = NumberedQueue(me, self.options)  # of a member
        self.sent = SentFrames(-1)  # in all eras
        self.done: dict[ProcessId, int] = {}  # last frame delivered, per origin, in all eras
        self.delivers = False  # a member; a process that only leads delivers nothing
        self.running: set[str] = set()  # timers
        self.unanswered = Unanswered(self.options)

    @abstractmethod
    def request(self, g: GroupId, n: int, m: bytes) -> None:
        """Bring our frame n to the sequencer (and perhaps to the others)."""

    @abstractmethod
    def announce(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        """At the sequencer: tell all members that this frame has the number N."""

    # -- a member sends ---------------------------------------------------------------------------

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.request(g, self.sent.add(m), m)
        self.await_numbers(g)

    def await_numbers(self, g: GroupId) -> None:
        """Repeat requests that have no answer after a while."""
        self.start_timer(g, "retry", self.unanswered.requests.wait)

    def _repeat_requests(self, g: GroupId) -> None:
        unnumbered = self.sent.unnumbered()
        if self.unanswered.is_request_lost(next(iter(unnumbered), 0)):
            for n in unnumbered[: self.options.fetch_batch]:
                if n in self.sent.pending:  # one that is asked for may bring on others
                    self.note("retransmit", g, self.me, n)
                    self.request(g, n, self.sent.pending[n])
        if unnumbered:
            self.await_numbers(g)

    # -- a guest ----------------------------------------------------------------------------------

    @on(Accepted)
    def on_ACCEPTED(self, src: ProcessId, g: GroupId, accepted: Accepted, m: bytes) -> None:
        self.check_sequencer(src)
        if self.me not in self.views[g].guests:
            raise PeerError("ACCEPTED came to a process that is no guest")
        if not accepted.stable <= accepted.n <= self.sent.S:
            raise PeerError(f"{accepted} came to a process that has sent {self.sent.S} frames")
        self.learn_as_guest(g, accepted.n, accepted.stable)

    def learn_as_guest(self, g: GroupId, n: int, stable: int) -> None:
        """Our frames up to n are numbered, those up to `stable` delivered by all."""
        self.sent.learn_as_guest(g, n, stable, self.out)
        if self.sent.pending:
            self._await_stability(g)

    # -- a member delivers ------------------------------------------------------------------------

    @on(Accept)
    def on_ACCEPT(self, src: ProcessId, g: GroupId, accept: Accept, m: bytes) -> None:
        self.check_sequencer(src)
        self.place(g, accept.N, accept.stable, Numbered(accept.origin, accept.n, m))

    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        """Put an entry at its number, and deliver what is in turn."""
        if not self.delivers:
            return
        self.check_sent(entry.origin, entry.n, N)
        queue = self.queue
        R = queue.R
        if N == R + 1:
            self.deliver_in_turn(g, entry)
        elif N > R:
            if R + self.options.max_held < N:
                self.check_near(N)
            queue.arrived[N] = entry
            if queue.top < N or "gap" not in self.running:
                self.learn(g, N, stable)
        if stable >= queue.stable + PRUNE_EVERY or (queue.own and queue.own[0][0] <= stable):
            self.learn(g, N, stable)

    def check_near(self, N: int) -> None:
        """A sequencer that is further ahead than we may hold back breaks the rules."""
        if self.delivers and self.queue.R + self.options.max_held < N:
            raise PeerError(f"number {N} lies more than max_held above {self.queue.R}")

    def deliver_in_turn(self, g: GroupId, entry: Numbered | None) -> None:
        """wait until N = R + 1; TO-deliver(m); R := N. Then what has waited behind it."""
        queue = self.queue
        while entry is not None:
            queue.deliver(g, entry, self.out)
            self.done[entry.origin] = entry.n
            if entry.origin == self.me:
                self.sent.pending.pop(entry.n, None)
            entry = queue.arrived.pop(queue.R + 1, None) if queue.arrived else None
        owed = queue.taken - queue.acked
        if owed >= self.options.ack_every or (owed and "ack" not in self.running):
            self._acknowledge_soon(g)

    def learn(self, g: GroupId, top: int, stable: int) -> None:
        """What the sequencer's marks tell: numbers that exist, numbers that all have delivered."""
        queue = self.queue
        if not self.delivers:
            return
        if top > queue.top:
            queue.top = top
        if queue.top > queue.R and "gap" not in self.running:
            self._await_missing(g)
        if stable > queue.stable and (n := queue.settle(stable)):
            self.sent.tell_stable(g, n, self.out)

    @on(Status)
    def on_STATUS(self, src: ProcessId, g: GroupId, status: Status, m: bytes) -> None:
        self.check_sequencer(src)
        self.learn(g, min(status.N, self.queue.R + self.options.max_held), status.stable)
        self.unanswered.noted = max(self.unanswered.noted, status.R)
        self.check_near(status.N)  # what is missing here is asked for all the same

    def _fetch_missing(self, g: GroupId) -> None:
        """FETCH(R+1..): what lies between the last number delivered and the next one here."""
        queue = self.queue
        if queue.top <= queue.R:
            return
        first = queue.R + 1
        last = min(queue.arrived, default=queue.top + 1) - 1
        last = min(last, queue.R + self.options.fetch_batch)
        if first <= min(last, self.unanswered.horizon):  # else it is only late
            self.unanswered.fetches_again(queue.R)
            self.note("nack", g, self.leader, 0, f"numbers {first}..{last}")
            self.send(self.leader, g, Fetch(first, last))
        self._await_missing(g)

    def _await_missing(self, g: GroupId) -> None:
        """What is still missing when the timer ends is fetched. What is known only since may be on
        its way."""
        self.unanswered.horizon = self.queue.top
        self.start_timer(g, "gap", self.unanswered.fetches.wait)

    def check_sent(self, origin: ProcessId, n: int, N: int) -> None:
        """Only what was sent is numbered: each process knows it of its own frames."""
        if origin == self.me and n > self.sent.S:
            raise PeerError(f"frame {n} of this process has number {N}, and was not sent yet")

    def check_sequencer(self, src: ProcessId) -> None:
        """Only one process numbers."""
        if src != self.leader:
            raise PeerError(f"process {src} speaks as the sequencer, which is {self.leader}")

    # -- a member acknowledges --------------------------------------------------------------------

    def on_consumed(self, g: GroupId, frames: int) -> None:
        queue = self.queue
        queue.consume(frames)
        if not queue.handed:
            queue.taken = queue.R
        if queue.taken > queue.acked:
            self._acknowledge_soon(g)

    def _acknowledge_soon(self, g: GroupId) -> None:
        if self.queue.taken - self.queue.acked >= self.options.ack_every:
            self.acknowledge(g)
        elif "ack" not in self.running:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    def acknowledge(self, g: GroupId) -> None:
        """Tell the sequencer how far the application has come."""
        self.queue.acked = taken = self.queue.taken
        if self.sequencer is not None:
            self.sequencer.acknowledged(self, g, self.me, taken)
        else:
            self.send(self.leader, g, Delivered(taken))
            self._await_stability(g)

    def _await_stability(self, g: GroupId) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if "repeat" not in self.running:
            self.unanswered.standing = self._standing()
            self.start_timer(g, "repeat", self.unanswered.reports.wait)

    def _standing(self) -> tuple[int, ...]:
        sent = self.sent
        return (self.queue.stable, self.unanswered.noted, sent.numbered, len(sent.pending))

    def _repeat_report(self, g: GroupId) -> None:
        asks = self.sent.numbered and self.sent.pending
        if not (self.queue.kept or asks):
            self.unanswered.reports.answered()
        elif self.unanswered.is_report_lost(self._standing()):
            self.acknowledge(g)
        else:
            self._await_stability(g)

    # -- at the sequencer -------------------------------------------------------------------------

    def sequencer_for(self, word: str) -> Sequencer:
        """The one to whom this was said."""
        if self.sequencer is None:
            raise PeerError(f"{word} came to a process that is no sequencer")
        return self.sequencer

    def number(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """Frame n of p is at the sequencer."""
        self.sequencer_for("a request to number a frame").number(self, g, p, n, m)

    @on(Fetch)
    def on_FETCH(self, p: ProcessId, g: GroupId, fetch: Fetch, m: bytes) -> None:
        self.sequencer_for("FETCH").fetched(self, p, g, fetch)

    @on(Delivered)
    def on_DELIVERED(self, p: ProcessId, g: GroupId, ack: Delivered, m: bytes) -> None:
        self.sequencer_for("an acknowledgement").delivered(self, p, g, ack)

    # -- timers -----------------------------------------------------------------------------------

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        if name == "retry":
            self._repeat_requests(g)
        elif name == "gap":
            self._fetch_missing(g)
        elif name == "ack":
            if self.queue.taken > self.queue.acked:
                self.acknowledge(g)
        elif name == "repeat":
            self._repeat_report(g)
        elif self.sequencer is not None and name == "status":
            self.sequencer.tell_status(self, g)
        elif self.sequencer is not None and name == "behind":
            self.sequencer.tell_who_is_behind(self, g)

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    # -- views ------------------------------------------------------------------------------------

    def on_view(self, view: View) -> None:
        """A new era begins.

        Who leads it must know which frames were delivered, and so which of those that it is asked
        to number are new. One that was no member is told with the view.
        """
        sent = self.sent
        if not self.delivers:
            self.done = {}
        self._know_frames(view.last)
        if self.me in view.senders and sent.S_first < 0:  # a stay begins: counts go on
            sent.S = sent.S_first = self.done.get(self.me, 0)
        if not self.delivers and self.me in view.members:
            self._come_in(view.group)
        self.delivers = view.group in self.member_of
        if self.me not in view.senders:
            sent.pending.clear()
        self._begin_era(view)
        if self.me not in view.senders:
            sent.S_first = -1

    def _come_in(self, g: GroupId) -> None:
        """Nothing is reported of a former stay any more. What this process sent as a guest, and the
        flush gave to all, will not be delivered here: it is settled."""
        self.queue.handed.clear()
        n = self.done.get(self.me, 0)
        if next(iter(self.sent.pending), n + 1) <= n:
            self.sent.learn_as_guest(g, n, n, self.out)

    def _know_frames(self, last: Iterable[tuple[ProcessId, int]]) -> None:
        """What survivors know of others is known to all: also where a later stay begins."""
        for q, n in last:
            if n > self.done.get(q, 0):
                self.done[q] = n

    def _begin_era(self, view: View) -> None:
        """New numbers, from 1; and a number for every frame of ours that has none."""
        g, queue = view.group, self.queue
        self.leader, self.sequencer = view.leader, None
        if self.me == view.leader:
            self.sequencer = self.sequencer_type(self.me, view, self.done, self.options)
        queue.start_after(0)
        self.unanswered.begin(0)
        self.sent.numbered = 0
        if queue.own:
            self.sent.tell_stable(g, queue.own[-1][1], self.out)
            queue.own.clear()
        self.running.clear()
        for n, m in list(self.sent.pending.items()):
            self.request(g, n, m)
        if self.sent.unnumbered():
            self.await_numbers(g)

    def gone_for_good(self, p: ProcessId) -> None:
        # What p alone had not consumed goes with the next STATUS. As p was behind, one will come.
        self.done.pop(p, None)
        if self.sequencer is not None:
            self.sequencer.forget(p)

    def numbers_delivered(self, g: GroupId) -> int:
        return self.queue.R

    def frames_delivered(self, g: GroupId) -> LastFrames:
        """A guest delivers nothing. It knows which of its own frames are settled, also those to a
        group without members: the next sequencer goes on after them."""
        done, settled = dict(self.done), self.sent.settled
        if g not in self.member_of and settled > done.get(self.me, 0):
            done[self.me] = settled
        return tuple(sorted(done.items()))

    @staticmethod
    def reach(union: Sequence[Kept], lowest: int) -> LastFrames:
        return numbered_entries.reach(union, lowest)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """At the sequencer also what was delivered by others, or by nobody yet."""
        numbered = {} if self.sequencer is None else self.sequencer.book.history
        return numbered_entries.as_kept({**numbered, **self.queue.unstable()})

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """Deliver the contiguous part of the union; nobody alive can fill the gap behind it."""
        queue = self.queue
        for N, entry in numbered_entries.as_entries(union).items():
            if N > queue.R:
                queue.arrived[N] = entry
        self.deliver_in_turn(g, queue.arrived.pop(queue.R + 1, None))
        queue.arrived.clear()

    # -- always -----------------------------------------------------------------------------------

    def invariants(self) -> None:
        self.queue.invariants()
        self.sent.invariants()
        if self.sequencer is not None:
            self.sequencer.invariants()
        for view in self.views.values():
            assert self.leader == view.leader, "the leader of the view numbers"
            assert (self.sequencer is not None) == (self.leader == self.me), "and nobody else"
            assert self.delivers == (self.me in view.members), "members deliver"
            assert self.delivers or not self.queue.top, "and nobody else"
            if self.delivers:
                done = self.done.get(self.me, 0)
                assert all(n > done for n in self.sent.pending), "what came back is not pending"

    # -- what waits, and why ----------------------------------------------------------------------

    def holdings(self, g: GroupId) -> Holdings:
        book = None if self.sequencer is None else self.sequencer.book
        return explain.holdings(self.queue, book)

    def held_back(self) -> list[Waiting]:
        """Numbered frames behind a gap, and our own that have no number yet; at the sequencer also
        the frames that overtook their predecessors."""
        held: list[Waiting] = []
        for g in self.views:
            held += explain.behind(g, self.queue, explain.first_of(self.gaps(g)))
            held += explain.unordered(self.leader, explain.asked_frames(g, self.queue, self.sent))
            if self.sequencer is not None:
                held += explain.held_ahead(g, self.sequencer.book)
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames: list[WaitingFrame] = []
        for g in self.views:
            frames += explain.numbered_frames(g, self.queue)
            frames += explain.asked_frames(g, self.queue, self.sent)
            if self.sequencer is not None:
                frames += explain.ahead_frames(g, self.sequencer.book)
        return frames

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        """What is missing at each number that is known to be given and cannot be delivered."""
        return explain.gaps(g, self.leader, self.queue)
