"""A gateway counts how far all members of all subgroups have come with one stage of a message.

    a member says how far it is         here[u] := the least over the members of the subgroup
    here[u] passes m = sl(M) or dl(M)   mine[i] := M.GSQ + 1, in turn: the whole subgroup is there
    a gateway says how far its
    subgroup is                         everywhere[i] := the least over the subgroups
    everywhere[i] passes M              reached[u] := m.seq + 1, in turn: all of the group are there

A subgroup numbers messages by column, the gateways number them by subgroup. Only the gateway knows
both numbers of a message, so it translates, up and down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import ge

from ordercast.core.state import PlainState
from ordercast.protocols.two_layered.headers import Column, Vector


class Tally(PlainState):
    """One stage, at one gateway."""

    def __init__(self, i: Column, columns: int, subgroups: int) -> None:
        self.i = i
        self.told: list[Vector] = [(1,) * columns] * columns  # by each member of the subgroup
        self.here = [1] * columns  # the least of these
        self.up: list[deque[tuple[int, Column, int]]] = [deque() for _ in range(subgroups)]
        # ... per subgroup (GSQ, u, seq) of the messages that `mine` has not passed
        self.mine = [1] * subgroups  # the whole subgroup is so far
        self.heard: list[Vector] = [(1,) * subgroups] * subgroups  # of each gateway its `mine`
        self.everywhere = [1] * subgroups  # the least of these
        self.down: list[deque[tuple[int, Column, int]]] = [deque() for _ in range(columns)]
        # ... per column (seq, i, GSQ) of the messages that `reached` has not passed
        self.reached = [1] * columns  # all members of all subgroups are so far

    def pair(self, u: Column, seq: int, i: Column, GSQ: int) -> None:
        """Number seq of column u and number GSQ of subgroup i are one message."""
        self.up[i].append((GSQ, u, seq))
        self.down[u].append((seq, i, GSQ))

    def tell(self, u: Column, marks: Vector) -> bool:
        """A member says how far it is. Is `mine` higher now?"""
        if not _raise(self.told, u, marks, self.here):
            return False
        before = self.mine[:]
        for i, messages in enumerate(self.up):
            while messages and self.here[messages[0][1]] > messages[0][2]:
                self.mine[i] = messages.popleft()[0] + 1
        if self.mine == before:
            return False
        self.hear(self.i, tuple(self.mine))
        return True

    def hear(self, i: Column, marks: Vector) -> bool:
        """A gateway says how far its subgroup is. Is `reached` higher now?"""
        if not _raise(self.heard, i, marks, self.everywhere):
            return False
        before = self.reached[:]
        for u, messages in enumerate(self.down):
            while messages and self.everywhere[messages[0][1]] > messages[0][2]:
                self.reached[u] = messages.popleft()[0] + 1
        return self.reached != before

    def invariants(self) -> None:
        """What must always hold."""
        for least, rows in ((self.here, self.told), (self.everywhere, self.heard)):
            slowest = [min(column) for column in zip(*rows, strict=True)]
            assert least == slowest, "the least mark of each column is known"
        assert tuple(self.mine) == self.heard[self.i], "its own word counts"


def _raise(rows: list[Vector], row: int, marks: Sequence[int], least: list[int]) -> bool:
    """rows[row] := max(rows[row], marks), and `least` is kept. Is any of it higher now?"""
    old = rows[row]
    if all(map(ge, old, marks)):
        return False
    rows[row] = new = tuple(map(max, old, marks))
    risen = False
    for column, (was, now) in enumerate(zip(old, new, strict=True)):
        if now > was == least[column]:
            least[column] = min(one[column] for one in rows)
            risen = risen or least[column] > was
    return risen
