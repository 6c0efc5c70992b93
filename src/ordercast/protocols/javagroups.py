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
      each with a back-off of its own. The source's way is an option, to compare
      (`constant_resends`).                                                (test_javagroups_D8_...)
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

from ordercast.core.declaration import Declaration
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.errors import PeerError
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbered_member import NumberedMember
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.resend_window import ConstantRequests, ResendWindow
from ordercast.machinery.sequencer_headers import Accepted, Status
from ordercast.machinery.total_headers import (
    Bcast,
    CumSeqAck,
    NewView,
    NewViewAck,
    Request,
    Resend,
)

MAX_BACKOFF = 32  # NEW_VIEW to a silent member slows down to so many periods


class JavaGroupsTotal(NumberedMember):
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

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.n_first = 1  # the first of our frames that is to be numbered in this view
        self.window = self.new_window()
        self.guests = GuestBook((), {})  # at the sequencer only
        self.told = 0  # at the sequencer: the last stable number that all were told

    # -- VIEW_CHANGE ------------------------------------------------------------------------------

    # VIEW_CHANGE (flushed)
    def on_view(self, view: View) -> None:
        g = view.group
        self.end_view(view)  # D7
        self.window = self.new_window()
        self.n_first = next(iter(self.requests), self.S + 1)  # what is before was delivered
        self.unanswered.oldest = 0
        self.leader = view.members[0] if view.members else self.me
        self.book, self.guests = None, GuestBook((), {})
        if self.role == "member" and self.leader == self.me:
            self.begin_to_number(view)
        self.request_again(g)

    def begin_to_number(self, view: View) -> None:
        """at the sequencer: B-multicast(g, NEW_VIEW(first number))"""
        g = view.group
        self.begin_at(self.R + 1)  # any number will do
        self.book = Numbering(view.members, self.R, {}, self.options.max_held)
        self.book.joining = dict.fromkeys(self.others[g], self.R)
        self.guests = GuestBook(view.guests, {})
        self.told = self.R
        self.b_multicast(g, NewView(self.first))
        if self.others[g]:
            self.start_timer(g, "status", self.options.status_ms)

    # NEW_VIEW(first)
    @on(NewView)
    def on_NEW_VIEW(self, p: ProcessId, g: GroupId, new: NewView, m: bytes) -> None:
        self.check_sequencer(p)
        if new.first < 1 or self.first not in (0, new.first):
            raise PeerError(
                f"the numbers of this view begin with {self.first or 1}, not {new.first}"
            )
        if not self.first:  # D5
            self.begin_at(new.first)
            self.go_on(g)
        self.send(p, g, NewViewAck())

    @on(NewViewAck)
    def on_NEW_VIEW_ACK(self, p: ProcessId, g: GroupId, ack: NewViewAck, m: bytes) -> None:
        book = self.book_for(p, g, members_only=True)
        book.acknowledged(p, self.first - 1)

    # -- a member sends ---------------------------------------------------------------------------

    # broadcast m by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.S += 1
        self.requests[self.S] = m
        if not self.views[g].members:  # nobody is there who could deliver it
            self.learn_as_guest(g, self.S, self.S)
            return
        self.request(g, self.S, m)
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
        unnumbered = self.unnumbered()
        if self.unanswered.is_request_lost(next(iter(unnumbered), 0)):
            for n in unnumbered[: self.options.fetch_batch]:
                self.note("retransmit", g, self.me, n)
                self.request(g, n, self.requests[n])  # D1, D2
        if unnumbered:
            self.await_numbers(g)

    def request_again(self, g: GroupId) -> None:
        """request again what is pending: in a new view, under the same n"""
        if not self.views[g].members:
            self.learn_as_guest(g, self.S, self.S)
        for n, m in list(self.requests.items()):
            self.request(g, n, m)
        if self.requests:
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
        self.hold(N, entry)
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
        self.learn_stable(g, bcast.stable)
        if not self.hold(bcast.N, Numbered(bcast.origin, bcast.n, m)):
            self.note("drop", g, bcast.origin, bcast.n, "repeat")
            return
        self.go_on(g)
        self.ask_for(g, self.window.came(bcast.N, self.missing()))

    def go_on(self, g: GroupId) -> None:
        """R + 1 is in the queue: deliver it; R := R + 1"""
        self.deliver_in_turn(g)
        self.acknowledge_soon(g)
        if self.first and self.top > self.R:
            self.start_timer(g, "resend", self.options.gap_ms)

    # N is missing
    def ask_for_missing(self, g: GroupId) -> None:
        """A period is over, and something may still be missing (D8)."""
        self.ask_for(g, self.window.period_over(self.missing(), self.top))
        if self.top > self.R:
            self.start_timer(g, "resend", self.options.gap_ms)

    def new_window(self) -> ResendWindow:
        """Nothing is asked for yet."""
        kind = ConstantRequests if self.options.constant_resends else ResendWindow
        return kind(self.options.resend_window)

    def ask_for(self, g: GroupId, numbers: list[int]) -> None:
        """send(sequencer, RESEND(N))"""
        for N in numbers:
            self.note("nack", g, self.leader, 0, f"number {N}")
            self.send(self.leader, g, Resend(N))

    @on(Status)
    def on_STATUS(self, p: ProcessId, g: GroupId, status: Status, m: bytes) -> None:
        self.check_sequencer(p)
        if not self.first:
            raise PeerError("STATUS came before NEW_VIEW was acknowledged")
        self.learn_stable(g, status.stable)
        self.top = max(self.top, min(status.N, self.R + self.options.max_held))
        self.unanswered.noted = max(self.unanswered.noted, status.R)
        self.go_on(g)

    # -- acknowledgements -------------------------------------------------------------------------

    # consumed up to N
    def acknowledge(self, g: GroupId) -> None:
        self.acked = self.taken
        if self.book is not None:
            self.acknowledged(g, self.book, self.me, self.taken)
        else:
            self.send(self.leader, g, CumSeqAck(self.taken))
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
        if book.acknowledged(p, N):
            book.prune()
            self.learn_stable(g, book.stable)
            for guest in self.guests.settle(book.stable):
                self.tell_guest(guest, g, book)
            self.start_timer(g, "status", self.options.status_ms)

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
        for p in book.joining:
            self.send(p, g, NewView(self.first))  # D5
        if book.joining:
            book.backoff = min(2 * book.backoff, MAX_BACKOFF)
            self.start_timer(g, "status", self.options.status_ms * book.backoff)

    def send_status(self, p: ProcessId, g: GroupId, book: Numbering) -> None:
        """The last number given, the last stable one, and the last that p has acknowledged."""
        if p not in book.joining:
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
            if self.taken > self.acked:
                self.acknowledge(g)
        elif name == "repeat":
            self.repeat_report(g)
        elif self.book is not None and name == "behind":
            self.tell_who_is_behind(g, self.book)
        elif self.book is not None:
            self.speak(g, self.book)

    # -- guests -----------------------------------------------------------------------------------

    def tell_guest(self, p: ProcessId, g: GroupId, book: Numbering) -> None:
        """How far its frames have come (D11)."""
        accepted = Accepted(book.last.get(p, 0), self.guests.stable[p])
        self.out.send_word(p, g, self.views[g].era, accepted)

    @on(Accepted)
    def on_ACCEPTED(self, p: ProcessId, g: GroupId, accepted: Accepted, m: bytes) -> None:
        if p != self.leader or self.role != "guest":
            raise PeerError(f"process {p} speaks as the sequencer to a guest")
        if not accepted.stable <= accepted.n <= self.S:
            raise PeerError(f"{accepted} came to a process that has sent {self.S} frames")
        self.learn_as_guest(g, accepted.n, accepted.stable)

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
