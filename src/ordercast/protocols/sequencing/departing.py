"""One group of the sequencing service: who has left it, and what it would take along.

A member that has delivered its last view may have what only it and the sequencer had, and have
spoken of that in other groups. And its last word may be lost: others would wait for it.

    the last view is delivered         DELIVERED(N), again and again;  keep what was delivered
    DELIVERED(N) from one that left    when another member has all up to N: DISMISSED(N)
    DISMISSED(N)                       the group may be closed here, or asked for again

Who waits for that is handed over with the book. A guest has nothing, but has said something: it
speaks of it elsewhere when it is dismissed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.events import Change, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.machinery.transfer import Counts, counts
from ordercast.protocols.sequencing.headers import Dismissed
from ordercast.protocols.sequencing.sequencer import SequencerPart

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.service import SequencingService


class DepartingPart(SequencerPart):
    """One group: how it is left."""

    def __init__(self, me: ProcessId, options: Options, service: SequencingService) -> None:
        super().__init__(me, options, service)
        # who left
        self.undismissed = 0  # with this number, and is not known to be dispensable
        # the sequencer
        self.departing: dict[ProcessId, int] = {}  # who left with what others lack, and how far

    # -- who left ---------------------------------------------------------------------------------

    def put_in_force(self, view: View) -> None:
        before = self.views.get(view.group)
        super().put_in_force(view)
        if self.me in view.senders:
            self.undismissed = 0
        elif view.start and before is not None and self.me in before.senders:
            self.undismissed = view.start
            self.taken = max(self.taken, view.start)

    @on(Dismissed)
    def on_DISMISSED(self, src: ProcessId, g: GroupId, dismissed: Dismissed, m: bytes) -> None:
        self._check_sequencer(src)
        if self.undismissed <= dismissed.N:
            self._be_dismissed()

    def _be_dismissed(self) -> None:
        self.undismissed = 0
        self.service.send_released()

    def owes_a_word(self) -> bool:
        return bool(self.undismissed) or super().owes_a_word()

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if name == "repeat" and self.undismissed:
            self.acknowledge(g)

    # -- the sequencer ----------------------------------------------------------------------------

    @on(Delivered)
    def on_DELIVERED(self, p: ProcessId, g: GroupId, ack: Delivered, m: bytes) -> None:
        super().on_DELIVERED(p, g, ack, m)
        if self.book is not None and self._has_left(p):
            self.departing[p] = max(ack.R, self.departing.get(p, 0))
            self.dismiss_departing(g)

    def _has_left(self, p: ProcessId) -> bool:
        assert self.book is not None and self.latest is not None
        return p not in (*self.book.acks.marks, *self.latest.senders, *self.guests.untold)

    def still_expects(self, p: ProcessId) -> bool:
        """A word of one that left in this era, and has not heard that it may go."""
        return (self.book is not None and p in self.book.last) or super().still_expects(p)

    def dismiss_departing(self, g: GroupId) -> None:
        """All of whom another member has what they had; this process may be one of them."""
        if not self.departing and not self.undismissed:
            return
        for p, R in tuple(self.departing.items()):
            if not self.exposed(g, R):
                del self.departing[p]
                self.send(p, g, Dismissed(R))
        if self.undismissed and not self.exposed(g, self.undismissed):
            self._be_dismissed()
        self.ask_held(g, max((self.undismissed, *self.departing.values())))

    def _acknowledged(self, g: GroupId, p: ProcessId, R: int) -> None:
        super()._acknowledged(g, p, R)
        if p == self.me:
            self.dismiss_departing(g)

    def _prune(self, g: GroupId) -> None:
        super()._prune(g)
        self.dismiss_departing(g)

    def held_further(self, g: GroupId) -> None:
        super().held_further(g)
        self.dismiss_departing(g)

    def on_change(self, change: Change) -> None:
        super().on_change(change)
        for p in change.dead:
            self.departing.pop(p, None)

    def gone_for_good(self, p: ProcessId) -> None:
        super().gone_for_good(p)
        self.departing.pop(p, None)

    def all_departing(self) -> Counts:
        """At a hand-over: also this process, which goes on to keep what it had."""
        here = {self.me: self.undismissed} if self.undismissed else {}
        return counts(self.departing | here)

    # -- the end of an era ------------------------------------------------------------------------

    def _begin_era(self, view: View) -> None:
        self.undismissed, self.departing = 0, {}
        super()._begin_era(view)
