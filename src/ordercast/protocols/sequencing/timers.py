"""The timers of one process in the sequencing service, and what waits for an answer meanwhile."""

from __future__ import annotations

from typing import Any

from ordercast.core.ids import GroupId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.machinery.unanswered import Unanswered


class Timers(PlainState):
    """A timer that runs is not started again: it measures from the first that waits."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.running: set[tuple[GroupId, str]] = set()
        self.unanswered: dict[GroupId, Unanswered] = {}  # words in each group, and how to repeat

    def connect(self, out: Output) -> None:
        """The column of timers in the effects of a step."""
        self.out = out

    def state(self) -> dict[str, Any]:
        """All but the effects."""
        return {name: value for name, value in self.__dict__.items() if name != "out"}

    def start(self, g: GroupId, name: str, delay_ms: int) -> None:
        """It rings after the delay, unless it runs already."""
        if (g, name) not in self.running:
            self.running.add((g, name))
            self.out.timers.append((g, name, delay_ms))

    def rang(self, g: GroupId, name: str) -> None:
        """It runs no more."""
        self.running.discard((g, name))

    def waits(self, g: GroupId) -> Unanswered:
        """The words in g that have no answer yet."""
        if g not in self.unanswered:
            self.unanswered[g] = Unanswered(self.options)
        return self.unanswered[g]

    def begin(self, g: GroupId, number: int) -> None:
        """A new era of g begins after this number."""
        if g in self.unanswered:
            self.unanswered[g].begin(number)

    def forget(self, g: GroupId) -> None:
        """A timer of a group that is closed rings for nobody: it would seem to run for ever, and
        nothing be told after this process numbers the group again."""
        self.unanswered.pop(g, None)
        self.running = {timer for timer in self.running if timer[0] != g}
