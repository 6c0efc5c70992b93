"""Reliable multicast over unreliable multicast, by negative acknowledgements.

Source      001 (Coulouris et al.), slide "Reliable Multicast over IP Multicast", and the second of
            the two titled "Total Ordering (4)", which gives its sequence numbers.
Guarantees  integrity, validity, agreement; messages of one sender in the order of sending.
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       one multicast per message (n - 1 packets; over IP multicast one datagram), with one
            integer per sender and one more in its header; a request and a copy for each loss;
            one small STATUS multicast of each member for a lone message, which tells what it has
            taken, fewer in a stream. It is repeated when the marks of others do not come in time;
            how long that is follows the round trip.

    R-multicast(g, m)            S := S + 1;  store m;  R-deliver(m);  multicast DATA(S, C, m)
    DATA(s, C, m) from q         if s > R[q]: store m;  top[q] := max(top[q], s)
    C or STATUS(s, C) from p     top[q] := max(top[q], C[q]) for all q;  top[p] := max(top[p], s)
    (q, R[q] + 1) is stored      R-deliver it;  R[q] := R[q] + 1
    R[q] < s <= top[q] missing   after a while: send NAK(q, {s}) to q; if q has crashed and that
                                 does not help, to those p with A[p][q] >= s in turn
    NAK(q, numbers) from p       send RETX(q, s, m) to p for what is stored
    RETX(q, s, m)                as DATA(s, m) from q

S counts own messages, C[q] those of q taken here, A[p] is the C that came last from p. When STATUS
is said, and how long a message is stored, is written in `machinery.ack_vectors`.

Departures from the source
  D1  The slide takes S > R for a loss. S = R + 1 is the next message; lost are numbers that are
      not here though a later one is, or though somebody acknowledged them.       (test_nak_D1_...)
  D2  A gap shows only when a later message comes. A lost *last* message is noticed by STATUS,
      which everybody repeats until, as far as it knows, all have all.            (test_nak_D2_...)
  D3  The slide asks the sender. A dead sender does not answer: any holder does, once the driver
      says that the sender has crashed; a view change unites what is held without that. While the
      sender lives nobody else is asked or believed, else a member could answer with a message
      that was never sent. Of a dead sender it can.                               (test_nak_D3_...)
  D4  What the slide stores only grows. Here a message is forgotten when all have
      acknowledged it.                                                            (test_nak_D4_...)
  D5  Numbers restart in each view; a flush delivers what comes without a gap.    (test_nak_D5_...)
"""

from __future__ import annotations

from itertools import islice

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.errors import PeerError
from ordercast.machinery.ack_vectors import AckVectorProtocol, Marks

MAX_BACKOFF = 32  # NAKs in vain slow down to so many periods
MAX_COPIES = 1024  # sent in one `gap_ms`; who asked for more asks again


class NakData(msgspec.Struct, frozen=True, array_like=True):
    """Frame s of its sender; of each sender, how many frames were taken there."""

    s: int
    C: Marks


class Nak(msgspec.Struct, frozen=True, array_like=True):
    """Send me these frames of q again."""

    q: ProcessId
    numbers: tuple[int, ...]


class Retx(msgspec.Struct, frozen=True, array_like=True):
    """Frame s of q, from somebody who has it."""

    q: ProcessId
    s: int


