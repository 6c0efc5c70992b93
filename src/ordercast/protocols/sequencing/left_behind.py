"""One group of the sequencing service: bodies that stay with a former sequencer (`bodies_stay`).

Source 000, section 4.3, moves a group without the bodies of its unstable messages: members rarely
miss one.

    HAND OVER at the sequencer      numbers, origins and contexts to the next one;  keep the bodies
    FETCH from p, of such numbers   FETCH-FOR(p) to who has the bodies;  FORMER to p
    FETCH-FOR(p)                    ACCEPT with the body, to p itself
    those numbers are stable        RELEASE to who has the bodies: it forgets them; or when the
                                    sequencer has got them itself, and another member, too

Who has a body is named with the number, however often the group moves on, so that nothing is
forwarded twice. A sequencer that is a member itself and lacks one asks for it like any other.

Costs   A hand-over takes no time for bodies. A body that a member misses costs two more packets and
        one more hop; who left bodies behind may not leave the cluster before it is told RELEASE,
        and as a sender waits for it before it speaks of them in another group.
Risks   Who left bodies behind dies: one that no member has is lost, though its number was given.
        All numbers after it in that group are void with it, at the flush. Who sent them and lives
        sends them again; what the dead had sent is gone. When bodies travel along, no crash of a
        single process does that but the sequencer's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequencer_headers import Fetch
from ordercast.machinery.transfer import AnyEntry, BookEntry, LeftEntry
from ordercast.protocols.sequencing.departing import DepartingPart
from ordercast.protocols.sequencing.headers import FetchFor, Former, Release

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.service import SequencingService


class LeftBehindPart(DepartingPart):
    """One group: what is done about bodies that do not travel."""

    def __init__(self, me: ProcessId, options: Options, service: SequencingService) -> None:
        super().__init__(me, options, service)
        # the sequencer
        self.elsewhere: dict[int, ProcessId] = {}  # its numbers without a body here, and who has it
        # who numbered before
        self.left: dict[int, Numbered] = {}  # entries whose bodies stayed here
        self.left_at = 0  # hand-overs of this era before the one that left them

    # -- the group is handed over -----------------------------------------------------------------

    def travelling(self, g: GroupId) -> list[tuple[AnyEntry, bytes]]:
        """The entries as they go to the next sequencer, with the bodies that do."""
        assert self.book is not None
        if self.elsewhere:
            self._settle_bodies(g)
        return [self._leave_or_take(N, entry) for N, entry in self.book.history.items()]

    def _leave_or_take(self, N: int, entry: Numbered) -> tuple[AnyEntry, bytes]:
        holder = self.elsewhere.get(N)
        if holder is None and self.options.bodies_stay and entry.view is None:
            holder = self.me
        if holder is None:
            return BookEntry.of(N, entry), entry.payload
        return LeftEntry(N, entry.origin, entry.n, entry.context, holder), b""

    def keep_bodies(self, history: dict[int, Numbered]) -> dict[int, Numbered]:
        """The entries that have their bodies here. Those that do not travel stay."""
        here = {N: entry for N, entry in history.items() if N not in self.elsewhere}
        if self.options.bodies_stay:
            self.left = {N: entry for N, entry in here.items() if entry.view is None}
            self.left_at = self.move
        self.elsewhere = {}
        return here

    def take_left(self, g: GroupId, entries: Iterable[tuple[AnyEntry, bytes]]) -> None:
        """At the next sequencer. Some bodies may be here: it numbered before, or is a member."""
        assert self.book is not None
        left = [entry for entry, _ in entries if isinstance(entry, LeftEntry)]
        self.elsewhere = dict(sorted((entry.N, entry.holder) for entry in left))
        self._settle_bodies(g)
        self.left = {}
        if self.elsewhere:
            self.learn(g, self.book.N, self.book.stable)

    def _settle_bodies(self, g: GroupId) -> None:
        """Numbers whose bodies are here by now and with others, or that are stable. Who has none of
        the others is told so."""
        book = self.book
        assert book is not None
        holders = set(self.elsewhere.values())
        here = {**self.left, **self.kept, **self.arrived}
        # What this process alone has got since may have been spoken of: two must keep it.
        watched = self.is_watched(g) and self._somebody_else()
        safe = self.held_up_to if watched else book.N
        for N, p in tuple(self.elsewhere.items()):
            if book.stable < N and (N not in here or (p != self.me and safe < N)):
                continue
            del self.elsewhere[N]
            if book.stable < N:
                book.history[N] = here[N]
        for p in sorted(holders.difference(self.elsewhere.values(), (self.me,))):
            self.send(p, g, Release(self.move))

    # -- the sequencer ----------------------------------------------------------------------------

    @on(Fetch)
    def on_FETCH(self, p: ProcessId, g: GroupId, fetch: Fetch, m: bytes) -> None:
        super().on_FETCH(p, g, fetch, m)
        if self.elsewhere:
            self._forward_fetch(p, g, fetch)

    def _resend(self, p: ProcessId, g: GroupId, N: int) -> None:
        if N not in self.elsewhere:  # else it will ask with FETCH
            super()._resend(p, g, N)

    def _forward_fetch(self, p: ProcessId, g: GroupId, fetch: Fetch) -> None:
        """To each who has some of the bodies. p may not know that those have numbered."""
        last = min(fetch.last, fetch.first + self.options.fetch_batch - 1)
        asked: dict[ProcessId, list[int]] = {}
        for N, holder in self.elsewhere.items():
            if fetch.first <= N <= last and not (p == self.me and N in self.arrived):
                asked.setdefault(holder, []).append(N)
        for holder, numbers in asked.items():
            self.send(holder, g, FetchFor(p, numbers[0], numbers[-1]))
        if asked and p != self.me:
            self.send(p, g, Former(tuple(asked)))

    def _fetch_missing(self, g: GroupId) -> None:
        if self.elsewhere:
            self._settle_bodies(g)
        if not self.elsewhere:
            super()._fetch_missing(g)
        elif self.top > self.R:
            self._forward_fetch(self.me, g, Fetch(self.R + 1, self.top))
            self.start_timer(g, "gap", self.options.gap_ms)

    def _prune(self, g: GroupId) -> None:
        super()._prune(g)
        assert self.book is not None
        if self.elsewhere and (
            next(iter(self.elsewhere)) <= self.book.stable or not self._somebody_else()
        ):
            self._settle_bodies(g)

    def held_further(self, g: GroupId) -> None:
        super().held_further(g)
        if self.elsewhere:
            self._settle_bodies(g)

    def known_held(self) -> int:
        if not self.elsewhere or self._somebody_else():
            return super().known_held()
        return next(iter(self.elsewhere)) - 1

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        gaps = super().gaps(g)
        for N in gaps.keys() & self.elsewhere.keys():
            gaps[N] = Awaited("number", g, self.elsewhere[N], N)
        return gaps

    # -- who numbered before ----------------------------------------------------------------------

    @on(FetchFor)
    def on_FETCH_FOR(self, src: ProcessId, g: GroupId, fetch: FetchFor, m: bytes) -> None:
        asked = [N for N in self.left if fetch.first <= N <= fetch.last]
        for N in asked[: self.options.fetch_batch]:
            entry = self.left[N]
            if fetch.to == self.me:  # it was let in once more since, by the next one
                self.place(g, N, 0, entry)
                continue
            self.note("retransmit", g, entry.origin, entry.n, f"number {N} to {fetch.to}")
            self.send(fetch.to, g, self.accept(N, entry, 0), entry.payload)

    @on(Release)
    def on_RELEASE(self, src: ProcessId, g: GroupId, release: Release, m: bytes) -> None:
        # The group may have come back here and gone again: a late word is not about those bodies.
        if release.move > self.left_at:
            self.left = {}
            self.service.send_released()

    def still_expects(self, p: ProcessId) -> bool:
        """Who needs the bodies may be a sequencer that this process has not heard of."""
        return bool(self.left) or super().still_expects(p)

    def exposed(self, g: GroupId, N: int) -> bool:
        """Also if the body of number N, or of one before it, is perhaps nowhere but here."""
        alone = (k for k in self.left if self.held_up_to < k <= N)
        return any(alone) or super().exposed(g, N)

    # -- a member ---------------------------------------------------------------------------------

    @on(Former)
    def on_FORMER(self, src: ProcessId, g: GroupId, former: Former, m: bytes) -> None:
        self.former.update(former.processes)
        self._take_unnamed()

    # -- the end of an era ------------------------------------------------------------------------

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """No number without its body."""
        kept = super().unstable(g)
        if not self.elsewhere:
            return kept
        lacking = self.elsewhere.keys() - self.kept.keys() - self.arrived.keys()
        return tuple(entry for entry in kept if entry.stamp[0] not in lacking)

    def _begin_era(self, view: View) -> None:
        self.elsewhere, self.left, self.left_at = {}, {}, 0
        super()._begin_era(view)
