"""A member's part of one group."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Collection, Iterable

import msgspec

from ordercast.core.changing import Head, LastFrames, Place, Places
from ordercast.core.events import View
from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.weights import weight

FrameName = tuple[ProcessId, int]
"""(origin, its count): a frame of one group"""

NOWHERE: Place = (0, 0)  # before everything of a group
END = 1 << 62  # as a number: after everything of an era


class Stay(enum.IntEnum):
    """Where a member stands. Who is outside has no seat."""

    JOINING = 1  # a change that lets it in is prepared: contexts may name its era already
    IN = 2
    LEAVING = 3  # out of the view; the rest of its last era is delivered first


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A numbered frame, as members and sequencers keep it."""

    era: int
    N: int
    origin: ProcessId
    n: int
    context: Places
    needs: Places
    payload: bytes

    @property
    def weight(self) -> int:
        """What it costs to keep it, in bytes."""
        return weight(self.payload, self.context, self.needs)

    @property
    def head(self) -> Head:
        """Without body and context."""
        return Head(self.N, self.origin, self.n, self.needs)


class Marker(msgspec.Struct, frozen=True):
    """In a member's queue: here an era ends, and this view begins."""

    view: View
    place: Place
    change: int  # the number of the change
    inside: bool  # this process is in the view


class Seat(PlainState):
    """What a member knows of one group. The queue may begin with the rest of older eras, each of
    them closed by a marker."""

    def __init__(self, stay: Stay, at: Place, limit: int, limit_bytes: int) -> None:
        self.stay = stay
        self.at = at  # last delivered
        self.number = 0  # of the view that the application is in
        self.era = 0
        self.base = 0  # the last number of the era before
        self.got = 0  # of this era, all numbers up to this one are here
        self.commit = 0  # what may be delivered, as far as the sequencer has said
        self.stable = 0  # consumed by all
        self.known = 0  # the highest number that is known to have been given
        self.taken = 0  # the number up to which the application has consumed
        self.queue: deque[Entry | Marker] = deque()  # to be delivered, in order
        self.kept: dict[int, Entry] = {}  # of this era, not stable, by number
        self.ahead: dict[int, Entry] = {}  # came before one that is missing
        self.bodyless: dict[FrameName, Entry] = {}  # numbered; the body is on its way
        self.ahead_bytes = 0  # what is ahead, or bodyless, costs
        self.bodies: dict[FrameName, bytes] = {}  # came before their numbers
        self.bodies_bytes = 0  # ... and what they cost
        self.turned_away = 0  # frames and bodies for which there was no room: they are fetched
        self.last: dict[ProcessId, int] = {}  # the last frame of each origin, delivered or settled
        self.placed: dict[ProcessId, int] = {}  # ... and the last that is here with its number
        self.own: deque[tuple[int, int]] = deque()  # (N, n) of own frames that are not stable
        self.told = (0, 0)  # (held, done) as last acknowledged
        self.owed = 0  # numbers taken since the last acknowledgement
        self.source: ProcessId | None = None  # in a change: has what is missing here
        self.ceiling = END  # in a change: nothing above this is taken up; it was not reported
        self.limit = limit  # how far above `got` a number may lie; how many frames may wait
        self.limit_bytes = limit_bytes  # ... for a gap or a number before them, and for a body

    def begin(self, era: int, base: int, last: LastFrames, members: Collection[ProcessId]) -> None:
        """A new era of these, after number `base`."""
        if self.stay is not Stay.IN:
            self.taken = base
        self.stay, self.era, self.base = Stay.IN, era, base
        self.got = self.commit = self.stable = self.known = base
        self.kept, self.ahead, self.bodyless, self.ahead_bytes = {}, {}, {}, 0
        self.last, self.placed = dict(last), dict(last)
        self.told, self.owed, self.source = (base, base - 1), 0, None
        self.ceiling = END
        for p, n in [
            (p, n) for p, n in self.bodies if p not in members or n <= self.last.get(p, 0)
        ]:
            self.take_body((p, n))

    @property
    def delivered(self) -> int:
        """The last number of this era that was delivered here."""
        return self.at[1] if self.at[0] == self.era else 0

    def hold(self, entry: Entry) -> bool:
        """A numbered frame came; True if there is something new without a gap."""
        N = entry.N
        if self.got >= N or N in self.ahead:
            return False
        self.expect(N)
        if self.known < N:
            self.known = N
        if self.got + 1 < N or self.ceiling < N:
            if self._has_room(entry):
                self.ahead[N] = entry
            return False
        self._append(entry)
        if self.ahead:
            self._append_ahead()
        return True

    def _has_room(self, entry: Entry) -> bool:
        """A frame waits for others, or for its body. One that may not is fetched in its turn."""
        cost = entry.weight
        if self.ahead_bytes + cost > self.limit_bytes:
            self.turned_away += 1
            return False
        self.ahead_bytes += cost
        return True

    def await_body(self, entry: Entry) -> bool:
        """The number of a frame is here, and its body is not; False if there is no room."""
        name = (entry.origin, entry.n)
        self.take_bodyless(name)
        if len(self.bodyless) >= self.limit:
            self.turned_away += 1
        elif self._has_room(entry):
            self.bodyless[name] = entry
        return name in self.bodyless

    def take_bodyless(self, name: FrameName) -> Entry | None:
        """The body of this frame is here, or it is known elsewhere."""
        entry = self.bodyless.pop(name, None)
        if entry is not None:
            self.ahead_bytes -= entry.weight
        return entry

    def await_number(self, name: FrameName, m: bytes) -> None:
        """The body of a frame is here, and its number is not."""
        self.take_body(name)
        cost = weight(m)
        if len(self.bodies) >= self.limit or self.bodies_bytes + cost > self.limit_bytes:
            self.turned_away += 1
            return
        self.bodies[name] = m
        self.bodies_bytes += cost

    def take_body(self, name: FrameName) -> bytes | None:
        """The number of this frame is here."""
        m = self.bodies.pop(name, None)
        if m is not None:
            self.bodies_bytes -= weight(m)
        return m

    def has_number(self, origin: ProcessId, n: int) -> bool:
        """Is the number of this frame here?"""
        if n <= self.placed.get(origin, 0) or (origin, n) in self.bodyless:
            return True
        return any(entry.n == n and entry.origin == origin for entry in self.ahead.values())

    def has_both(self, origin: ProcessId, n: int) -> None:
        """Number and body of a frame are here: nothing of it waits for the other half. If the body
        from its sender was lost, both came from the sequencer."""
        self.take_bodyless((origin, n))
        self.take_body((origin, n))

    def expect(self, N: int) -> None:
        """A number that is not here yet: it may not lie too far above those that are."""
        if self.got + self.limit < N:
            raise PeerError(f"number {N} lies more than {self.limit} above {self.got}")

    def _append_ahead(self) -> None:
        while self.got < self.ceiling and (entry := self.ahead.pop(self.got + 1, None)) is not None:
            self.ahead_bytes -= entry.weight
            self._append(entry)

    def freeze(self) -> None:
        """What is here was reported. What comes now, nobody else may have: it must not be delivered
        before it is known where the era ends."""
        self.ceiling = self.got

    def end_at(self, end: int, source: ProcessId | None) -> None:
        """The era ends with this number; `source` has all up to it."""
        self.ceiling = max(end, self.got)
        self.known = max(self.known, end)
        for N in [N for N in self.ahead if end < N]:
            self.ahead_bytes -= self.ahead.pop(N).weight
        self._append_ahead()
        self.source = source

    def _append(self, entry: Entry) -> None:
        self.got = entry.N
        self.kept[entry.N] = entry
        self.placed[entry.origin] = entry.n
        if self.bodyless:
            self.take_bodyless((entry.origin, entry.n))
        self.queue.append(entry)

    def learn(self, N: int, commit: int, stable: int) -> None:
        """What the sequencer says of its marks."""
        if not stable <= commit <= N:
            raise PeerError(f"marks that cannot be: {stable}, {commit} of {N}")
        self.expect(N)
        self.known = max(self.known, N)
        self.commit = max(self.commit, commit)
        self.prune(min(stable, self.got))

    def prune(self, stable: int) -> None:
        """Everybody has consumed these."""
        if stable > self.stable:
            for N in range(self.stable + 1, stable + 1):
                self.kept.pop(N, None)
            self.stable = stable

    def own_stable(self) -> int:
        """The count of the last own frame that is stable now; 0: none became so."""
        n = 0
        while self.own and self.own[0][0] <= self.stable:
            n = self.own.popleft()[1]
        return n

    def heads(self) -> Iterable[Head]:
        """Of all frames that are here, without a gap, and not stable."""
        return (entry.head for entry in self.kept.values())

    def drop_after(self, end: int) -> None:
        """The era ends with this number: what is above it was never delivered anywhere."""
        while self.queue:
            tail = self.queue[-1]
            if isinstance(tail, Marker) or tail.era != self.era or end >= tail.N:
                return
            self.queue.pop()

    def missing(self) -> tuple[int, int] | None:
        """The first gap: numbers that are known to be given, and not here."""
        last = min(self.ahead) - 1 if self.ahead else self.known
        last = min(last, self.ceiling)
        return (self.got + 1, last) if last > self.got else None

    def check(self) -> None:
        """What must always hold of a member."""
        if self.stay is Stay.JOINING:
            assert not (self.queue or self.kept or self.ahead), "a joiner has nothing to deliver"
            return
        waiting = [*self.ahead.values(), *self.bodyless.values()]
        assert self.ahead_bytes == sum([entry.weight for entry in waiting]), "what waits is weighed"
        assert self.bodies_bytes == sum(map(weight, self.bodies.values())), "bodies are weighed"
        at = self.at
        for x in self.queue:
            place = x.place if isinstance(x, Marker) else (x.era, x.N)
            assert at < place, "the queue rises from what was delivered"
            at = place
        if self.stay is not Stay.IN:
            return
        assert self.delivered <= self.got <= self.known, "delivered <= here <= known"
        assert self.base <= self.stable <= self.got, "what is stable is here"
        assert self.got <= self.ceiling, "nothing is taken up after the report"
        unstable = set(range(self.stable + 1, self.got + 1))
        assert self.kept.keys() >= unstable, "an unstable frame is kept"
        assert len(self.kept) == len(unstable), "what is stable is forgotten"
        assert [*self.kept] == [kept.N for kept in self.kept.values()], "a number has one frame"
        assert not self.ahead or self.got < min(self.ahead), "what is ahead is not here yet"
        assert self.taken <= max(self.at[1], self.stable), "only what was delivered is consumed"
