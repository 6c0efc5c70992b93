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

from collections.abc import Callable, Iterable, Iterator

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import MAX_COUNT, SlowestMark
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.machinery.parts import Part, Verbs

MAX_BLOCK = MAX_COUNT

Lost = Callable[[GroupId, Kept, dict[ProcessId, int]], bool]
"""lost(g, frame, top): may the frame depend on one of the same group that nobody alive has?

All survivors of g must answer alike, so only what all of them know may decide: the union (`top` is
the highest number of each sender in it, below what is lost), and what they delivered of g. A frame
that a survivor sent or delivered is not lost.
"""


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


def check_block(b: int, above: int = 0) -> None:
    """The numbers of one sender rise."""
    if not above < b <= MAX_BLOCK:
        raise PeerError(f"block number {b} where one above {above} must come")


def is_numbered(stamp: tuple[int, ...]) -> bool:
    """Does the stamp of a frame begin with a block number?"""
    return bool(stamp) and 0 < stamp[0] <= MAX_BLOCK and min(stamp) >= 0


class Blocks(Part):
    """The block numbers of one process, in all its groups."""

    def __init__(self) -> None:
        self.BC = 0  # the block counter: the highest number sent or delivered in any group
        self.R: dict[GroupId, dict[ProcessId, int]] = {}  # frames delivered, per sender

    def CA1(self) -> int:
        """The number of a message that is about to be sent."""
        self.BC += 1
        return self.BC

    def CA2(self, b: int) -> None:
        """Number b is about to be delivered."""
        if b > self.BC:
            self.BC = b

    def check_entry(self, h: GroupId, j: ProcessId, b: int, before: int) -> None:
        """Can a message of block `before` depend on one of j in h with number b?"""
        if not 0 <= b < before or h < 0:
            raise PeerError(f"number {b} of process {j} before a message of block {before}")
        if h in self.R and j not in self.R[h]:
            raise PeerError(f"process {j} does not send in group {h}")

    def settled(
        self, unions: dict[GroupId, list[Kept]], lost: Lost
    ) -> Iterator[tuple[GroupId, Kept]]:
        """At a cut, what is left and can be delivered, by number: a cause has a smaller one.

        Each frame must be delivered, and counted in R, before the next is asked for.
        """
        frames = [(f.stamp[0], f.origin, g, f) for g, union in unions.items() for f in union]
        tops = {g: highest(union) for g, union in unions.items()}
        for b, q, g, frame in sorted(frames):
            if frame.n <= self.R[g][q]:
                continue
            # A frame behind one that nobody alive has is lost with it.
            if frame.n > self.R[g][q] + 1 or lost(g, frame, tops[g]):
                tops[g][q] = min(tops[g][q], b - 1)
            else:
                self.CA2(b)
                yield g, frame

    def highest_number(self) -> int:
        return self.BC

    def begin(self, machine: Verbs, view: View) -> None:
        self.BC = max(self.BC, view.start)
        self.R[view.group] = dict.fromkeys(view.senders, 0)

    def forget_group(self, g: GroupId) -> None:
        self.R.pop(g, None)
