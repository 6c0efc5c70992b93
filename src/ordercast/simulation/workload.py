"""What applications say and when. Pure: the same seed plans the same messages.

A workload plans the first messages of conversations. At every process runs an application that is
handed each delivery and may answer at once: without answers no message depends on another
process's, and causal order is never put to the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple, Protocol

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.simulation.agenda import TICKS_PER_MS, ticks_of
from ordercast.simulation.payload import HEAD, MAX_DEPTH


class Planned(NamedTuple):
    """Messages that one process sends in one instant, in this order."""

    tick: int
    process: ProcessId
    groups: tuple[GroupId, ...]


class Application(Protocol):
    """What runs at one process."""

    def answer(
        self, group: GroupId, sender: ProcessId, depth: int, groups: Sequence[GroupId]
    ) -> Sequence[GroupId]:
        """A message of this depth was delivered: the groups to which an answer is sent at once.

        `groups` are those this process is in, in ascending order.
        """
        ...


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations: some processes start them, whoever hears a message may answer it."""

    senders: tuple[ProcessId, ...] | None = None  # who starts; None: every member of a group
    every_us: float = 1000.0  # mean time between two starts, over all processes
    burst: int = 1  # messages started in one instant, in turn to each group of the sender
    reply: float = 0.5  # mean number of answers to a message, over all who deliver it
    depth: int = 4  # an answer to an answer to ... at most so deep
    size: int = 64  # bytes of a message
    start_ms: int = 1

    def __post_init__(self) -> None:
        if not self.every_us > 0:
            raise ValueError(f"every_us={self.every_us} must be greater than 0")
        if self.burst < 1:
            raise ValueError(f"burst={self.burst} must be at least 1")
        if self.reply < 0:
            raise ValueError(f"reply={self.reply} must not be negative: it is a mean number")
        if not 0 <= self.depth <= MAX_DEPTH:
            raise ValueError(f"depth={self.depth} must lie between 0 and {MAX_DEPTH}")
        if self.size < HEAD.size:
            raise ValueError(f"size={self.size} is too small: a message needs {HEAD.size} bytes")
        if self.start_ms < 0:
            raise ValueError(f"start_ms={self.start_ms} must not be negative")

    def plan(
        self, messages: int, groups_of: Mapping[ProcessId, tuple[GroupId, ...]], rng: Random
    ) -> list[Planned]:
        """When who starts what; `messages` of them in all."""
        senders = [p for p in self.senders or sorted(groups_of) if groups_of.get(p)]
        if messages and not senders:
            raise ValueError(f"senders={self.senders}: none of them is in a group")
        planned = []
        tick = max(1, self.start_ms * TICKS_PER_MS)
        left = messages
        while left:
            p = rng.choice(senders)
            groups = groups_of[p]
            first = rng.randrange(len(groups))
            count = min(self.burst, left)
            turn = tuple(groups[(first + i) % len(groups)] for i in range(count))
            planned.append(Planned(tick, p, turn))
            left -= count
            tick += ticks_of(rng.expovariate(1 / self.every_us))
        return planned

    def application(self, sizes: Mapping[GroupId, int], rng: Random) -> Application | None:
        """What runs at one process; `sizes` of the groups. None if it never answers."""
        return Replier(self.reply, self.depth, sizes, rng) if self.reply and self.depth else None


class Replier:
    """Answers a message now and then, in the same group or in another of its groups."""

    def __init__(self, reply: float, depth: int, sizes: Mapping[GroupId, int], rng: Random) -> None:
        self.chance = {g: min(1.0, reply / max(1, size)) for g, size in sizes.items()}
        self.depth = depth
        self.rng = rng

    def answer(
        self, group: GroupId, sender: ProcessId, depth: int, groups: Sequence[GroupId]
    ) -> Sequence[GroupId]:
        """With a certain chance one answer; in any group of this process, so that groups mix."""
        if depth >= self.depth or self.rng.random() >= self.chance[group] or not groups:
            return ()
        return (groups[self.rng.randrange(len(groups))],)


def one_sender(p: ProcessId, *, every_us: float = 1000.0, size: int = 64) -> Workload:
    """One process speaks, nobody answers."""
    return Workload(senders=(p,), every_us=every_us, reply=0.0, size=size)


def all_senders(*, every_us: float = 1000.0, size: int = 64) -> Workload:
    """Everybody speaks, nobody answers."""
    return Workload(every_us=every_us, reply=0.0, size=size)


def bursts(burst: int, *, every_us: float = 10_000.0, reply: float = 0.0) -> Workload:
    """Many messages in one instant, in turn to each group of the sender, then silence."""
    return Workload(burst=burst, every_us=every_us, reply=reply)


def conversations(reply: float = 0.9, depth: int = 8, *, every_us: float = 1000.0) -> Workload:
    """Long chains of answers."""
    return Workload(reply=reply, depth=depth, every_us=every_us)
