"""One attempt of a coordinator to lead a change; the next one replaces it as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.views.headers import Change, Report, Row

NOTHING: Mapping[GroupId, Row] = {}


class Attempt(PlainState):
    """What is known of it by now."""

    def __init__(
        self, number: int, goal: Mapping[GroupId, Row] = NOTHING, asked: Iterable[ProcessId] = ()
    ) -> None:
        self.number = number
        self.goal = dict(goal)  # the next rows
        self.asked = set(asked)  # who has not reported
        self.reports: dict[ProcessId, Report] = {}
        self.rows_from: ProcessId = -1  # whom this node has asked for its rows
        self.planned: Change | None = None
        self.unready: set[ProcessId] = set()
        self.uninstalled: set[ProcessId] = set()  # no word of them yet: the last change is here
