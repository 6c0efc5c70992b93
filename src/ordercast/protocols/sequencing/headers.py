"""The packets of the sequencing service, beside those of every sequencer."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.numbering import Context

Ids = tuple[tuple[GroupId, int], ...]  # frames of the sender in other groups, by its own counts


class DoMulticast(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: number my frame n. The body follows."""

    n: int
    context: Context = ()  # numbers that come before it: the sender has seen them
    after: Ids = ()  # the sender's own frames before it that have no number yet; you number them


class DoNumber(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer and the members: `to` is to number my frame n. The body follows."""

    to: ProcessId
    n: int
    context: Context = ()
    after: Ids = ()


class Forwarded(msgspec.Struct, frozen=True, array_like=True):
    """From a former sequencer: what `origin` sent to me."""

    origin: ProcessId
    n: int
    context: Context
    after: Ids


class AcceptIn(msgspec.Struct, frozen=True, array_like=True):
    """ACCEPT: number N, in this context, goes to frame n of `origin`. The body follows."""

    N: int
    origin: ProcessId
    n: int
    stable: int
    context: Context


class NumberIn(msgspec.Struct, frozen=True, array_like=True):
    """ACCEPT without the body, which comes from its sender."""

    N: int
    origin: ProcessId
    n: int
    stable: int
    context: Context


class AcceptedIn(msgspec.Struct, frozen=True, array_like=True):
    """To a guest: your frames up to n are numbered, the last of them N; those up to `held` are held
    by a member, those up to `stable` delivered by all."""

    n: int
    stable: int
    N: int
    held: int


class Moved(msgspec.Struct, frozen=True, array_like=True):
    """PORT-MOVED: from now on `to` numbers this group."""

    to: ProcessId
    move: int  # so many hand-overs of this era came before


class AskHeld(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer to a member: say so when you have delivered number N."""

    N: int


class Held(msgspec.Struct, frozen=True, array_like=True):
    """To the sequencer: all numbers up to N are here."""

    N: int


class FetchFor(msgspec.Struct, frozen=True, array_like=True):
    """FETCH, forwarded to one that numbered before: send those of the entries first..last to
    process `to` whose bodies stayed with you."""

    to: ProcessId
    first: int
    last: int


class Former(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer to one that sent FETCH: these numbered before me, and will answer."""

    processes: tuple[ProcessId, ...]


class Safe(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer to one that numbered before: another member has what I had delivered when
    your book came, or a third process has the book."""

    move: int  # hand-overs of this era so far; it is not about copies that are kept from later on


class Dismissed(msgspec.Struct, frozen=True, array_like=True):
    """From the sequencer to one that has left with number N: its word is here, and another has what
    it had, or nobody needs that any more."""

    N: int


class Release(msgspec.Struct, frozen=True, array_like=True):
    """HISTORY-RELEASE, from the sequencer to one that numbered before: the bodies that stayed with
    you are not needed any more."""

    move: int  # hand-overs of this era so far; it is not about bodies that stay from later on
