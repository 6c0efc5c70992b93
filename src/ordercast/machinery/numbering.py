"""The sequencer's book: which number went to which frame, and who has consumed how far.

Kept by the one process that numbers a group; it sends nothing, it only remembers.

* A sender's frames get numbers in the order in which it sent them. A frame that overtook its
  predecessor waits here: numbering in order of arrival would break FIFO on a reordering network.
* A repeat is recognised by its frame number, and answered with the number it got the first time.
* An entry is forgotten when everybody has consumed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import SlowestMark
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

VIEW_ENTRY: ProcessId = -1  # stands in for the origin of an entry that is a view

Context = tuple[tuple[GroupId, int], ...]  # numbers of other groups that come before, by group


class ViewEntry(msgspec.Struct, frozen=True, array_like=True):
    """Number N goes to the next view. Whoever is in `joined` starts here."""

    N: int
    number: int  # of the view
    members: tuple[ProcessId, ...]
    joined: tuple[ProcessId, ...]
    last: tuple[tuple[ProcessId, int], ...]  # the last numbered frames of those present
    stable: int
    guests: tuple[ProcessId, ...] = ()  # may send; the number of the view is new only to members
    context: Context = ()  # where there is an order across groups
    move: int = 0  # where a group may be handed over: so many times it was, when this was sent


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """What stands under one number: a frame, or a view."""

    origin: ProcessId
    n: int
    payload: bytes
    view: ViewEntry | None = None


class Numbering(PlainState):
    """Numbers given in one era of one group."""

    def __init__(
        self, members: Iterable[ProcessId], start: int, done: Mapping[ProcessId, int], limit: int
    ) -> None:
        self.N = start  # last number given
        self.history: dict[int, Numbered] = {}  # number -> entry, until all consumed it
        self.number_of: dict[tuple[ProcessId, int], int] = {}  # (origin, n) -> its number
        self.last: dict[ProcessId, int] = dict(done)  # each origin's last; also of one that left
        self.ahead: dict[ProcessId, dict[int, bytes]] = {}  # frames whose predecessor lacks
        self.acks = SlowestMark(members, start)  # numbers consumed, per member
        self.joining: dict[ProcessId, int] = {}  # joiners not heard of yet -> number of their view
        self.leaving: dict[ProcessId, int] = {}  # leavers -> the number of their last view
        self.began: dict[ProcessId, int] = {}  # came in: they have nothing up to this, yet unstable
        self.told = 0  # all were told that numbers up to this one are stable
        self.backoff = 1  # periods until views are repeated
        self.limit = limit  # how far above the last one a frame of an origin may be

    @property
    def stable(self) -> int:
        """Everybody consumed all numbers up to this one."""
        return self.acks.lowest

    def in_order(self, origin: ProcessId, n: int, m: bytes) -> list[Numbered]:
        """The frames that may be numbered now that n has come: none, n, or n and successors."""
        last = self.last.get(origin, 0)
        if n <= last:
            return []
        ahead = self.ahead.get(origin)
        if n > last + 1:
            if n > last + self.limit:
                raise PeerError(f"frame {n} lies more than max_held above {last}")
            if ahead is None:
                ahead = self.ahead[origin] = {}
            ahead[n] = m
            return []
        frames = [Numbered(origin, n, m)]
        while ahead and (successor := ahead.pop(n + 1, None)) is not None:
            n += 1
            frames.append(Numbered(origin, n, successor))
        self.last[origin] = n
        return frames

    def enter(self, entry: Numbered) -> int:
        """Give the next number to this entry."""
        self.N = N = self.N + 1
        self.history[N] = entry
        self.number_of[entry.origin, entry.n] = N
        if not self.acks.marks:  # nobody is there who could consume it
            self.acks.lowest = N
        return N

    def acknowledged(self, p: ProcessId, R: int) -> bool:
        """p consumed all numbers up to R; True if that made something stable."""
        if R > self.N:
            raise PeerError(f"number {R} is acknowledged, but only {self.N} were given")
        if self.joining.get(p, 0) <= R:  # a late word of a former stay tells nothing of this one
            self.joining.pop(p, None)
        rose = self.acks.raise_to(p, R)
        if p in self.leaving and self.leaving[p] <= R:
            del self.leaving[p]
            self.began.pop(p, None)
            rose = self.acks.forget(p) or rose
            if not self.acks.marks and self.acks.lowest < self.N:  # nobody is left to consume it
                self.acks.lowest, rose = self.N, True
        return rose

    def behind(self, me: ProcessId) -> dict[ProcessId, int]:
        """The others who have not consumed all numbers, and how far each has come."""
        return {p: R for p, R in self.acks.marks.items() if p != me and self.N > R}

    def admit(self, p: ProcessId) -> None:
        """p comes in with the next entry, perhaps not for the first time."""
        self.acks.admit(p, self.N)
        self.joining[p] = self.N + 1
        self.began[p] = self.N
        self.leaving.pop(p, None)  # its word on the last view of a former stay may be lost

    def begin_stay(self, p: ProcessId) -> None:
        """p, a member or a guest, will send, perhaps not for the first time."""
        self.ahead.pop(p, None)
        if p in self.last:  # what is still under way from a former stay counts as a repeat
            self.last[p] += self.limit

    def dismiss(self, p: ProcessId) -> None:
        """The next entry is the last for p; it is waited for until it has that one."""
        self.leaving[p] = self.N + 1

    def end_stay(self, p: ProcessId) -> None:
        """p sends nothing more, unless it comes back: see `begin_stay`."""
        self.last.setdefault(p, 0)

    def forget(self, p: ProcessId) -> None:
        """p is dead: nothing more is expected of it, and its waiting frames are void."""
        self.acks.forget(p)
        for table in (self.joining, self.leaving, self.began, self.last, self.ahead):
            table.pop(p, None)

    def last_of(
        self, guests: Iterable[ProcessId], dead: Iterable[ProcessId]
    ) -> tuple[tuple[ProcessId, int], ...]:
        """For a view entry: the last frames of those who are here or leaving, not of all before."""
        present = {*self.acks.marks, *guests} - set(dead)
        return tuple(sorted((p, n) for p, n in self.last.items() if p in present))

    def prune(self) -> None:
        """Drop what all have consumed."""
        oldest = next(iter(self.history), self.stable + 1)
        for N in range(oldest, self.stable + 1):
            entry = self.history.pop(N)
            del self.number_of[entry.origin, entry.n]
        if self.began:
            self.began = {p: N for p, N in self.began.items() if self.stable < N}
