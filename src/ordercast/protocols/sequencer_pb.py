"""Total order by a sequencer, the body through the sequencer (PB).

Source      001 (Coulouris et al.), slides "Total Ordering (2)" to "(4)", with the body's way of
            Amoeba's PB method: point-to-point to the sequencer, which broadcasts.
Guarantees  total, FIFO and causal order within one group.
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       one packet to the sequencer, n from it; four integers in every header. The body
            travels twice; a member needs one packet before it can deliver. A small packet from
            each member when it has consumed, and one to each when all have: 2(n - 1) for a lone
            message, fewer in a stream, whatever the delay of the network.

    TO-multicast(g, m) by p        n := n + 1;  send(sequencer, <REQUEST, n, m>)
    REQUEST(n, m) from p           wait until n = last[p] + 1;  N := N + 1;
                                   B-multicast(g, <ACCEPT, N, p, n, m>)
    ACCEPT(N, p, n, m)             wait until N = R + 1;  TO-deliver(m);  R := N

Departures from the source
  D1  The slides number in order of arrival, which breaks FIFO on a reordering network. The
      sequencer numbers a sender's frames in the order of n.                (test_sequencer_D1_...)
  D2  A lost REQUEST is repeated with the same n; a repeat gets its old
      number.                                                               (test_sequencer_D2_...)
  D3  A gap is fetched from the sequencer; a lost last ACCEPT is noticed by the STATUS of an idle
      sequencer.                                                            (test_sequencer_D3_...)
  D4  The history of the slides only grows. Here an entry is forgotten when every member has
      reported its delivery.                                                (test_sequencer_D4_...)
  D5  The slides count from 0 and compare with the next expected number; here numbers start at 1
      and R is the last one delivered.                                      (test_sequencer_D5_...)
  D6  Members come and go; the slides have a static group. A flush ends the view, and the oldest
      member numbers from then on.                                          (test_sequencer_D6_...)
  D7  A sender outside the group, a guest, is told how many of its frames are numbered, and how many
      all have delivered: it gets no ACCEPT, which carries the body.     (test_sequencer_pb_D7_...)
"""

from __future__ import annotations

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequenced import SequencedProtocol
from ordercast.machinery.sequencer_headers import Accept


class Request(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: number my frame n, whose body follows."""

    n: int


class SequencerPB(SequencedProtocol):
    """TO-multicast through the sequencer."""

    declaration = Declaration(
        name="sequencer_pb",
        order="total",
        scope="group",
        network="N0",
        header="4",
        packets="1+n",
        control="2(n-1)",
        exact=False,
        silence="STATUS of an idle sequencer",
        source="001, Total Ordering (3) and (4)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless",
        ),
        crash="a flush; the oldest member that lives numbers from then on",
        sequenced=True,
    )  # fmt: skip

    # TO-multicast(g, m) by p
    def request(self, g: GroupId, n: int, m: bytes) -> None:
        if self.sequencer is not None:
            self.number(g, self.me, n, m)
        else:
            self.send(self.leader, g, Request(n), m)

    # REQUEST(n, m) from p
    @on(Request)
    def on_REQUEST(self, p: ProcessId, g: GroupId, request: Request, m: bytes) -> None:
        self.number(g, p, request.n, m)

    # B-multicast(g, <ACCEPT, N, p, n, m>)
    def announce(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        self.b_multicast(g, Accept(N, entry.origin, entry.n, stable), entry.payload)
