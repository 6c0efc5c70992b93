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

from collections.abc import Iterator

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet
from ordercast.core.waiting import Awaited
from ordercast.errors import PeerError
from ordercast.machinery.blocks import MAX_BLOCK, BlockMatrix, Blocks, check_block
from ordercast.machinery.parts import Verbs

CLOSED = (
    "completion needs every sender to speak, and a guest is not sent the messages it would have "
    "to answer"
)  # why such a group has no guests


class Null(msgspec.Struct, frozen=True, array_like=True):
    """All later frames of the sender in this group have a block number above b."""

    b: int


class CompletedBlocks(Blocks):
    """The block numbers of a process that waits until others have spoken, and speaks for them.

    It needs first-in first-out links.
    """

    def __init__(self) -> None:
        super().__init__()
        self.BM: dict[GroupId, BlockMatrix] = {}  # the block matrix of each own group
        self.known = 0  # the highest number known in this era, of any own group
        self.spoke: dict[GroupId, int] = {}  # the last number with which this process spoke
        self.owed: dict[GroupId, int] = {}  # the timer of the group runs because of this number

    @property
    def Bmin(self) -> int:
        """The highest block that is complete in every own group."""
        return min((matrix.CBV for matrix in self.BM.values()), default=MAX_BLOCK)

    def next_block(self, g: GroupId) -> int:
        """CA1, and the number is a word of this process in g."""
        self.spoke[g] = b = self.CA1()
        return b

    def in_turn(self, received: NumberSet, g: GroupId, q: ProcessId, n: int, b: int) -> bool:
        """Frame n of q with number b has come after those received. False for a repeat."""
        if n <= received.mark:
            return False
        if n != received.mark + 1:
            raise PeerError(f"frame {n} came after {received.mark} on a first-in first-out link")
        if n > self.R[g][q] + received.limit:
            limit = received.limit
            raise PeerError(f"more than {limit} of its messages held back (option max_held)")
        check_block(b, above=self.BM[g].last.marks[q])
        received.add(n)
        return True

    def hear(self, machine: Verbs, g: GroupId, j: ProcessId, b: int) -> None:
        """j has spoken in g with number b."""
        self.BM[g].hear(j, b)
        self.learn_number(machine, b)

    # NULL(b) from j in g
    def hear_null(self, machine: Verbs, g: GroupId, j: ProcessId, b: int) -> None:
        """j was heard in g up to block b"""
        check_block(b)
        self.hear(machine, g, j, b)

    # a number above my last in g is known here
    def learn_number(self, machine: Verbs, b: int) -> None:
        """b is the number of a message: some group may wait for us to reach it."""
        if b > self.known:
            self.known = b
            for g in self.spoke:
                self.start_timer(machine, g)

    def start_timer(self, machine: Verbs, g: GroupId) -> None:
        """Start it if it does not run and something is owed in g."""
        if g not in self.owed and self.spoke[g] < self.known and machine.others[g]:
            self.owed[g] = self.known
            machine.set_timer(g, "silence", machine.options.silence_ms)

    # the timer of g ends
    def on_timer(self, machine: Verbs, g: GroupId, name: str) -> None:
        if name == "silence" and (owed := self.owed.pop(g, None)) is not None:
            if self.spoke[g] < owed:
                self.say_null(machine, g)
            self.start_timer(machine, g)  # it spoke since, and a higher number came

    def say_null(self, machine: Verbs, g: GroupId) -> None:
        """NULL(b): the highest number known, never a fresh one."""
        b = self.known
        self.CA2(b)
        self.spoke[g] = b
        machine.b_multicast(g, Null(b))
        machine.note("null", g, machine.me, b)

    def silent(self, g: GroupId, B: int) -> list[Awaited]:
        """Who must speak before block B of g is complete."""
        return [Awaited("block", g, j, B) for j in self.BM[g].silent(B)]

    def silent_anywhere(self, B: int) -> Iterator[Awaited]:
        """Who must speak, and where, before block B is complete in all own groups."""
        return (awaited for g in self.BM for awaited in self.silent(g, B))

    def highest_number(self) -> int:
        return max(self.BC, self.known)

    # -- the cut ----------------------------------------------------------------------------------

    def end_era(self) -> None:
        """Everything is settled, in all groups: nothing is owed."""
        self.known = 0
        self.owed.clear()

    def begin(self, machine: Verbs, view: View) -> None:
        super().begin(machine, view)
        g = view.group
        assert not view.guests, CLOSED
        self.BM[g] = BlockMatrix(machine.others[g], view.start)  # the view is everybody's NULL
        self.spoke[g] = view.start
        self.start_timer(machine, g)

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        for table in (self.BM, self.spoke, self.owed):
            table.pop(g, None)
