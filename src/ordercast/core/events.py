"""What can happen to a machine. Every event enters through the one door, `step`."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.whereabouts import Subgroups


@lru_cache(maxsize=64)
def _everybody(senders: tuple[ProcessId, ...], leader: ProcessId) -> frozenset[ProcessId]:
    """One set for all who install the same view: simulated processes share it."""
    return frozenset((*senders, leader))


class View(msgspec.Struct, frozen=True):
    """The members of a group, agreed, in order. A static member list is view 1.

    As an event it installs the view; in a machine's deliveries it tells the application.
    """

    group: GroupId
    number: int
    members: tuple[ProcessId, ...]
    leader: ProcessId  # numbers the messages, where the protocol has a sequencer
    era: int = 1  # numbers named in headers belong to an era; a new one begins with each flush
    start: int = 0  # its place among the numbers of the protocol; 0 where it has none
    guests: tuple[ProcessId, ...] = ()  # may send to the group; nothing is delivered to them
    last: tuple[tuple[ProcessId, int], ...] = ()  # frames before, for a leader that is no member
    peers: frozenset[ProcessId] = frozenset()  # members, guests, leader; made by the view itself
    subgroups: Subgroups = ()  # as the leader knows them, where the protocol has any

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "peers", _everybody(self.senders, self.leader))

    @property
    def senders(self) -> tuple[ProcessId, ...]:
        """Whose frames the members may get: the members, then the guests."""
        return self.members + self.guests if self.guests else self.members


class Multicast(msgspec.Struct, frozen=True):
    """The application sends a frame to a group."""

    group: GroupId
    payload: bytes


class Receive(msgspec.Struct, frozen=True):
    """A packet has come in. The same object may be handed to many machines."""

    src: ProcessId
    group: GroupId
    era: int
    header: msgspec.Struct
    payload: bytes = b""


class Timer(msgspec.Struct, frozen=True):
    """A delay that the machine asked for is over."""

    group: GroupId
    name: str


class Consumed(msgspec.Struct, frozen=True):
    """The application took the next `frames` deliveries of this group: the senders get credit.

    A stay ends with the view that is without this process. Once the next stay has begun, the driver
    reports nothing of the one before: what its application did not take is never acknowledged.
    """

    group: GroupId
    frames: int


class Crashed(msgspec.Struct, frozen=True):
    """A driver knows that this process of the group has stopped. What it sent may still come.

    It is for drivers that give views of their own. In a cluster the next view of the group says it.
    """

    group: GroupId
    process: ProcessId


class Kept(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A frame that is not known to be stable, as it travels through a flush."""

    origin: ProcessId
    n: int  # the origin's count of frames to this group
    stamp: tuple[int, ...]  # what the protocol's order needs: a vector, a sequencer's number
    payload: bytes


class Flush(msgspec.Struct, frozen=True):
    """The old view ends here: `union` is everything unstable that any survivor holds."""

    group: GroupId
    union: tuple[Kept, ...]


class Cut(msgspec.Struct, frozen=True):
    """One view change over all groups of a machine that hang together: all end, then all begin.

    A group that is joined with it has a view and no flush.
    """

    flushes: tuple[Flush, ...]
    views: tuple[View, ...]


Event = View | Multicast | Receive | Timer | Consumed | Crashed | Flush | Cut
