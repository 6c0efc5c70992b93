"""Causal Blocks: the block counter, the block matrix, and how a cut settles what they left.

Source      004 (Macedo), section 4.

Every process has ONE block counter for all its groups. It numbers what the process sends:

    CA1   send(m)       BC := BC + 1;  m.b := BC
    CA2   deliver(m)    BC := max(BC, m.b)

So m -> m' implies m.b < m'.b, and messages with equal numbers are concurrent. The converse does not
hold: a smaller number need not be a cause. (The paper says it the wrong way round, against its own
pr1 and pr2.) The numbers of one group have holes, because a process counts in all its groups.

The block matrix of a group says who was heard up to which block. Block B is *complete* once every
other member was heard with B or more: as messages of a member come in order, nothing numbered B or
less is under way. The paper counts the own column too, which only makes a process wait for itself.

At a cut all of it is settled by number. The counter never begins again, since `View.start` is at
least every number that a survivor knew; it counts as a word of every member up to that block.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

from ordercast.core.events import Cut, Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import MAX_COUNT, NumberSet, SlowestMark
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.machinery.domain import DomainProtocol

MAX_BLOCK = MAX_COUNT


class BlockMatrix(PlainState):
    """The block matrix of one group: of each column only the last entry matters."""

    def __init__(self, others: Iterable[ProcessId], start: int = 0) -> None:
        self.last = SlowestMark(others, start)  # the highest number heard of each other member

    @property
    def CBV(self) -> int:
        """The highest complete block; of a group without others, every block is."""
        return self.last.lowest if self.last.marks else MAX_BLOCK

    def hear(self, j: ProcessId, b: int) -> None:
        """j has spoken with number b."""
        self.last.raise_to(j, b)

    def silent(self, B: int) -> list[ProcessId]:
        """The members for which block B waits."""
        return [j for j, b in self.last.marks.items() if b < B]


def highest(union: list[Kept]) -> dict[ProcessId, int]:
    """The highest block number of each sender."""
    top: dict[ProcessId, int] = {}
    for frame in union:
        top[frame.origin] = max(frame.stamp[0], top.get(frame.origin, 0))
    return top


class BlockProtocol(DomainProtocol):
    """A protocol whose frames carry block numbers."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.BC = 0  # the block counter: the highest number sent or delivered in any group
        self.received: dict[GroupId, dict[ProcessId, NumberSet]] = {}  # delivered or held back
        self.R: dict[GroupId, dict[ProcessId, int]] = {}  # frames delivered, per sender
        self.staying: dict[GroupId, frozenset[ProcessId]] = {}  # during a cut: who goes on

    def CA1(self) -> int:
        """The number of a message that is about to be sent."""
        self.BC += 1
        return self.BC

    def CA2(self, b: int) -> None:
        """Number b is about to be delivered."""
        if b > self.BC:
            self.BC = b

    def hand_over(self, g: GroupId, frame: Kept) -> None:
        """deliver(m), and count it."""
        self.R[g][frame.origin] = frame.n
        self.deliver(g, frame.origin, frame.n, frame.payload, frame.stamp)

    def check_block(self, b: int, above: int = 0) -> None:
        """The numbers of one sender rise."""
        if not above < b <= MAX_BLOCK:
            raise PeerError(f"block number {b} where one above {above} must come")

    def check_entry(self, h: GroupId, j: ProcessId, b: int, before: int) -> None:
        """Can a message of block `before` depend on one of j in h with number b?"""
        if not 0 <= b < before or h < 0:
            raise PeerError(f"number {b} of process {j} before a message of block {before}")
        if h in self.R and j not in self.R[h]:
            raise PeerError(f"process {j} does not send in group {h}")

    def mark(self, g: GroupId, q: ProcessId) -> int:
        return self.received[g][q].mark

    def report_mark(self, g: GroupId) -> int:
        return self.BC

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return bool(frame.stamp) and 0 < frame.stamp[0] <= MAX_BLOCK and min(frame.stamp) >= 0

    # -- the cut ----------------------------------------------------------------------------------

    def cut(self, cut: Cut) -> None:
        self.staying = {view.group: frozenset(view.senders) for view in cut.views}
        super().cut(cut)
        self.staying = {}

    def settle(self, unions: dict[GroupId, list[Kept]]) -> None:
        """By number: what a frame depends on has a smaller one."""
        frames = [(f.stamp[0], f.origin, g, f) for g, union in unions.items() for f in union]
        tops = {g: highest(union) for g, union in unions.items()}
        for b, q, g, frame in sorted(frames):
            if frame.n <= self.R[g][q]:
                continue
            # A frame behind one that nobody alive has is lost with it.
            if frame.n > self.R[g][q] + 1 or self.lost(g, frame, tops[g]):
                tops[g][q] = min(tops[g][q], b - 1)
            else:
                self.CA2(b)
                self.hand_over(g, frame)
        self.end_era()

    @abstractmethod
    def lost(self, g: GroupId, frame: Kept, top: dict[ProcessId, int]) -> bool:
        """May the frame depend on one of the same group that nobody alive has?

        All survivors of g must answer alike, so only what all of them know may decide: the union
        (`top` is the highest number of each sender in it, below what is lost), and what they
        delivered of g. A frame that a survivor sent or delivered is not lost.
        """

    def end_era(self) -> None:
        """Everything is settled, in all groups: pages forget what counts within an era only."""

    def on_view(self, view: View) -> None:
        super().on_view(view)
        if self.me in view.senders:
            self.BC = max(self.BC, view.start)
            limit = self.options.max_held
            self.received[view.group] = {q: NumberSet(limit) for q in view.senders}
            self.R[view.group] = dict.fromkeys(view.senders, 0)

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.received.pop(g, None)
        self.R.pop(g, None)
