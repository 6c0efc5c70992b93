"""The packets of the sequencing service. Those of a change are in `ordercast.views`."""

from __future__ import annotations

import msgspec

from ordercast.core.changing import Places
from ordercast.core.ids import GroupId, ProcessId

OwnFrames = tuple[tuple[GroupId, int], ...]
"""frames of one sender in other groups, by its own counts"""


class Request(msgspec.Struct, frozen=True, array_like=True):
    """DO-MULTICAST, to the sequencer: number my frame n. The body follows."""

    n: int
    first: int  # my first frame to this group that is not known to be safe
    context: Places = ()  # what I have seen: it comes before this frame
    after: OwnFrames = ()  # my own frames before it that are not safe yet; you number them, too


class Spread(msgspec.Struct, frozen=True, array_like=True):
    """The same to the sequencer and to the members, where bodies travel apart from numbers."""

    to: ProcessId
    n: int
    first: int
    context: Places = ()
    after: OwnFrames = ()


Asked = tuple[GroupId, int, Request | Spread, bytes]
"""(group, era, request, body): a frame that asks for a number"""


class Accept(msgspec.Struct, frozen=True, array_like=True):
    """ACCEPT, to the members: number N goes to frame n of `origin`. The body follows."""

    N: int
    origin: ProcessId
    n: int
    commit: int
    stable: int
    context: Places = ()  # in other groups, this comes before it
    needs: Places = ()  # earlier frames of its author that a crash could still take away


class Number(msgspec.Struct, frozen=True, array_like=True):
    """ACCEPT without the body, which comes from its sender."""

    N: int
    origin: ProcessId
    n: int
    commit: int
    stable: int
    context: Places = ()
    needs: Places = ()


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """RECEIVED, to the sequencer: all numbers up to `held` are here, up to `done` consumed."""

    held: int
    done: int


class Marks(msgspec.Struct, frozen=True, array_like=True):
    """COMMIT and STATUS, to the members: numbers up to N were given, up to `commit` may be
    delivered, up to `stable` are consumed by all."""

    N: int
    commit: int
    stable: int


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """ACCEPTED, to a guest: your frames up to n have their places, the last of them N, and no
    crash takes them away; those up to `stable` are consumed by all members."""

    n: int
    N: int
    stable: int


class Fetch(msgspec.Struct, frozen=True, array_like=True):
    """FETCH-MSGS: send me numbers first..last again."""

    first: int
    last: int
