"""Nodes that ask to be let in, as the one that leads keeps them.

All of it comes from other nodes. So the table is bounded, and who does not ask again is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.membership.node_view import NodeEntry

MAX_APPLICANTS = 1024  # that ask to be let in


class Applicant(PlainState):
    """A node that asks to be let in."""

    def __init__(self, node: NodeEntry, now: int) -> None:
        self.node = node
        self.since = now  # the tick at which it first asked
        self.asked_at = now  # the tick at which it last asked
        self.reached_by: set[ProcessId] = set()


class Applicants(PlainState):
    """All that ask. Who does not ask again is forgotten after `patience` ticks."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.of: dict[ProcessId, Applicant] = {}

    def __contains__(self, pid: ProcessId) -> bool:
        return pid in self.of

    def ask(self, node: NodeEntry, now: int, connected: Collection[ProcessId]) -> Applicant | None:
        """It asks, perhaps again. None: there are too many."""
        if node.pid not in self.of:
            if len(self.of) >= MAX_APPLICANTS and not self._make_room(connected):
                return None
            self.of[node.pid] = Applicant(node, now)
        applicant = self.of[node.pid]
        applicant.asked_at = now
        return applicant

    def _make_room(self, connected: Collection[ProcessId]) -> bool:
        """One to which there is no connection goes first: perhaps there is no such node."""
        unreached = next((pid for pid in self.of if pid not in connected), None)
        if unreached is not None:
            del self.of[unreached]
        return unreached is not None

    def drop(self, pid: ProcessId) -> None:
        self.of.pop(pid, None)

    def expire(self, now: int) -> None:
        self.of = {p: a for p, a in self.of.items() if now - a.asked_at <= self.patience}

    def newest_lives(self) -> list[Applicant]:
        """Of several lives of one node only the last can be alive."""
        newest: dict[str, Applicant] = {}
        for applicant in self.of.values():
            name, incarnation = applicant.node.name, applicant.node.incarnation
            if name not in newest or newest[name].node.incarnation < incarnation:
                newest[name] = applicant
        return [a for a in self.of.values() if newest[a.node.name] is a]
