"""Why is it held back? Names for what a machine says, and the note of a `hold` row.

A machine speaks of frames by number. A trace speaks of messages: sender/group/number. Where the
payload of a frame is here, its messages are named; a frame that has not come stays "frame n".

A `hold` row is written when a frame begins to wait, whenever what it waits for changes, and when
it waits no longer. Its note is JSON: what it waits for now, what came since the row before, and
the same in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import IN_WORDS, MAX_NAMED, NOBODY, Awaited, Missing, Waiting

FrameId = tuple[GroupId, ProcessId, int]
"""(group, sender, n)"""

MessageRun = tuple[int, int]
"""The messages in a frame: (number of the first, how many); (0, 0) where that is not known."""

UNKNOWN: MessageRun = (0, 0)

Lookup = Callable[[FrameId], MessageRun]


class Names(Protocol):
    """What a driver calls things in its trace."""

    def process(self, p: ProcessId) -> str:
        """With its incarnation."""

    def group(self, g: GroupId) -> str:
        """As the application calls it."""

    def messages(self, payload: bytes) -> MessageRun:
        """The messages that a payload carries."""


class WaitsFor(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a message waits for, or did."""

    what: Missing
    group: str
    process: str  # whose frame it is, or who must speak; "" where no one in particular
    number: int  # of the frame, the block, the view, the packet; how many copies
    message: str = ""  # the first message in it, where that is known ...
    count: int = 0  # ... and how many there are

    def __str__(self) -> str:
        """In words."""
        messages = in_words(self.message, self.count)
        if self.what == "frame" and messages:
            return messages
        text = IN_WORDS[self.what].format(
            number=self.number, process=self.process, group=self.group
        )
        return f"{text} ({messages})" if messages else text


class HoldNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """The note of a `hold` row."""

    frame: int  # the sender's count of frames; 0 where nobody has looked at it yet
    awaits: tuple[WaitsFor, ...]  # none: it waits no longer
    gone: tuple[WaitsFor, ...] = ()  # what it waited for until now
    by: str = ""  # what made the change: the packet, the timer, the view
    delivered: bool = False  # it waits no longer because it was delivered
    text: str = ""


def encode_note(note: HoldNote) -> str:
    """As it stands in the trace."""
    return msgspec.json.encode(note).decode()


def decode_note(text: str | None) -> HoldNote | None:
    """None for a note that is not ours: any system may write `hold` rows."""
    try:
        return msgspec.json.decode(text or "", type=HoldNote)
    except (msgspec.DecodeError, UnicodeError):
        return None


def message_id(sender: str, group: str, number: int) -> str:
    """As in every trace of ours."""
    return f"{sender}/{group}/{number}"


def in_words(first: str, count: int) -> str:
    """Messages of one frame."""
    if count <= 1:
        return f"message {first}" if count else ""
    number = int(first.rpartition("/")[2])
    return f"messages {first} to {number + count - 1}"


def joined(things: Iterable[WaitsFor]) -> str:
    """Several of them in words; of many the first few."""
    things = tuple(things)
    texts = list(dict.fromkeys(map(str, things)))
    if len(texts) > 3:
        least = "at least " if len(things) >= MAX_NAMED else ""  # the machine named no more
        texts[2:] = [f"{least}{len(texts) - 2} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def lookup_among(held: Iterable[Waiting], names: Names) -> Lookup:
    """The messages of those frames that are here and wait."""
    here = {(w.group, w.sender, w.n): w.payload for w in held if w.n and w.payload}
    return lambda frame: names.messages(here[frame]) if frame in here else UNKNOWN


def named(awaited: Awaited, names: Names, lookup: Lookup) -> WaitsFor:
    """With names instead of numbers."""
    g, p = awaited.group, awaited.process
    group, process = names.group(g), "" if p == NOBODY else names.process(p)
    first, count = lookup((g, p, awaited.number)) if awaited.what == "frame" else UNKNOWN
    message = message_id(process, group, first) if count else ""
    return WaitsFor(awaited.what, group, process, awaited.number, message, count)
