"""Why is it held back? The machine names what a frame waits for; a driver adds the times."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Literal

import msgspec

from ordercast.core.ids import GroupId, ProcessId

NOBODY: ProcessId = -1
MAX_NAMED = 16  # things that one frame is said to wait for; it may wait for more

WaitingFrame = tuple[GroupId, ProcessId, int, bytes]
"""(group, sender, n, payload), as in `Waiting`"""

Missing = Literal[
    "frame", "number", "order", "first", "body", "block", "proposal", "agreement", "copies", "view",
    "packet", "relay", "confirmation", "origin",
]  # fmt: skip

IN_WORDS: dict[Missing, str] = {
    "frame": "frame {number} of {process} in {group}",
    "number": "the sequencer's number {number} in {group}",
    "order": "{process} to number frame {number} in {group}",
    "first": "{process} to say the first number of its view of {group}",
    "block": "{process} to speak in {group} up to block {number}",
    "body": "the body of frame {number} of {process} in {group}",
    "proposal": "{process} to propose a number in {group}",
    "agreement": "{process} to fix the place of its frame {number} in {group}",
    "copies": "copies from {number} more members of {group}",
    "view": "view {number} of {group}",
    "packet": "packet {number} of the link from {process}",
    "relay": "message {number} that {process} passes on in {group}",
    "origin": "{process} itself to bring frame {number} in {group}",
    "confirmation": "all members of {group} to confirm frame {number} of {process}",
}


class Awaited(msgspec.Struct, frozen=True, order=True):
    """One thing that is missing here."""

    what: Missing
    group: GroupId
    process: ProcessId  # whose frame it is, or who must speak; NOBODY where no one in particular
    number: int  # of the frame, the block, the view, the packet; how many copies


class Waiting(msgspec.Struct, frozen=True, order=True):
    """A frame that is held back, and what it is known to wait for: of many things the first."""

    group: GroupId
    sender: ProcessId
    n: int  # the sender's count of frames to this group; 0 where nobody has looked at it yet
    awaits: tuple[Awaited, ...]
    payload: bytes  # empty where the body is not here

    @property
    def frame(self) -> WaitingFrame:
        """Without what it waits for."""
        return self.group, self.sender, self.n, self.payload


class Holdings(msgspec.Struct, frozen=True):
    """How many frames of one group a machine has in memory."""

    held: int  # not delivered: they came too early
    kept: int  # delivered, and some member may lack them
    history: int = 0  # at a sequencer: numbered, and not consumed by all


def first_named(things: Iterable[Awaited]) -> tuple[Awaited, ...]:
    """No more than are named for one frame."""
    return tuple(islice(things, MAX_NAMED))


def first_missing(mark: int, here: Collection[int]) -> list[int]:
    """The first numbers above the mark that are missing before one that is here."""
    missing = (n for n in range(mark + 1, max(here, default=0)) if n not in here)
    return list(islice(missing, MAX_NAMED))
