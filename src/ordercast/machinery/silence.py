"""Causal Blocks: everybody must speak, so who has nothing to say says that.

Source      004 (Macedo), section 3, which assumes that each member multicasts again and again in
            every group, and names the time-outs of [MES93b] that remove the assumption.

    a number above my last in g is known here      start the timer of g
    the timer of g ends                            b := the highest number known;
                                                   BC := max(BC, b);  send NULL(b) to g
    NULL(b) from j in g                            j was heard in g up to block b

NULL(b) promises: all my later messages in g have a number above b. It is neither delivered nor
acknowledged, and nothing depends on it. As b is the number of a message that exists, the exchange
ends when each member has promised once in each group.

The number may have come in another group. p is in g and h, and holds a message with number 7 of g
until block 6 of h is complete; the others in h have never heard of 7. So p promises 7 in h, they
hear it and promise in their turn.
"""

from __future__ import annotations

from abc import abstractmethod

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited
from ordercast.errors import PeerError
from ordercast.machinery.blocks import BlockMatrix, BlockProtocol

CLOSED = (
    "completion needs every sender to speak, and a guest is not sent the messages it would have "
    "to answer"
)  # why such a group has no guests


class Null(msgspec.Struct, frozen=True, array_like=True):
    """All later frames of the sender in this group have a block number above b."""

    b: int


class SpeakingProtocol(BlockProtocol):
    """A protocol that waits until others have spoken. It needs first-in first-out links."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.BM: dict[GroupId, BlockMatrix] = {}  # the block matrix of each own group
        self.known = 0  # the highest number known in this era, of any own group
        self.spoke: dict[GroupId, int] = {}  # the last number with which this process spoke
        self.owed: dict[GroupId, int] = {}  # the timer of the group runs because of this number

    @abstractmethod
    def progress(self, g: GroupId, j: ProcessId) -> None:
        """j was heard in g: deliver what waited for that."""

    def next_block(self, g: GroupId) -> int:
        """CA1, and the number is a word of this process in g."""
        self.spoke[g] = b = self.CA1()
        return b

    def in_turn(self, g: GroupId, q: ProcessId, n: int, b: int) -> bool:
        """Frame n of q with number b has come. False for a repeat."""
        received = self.received[g][q]
        if n <= received.mark:
            return False
        if n != received.mark + 1:
            raise PeerError(f"frame {n} came after {received.mark} on a first-in first-out link")
        if n > self.R[g][q] + self.options.max_held:
            limit = self.options.max_held
            raise PeerError(f"more than {limit} of its messages held back (option max_held)")
        self.check_block(b, above=self.BM[g].last.marks[q])
        received.add(n)
        return True

    def hear(self, g: GroupId, j: ProcessId, b: int) -> None:
        """j has spoken in g with number b."""
        self.BM[g].hear(j, b)
        self.learn_number(b)

    # a number above my last in g is known here
    def learn_number(self, b: int) -> None:
        """b is the number of a message: some group may wait for us to reach it."""
        if b > self.known:
            self.known = b
            for g in self.spoke:
                self.start_timer(g)

    def start_timer(self, g: GroupId) -> None:
        """Start it if it does not run and something is owed in g."""
        if g not in self.owed and self.spoke[g] < self.known and self.others[g]:
            self.owed[g] = self.known
            self.set_timer(g, "silence", self.options.silence_ms)

    # the timer of g ends
    def on_timer(self, g: GroupId, name: str) -> None:
        if name != "silence":
            super().on_timer(g, name)
        elif (owed := self.owed.pop(g, None)) is not None:
            if self.spoke[g] < owed:
                self.say_null(g)
            self.start_timer(g)  # it spoke since, and a higher number came

    def say_null(self, g: GroupId) -> None:
        """NULL(b): the highest number known, never a fresh one."""
        b = self.known
        self.CA2(b)
        self.spoke[g] = b
        self.b_multicast(g, Null(b))
        self.note("null", g, self.me, b)

    # NULL(b) from j in g
    @on(Null)
    def on_NULL(self, j: ProcessId, g: GroupId, null: Null, m: bytes) -> None:
        self.check_sender(g, j)
        self.check_block(null.b)
        self.hear(g, j, null.b)
        self.progress(g, j)

    def silent(self, g: GroupId, B: int) -> list[Awaited]:
        """Who must speak before block B of g is complete."""
        return [Awaited("block", g, j, B) for j in self.BM[g].silent(B)]

    # -- the cut ----------------------------------------------------------------------------------

    def report_mark(self, g: GroupId) -> int:
        return max(self.BC, self.known)

    def end_era(self) -> None:
        super().end_era()
        self.known = 0
        self.owed.clear()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        g = view.group
        assert not view.guests, CLOSED
        if self.me in view.members:  # the view is everybody's NULL(start)
            self.BM[g] = BlockMatrix(self.others[g], view.start)
            self.spoke[g] = view.start
            self.start_timer(g)

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        for table in (self.BM, self.spoke, self.owed):
            table.pop(g, None)
