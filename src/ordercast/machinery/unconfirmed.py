"""Bodies that members relayed before their origin sent them here: they are kept apart.

A connection tells who is at its other end, and no more: a relay says that *its sender* holds a
frame, and what the frame contains only by hearsay. While the origin is in the view, only its own
packet says what it sent.

    a relay comes first          keep its body apart, with the names of those who relayed it
    the origin's own body comes  those who relayed the same hold it; another body is a conflict
    the origin has stopped       a driver says so: the body that a relay brought is believed
    the view changes             a body that is still apart is reported by its digest; if the origin
                                 takes no part in the change, everybody delivers the same one

One of two who say different things of a frame lies, and a member cannot tell which: a false origin
may send two bodies, a false relay may change one. So a conflict is noted with both names, and no
connection ends for it: else a false origin could turn honest members against each other.

Nothing depends on what is kept here: what a survivor had from the origin itself, the others fetch
from it. So what goes beyond a limit is forgotten, and nobody is blamed for it: an origin that keeps
its frames from one member makes honest members relay many to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from ordercast.core.changing import FrameAt
from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.core.waiting import Awaited, Waiting
from ordercast.errors import PeerError
from ordercast.machinery.parts import Verbs

MAX_APART = 4096  # bodies of one relay that are kept apart, in a group
MAX_APART_BYTES = 16 << 20  # ... and their bytes

FROM_ORIGIN = 0  # the first of a stamp that is reported
RELAYED = (1,)  # the stamp of a frame that is here only by hearsay

Copy = tuple[bytes, tuple[ProcessId, ...]]
"""(body, who relayed it); the first of them brought it"""


class Unconfirmed(PlainState):
    """Of one group, in the view in force."""

    def __init__(self, group: GroupId) -> None:
        self.group = group
        self.copies: dict[ProcessId, dict[int, tuple[Copy, ...]]] = {}  # per origin and number
        self.frames: dict[ProcessId, int] = {}  # bodies that each relay brought
        self.bytes: dict[ProcessId, int] = {}  # ... and their bytes

    def keep(self, machine: Verbs, p: ProcessId, n: int, r: ProcessId, m: bytes) -> None:
        """r relays m as frame n of p, which has not come from p."""
        copies = self.copies.get(p, {}).get(n, ())
        for i, (body, relays) in enumerate(copies):
            if body == m:
                if r not in relays:
                    self._put(p, n, (*copies[:i], (body, (*relays, r)), *copies[i + 1 :]))
                return
        if any(r in relays for _, relays in copies):
            raise PeerError(f"two different bodies are relayed as frame {n} of process {p}")
        if not self._has_room(r, m):
            machine.note("drop", self.group, p, n, f"too much that process {r} relays is apart")
            return
        self.frames[r] = self.frames.get(r, 0) + 1
        self.bytes[r] = self.bytes.get(r, 0) + len(m)
        self._put(p, n, (*copies, (m, (r,))))

    def _has_room(self, r: ProcessId, m: bytes) -> bool:
        return (
            self.frames.get(r, 0) < MAX_APART and self.bytes.get(r, 0) + len(m) <= MAX_APART_BYTES
        )

    def _put(self, p: ProcessId, n: int, copies: tuple[Copy, ...]) -> None:
        self.copies.setdefault(p, {})[n] = copies

    def confirm(self, machine: Verbs, p: ProcessId, n: int, m: bytes) -> tuple[ProcessId, ...]:
        """m is frame n of p. Who relayed it?"""
        if p not in self.copies or n not in self.copies[p]:
            return ()
        same: tuple[ProcessId, ...] = ()
        for body, relays in self.copies[p].pop(n):
            self.frames[relays[0]] -= 1
            self.bytes[relays[0]] -= len(body)
            if body == m:
                same = relays
            for r in relays if body != m else ():
                self.conflict(machine, p, n, r)
        if not self.copies[p]:
            del self.copies[p]
        return same

    def compare(
        self, machine: Verbs, p: ProcessId, n: int, r: ProcessId, m: bytes, known: bytes | None
    ) -> bool:
        """r says that m is frame n of p, which is known here; None: it was forgotten."""
        if known is None or known == m:
            return True
        if r == p or p == machine.me:
            raise PeerError(f"another body is said to be frame {n} of process {p}")
        self.conflict(machine, p, n, r)
        return False

    def gives_way(self, machine: Verbs, kept: Kept, end: FrameAt) -> bool:
        """The era ends with this frame: is the body that is held here another one?"""
        if kept.stamp[1:] == end.stamp[1:]:
            return False
        if kept.stamp[0] == FROM_ORIGIN:
            self.conflict(machine, kept.origin, kept.n, end.holder)
        return True

    def conflict(self, machine: Verbs, p: ProcessId, n: int, r: ProcessId) -> None:
        """r relayed another body than p sent here: one of the two lies."""
        machine.out.conflicts.append((self.group, p, n, r))
        machine.note("conflict", self.group, p, n, f"process {r} relays another body")

    def bodies(self, p: ProcessId) -> list[tuple[int, bytes]]:
        """What was relayed of p: of each frame the first body."""
        return [(n, copies[0][0]) for n, copies in sorted(self.copies.get(p, {}).items())]

    def kept(self) -> Iterator[Kept]:
        """The first body of each frame."""
        for p, frames in self.copies.items():
            for n, ((body, _), *_) in frames.items():
                yield Kept(p, n, RELAYED, body)

    def waiting(self) -> Iterator[Waiting]:
        """Each waits for its origin."""
        for p, frames in sorted(self.copies.items()):
            for n, ((body, _), *_) in sorted(frames.items()):
                yield Waiting(self.group, p, n, (Awaited("origin", self.group, p, n),), body)


def digest(body: bytes) -> int:
    """What stands for a body in a report."""
    return int.from_bytes(blake2b(body, digest_size=8).digest()) >> 1


def stamped(kept: Kept) -> Kept:
    """As it is reported: was it only relayed, and the digest of its body."""
    stamp = (1 if kept.stamp == RELAYED else FROM_ORIGIN, digest(kept.payload))
    return Kept(kept.origin, kept.n, stamp, kept.payload)


def well_stamped(kept: Kept) -> bool:
    """The digest is that of the body, if there is one."""
    return len(kept.stamp) < 2 or kept.stamp[1:] == (digest(kept.payload),)


def better(one: Kept, other: Kept) -> Kept:
    """What somebody had from the origin counts more than what was relayed."""
    return min(one, other, key=_rank)


def _rank(kept: Kept) -> tuple[bool, tuple[int, ...]]:
    # A false report may say a stamp that no honest one has: it does not come first.
    return not _is_reported(kept.stamp), kept.stamp


def _is_reported(stamp: tuple[int, ...]) -> bool:
    return len(stamp) == 2 and stamp[0] in (FROM_ORIGIN, *RELAYED)
