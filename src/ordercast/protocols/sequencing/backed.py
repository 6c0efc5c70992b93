"""One group of the sequencing service: what nobody has delivered but the next sequencer.

A member speaks of a message in other groups as soon as two processes have it: itself, and the
sequencer. Then it gets the book of that group. If it died now the message would be lost, though
others have delivered what comes after it. So the former sequencer keeps copies for a while.

    the book is there         somebody else must have what was delivered here: ASK-HELD to a member
    INHERITED(sole)           the former sequencer keeps what it handed over
    a member says HELD        SAFE to the former sequencer: it forgets the copies

Only where the order is causal, and no gate sees to it that several have a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.machinery.numbering import Numbered
from ordercast.protocols.sequencing.headers import Safe
from ordercast.protocols.sequencing.left_behind import LeftBehindPart

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.service import SequencingService


class BackedPart(LeftBehindPart):
    """One group: copies at the former sequencer of what its successor alone may have."""

    def __init__(self, me: ProcessId, options: Options, service: SequencingService) -> None:
        super().__init__(me, options, service)
        # the sequencer
        self.backed: tuple[ProcessId, int] | None = None  # who has copies, and up to which number
        # who numbered before
        self.copies: dict[int, Numbered] = {}
        self.copied_at = 0  # hand-overs of this era before the last one from here
        self.safe_at = 0  # ... before SAFE came

    # -- the sequencer ----------------------------------------------------------------------------

    def back_up(self, g: GroupId, source: ProcessId) -> bool:
        """The book of this one is here. Must it keep copies?"""
        delivered = self._delivered_here(g)
        if not (self.is_watched(g) and self.exposed(g, delivered)):
            return False
        self.backed = (source, delivered)
        self.ask_held(g, delivered)
        return True

    def _delivered_here(self, g: GroupId) -> int:
        """Also by one that has left since."""
        era, ended = self.left_in.get(g, (0, 0))
        left = ended if era == self.latest_view(g).era else 0
        return max(left, self.undismissed, self.R if self.delivers else 0)

    def held_further(self, g: GroupId) -> None:
        super().held_further(g)
        self._look_if_safe(g)

    def _prune(self, g: GroupId) -> None:
        super()._prune(g)
        self._look_if_safe(g)

    def _look_if_safe(self, g: GroupId) -> None:
        if self.backed is not None and not self.exposed(g, self.backed[1]):
            self.call_safe(g)

    def call_safe(self, g: GroupId) -> None:
        """Nobody needs the copies any more."""
        if self.backed is not None:
            self.send(self.backed[0], g, Safe(self.move))
            self.backed = None

    # -- who numbered before ----------------------------------------------------------------------

    def keep_bodies(self, history: dict[int, Numbered]) -> dict[int, Numbered]:
        self.copied_at = self.move
        return super().keep_bodies(history)

    def keep_copies(self, handed: dict[int, Numbered]) -> None:
        """The next one alone has delivered some of this. It may have said SAFE since."""
        if self.safe_at <= self.copied_at:
            self.copies = handed

    @on(Safe)
    def on_SAFE(self, src: ProcessId, g: GroupId, safe: Safe, m: bytes) -> None:
        # The group may have come back here and gone again: a late word is not about those copies.
        if safe.move > self.copied_at:
            self.safe_at = safe.move
            self.copies = {}

    def still_expects(self, p: ProcessId) -> bool:
        return bool(self.copies) or super().still_expects(p)

    def handed_over(self, move: int) -> bool:
        """Is the book on its way, and this the number of that hand-over?"""
        return self.legacy is not None and self.copied_at == move

    def keeps_for_others(self, g: GroupId) -> bool:
        """Is anything here that another may need? Also while the book is on its way."""
        return self.legacy is not None or bool(self.left or self.copies or self.undismissed)

    # -- the end of an era ------------------------------------------------------------------------

    def _begin_era(self, view: View) -> None:
        self.backed, self.copies, self.copied_at, self.safe_at = None, {}, 0, 0
        super()._begin_era(view)
