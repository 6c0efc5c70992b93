"""The frames of one process that are not known to be safe: which have left, and for whom."""

from __future__ import annotations

from collections import deque

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.protocols.sequencing.headers import OwnFrames, Request, Spread


class Own(PlainState):
    """One frame of this process that is not known to be safe."""

    def __init__(self, g: GroupId, n: int, payload: bytes) -> None:
        self.group = g
        self.n = n
        self.payload = payload
        self.request: Request | Spread | None = None  # as it left; None: it has not left

    @property
    def after(self) -> OwnFrames:
        """Own frames before it that were not safe when it left."""
        return () if self.request is None else self.request.after


class Outbox(PlainState):
    """The frames of this process, in the order in which the application sent them."""

    def __init__(self) -> None:
        self.count: dict[GroupId, int] = {}  # frames sent to each group so far
        self.began: dict[GroupId, int] = {}  # ... when this stay, or visit, began
        self.consumed: dict[GroupId, int] = {}  # ... that all are known to have consumed
        self.own: dict[tuple[GroupId, int], Own] = {}  # not safe, in order
        self.of_group: dict[GroupId, deque[int]] = {}  # the counts of those, by group
        self.unsent: deque[tuple[GroupId, int]] = deque()  # those that have not left, in order
        self.under_way: dict[GroupId, int] = {}  # the last that left and is not safe, by group
        self.target: ProcessId | None = None  # the sequencer of those that have left

    def begin(self, g: GroupId) -> None:
        """A stay in g, or a visit, begins: the application counts its frames from here."""
        self.began[g] = self.count.get(g, 0)

    def add(self, g: GroupId, payload: bytes) -> Own:
        """The application sends a frame."""
        n = self.count[g] = self.count.get(g, 0) + 1
        own = self.own[g, n] = Own(g, n, payload)
        self.of_group.setdefault(g, deque()).append(n)
        self.unsent.append((g, n))
        return own

    def next(self) -> Own | None:
        """The first frame that has not left."""
        return self.own[self.unsent[0]] if self.unsent else None

    def first(self, g: GroupId) -> int:
        """The first own frame to g that is not safe."""
        return self.of_group[g][0]

    def after(self, g: GroupId) -> OwnFrames:
        """Own frames in other groups that have left, and are not safe."""
        return tuple((h, n) for h, n in self.under_way.items() if h != g)

    def left(self, own: Own, target: ProcessId) -> None:
        """The first of those that had not left is on its way."""
        self.under_way[own.group] = own.n
        self.target = target

    def safe(self, g: GroupId, n: int) -> bool:
        """Own frames to g up to n are safe; False if that was known."""
        line = self.of_group.get(g)
        if not line or line[0] > n:
            return False
        while line and line[0] <= n:
            own = self.own.pop((g, line.popleft()))
            if own.request is None:  # it was to be repeated, and need not be
                self.unsent.remove((g, own.n))
        if not line:
            del self.of_group[g]
        if self.under_way.get(g, n + 1) <= n:
            del self.under_way[g]
            if not self.under_way:
                self.target = None
        return True

    def all_safe(self, g: GroupId) -> int:
        """The last own frame to g before the first that is not safe."""
        line = self.of_group.get(g)
        return line[0] - 1 if line else self.count.get(g, 0)

    def forget(self, g: GroupId) -> None:
        """This process sends nothing to g any more. What it has sent is counted on: if it comes
        back, its frames must not look like repeats."""
        line = self.of_group.get(g)
        if line:
            self.safe(g, line[-1])

    def check(self) -> None:
        """What must always hold of own frames."""
        unsent = [id for id, own in self.own.items() if own.request is None]
        assert unsent == list(self.unsent), "what has not left is in line, in order"
        lines = {(g, n) for g, line in self.of_group.items() for n in line}
        assert lines == set(self.own), "every frame is in the line of its group"
        for g, line in self.of_group.items():
            assert list(line) == sorted(line) and line[-1] <= self.count[g], "lines rise"
        left = {own.group: own.n for own in self.own.values() if own.request is not None}
        assert left == self.under_way, "the last frame under way is known"
        assert (self.target is None) == (not left), "frames are under way to somebody"

    def repeat(self, repeated: list[Own]) -> None:
        """These have not left: their requests are void."""
        for own in repeated:
            own.request = None
        self.unsent = deque(id for id, own in self.own.items() if own.request is None)
        self.under_way = {}
        for own in self.own.values():
            if own.request is not None:
                self.under_way[own.group] = own.n
        if not self.under_way:
            self.target = None
