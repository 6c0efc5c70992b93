"""Who has consumed which frames of one group in one era: the record behind acknowledgements."""

from __future__ import annotations

from collections import deque

from ordercast.core.events import Kept, View
from ordercast.core.ids import ProcessId
from ordercast.core.numbers import NumberSet, SlowestMark
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY


class Stability(PlainState):
    """What one process knows of one group since its era began."""

    def __init__(self, view: View, limit: int) -> None:
        self.S = 0  # frames sent by this process in this era
        self.sent_before = 0  # ... and in the eras before; a flush delivered all of those
        self.A = SlowestMark(view.members)  # how far each member consumed this process's frames
        self.stable = dict.fromkeys(view.senders, 0)  # per sender: frames delivered by all
        self.told = 0  # the last stable mark of our own that the others were told
        self.kept: dict[ProcessId, dict[int, Kept]] = {q: {} for q in view.senders}  # not stable
        self.taken = {q: NumberSet(limit) for q in view.senders}  # consumed here, per sender
        self.owed: dict[ProcessId, int] = {}  # frames consumed and not acknowledged, per sender
        self.handed: deque[tuple[ProcessId, int]] = deque()  # delivered, not consumed yet
        self.waiting_to_ack = False  # a timer runs
        self.waiting_to_tell = False  # a timer runs

    def after(self, before: Stability) -> Stability:
        """Go on from the era before, in the same stay: what it left, its flush delivered."""
        self.sent_before = before.sent_before + before.S
        self.handed = deque((NOBODY, 0) for _ in before.handed)
        return self
