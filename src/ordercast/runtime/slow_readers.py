"""Finds programs that do not read: that of this node, and those of the other members.

A member whose program takes nothing stops all senders of the group, as soon as their windows are
full. Only that member knows why nothing is consumed: a sender sees no more than that
its frames do not become stable. So each node watches its own program. It warns, it tells the
members and guests of the group (`NotReading`), and it leaves the group if that is the policy of the
group (`slow="exclude"`): it is the one that can do so in order, with all that it sent in its place.

A program does not read while something waits for it and it takes nothing. However slow it is: as
long as it takes one event after the other it reads, and the senders go at its pace. Time is counted
in looks, not read off a clock: a process that was stopped for a minute wakes to one look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import PeerError, TooSlow
from ordercast.runtime.control import NotReading

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership
    from ordercast.runtime.presence import Presence
    from ordercast.runtime.sending import Sending

log = logging.getLogger("ordercast.runtime.slow_readers")

LOOKS = 8  # at the own program, in `slow_seconds`
SAID_AGAIN = 4  # looks after which it is said again, for nodes that joined meanwhile
MAX_SECONDS = 1e9
SHOWN = 3  # groups that a warning names
NOBODY = "all members say that they read; group.held_back() or ordercast doctor may tell more"


class ReadingReport(NamedTuple):
    """A member has said that its program does not read."""

    seconds: float
    at: float


class WaitingSender(NamedTuple):
    """A sender whose messages wait, and for how many looks nothing of it became stable."""

    stable: int
    looks: int = 0
    warned: bool = False


class SlowReaders:
    """Watches the program of one node, and remembers what other members say of theirs."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._patience = presence.options.slow_seconds
        self._interval = self._patience / LOOKS
        self._looks = 0
        self._slow: dict[GroupId, Membership] = {}  # this program does not read them
        self._told: dict[GroupId, dict[ProcessId, ReadingReport]] = {}  # what others said
        self._waiting: dict[Sending, WaitingSender] = {}
        self.exclude: Callable[[Membership, TooSlow], None] = lambda member, reason: None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(self._interval, self._look)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        self._timer = self._loop.call_later(self._interval, self._look)
        self._looks += 1
        for inbox in self._presence.lifetime.inboxes():
            inbox.look()
        members = tuple(self._presence.groups.memberships.values())
        newly = [member for member in members if self._look_at_own(member)]
        if newly:
            self._warn_of_own(newly)
        self._slow = {
            gid: member
            for gid, member in self._slow.items()
            if self._presence.groups.memberships.get(gid) is member
        }
        self._told = {gid: fresh for gid in self._told if (fresh := self._fresh(gid))}
        self._look_at_senders()

    # -- the own program --------------------------------------------------------------------------

    def _look_at_own(self, member: Membership) -> bool:
        """Is it slow now, and was not at the last look?"""
        idle, gid = self._idle(member), member.group.gid
        was_slow = gid in self._slow
        if idle < self._patience:
            if self._slow.pop(gid, None) is not None:
                self._tell(member, 0.0)
            return False
        self._slow[gid] = member
        if not was_slow or self._looks % SAID_AGAIN == 0:
            self._tell(member, idle)
        return not was_slow

    def _idle(self, member: Membership) -> float:
        """Seconds for which the program has taken nothing, though something waits for it."""
        return self._interval * member.inbox.idle_looks if member.pending_frames else 0.0

    def _warn_of_own(self, members: list[Membership]) -> None:
        """In one line for all groups: a stream holds many, and none of them is read."""
        log.warning(
            "the program of %s has taken nothing of %s for %.0f s: %d frames (%d bytes) wait for "
            "it, and all senders of these groups wait, too. Read the stream (async for event in "
            "node); a group with slow='exclude' is left",
            self._presence.me.identity, _groups(member.group.name for member in members),
            max(map(self._idle, members)), sum(member.pending_frames for member in members),
            sum(member.pending_bytes for member in members),
        )  # fmt: skip
        for member in members:
            if member.group.slow == "exclude" and member.closed is None:
                reason = TooSlow(member.group.name, self._idle(member), member.pending_frames)
                self.exclude(member, reason)

    def _tell(self, member: Membership, seconds: float) -> None:
        stack, word = self._presence.engine.stack, NotReading(member.group.name, seconds)
        view = stack.view(member.group.gid)
        if view is None:
            return
        if stack.page(member.group.protocol).together is not None:  # its guests are in no view
            self._presence.peers.tell_all(word)
        else:
            for pid in view.senders:
                if pid != self._presence.me.pid:
                    self._presence.peers.tell(pid, word)

    # -- the others -------------------------------------------------------------------------------

    def take(self, pid: ProcessId, message: NotReading) -> None:
        """A member says that its program does not read, or does again."""
        if not (isfinite(message.seconds) and 0 <= message.seconds < MAX_SECONDS):
            raise PeerError(f"its program has not read for {message.seconds} s: that cannot be")
        sending = self._sending(message.group)
        if sending is None or pid not in self._members(sending.group.gid):
            return
        told = self._told.setdefault(sending.group.gid, {})
        if message.seconds:
            told[pid] = ReadingReport(message.seconds, monotonic())
        else:
            told.pop(pid, None)

    def _sending(self, name: str) -> Sending | None:
        senders = self._presence.groups.senders()
        return next((sending for sending in senders if sending.group.name == name), None)

    def _members(self, gid: GroupId) -> tuple[ProcessId, ...]:
        view = self._presence.engine.stack.view(gid)
        return () if view is None else view.members

    def _fresh(self, gid: GroupId) -> dict[ProcessId, ReadingReport]:
        """What members said of late. Whoever does not read says so again and again."""
        now, members = monotonic(), self._members(gid)
        return {
            pid: told
            for pid, told in self._told.get(gid, {}).items()
            if pid in members and now - told.at <= 2 * SAID_AGAIN * self._interval
        }

    def slow_members(self, gid: GroupId) -> dict[str, float]:
        """Members whose program does not read the group, and since how many seconds."""
        now, names = monotonic(), self._presence.directory.names
        found = {
            names[pid]: round(told.seconds + now - told.at, 1)
            for pid, told in self._fresh(gid).items()
        }
        own = self._slow.get(gid)
        if own is not None:
            found[self._presence.me.name] = round(self._idle(own), 1)
        return found

    # -- messages of this node that wait ----------------------------------------------------------

    def _look_at_senders(self) -> None:
        before, self._waiting = self._waiting, {}
        for sending in self._presence.groups.senders():
            if sending.window.waiters:
                stable = sending.progress.stable.value
                waiting = before.get(sending, WaitingSender(stable))
                if waiting.stable != stable:
                    waiting = WaitingSender(stable)
                self._waiting[sending] = waiting._replace(looks=waiting.looks + 1)
        if any(waiting.looks > LOOKS and not waiting.warned for waiting in self._waiting.values()):
            self._warn_of_others()

    def _warn_of_others(self) -> None:
        """Say who holds messages up, or, after some more time, that nobody says so."""
        reasons = "; ".join(self._reasons())
        least = LOOKS if reasons else 2 * LOOKS
        late = {
            sending: waiting
            for sending, waiting in self._waiting.items()
            if waiting.looks > least and not waiting.warned
        }
        if not late:
            return
        self._waiting |= {
            sending: waiting._replace(warned=True) for sending, waiting in late.items()
        }
        log.warning(
            "%d multicasts to %s have waited for %.0f s: %s",
            sum(len(sending.window.waiters) for sending in late),
            _groups(sending.group.name for sending in late),
            self._interval * max(waiting.looks for waiting in late.values()),
            reasons or NOBODY,
        )  # fmt: skip

    def _reasons(self) -> Iterable[str]:
        """Members that hold up messages, in these groups or in others that use up the room."""
        slow: dict[str, dict[str, float]] = {}  # by member: its groups, and for how long
        for sending in self._presence.groups.senders():
            for name, seconds in self.slow_members(sending.group.gid).items():
                slow.setdefault(name, {})[sending.group.name] = seconds
        for name, groups in slow.items():
            longest = max(groups.values())
            yield f"{name} has taken nothing of {_groups(groups)} for {longest:.0f} s"
        for name, seconds in self._presence.pulses.standing_still().items():
            yield f"the event loop of {name} has stood still for {seconds:.0f} s"


def _groups(names: Iterable[str]) -> str:
    """A few of these in words, and how many more there are."""
    first, *others = list(names)
    if not others:
        return f"group {first!r}"
    shown = ", ".join(map(repr, (first, *others[: SHOWN - 1])))
    more = len(others) + 1 - SHOWN
    return f"groups {shown} and {more} more" if more > 0 else f"groups {shown}"
