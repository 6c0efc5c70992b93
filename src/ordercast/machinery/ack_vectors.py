"""Stability by vectors of marks: every process tells all others what it has taken from each sender.

    every frame, every STATUS    carries S, and C[q] for each sender q of the view
    (s, C) from p                A[p] := C;  top[p] := max(top[p], s);
                                 top[q] := max(top[q], C[q]) for all q
    s <= A[p][q] for all p       forget (q, s)
    something new was taken      soon, or after a few more: multicast STATUS(S, C)
    not all have what there was  after a while, again: multicast STATUS(S, C)
    STATUS from p without news,  send ANSWER(S, C) to p
    at rest

S counts own frames. C[q] counts those of q that the application here has taken, so what is kept and
the credit of a sender follow the slowest reader. A process is *at rest* if, as far as it knows, all
have all.

STATUS alone never ends: who is at rest is silent, and who missed its last word would go on asking.
So who is at rest answers a STATUS that says nothing new: p repeats itself, and lacks an answer. One
with news does not ask: the marks that p has not heard may be on their way to it. Nobody answers an
ANSWER. How long "a while" is follows the round trip (`core.patience`).

A group of n members pays n integers in every header, and needs no reliable network.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import SlowestMark
from ordercast.core.patience import Patience
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import NOBODY, Awaited, Waiting, WaitingFrame, first_missing
from ordercast.errors import PeerError

Marks = tuple[int, ...]  # one number per sender of the view, in view order


class Status(msgspec.Struct, frozen=True, array_like=True):
    """So many frames were sent by me, so many taken here. I do not know that all have all."""

    s: int
    C: Marks


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """To one who said STATUS: so many frames were sent by me, so many taken here."""

    s: int
    C: Marks


class AckVectorProtocol(OrderingProtocol):
    """A protocol for one group: FIFO per sender, every frame kept until all have taken it."""

    origins_answer = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.S = 0  # frames sent by this process in this era
        self.sent_before = 0  # ... and in the eras before; a flush delivered all of those
        self.C: dict[ProcessId, int] = {}  # frames taken here, per sender, in view order
        self.R: dict[ProcessId, int] = {}  # the last frame delivered, per sender heard here
        self.top: dict[ProcessId, int] = {}  # the highest frame known to exist, per sender
        self.store: dict[ProcessId, dict[int, bytes]] = {}  # frames here, delivered or not
        self.A: dict[ProcessId, SlowestMark] = {}  # A[q]: of q's frames, those taken at each p
        self.heard: dict[ProcessId, Marks] = {}  # the marks that came last from each
        self.handed: deque[ProcessId] = deque()  # senders of frames delivered, not taken yet
        self.untold = 0  # frames taken since the marks last left
        self.statuses = Patience(self.options.status_ms, self.options.retry_ms)
        self.due: dict[ProcessId, int] = {}  # the highest frames, when the wait for marks began
        self.running: set[str] = set()  # timers

    @abstractmethod
    def missed(self, g: GroupId, q: ProcessId) -> None:
        """Frame R[q] + 1 of q exists, and is not here."""

    # -- delivering -------------------------------------------------------------------------------

    def take_in(self, g: GroupId, q: ProcessId, s: int, m: bytes) -> None:
        """Store a new frame, and deliver what is in turn."""
        self.store[q][s] = m
        self.exists(g, q, s)
        self.deliver_in_turn(g, q)

    def deliver_in_turn(self, g: GroupId, q: ProcessId) -> None:
        """(q, R[q] + 1) is stored: deliver it;  R[q] := R[q] + 1"""
        frames, s = self.store[q], self.R[q] + 1
        while s in frames:
            self.R[q] = s
            if g not in self.member_of:  # our own frame to a group in which we are a guest
                self.C[q] = s
                self._sent_as_guest(g, s)
            else:
                self.out.deliveries.append((g, q, s, 0, frames[s]))
                if self.options.driver_consumes:
                    self.handed.append(q)
                else:
                    self._taken(g, q)
            s += 1

    def _sent_as_guest(self, g: GroupId, s: int) -> None:
        self.out.ordered.append((g, self.sent_before + s))
        if not self.views[g].members:  # nobody is there who could deliver it
            self.store[self.me].clear()
            self.A[self.me].lowest = s
            self.out.stable.append((g, self.sent_before + s))

    def on_consumed(self, g: GroupId, frames: int) -> None:
        for _ in range(frames):
            q = self.handed.popleft()
            if q != NOBODY:
                self._taken(g, q)
        self.tell_soon(g)

    def _taken(self, g: GroupId, q: ProcessId) -> None:
        self.C[q] += 1
        self.untold += 1
        self._acknowledged(g, q, self.me, self.C[q])

    def missing(self, q: ProcessId) -> Iterator[int]:
        """R[q] < s <= top[q], not here"""
        frames = self.store[q]
        return (s for s in range(self.R[q] + 1, self.top[q] + 1) if s not in frames)

    def held_back(self) -> list[Waiting]:
        return [waiting for g in self.views for q in self.store for waiting in self._behind(g, q)]

    def _behind(self, g: GroupId, q: ProcessId) -> Iterator[Waiting]:
        missing = [Awaited("frame", g, q, n) for n in first_missing(self.R[q], self.store[q])]
        for s, m in sorted(self._early(q)):
            yield Waiting(g, q, s, tuple(a for a in missing if a.number < s), m)

    def _early(self, q: ProcessId) -> Iterator[tuple[int, bytes]]:
        """Frames of q that are here and not delivered."""
        if self.top[q] > self.R[q]:
            yield from ((s, m) for s, m in self.store[q].items() if s > self.R[q])

    def waiting_frames(self) -> list[WaitingFrame]:
        return [(g, q, s, m) for g in self.views for q in self.store for s, m in self._early(q)]

    # -- what is known of the others --------------------------------------------------------------

    def check_sender(self, p: ProcessId) -> None:
        """A leader that is no member is a peer in the view, but no sender and no receiver."""
        if p not in self.C:
            raise PeerError(f"process {p} is not a member of the view")

    def check_marks(self, p: ProcessId, s: int, C: Marks) -> None:
        """Nothing is believed of p's marks unless all of them are possible."""
        self.check_sender(p)
        if len(C) != len(self.C):
            raise PeerError(f"{len(C)} marks in a view of {len(self.C)} senders")
        if p in self.R:
            self._check_number(p, s)
        for q, c in self._news(p, C):
            self._check_number(q, c)

    def _news(self, p: ProcessId, C: Marks) -> list[tuple[ProcessId, int]]:
        """The marks of p that are higher than when it was last heard, of senders heard here."""
        heard = self.heard[p]
        if heard == C:
            return []
        marks = zip(self.C, C, heard, strict=True)
        return [(q, c) for q, c, before in marks if c > before and q in self.R]

    def _check_number(self, q: ProcessId, s: int) -> None:
        if q == self.me:
            if s > self.S:
                raise PeerError(f"frame {s} is acknowledged, but only {self.S} were sent")
        elif s > self.R[q] + self.options.max_held:
            raise PeerError(f"frame {s} of process {q} lies more than max_held above {self.R[q]}")

    def learn(self, g: GroupId, p: ProcessId, s: int, C: Marks) -> None:
        """A[p] := C;  top[p] := max(top[p], s);  top[q] := max(top[q], C[q]) for all q"""
        if p in self.R:
            self.exists(g, p, s)
        news, self.heard[p] = self._news(p, C), C
        for q, c in news:
            self.exists(g, q, c)
            self._acknowledged(g, q, p, c)

    def exists(self, g: GroupId, q: ProcessId, s: int) -> None:
        """Frame s of q was sent."""
        if s > self.top[q]:
            self.top[q] = s
            if "status" not in self.running:
                self._await_marks(g)
        following = self.R[q] + 1
        if self.top[q] >= following and following not in self.store[q]:
            self.missed(g, q)

    def _acknowledged(self, g: GroupId, q: ProcessId, p: ProcessId, c: int) -> None:
        """s <= A[p][q] for all p: forget (q, s)"""
        marks = self.A[q]
        stable = marks.lowest
        if marks.raise_to(p, c):
            for s in range(stable + 1, marks.lowest + 1):
                self.store[q].pop(s, None)
            if q == self.me:
                self.out.stable.append((g, self.sent_before + marks.lowest))

    def at_rest(self) -> bool:
        """As far as is known here, all have all."""
        return self._all_have(self.top)

    def _all_have(self, frames: Mapping[ProcessId, int]) -> bool:
        return all(self.A[q].lowest >= s for q, s in frames.items())

    # -- STATUS -----------------------------------------------------------------------------------

    def marks(self) -> Marks:
        """C, about to travel in a header: no STATUS need repeat it."""
        self.untold = 0
        return tuple(self.C.values())

    def tell_soon(self, g: GroupId) -> None:
        """What was taken here gives the senders credit: say so, unless a frame of ours does."""
        if self.untold >= self.options.ack_every:
            self._tell(g)
        elif self.untold:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    def _tell(self, g: GroupId) -> None:
        """multicast STATUS(S, C), to the guests too"""
        view, status = self.views[g], Status(self.S, self.marks())
        if others := tuple(p for p in view.senders if p != self.me):
            self.out.transmits.append((others, g, view.era, status, b""))

    @on(Status)
    def on_STATUS(self, p: ProcessId, g: GroupId, status: Status, m: bytes) -> None:
        self.check_marks(p, status.s, status.C)
        repeated = self.heard[p] == status.C and self.top.get(p, status.s) >= status.s
        self.learn(g, p, status.s, status.C)
        if repeated and g in self.member_of and self.at_rest():
            self.send(p, g, Answer(self.S, tuple(self.C.values())))

    @on(Answer)
    def on_ANSWER(self, p: ProcessId, g: GroupId, answer: Answer, m: bytes) -> None:
        self.check_marks(p, answer.s, answer.C)
        self.learn(g, p, answer.s, answer.C)

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        if name == "ack":
            if self.untold:
                self._tell(g)
        elif name == "status":
            self._ask_for_marks(g)

    def _await_marks(self, g: GroupId) -> None:
        self.due = dict(self.top)
        self.start_timer(g, "status", self.statuses.wait)

    def _ask_for_marks(self, g: GroupId) -> None:
        """Some have not said that they have what there was when the timer was started."""
        if not self._all_have(self.due):
            self._tell(g)
            self.statuses.said_again()
            self.start_timer(g, "status", self.statuses.wait)
            return
        self.statuses.answered()
        if not self.at_rest():
            self._await_marks(g)

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        for q, store in self.store.items():
            marks, delivered = self.A[q], self.R[q]
            marks.invariants()
            assert self.C[q] <= delivered <= self.top[q], "consumed <= delivered <= sent"
            assert max(marks.marks.values(), default=0) <= self.top[q], "what all have was sent"
            assert marks.marks.get(self.me, self.C[q]) == self.C[q], "own marks are counted"
            assert delivered + 1 not in store, "what is in turn is delivered"
            if store:
                assert min(store) > marks.lowest, "what all have is forgotten"
                assert max(store) <= self.top[q], "only what was sent is here"
            unstable = range(marks.lowest + 1, delivered + 1)
            assert store.keys() >= {*unstable}, "what some member may lack is kept"
        assert self.me not in self.top or self.top[self.me] <= self.S, "only what was sent exists"
        handed = sum(1 for q in self.handed if q != NOBODY)
        waiting = sum(self.R[q] - self.C[q] for q in self.R)
        assert handed == waiting, "what is not consumed yet was handed over"

    # -- views ------------------------------------------------------------------------------------

    def on_view(self, view: View) -> None:
        """Numbers begin again. A guest hears nobody: it keeps account of its own frames only."""
        g, senders = view.group, view.senders
        if sent := self.sent_before + self.S:
            self.out.stable.append((g, sent))
        stays = self.me in self.C  # else a stay begins: nothing is reported of one before
        self.sent_before = sent if stays and self.me in senders else 0
        self.handed = deque(NOBODY for _ in self.handed if stays)
        if self.me not in senders:  # our last view: nothing after it is for us
            senders = ()
            self.views[g] = View(g, view.number, (), self.me, view.era)
        heard = tuple(q for q in senders if self.me in (q, *view.members))
        self.S = 0
        self.C = dict.fromkeys(senders, 0)
        self.R = dict.fromkeys(heard, 0)
        self.top = dict.fromkeys(heard, 0)
        self.store = {q: {} for q in heard}
        self.A = {q: SlowestMark(view.members) for q in heard}
        self.heard = dict.fromkeys(senders, (0,) * len(senders))
        self.untold, self.due = 0, {}
        self.running = set()

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return tuple(
            Kept(q, s, (), m) for q, frames in self.store.items() for s, m in frames.items()
        )

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        q, s = frame.origin, frame.n
        if q not in senders or s < 1 or frame.stamp:
            return False
        if q not in self.R:
            return True
        return s <= (self.S if q == self.me else self.R[q] + self.options.max_held)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """What lies behind a gap is lost: nobody alive can fill it."""
        senders = self.views[g].senders
        self.store = {q: {} for q in self.store}
        for frame in union:
            if frame.origin in self.R and self.plausible(g, senders, frame):
                self.store[frame.origin][frame.n] = frame.payload
        for q in self.store:
            self.deliver_in_turn(g, q)
