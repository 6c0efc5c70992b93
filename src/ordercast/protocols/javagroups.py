"""TOTAL of JavaGroups: total order by the first member of the view.

Source      003 (JavaGroups, the TOTAL protocol), "Design" and the appendix of header types.
Guarantees  total, FIFO and causal order within one group; survivors of a view deliver the same.
Needs       nothing of the network: it may lose, double and reorder packets (N0). Below it views
            change by a flush.
Costs       one packet to the sequencer, n - 1 from it; four integers in the header of BCAST. The
            body travels twice. CUM_SEQ_ACK and STATUS: 2(n - 1) small packets for a lone message,
            fewer in a stream, whatever the delay. A new view costs 2(n - 1) more.

    broadcast m by p           n := n + 1;  pending[n] := m;
                               send(sequencer, REQUEST(n, first n, m))
    REQUEST(n, first n, m)     n <= last[p]: send BCAST again to p;  n > last[p] + 1: hold it;
    from p                     n = last[p] + 1:  N := N + 1;  history[N] := m;
                               B-multicast(g, BCAST(N, p, n, m))
    BCAST(N, p, n, m)          N <= R, or here already: drop;  else queue it
    R + 1 is in the queue      deliver it;  R := R + 1;  p = self: remove n from pending
    VIEW_CHANGE (flushed)      clear the queue;  R := unknown;  sequencer := first of the members;
                               at the sequencer: B-multicast(g, NEW_VIEW(first number));
                               request again what is pending
    NEW_VIEW(first)            R := first - 1, unless known;  send(sequencer, NEW_VIEW_ACK)
    consumed up to N           soon: send(sequencer, CUM_SEQ_ACK(N));
                               acknowledged by all: forget history up to N
    N is missing below STATUS  after a while, within a window, ever more seldom:
    or the queue's highest     send(sequencer, RESEND(N));  at the sequencer: send BCAST(N) again
    idle sequencer             to who is behind: NEW_VIEW, if not acknowledged, else STATUS(last N)
    a while without an answer  request again what is pending;  acknowledge again what was consumed

The header types are in `machinery.total_headers`.

Departures from the source
  D1  "This problem is only a major issue for messages being broadcast by the sequencer": a lost
      REQUEST loses the message, too. It is repeated until it is answered. (test_javagroups_D1_...)
  D2  A repeated request would be broadcast twice. REQUEST and BCAST carry the origin and its count
      n; a repeat is answered with the number it has.                      (test_javagroups_D2_...)
  D3  Requests that overtake each other would break FIFO. The sequencer numbers the messages of one
      origin in the order of n. The origin says where its count stands in this view; whoever comes
      from another view, or from another group by a merge, needs no history.
                                                                           (test_javagroups_D3_...)
  D4  A lost suffix leaves no gap to see. An idle sequencer says STATUS with the last number, until
      all have acknowledged it.                                            (test_javagroups_D4_...)
  D5  BCAST may come before NEW_VIEW: it is queued, and NEW_VIEW does not clear the queue. A lost
      NEW_VIEW would block the view: it is repeated until NEW_VIEW_ACK, which the source defines and
      does not use. A second copy of NEW_VIEW changes nothing.             (test_javagroups_D5_...)
  D6  The source trusts the layer below to keep views apart. Here every packet carries the id of
      its view, the *era*: an older one is void, a newer one waits for its view.
                                                                           (test_javagroups_D6_...)
  D7  The source clears the queue at a view change, and survivors differ in the suffix. A flush from
      below comes first: all deliver the contiguous part of what they hold together, discard the
      rest, and each requests its own messages again, under the same n.    (test_javagroups_D7_...)
  D8  The source's limits for resending are constant. Missing numbers are asked for in a window,
      each with a back-off of its own. The experiments compare the two ways.
                                                                           (test_javagroups_D8_...)
  D9  MERGE is not handled in the source. A view over two groups begins like any other: new
      sequencer, new first number; each side has ended its own past by a
      flush.                                                               (test_javagroups_D9_...)
  D10  The history of the source only grows. Here a message is forgotten when the applications of
      all members have taken it; BCAST and STATUS say how far that is.    (test_javagroups_D10_...)
  D11  A sender outside the group, a guest, is told how many of its frames have numbers, and how
      many all have delivered (ACCEPTED). It reports what is not stable when the view ends, and the
      flush delivers that after the numbered messages.                    (test_javagroups_D11_...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery import sequenced_waiting as explain
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.resend_window import ResendWindow
from ordercast.machinery.sent_frames import SentFrames
from ordercast.machinery.sequencer_headers import Accepted, Status
from ordercast.machinery.total_headers import (
    Bcast,
    CumSeqAck,
    NewView,
    NewViewAck,
    Request,
    Resend,
)
from ordercast.machinery.unanswered import Unanswered
from ordercast.machinery.view_queue import ViewQueue

MAX_BACKOFF = 32  # NEW_VIEW to a silent member slows down to so many periods

Role = Literal["member", "guest", "outside"]


class JavaGroupsTotal(OrderingProtocol):
    """The TOTAL layer."""

    declaration = Declaration(
        name="javagroups",
        order="total",
        scope="group",
        network="N0",
        header="4",
        packets="n",
        control="2(n-1)",
        exact=False,
        silence="STATUS of an idle sequencer",
        source="003, TOTAL",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless",
        ),
        crash="the view changes; the survivors deliver what they hold together, and go on",
    )  # fmt: skip

    window_type: ClassVar[type[ResendWindow]] = ResendWindow

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.role: Role = "outside"  # in the view in force
        self.leader: ProcessId = me  # the sequencer of this view
        self.queue = ViewQueue(me, self.options)  # of a member
        self.sent = SentFrames(0)  # in this stay
        self.running: set[str] = set()  # timers
        self.unanswered = Unanswered(self.options)
        self.n_first = 1  # the first of our frames that is to be numbered in this view
        self.window = self.new_window()
        self.book: Numbering | None = None  # at the sequencer only
        self.guests = GuestBook((), {})  # at the sequencer only
        self.told = 0  # at the sequencer: the last stable number that all were told
        self.unready: dict[ProcessId, None] = {}  # ... members not known to have NEW_VIEW
        self.backoff = 1  # ... periods until it is repeated to them

    # -- VIEW_CHANGE ------------------------------------------------------------------------------

    # VIEW_CHANGE (flushed)
    def on_view(self, view: View) -> None:
        g = view.group
        self.end_view(view)  # D7
        self.window = self.new_window()
        self.n_first = next(iter(self.sent.pending), self.sent.S + 1)  # those before: delivered
        self.unanswered.oldest = 0
        self.leader = view.members[0] if view.members else self.me
        self.book, self.guests = None, GuestBook((), {})
        if self.role == "member" and self.leader == self.me:
            self.begin_to_number(view)
        self.request_again(g)

    def end_view(self, view: View) -> None:
        """The flush has delivered what the old view left: all that is stable. `view` begins."""
        g, queue, sent = view.group, self.queue, self.sent
        if self.role == "guest":
            self.learn_as_guest(g, sent.S, sent.S)
        elif queue.own:
            sent.tell_stable(g, queue.own[-1][1], self.out)
        if self.role == "outside":  # a stay begins: nothing is reported of one before
            queue.handed.clear()
        queue.end()
        self.running.clear()
        if self.me not in view.senders:  # our last view: nothing after it is for us
            self.sent = SentFrames(0)
            self.views[g] = View(g, view.number, (), self.me, view.era)
        self.role = self.role_in(view)

    def role_in(self, view: View) -> Role:
        """A member delivers; a guest only sends."""
        if self.me in view.members:
            return "member"
        return "guest" if self.me in view.guests else "outside"

    def begin_at(self, first: int) -> None:
        """R := first - 1"""
        self.queue.begin_at(first)
        self.unanswered.begin(first - 1)

    def begin_to_number(self, view: View) -> None:
        """at the sequencer: B-multicast(g, NEW_VIEW(first number))"""
        g = view.group
        self.begin_at(self.queue.R + 1)  # any number will do
        self.book = Numbering(view.members, self.queue.R, {}, self.options.max_held)
        self.unready, self.backoff = dict.fromkeys(self.others[g]), 1
        self.guests = GuestBook(view.guests, {})
        self.told = self.queue.R
        self.b_multicast(g, NewView(self.queue.first))
        if self.others[g]:
            self.start_timer(g, "status", self.options.status_ms)

    # NEW_VIEW(first)
    @on(NewView)
    def on_NEW_VIEW(self, p: ProcessId, g: GroupId, new: NewView, m: bytes) -> None:
        self.check_sequencer(p)
        if new.first < 1 or self.queue.first not in (0, new.first):
            raise PeerError(
                f"the numbers of this view begin with {self.queue.first or 1}, not {new.first}"
            )
        if not self.queue.first:  # D5
            self.begin_at(new.first)
            self.go_on(g)
        self.send(p, g, NewViewAck())

    @on(NewViewAck)
    def on_NEW_VIEW_ACK(self, p: ProcessId, g: GroupId, ack: NewViewAck, m: bytes) -> None:
        self.book_for(p, g, members_only=True)
        self.unready.pop(p, None)

    # -- a member sends ---------------------------------------------------------------------------

    # broadcast m by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.sent.add(m)
        if not self.views[g].members:  # nobody is there who could deliver it
            self.learn_as_guest(g, n, n)
            return
        self.request(g, n, m)
        self.await_numbers(g)

    def await_numbers(self, g: GroupId) -> None:
        """Repeat requests that have no answer after a while."""
        self.start_timer(g, "retry", self.unanswered.requests.wait)

    def request(self, g: GroupId, n: int, m: bytes) -> None:
        """send(sequencer, REQUEST(n, first n, m))"""
        if self.book is not None:
            self.number(g, self.book, Numbered(self.me, n, m), self.n_first)
        else:
            self.send(self.leader, g, Request(n, self.n_first), m)

    # a while without an answer
    def repeat_requests(self, g: GroupId) -> None:
        unnumbered = self.sent.unnumbered()
        if self.unanswered.is_request_lost(next(iter(unnumbered), 0)):
            for n in unnumbered[: self.options.fetch_batch]:
                self.note("retransmit", g, self.me, n)
                self.request(g, n, self.sent.pending[n])  # D1, D2
        if unnumbered:
            self.await_numbers(g)

    def request_again(self, g: GroupId) -> None:
        """request again what is pending: in a new view, under the same n"""
        if not self.views[g].members:
            self.learn_as_guest(g, self.sent.S, self.sent.S)
        for n, m in list(self.sent.pending.items()):
            self.request(g, n, m)
        if self.sent.pending:
            self.await_numbers(g)

    # -- the sequencer numbers --------------------------------------------------------------------

    # REQUEST(n, first n, m) from p
    @on(Request)
    def on_REQUEST(self, p: ProcessId, g: GroupId, request: Request, m: bytes) -> None:
        book = self.book_for(p, g)
        if not 1 <= request.first <= request.n:
            raise PeerError(f"frame {request.n} of a sender that begins with {request.first}")
        self.number(g, book, Numbered(p, request.n, m), request.first)

    def number(self, g: GroupId, book: Numbering, frame: Numbered, first: int) -> None:
        """Number the frame in its turn (D3); answer a repeat with the number it has (D2)."""
        p, n = frame.origin, frame.n
        book.last.setdefault(p, first - 1)
        frames = book.in_order(p, n, frame.payload)
        for entry in frames:
            self.enter(g, book, entry)
        if p in self.guests.stable:
            self.tell_guest(p, g, book)
        elif not frames and (p, n) in book.number_of and p != self.me:
            self.send_again(p, g, book, book.number_of[p, n])

    def enter(self, g: GroupId, book: Numbering, entry: Numbered) -> None:
        """N := N + 1;  history[N] := m;  B-multicast(g, BCAST(N, p, n, m))"""
        N = book.enter(entry)
        self.guests.numbered(entry.origin, entry.n, N)
        self.b_multicast(g, Bcast(N, entry.origin, entry.n, book.stable), entry.payload)
        self.told = book.stable
        self.expect_reports(g, book)
        self.queue.hold(N, entry)
        self.go_on(g)

    # RESEND(N)
    @on(Resend)
    def on_RESEND(self, p: ProcessId, g: GroupId, resend: Resend, m: bytes) -> None:
        book = self.book_for(p, g, members_only=True)
        if resend.N > book.N:
            raise PeerError(f"it asks for number {resend.N}, but only {book.N} were given")
        if resend.N in book.history:
            self.send_again(p, g, book, resend.N)

    def send_again(self, p: ProcessId, g: GroupId, book: Numbering, N: int) -> None:
        """send BCAST(N) again"""
        entry = book.history[N]
        self.note("retransmit", g, entry.origin, entry.n, f"number {N} to {p}")
        self.send(p, g, Bcast(N, entry.origin, entry.n, book.stable), entry.payload)

    # -- a member delivers ------------------------------------------------------------------------

    # BCAST(N, p, n, m)
    @on(Bcast)
    def on_BCAST(self, p: ProcessId, g: GroupId, bcast: Bcast, m: bytes) -> None:
        self.check_sequencer(p)
        if bcast.origin not in self.views[g].senders:
            raise PeerError(f"a frame of process {bcast.origin}, which is not in the view")
        if bcast.origin == self.me and bcast.n > self.sent.S:
            raise PeerError(f"frame {bcast.n} of this process, which was not sent yet")
        self.learn_stable(g, bcast.stable)
        if not self.queue.hold(bcast.N, Numbered(bcast.origin, bcast.n, m)):
            self.note("drop", g, bcast.origin, bcast.n, "repeat")
            return
        self.go_on(g)
        self.ask_for(g, self.window.came(bcast.N, self.queue.missing()))

    def go_on(self, g: GroupId) -> None:
        """R + 1 is in the queue: deliver it; R := R + 1"""
        self.queue.deliver_in_turn(g, self.sent, self.out)
        self.acknowledge_soon(g)
        if self.queue.first and self.queue.top > self.queue.R:
            self.start_timer(g, "resend", self.options.gap_ms)

    # N is missing
    def ask_for_missing(self, g: GroupId) -> None:
        """A period is over, and something may still be missing (D8)."""
        self.ask_for(g, self.window.period_over(self.queue.missing(), self.queue.top))
        if self.queue.top > self.queue.R:
            self.start_timer(g, "resend", self.options.gap_ms)

    def new_window(self) -> ResendWindow:
        """Nothing is asked for yet."""
        return self.window_type(self.options.resend_window)

    def ask_for(self, g: GroupId, numbers: list[int]) -> None:
        """send(sequencer, RESEND(N))"""
        for N in numbers:
            self.note("nack", g, self.leader, 0, f"number {N}")
            self.send(self.leader, g, Resend(N))

    @on(Status)
    def on_STATUS(self, p: ProcessId, g: GroupId, status: Status, m: bytes) -> None:
        self.check_sequencer(p)
        if not self.queue.first:
            raise PeerError("STATUS came before NEW_VIEW was acknowledged")
        self.learn_stable(g, status.stable)
        self.queue.top = max(self.queue.top, min(status.N, self.queue.R + self.options.max_held))
        self.unanswered.noted = max(self.unanswered.noted, status.R)
        self.go_on(g)

    # -- acknowledgements -------------------------------------------------------------------------

    def on_consumed(self, g: GroupId, frames: int) -> None:
        self.queue.consume(frames)
        self.acknowledge_soon(g)

    def acknowledge_soon(self, g: GroupId) -> None:
        """After a few more, or a moment later."""
        owed = self.queue.taken - self.queue.acked
        if owed >= self.options.ack_every:
            self.acknowledge(g)
        elif owed > 0:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    # consumed up to N
    def acknowledge(self, g: GroupId) -> None:
        self.queue.acked = self.queue.taken
        if self.book is not None:
            self.acknowledged(g, self.book, self.me, self.queue.taken)
        else:
            self.send(self.leader, g, CumSeqAck(self.queue.taken))
            self.await_stability(g)

    @on(CumSeqAck)
    def on_CUM_SEQ_ACK(self, p: ProcessId, g: GroupId, ack: CumSeqAck, m: bytes) -> None:
        book = self.book_for(p, g)
        if p in self.guests.stable:
            self.tell_guest(p, g, book)
            return
        repeated = book.acks.marks[p] == ack.N
        self.acknowledged(g, book, p, ack.N)
        if repeated:
            self.send_status(p, g, book)

    def acknowledged(self, g: GroupId, book: Numbering, p: ProcessId, N: int) -> None:
        """acknowledged by all: forget history up to N (D10)"""
        rose = book.acknowledged(p, N)
        if self.queue.first - 1 <= N:
            self.unready.pop(p, None)
        if rose:
            book.prune()
            self.learn_stable(g, book.stable)
            for guest in self.guests.settle(book.stable):
                self.tell_guest(guest, g, book)
            self.start_timer(g, "status", self.options.status_ms)

    def learn_stable(self, g: GroupId, stable: int) -> None:
        """All numbers up to this one are consumed by all: forget them (D10)."""
        if self.queue.first and stable > self.queue.stable and (n := self.queue.settle(stable)):
            self.sent.tell_stable(g, n, self.out)

    def await_stability(self, g: GroupId) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if "repeat" not in self.running:
            self.unanswered.standing = self.standing()
            self.start_timer(g, "repeat", self.unanswered.reports.wait)

    def standing(self) -> tuple[int, ...]:
        """What changes when something is heard."""
        sent = self.sent
        return (self.queue.stable, self.unanswered.noted, sent.numbered, len(sent.pending))

    # a while without an answer
    def repeat_report(self, g: GroupId) -> None:
        """acknowledge again what was consumed"""
        if not (self.queue.kept or (self.role == "guest" and self.sent.pending)):
            self.unanswered.reports.answered()
        elif self.unanswered.is_report_lost(self.standing()):
            self.acknowledge(g)
        else:
            self.await_stability(g)

    # -- an idle sequencer ------------------------------------------------------------------------

    def expect_reports(self, g: GroupId, book: Numbering) -> None:
        """There is news: whoever misses it is told again."""
        if self.others[g] and "behind" not in self.running:
            self.unanswered.due = book.N
            self.await_reports(g, book)

    def await_reports(self, g: GroupId, book: Numbering) -> None:
        """What has a number now should be acknowledged when the timer ends."""
        self.unanswered.numbered = book.N
        self.start_timer(g, "behind", self.unanswered.statuses.wait)

    # idle sequencer
    def tell_who_is_behind(self, g: GroupId, book: Numbering) -> None:
        """to who is behind: STATUS(last N)"""
        behind = book.behind(self.me)
        for p in self.unanswered.late(behind, book.N):
            self.send_status(p, g, book)  # D4
        if behind:
            self.await_reports(g, book)

    def speak(self, g: GroupId, book: Numbering) -> None:
        """NEW_VIEW, if not acknowledged; what is stable, if no BCAST has told it"""
        if book.stable > self.told:
            self.told = book.stable
            for p in self.others[g]:
                self.send_status(p, g, book)
        for p in self.unready:
            self.send(p, g, NewView(self.queue.first))  # D5
        if self.unready:
            self.backoff = min(2 * self.backoff, MAX_BACKOFF)
            self.start_timer(g, "status", self.options.status_ms * self.backoff)

    def send_status(self, p: ProcessId, g: GroupId, book: Numbering) -> None:
        """The last number given, the last stable one, and the last that p has acknowledged."""
        if p not in self.unready:
            self.send(p, g, Status(book.N, book.stable, book.acks.marks[p]))

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        if self.role == "outside":  # it left while the timer ran
            return
        if name == "retry":
            self.repeat_requests(g)
        elif name == "resend":
            self.ask_for_missing(g)
        elif name == "ack":
            if self.queue.taken > self.queue.acked:
                self.acknowledge(g)
        elif name == "repeat":
            self.repeat_report(g)
        elif self.book is not None and name == "behind":
            self.tell_who_is_behind(g, self.book)
        elif self.book is not None:
            self.speak(g, self.book)

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    # -- guests -----------------------------------------------------------------------------------

    def tell_guest(self, p: ProcessId, g: GroupId, book: Numbering) -> None:
        """How far its frames have come (D11)."""
        accepted = Accepted(book.last.get(p, 0), self.guests.stable[p])
        self.out.send_word(p, g, self.views[g].era, accepted)

    @on(Accepted)
    def on_ACCEPTED(self, p: ProcessId, g: GroupId, accepted: Accepted, m: bytes) -> None:
        if p != self.leader or self.role != "guest":
            raise PeerError(f"process {p} speaks as the sequencer to a guest")
        if not accepted.stable <= accepted.n <= self.sent.S:
            raise PeerError(f"{accepted} came to a process that has sent {self.sent.S} frames")
        self.learn_as_guest(g, accepted.n, accepted.stable)

    def learn_as_guest(self, g: GroupId, n: int, stable: int) -> None:
        """Our frames up to n have numbers, those up to `stable` are delivered by all."""
        self.sent.learn_as_guest(g, n, stable, self.out)
        if self.sent.pending:
            self.await_stability(g)

    # -- the flush (D7) ---------------------------------------------------------------------------

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Numbered frames with the stamp (number, first number or 0); of a guest its own, bare."""
        said = self.sent.pending.items() if self.role == "guest" else ()
        return (*self.queue.frames(), *(Kept(self.me, n, (), m) for n, m in said))

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        if frame.origin not in senders or frame.n < 1:
            return False
        return not frame.stamp or self.queue.is_plausible(frame.stamp)

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        """With a number before without, and with the first number of the view before without."""
        return max(one, other, key=lambda kept: kept.stamp)

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        view, told = self.views[g], self.queue.first
        frames = [kept for kept in union if self.plausible(g, view.senders, kept)]
        self.queue.flush(view, frames, self.sent, self.out)
        if self.queue.first != told:
            self.unanswered.begin(self.queue.first - 1)

    # -- who may say what -------------------------------------------------------------------------

    def check_sequencer(self, p: ProcessId) -> None:
        """A member hears the sequencer; a guest is sent no numbers."""
        if p != self.leader or self.role != "member":
            raise PeerError(f"process {p} speaks as the sequencer, which is {self.leader}")

    def book_for(self, p: ProcessId, g: GroupId, *, members_only: bool = False) -> Numbering:
        """What the sequencer needs to answer p; a leader that is no member has nothing to say."""
        view = self.views[g]
        if self.book is None:
            raise PeerError(f"a word for the sequencer, which is {self.leader}, came to {self.me}")
        if p not in (view.members if members_only else view.senders):
            raise PeerError(f"process {p} is not in the view")
        return self.book

    # -- what waits, and why ----------------------------------------------------------------------

    def holdings(self, g: GroupId) -> Holdings:
        said = len(self.sent.pending) if self.role == "guest" else 0
        ahead, history = 0, 0
        if self.book is not None:
            ahead, history = sum(map(len, self.book.ahead.values())), len(self.book.history)
        return Holdings(len(self.queue.arrived) + ahead, len(self.queue.kept) + said, history)

    def held_back(self) -> list[Waiting]:
        """Numbered frames behind a gap, and our own that have no number yet; at the sequencer also
        the frames that overtook their predecessors."""
        held: list[Waiting] = []
        for g in self.views:
            held += explain.behind(g, self.queue, self.first_gaps(g))
            held += explain.unordered(self.leader, explain.asked_frames(g, self.queue, self.sent))
            held += explain.held_ahead(g, self.book) if self.book else ()
        return held

    def first_gaps(self, g: GroupId) -> explain.Gaps:
        """As long as the first number is not told, all wait for that."""
        if self.queue.first:
            return explain.first_of(explain.gaps(g, self.leader, self.queue))
        return [(0, Awaited("first", g, self.leader, 0))]

    def waiting_frames(self) -> list[WaitingFrame]:
        frames: list[WaitingFrame] = []
        for g in self.views:
            frames += explain.numbered_frames(g, self.queue)
            frames += explain.asked_frames(g, self.queue, self.sent)
            frames += explain.ahead_frames(g, self.book) if self.book else ()
        return frames
