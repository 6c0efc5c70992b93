"""One try of a proposer to decide what comes after the view."""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.membership.agreement_headers import Ballot, ViewReport
from ordercast.membership.agreement_table import Phase
from ordercast.membership.node_view import NodeView


class Attempt(PlainState):
    """One try to decide what comes after the view."""

    def __init__(self, ballot: Ballot, phase: Phase) -> None:
        self.ballot = ballot
        self.phase = phase
        self.asked: set[ProcessId] = set()  # who was sent the last packet of it
        self.reports: dict[ProcessId, ViewReport] = {}
        self.proposal: NodeView | None = None
        self.is_new = False  # the proposal was made in this attempt
        self.accepted_by: set[ProcessId] = set()
        self.overruled_by: dict[ProcessId, int] = {}  # and the ballot that each has promised
        self.recovers = False  # without a majority: all who are here must accept
        self.age = 0  # ticks

    @property
    def answered(self) -> set[ProcessId]:
        """In this phase."""
        return set(self.reports) if self.phase is Phase.ENDING else self.accepted_by