class NakMulticast(AckVectorProtocol):
    """R-multicast over unreliable multicast."""

    declaration = Declaration(
        name="nak",
        order="none",
        scope="group",
        network="N0",
        header="n+1",
        packets="n-1, +2 per loss",
        control="n(n-1)",
        exact=True,
        silence="STATUS of every member, until all have all",
        source="001, Reliable Multicast over IP Multicast",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement", "fifo.group",
        ),
        crash="what one surviving member delivers, every surviving member gets from it",
    )  # fmt: skip

    hears_of_crashes = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.crashed: set[ProcessId] = set()  # in this view, as far as a driver says it
        self.tries: dict[ProcessId, int] = {}  # NAKs in vain for frames of q; its timer runs
        self.copies = 0  # sent since the timer for them started

    def on_view(self, view: View) -> None:
        super().on_view(view)  # D5
        self.tries, self.copies, self.crashed = {}, 0, set()

    def on_crash(self, g: GroupId, p: ProcessId) -> None:
        self.crashed.add(p)

    # R-multicast(g, m)
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.S += 1
        self.take_in(g, self.me, self.S, m)
        self.b_multicast(g, NakData(self.S, self.marks()), m)

    # DATA(s, C, m) from q
    @on(NakData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: NakData, m: bytes) -> None:
        self.check_marks(q, data.s, data.C)
        self.arrive(g, q, data.s, m)
        self.learn(g, q, data.s, data.C)

    # RETX(q, s, m)
    @on(Retx)
    def on_RETX(self, p: ProcessId, g: GroupId, retx: Retx, m: bytes) -> None:
        self.check_sender(p)
        q = retx.q
        if q in self.store and q not in (p, self.me) and q not in self.crashed:  # D3
            raise PeerError(f"it retransmits frame {retx.s} of process {q}, which lives")
        self.arrive(g, q, retx.s, m)

    def arrive(self, g: GroupId, q: ProcessId, s: int, m: bytes) -> None:
        """if s > R[q]: store m"""
        if q not in self.store:
            raise PeerError(f"a frame of process {q}, which is not heard here")
        R = self.R[q]
        if s < 1 or s > (self.S if q == self.me else R + self.options.max_held):
            raise PeerError(f"process {q} cannot have a frame {s}: the last one here is {R}")
        if s <= R or s in self.store[q]:
            self.note("drop", g, q, s, "repeat")
            return
        self.take_in(g, q, s, m)
        if q in self.tries:
            self.tries[q] = 0
        self.tell_soon(g)

    # R[q] < s <= top[q] missing
    def missed(self, g: GroupId, q: ProcessId) -> None:
        if q not in self.tries:  # D1: `missed` is not called for the next frame in turn
            self.tries[q] = 0
            self.set_timer(g, f"gap {q}", self.patience(g, q))

    def patience(self, g: GroupId, q: ProcessId) -> int:
        """Milliseconds until the next NAK for q. Members wait differently: not all ask at once."""
        members, gap_ms = self.views[g].members, self.options.gap_ms
        own_share = gap_ms * members.index(self.me) // (2 * len(members))
        return own_share + gap_ms * min(1 << self.tries[q], MAX_BACKOFF)

    def on_timer(self, g: GroupId, name: str) -> None:
        if name == "copies":
            self.running.discard(name)
            self.copies = 0
        elif name.startswith("gap "):
            self.ask(g, int(name.removeprefix("gap ")))
        else:
            super().on_timer(g, name)

    def ask(self, g: GroupId, q: ProcessId) -> None:
        """send NAK(q, {s}) to q; once q has crashed, to those p with A[p][q] >= s in turn, too"""
        if q not in self.tries:  # the timer is of an era that is over
            return
        first = next(self.missing(q), None)
        if first is None:
            del self.tries[q]
            return
        marks = self.A[q].marks
        holders = [p for p in marks if marks[p] >= first and p not in (q, self.me)]
        asked = (q, *holders) if q in self.crashed else (q,)  # D3
        p = asked[self.tries[q] % len(asked)]
        last = self.top[q] if p == q else marks[p]
        wanted = (s for s in self.missing(q) if s <= last)
        numbers = tuple(islice(wanted, self.options.fetch_batch))
        self.note("nack", g, q, first, f"{len(numbers)} from {p}")
        self.send(p, g, Nak(q, numbers))
        self.tries[q] += 1
        self.set_timer(g, f"gap {q}", self.patience(g, q))

    # NAK(q, numbers) from p
    @on(Nak)
    def on_NAK(self, p: ProcessId, g: GroupId, nak: Nak, m: bytes) -> None:
        self.check_sender(p)
        if nak.q not in self.store:
            raise PeerError(f"it asks for frames of process {nak.q}, which is not heard here")
        frames = self.store[nak.q]
        here = [s for s in nak.numbers[: self.options.fetch_batch] if s in frames]
        for s in here[: MAX_COPIES - self.copies]:
            self.note("retransmit", g, nak.q, s, f"to {p}")
            self.send(p, g, Retx(nak.q, s), frames[s])
            self.copies += 1
        if self.copies:
            self.start_timer(g, "copies", self.options.gap_ms)
