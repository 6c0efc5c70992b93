"""A state that is newer than the joiner's first view: which part of the stream is in it already.

The joiner's stream brings everything since its first view. What the state holds is passed by: it
counts as delivered, and is recorded as delivered, in its place, because it was, inside the state.
The program sees the newest view that the state holds, as its first event, and then exactly the
messages after the state.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.runtime.consumed_messages import ConsumedMessages
from ordercast.runtime.stream_events import View


class StateOverlap:
    """The part of the stream that is in the state, and has still to be skipped."""

    def __init__(self, view: int, consumed: ConsumedMessages) -> None:
        self._view = view
        self._consumed = consumed
        self._messages = consumed.messages  # still to come
        self._is_shown = False

    @property
    def is_over(self) -> bool:
        """The stream has come to the place of the state."""
        return self._is_shown and not self._messages

    def passes_by(self, sender: ProcessId, first: int, count: int) -> bool:
        """Are these messages in the state?"""
        if not self._consumed.has(sender, first):
            return False
        self._messages -= count
        return True

    def shown(self, view: View, me: str) -> list[View]:
        """The view as the program sees it: not at all, as its first one, or as it is."""
        if view.number < self._view:
            return []
        is_first, self._is_shown = not self._is_shown, True
        return [msgspec.structs.replace(view, joined=(me,), left=()) if is_first else view]
