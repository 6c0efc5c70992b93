"""What a change of configuration asks of a machine, and what the machine answers.

A change stops some groups, asks everybody concerned what they hold of them, decides from the
answers alone where the old era ends, lets everybody fetch what they lack, and begins the next era.
The packets are in `ordercast.views`; here is what a protocol and a change say to each other.

    report(g)       what this process has of the era of g that ends        Held
    hangs_on(...)   from all answers: groups that must end in the same change
    decide(...)     from all answers: where the era ends                   End
    check_ends(...) can these eras end there, as far as this process knows?
    prepare(...)    fetch what is missing up to the end, open what begins
    is_ready(g)     is everything here?
    change(...)     deliver the rest; begin the next era

Frames of protocols that have numbers are known by number: a report is a few integers. Frames of the
others are known by their sender and its count. Bodies never travel through the coordinator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId

Place = tuple[int, int]
"""(era, number): a place in the order of one group; places of one group compare as tuples"""

Places = tuple[tuple[GroupId, int, int], ...]
"""(group, era, number), as places travel"""

LastFrames = tuple[tuple[ProcessId, int], ...]
"""(origin, the count of its last frame)"""


class Head(msgspec.Struct, frozen=True, array_like=True):
    """A numbered frame without its body and its context."""

    N: int
    origin: ProcessId
    n: int
    needs: Places = ()  # earlier frames of its author that were not safe when it was numbered


class NumbersHeld(msgspec.Struct, frozen=True, array_like=True, tag="numbers"):
    """What one process has of a group whose frames are numbered."""

    era: int
    got: int  # all numbers up to this one are here
    delivered: int  # ... and were delivered up to this one
    heads: tuple[Head, ...] = ()  # those that are not stable
    last: LastFrames = ()
    numbers: bool = False  # this process is the sequencer


class FrameId(msgspec.Struct, frozen=True, array_like=True):
    """A frame without its body, in a group whose frames are not numbered."""

    origin: ProcessId
    n: int
    stamp: tuple[int, ...] = ()


class FramesHeld(msgspec.Struct, frozen=True, array_like=True, tag="frames"):
    """What one process has of a group whose frames are not numbered."""

    era: int
    frames: tuple[FrameId, ...]  # those that some member may lack
    delivers: bool  # this process is a member
    mark: int = 0  # of numbers that a domain counts in
    progress: int = 0  # the last number delivered here, where one process gives numbers
    last: LastFrames = ()  # ... and the last frames that were delivered


Held = NumbersHeld | FramesHeld


class NumbersEnd(msgspec.Struct, frozen=True, array_like=True, tag="numbers"):
    """The last number of the era that ends; all members deliver up to it."""

    end: int
    holder: ProcessId  # has all of them
    last: LastFrames = ()  # of each origin, up to the end


class FrameAt(msgspec.Struct, frozen=True, array_like=True):
    """A frame that all members deliver, and who has it."""

    origin: ProcessId
    n: int
    stamp: tuple[int, ...]
    holder: ProcessId


class FramesEnd(msgspec.Struct, frozen=True, array_like=True, tag="frames"):
    """All frames that the members deliver before the next view."""

    frames: tuple[FrameAt, ...] = ()
    mark: int = 0  # where the numbers of the domain go on
    last: LastFrames = ()  # the last frame of each origin, where one process gives numbers


End = NumbersEnd | FramesEnd


class Ending(msgspec.Struct, frozen=True):
    """At the coordinator: one group that changes, and what everybody who lives said of it."""

    era: int  # that ends
    held: Mapping[ProcessId, Held]
    dead: frozenset[ProcessId]  # were in its view, and are gone
    nodes: frozenset[ProcessId] = frozenset()  # are there; empty: not known


class NextEra(msgspec.Struct, frozen=True):
    """To a machine: an era of a group ends, and the next one begins."""

    view: View
    end: End
    before: View | None = None  # None: the group is new


class Changing(Protocol):
    """A machine as a change sees it."""

    def stop(self, groups: Iterable[GroupId]) -> None:
        """A change of these groups is under way: nothing new begins in them."""

    def stopped(self) -> Iterable[GroupId]:
        """Groups that are stopped here."""

    def report(self, g: GroupId) -> Held | None:
        """What this process has of the era of g that ends; None: it has no part in it."""

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        """Can these eras end there, as far as this process knows? A `PeerError` if not."""

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        """A change is planned: fetch what is missing up to the ends."""

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        """What was prepared comes to nothing, but for these groups, which begin now."""

    def is_ready(self, g: GroupId, end: End) -> bool:
        """Is everything of g here, up to the end of its era?"""

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras of groups end, and the next ones begin."""
