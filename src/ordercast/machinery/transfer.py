"""What a sequencer hands over with a group, so that another goes on exactly where it stopped.

    source         freeze the group;  BookState and the unstable entries to the destination
    destination    when all is here: it numbers from now on
    source         forwards what still comes to it

Source 000, section 4.3, moves the view, the numbers and what detects repeats, and leaves the bodies
behind. Here unstable bodies travel along: if the source died later, one that no member has would
be lost. The other way is an option (`bodies_stay`): an entry then says who has its body.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.machinery.numbering import Context, Numbered, Numbering, ViewEntry

Counts = tuple[tuple[ProcessId, int], ...]


class BookState(msgspec.Struct, frozen=True, array_like=True):
    """A sequencer's book of one group, without the entries."""

    era: int
    view: int  # number of the last view that has a number
    members: tuple[ProcessId, ...]
    guests: tuple[ProcessId, ...]
    N: int  # last number given
    last: Counts  # each origin's last numbered frame: what detects repeats
    acks: Counts  # how far each member has consumed
    joining: Counts
    leaving: Counts
    guests_stable: Counts  # a guest's frames up to n are delivered by all
    untold: tuple[tuple[ProcessId, tuple[ViewEntry, ...]], ...]  # views that guests did not confirm
    lingering: tuple[int, tuple[ProcessId, ...]]  # members of before, until this number is stable
    behind: Context  # merge of all contexts numbered so far, where the order is causal
    move: int  # hand-overs of this era before
    changes: int  # of members and guests in this era, as the coordinator counts them
    gone: Counts  # who left, and the number of the view without it
    former: tuple[ProcessId, ...]  # who numbered in this era: they forward what comes late
    entries: int  # unstable ones, which follow
    began: Counts = ()  # who came in since: it has nothing up to this number
    departing: Counts = ()  # who left, has what others lack, and waits to be dismissed


class BookEntry(msgspec.Struct, frozen=True, array_like=True):
    """One unstable entry; its body follows."""

    N: int
    origin: ProcessId
    n: int
    context: Context
    view: ViewEntry | None

    @classmethod
    def of(cls, N: int, entry: Numbered) -> BookEntry:
        return cls(N, entry.origin, entry.n, entry.context, entry.view)

    def numbered(self, payload: bytes) -> Numbered:
        """As it stands in a book."""
        return Numbered(self.origin, self.n, payload, self.view, self.context)


class LeftEntry(msgspec.Struct, frozen=True, array_like=True):
    """One unstable entry whose body stayed behind."""

    N: int
    origin: ProcessId
    n: int
    context: Context
    holder: ProcessId  # numbered the group before, and has the body

    def numbered(self, payload: bytes) -> Numbered:
        """As it stands in a book, until the body is there."""
        return Numbered(self.origin, self.n, payload, None, self.context)


AnyEntry = BookEntry | LeftEntry


def counts(table: Mapping[ProcessId, int]) -> Counts:
    return tuple(sorted(table.items()))


def reopened(state: BookState, entries: Mapping[int, Numbered], limit: int) -> Numbering:
    """The book, as it was."""
    book = Numbering((), state.N, dict(state.last), limit)
    for p, mark in state.acks:
        book.acks.admit(p, mark)
    book.joining, book.leaving = dict(state.joining), dict(state.leaving)
    book.began = dict(state.began)
    book.history = dict(sorted(entries.items()))
    book.number_of = {(e.origin, e.n): N for N, e in book.history.items()}
    return book
