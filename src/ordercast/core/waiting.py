"""Why is it held back? The machine names what a frame waits for; a driver adds the times."""

from __future__ import annotations

from typing import Literal

import msgspec

from ordercast.core.ids import GroupId, ProcessId

NOBODY: ProcessId = -1

Missing = Literal[
    "frame", "number", "order", "body", "block", "proposal", "agreement", "copies", "view", "packet"
]  # fmt: skip

IN_WORDS: dict[Missing, str] = {
    "frame": "frame {number} of {process} in {group}",
    "number": "the sequencer's number {number} in {group}",
    "order": "{process} to number frame {number} in {group}",
    "block": "{process} to speak in {group} up to block {number}",
    "body": "the body of frame {number} of {process} in {group}",
    "proposal": "{process} to propose a number in {group}",
    "agreement": "{process} to fix the place of its frame {number} in {group}",
    "copies": "copies from {number} more members of {group}",
    "view": "view {number} of {group}",
    "packet": "packet {number} of the link from {process}",
}


class Awaited(msgspec.Struct, frozen=True, order=True):
    """One thing that is missing here."""

    what: Missing
    group: GroupId
    process: ProcessId  # whose frame it is, or who must speak; NOBODY where no one in particular
    number: int  # of the frame, the block, the view, the packet; how many copies


class Waiting(msgspec.Struct, frozen=True, order=True):
    """A frame that is held back, and everything it is known to wait for."""

    group: GroupId
    sender: ProcessId
    n: int  # the sender's count of frames to this group; 0 where nobody has looked at it yet
    awaits: tuple[Awaited, ...]
    payload: bytes  # empty where the body is not here
