"""Why messages are held back. The machine says what a frame waits for; this adds names and times.

A machine has no clock, and asking it on every packet would cost time for every frame that waits.
So a node looks now and then, only while packets come or frames wait, and only which frames they
are; what they wait for is found out when somebody asks. The node knows of each frame when
it was first seen waiting, and when it was not yet. That gives two bounds of its age, `LOOK_SECONDS`
apart, or more where so much waits that a look takes long. With a trace at protocol level a node
looks after every step, and ages are exact.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import Waiting, WaitingFrame
from ordercast.errors import FrameError
from ordercast.trace.holds import (
    UNKNOWN,
    MessageRun,
    WaitsFor,
    in_words,
    joined,
    lookup_among,
    message_id,
    named,
)
from ordercast.trace.watch import Key, by_key, keys_of
from ordercast.wire.messages import unpack_messages

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

LOOK_SECONDS = 0.1  # between two looks at what waits
LOOK_SHARE = 200  # a look that took long is not repeated for so many times as long


class HeldBack(msgspec.Struct, frozen=True):
    """Messages of one frame that came and cannot be delivered yet, or were sent and have no place.

    `seconds` is how long they are known to wait, `at_most` how long it can be at most.
    """

    group: str
    sender: str  # name of the node
    message: str  # id of the first one, as in traces; "" where the body has not come
    count: int  # messages that wait together
    waits_for: tuple[WaitsFor, ...]
    seconds: float
    at_most: float
    text: str  # all of it in one sentence


class Ages:
    """Since when frames wait, by looking now and then."""

    def __init__(
        self, loop: AbstractEventLoop, frames: Callable[[], Iterable[WaitingFrame]]
    ) -> None:
        self._loop = loop
        self._frames = frames
        self._since: dict[Key, tuple[float, float]] = {}  # (did not wait yet, was seen to wait)
        self._looked = loop.time()  # all that waited then is in the table
        self._timer: TimerHandle | None = None
        self._pause = LOOK_SECONDS  # until the next look: where many groups are, it takes time

    def wake(self) -> None:
        """Something happens to the machine: look soon, if nobody is about to."""
        if self._timer is None:
            if not self._since:
                self._looked = self._loop.time()
            self._timer = self._loop.call_later(self._pause, self._look_again)

    def look(self) -> None:
        """See what waits now."""
        self.saw(keys_of(self._frames()))

    def saw(self, keys: Iterable[Key]) -> None:
        """The result of a look: these frames wait now, and no others."""
        now = self._loop.time()
        self._since = {key: self._since.get(key, (self._looked, now)) for key in keys}
        self._looked = now

    def ages(self, key: Key) -> tuple[float, float]:
        """Of a frame that was there at the last look: it waits at least, and at most, so long."""
        not_yet, seen = self._since[key]
        now = self._loop.time()
        return now - seen, now - not_yet

    def oldest(self) -> dict[GroupId, float]:
        """How long the oldest frame of each group waits, at least."""
        oldest: dict[GroupId, float] = {}
        self.look()
        for key in self._since:
            oldest[key[0]] = max(oldest.get(key[0], 0.0), self.ages(key)[0])
        return oldest

    def stop(self) -> None:
        """No more looks."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_again(self) -> None:
        self._timer = None
        began = self._loop.time()
        self.look()
        self._pause = max(LOOK_SECONDS, LOOK_SHARE * (self._loop.time() - began))
        if self._since:
            self._timer = self._loop.call_later(self._pause, self._look_again)


class PresenceNames:
    """What a node calls things in its trace."""

    def __init__(self, presence: Presence) -> None:
        self._identities = presence.directory.identities
        self._groups = presence.groups.names

    def process(self, p: ProcessId) -> str:
        """With its incarnation."""
        return self._identities.get(p, f"process {p}")

    def group(self, g: GroupId) -> str:
        """A group in which this node never was has only a number here."""
        return self._groups.get(g, f"group {g}")

    def messages(self, payload: bytes) -> MessageRun:
        """A payload that cannot be read is found out when it is delivered."""
        try:
            first, bodies = unpack_messages(payload)
        except FrameError:
            return UNKNOWN
        return first, len(bodies)


def held_back_of(presence: Presence, g: GroupId) -> Iterator[HeldBack]:
    """What waits in one group of a node, the oldest first."""
    ages, names = presence.engine.ages, PresenceNames(presence)
    held = by_key(presence.engine.stack.held_back())
    ages.saw(held)
    lookup = lookup_among(held.values(), names)
    mine = [(ages.ages(key), waiting) for key, waiting in held.items() if key[0] == g]
    for (seconds, at_most), waiting in sorted(mine, key=lambda pair: -pair[0][1]):
        things = tuple(named(awaited, names, lookup) for awaited in waiting.awaits)
        yield _told(presence, names, waiting, things, seconds, at_most)


def _told(
    presence: Presence,
    names: PresenceNames,
    waiting: Waiting,
    things: tuple[WaitsFor, ...],
    seconds: float,
    at_most: float,
) -> HeldBack:
    group, identity = names.group(waiting.group), names.process(waiting.sender)
    first, count = names.messages(waiting.payload) if waiting.payload else UNKNOWN
    message = message_id(identity, group, first) if count else ""
    what = in_words(message, count) or f"frame {waiting.n} of {identity} in {group}"
    verb = "wait" if count > 1 else "waits"
    text = f"{what} {verb} for {joined(things)}, {_since(seconds, at_most)}"
    sender = presence.directory.names.get(waiting.sender, identity)
    return HeldBack(group, sender, message, count, things, seconds, at_most, text)


def _since(seconds: float, at_most: float) -> str:
    if at_most - seconds < 0.001:
        return f"for {seconds:.3f} s"
    return f"for {seconds:.1f} to {at_most:.1f} s"
