"""Which packet counts in which state of a group, who may send it, and which numbers it may name.

    packet    counts where                               sent by
    Request   the book is OPEN; of a later era: it waits   any node
    Spread    the same; a seat keeps the body             a member
    Accept    the seat is IN                              the sequencer, or who has what is missing
    Number    the seat is IN                              the sequencer
    Marks     the seat is IN                              the sequencer
    Answer    a sender                                    the sequencer
    Ack       the book is OPEN or STOPPED                 a member
    Fetch     the book, or the seat that is IN            a member

A packet of an era that is over is void. One of a later era is kept until that begins.
"""

from __future__ import annotations

import enum

import msgspec
from msgspec.structs import astuple

from ordercast.core.changing import Places
from ordercast.core.ids import ProcessId
from ordercast.core.numbers import MAX_COUNT
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.headers import (
    Accept,
    Ack,
    Answer,
    Fetch,
    Marks,
    Number,
    Request,
    Spread,
)

MAX_PROCESS: ProcessId = 2**32 - 1
MAX_GROUP = 2**32 - 3  # above it are channels of the cluster itself


class Says(enum.Enum):
    """Who may send a packet about a group."""

    NODE = "a node of the cluster"
    MEMBER = "a member"
    SEQUENCER = "the sequencer"
    HOLDER = "the sequencer, or who was named to have what is missing"


class Rule(msgspec.Struct, frozen=True):
    """What becomes of one kind of packet."""

    says: Says
    lasts: str  # for how long a lie of a sender that may say it has an effect, for people
    seen: str = "no"  # where people see such a lie
    waits: bool = False  # it takes its own care of eras that have not begun


TABLE: dict[type[msgspec.Struct], Rule] = {
    Request: Rule(Says.NODE, "it is a message of the sender", "in the stream", waits=True),
    Spread: Rule(Says.MEMBER, "it is a message of the sender", "in the stream", waits=True),
    Accept: Rule(Says.HOLDER, "for good: it is the order", "by `ordercast verify`"),
    Number: Rule(Says.SEQUENCER, "for good: it is the order", "by `ordercast verify`"),
    Marks: Rule(Says.SEQUENCER, "for good: what is said to be stable is forgotten"),
    Answer: Rule(Says.SEQUENCER, "for good: what is said to be held is not sent again"),
    Ack: Rule(Says.MEMBER, "for good, for the sender's own copies"),
    Fetch: Rule(Says.MEMBER, "one answer"),
}


def markdown() -> str:
    """For the page about security."""
    lines = ["| packet | who may say it | a lie lasts | and is seen |", "|---|---|---|---|"]
    for header, rule in TABLE.items():
        lines.append(f"| `{header.__name__}` | {rule.says.value} | {rule.lasts} | {rule.seen} |")
    return "\n".join(lines)


def check(header: msgspec.Struct, max_held: int) -> None:
    """Numbers that no honest process names. It sees every packet: what is right passes at once."""
    kind = type(header)
    if kind is Accept or kind is Number:
        N, origin, n, commit, stable, context, needs = astuple(header)
        if not (0 < N <= MAX_COUNT and 0 < n <= MAX_COUNT and 0 <= origin <= MAX_PROCESS):
            raise PeerError(f"number {N} for frame {n} of process {origin}")
        if commit < 0 or stable < 0:
            raise PeerError(f"marks {commit} and {stable}")
        if context or needs:
            _places(context, max_held)
            _places(needs, max_held)
    elif isinstance(header, Request | Spread):
        _bounded("frame", header.n, 1)
        _bounded("first frame", header.first, 1, header.n)
        if header.context:
            _places(header.context, max_held)
        for h, n in header.after:
            _bounded("group", h, 1, MAX_GROUP)
            _bounded("frame", n, 1)
    elif isinstance(header, Answer):
        _bounded("number", header.N, 0)
        _bounded("frame", min(header.n, header.stable), 0)
    elif isinstance(header, Marks):
        _bounded("mark", min(header.N, header.commit, header.stable), 0)


def _places(places: Places, max_held: int) -> None:
    if len(places) > max_held:
        raise PeerError(f"a context of {len(places)} groups")
    for h, era, N in places:
        _bounded("group", h, 1, MAX_GROUP)
        _bounded("era", era, 0)
        _bounded("number", N, 0)


def _bounded(what: str, value: int, low: int, high: int = MAX_COUNT) -> None:
    if not low <= value <= high:
        raise PeerError(f"{what} {value} is not between {low} and {high}")
