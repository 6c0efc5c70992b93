"""The states of a change, at each of those who take part in it, and how one follows another.

The machines of changes go from state to state by these tables alone, and the page about states is
made from them. A state that nothing leads to, or a step that no table has, is a fault of our own.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping


class Lead(enum.Enum):
    """What the coordinator is doing. Whoever does not coordinate is idle."""

    IDLE = 1
    ASKING = 2  # STOP is out, reports come in
    PREPARING = 3  # PLAN is out
    INSTALLING = 4  # INSTALL is out
    CATCHING_UP = 5  # another node was asked for its rows


class Stage(enum.Enum):
    """How far a node is with the next change, as one that takes part."""

    UNTOLD = 1  # no change is planned that follows the last one here
    FETCHING = 2  # PLAN came, and something is missing
    READY = 3  # everything is here, and READY was said


class Flushing(enum.Enum):
    """Of a machine whose frames have no numbers."""

    RUNNING = 1
    STOPPED = 2  # groups of it have reported: nothing is sent or delivered
    FETCHING = 3  # ... and bodies are missing here


State = Lead | Stage | Flushing
Table = Mapping[tuple[State, State], str]

ENDS = "the term ends, since somebody is gone"
COORDINATING: dict[tuple[State, State], str] = {
    (Lead.IDLE, Lead.ASKING): "something should change, or a term has begun",
    (Lead.ASKING, Lead.ASKING): "a group hangs on it, or was stopped before: again, with it",
    (Lead.ASKING, Lead.CATCHING_UP): "somebody has installed changes that this node lacks",
    (Lead.CATCHING_UP, Lead.ASKING): "its rows came",
    (Lead.ASKING, Lead.PREPARING): "all have reported: the ends of the eras are decided",
    (Lead.ASKING, Lead.INSTALLING): "somebody has installed a change, or all have prepared one",
    (Lead.ASKING, Lead.IDLE): "nothing is to change; or " + ENDS,
    (Lead.PREPARING, Lead.INSTALLING): "all are ready, and a majority votes for it",
    (Lead.PREPARING, Lead.ASKING): "all are ready, and others vote by now",
    (Lead.PREPARING, Lead.IDLE): ENDS,
    (Lead.INSTALLING, Lead.IDLE): "all who took part have installed it; or " + ENDS,
    (Lead.CATCHING_UP, Lead.IDLE): ENDS,
}
TAKING_PART: dict[tuple[State, State], str] = {
    (Stage.UNTOLD, Stage.FETCHING): "PLAN",
    (Stage.FETCHING, Stage.READY): "everything is here: READY",
    (Stage.FETCHING, Stage.FETCHING): "another PLAN",
    (Stage.READY, Stage.FETCHING): "another PLAN",
    (Stage.READY, Stage.UNTOLD): "INSTALL, or ROWS that are newer",
    (Stage.FETCHING, Stage.UNTOLD): "ROWS that are newer, or INSTALL of what is all here",
}
FLUSHES: dict[tuple[State, State], str] = {
    (Flushing.RUNNING, Flushing.STOPPED): "STOP",
    (Flushing.STOPPED, Flushing.FETCHING): "PLAN, and bodies are missing",
    (Flushing.FETCHING, Flushing.STOPPED): "the last of them came, or the plan is void",
    (Flushing.STOPPED, Flushing.RUNNING): "INSTALL, or the group was closed",
    (Flushing.FETCHING, Flushing.RUNNING): "the group was closed, or another change is installed",
}
MEANINGS: dict[State, str] = {
    Lead.IDLE: "no change is under way",
    Lead.ASKING: "it waits for reports",
    Lead.PREPARING: "it waits until all are ready",
    Lead.INSTALLING: "it waits until those who took part have installed the change",
    Lead.CATCHING_UP: "it waits for the rows of a node that has more",
    Stage.UNTOLD: "it knows of no next change",
    Stage.FETCHING: "a change is planned, and something is missing here",
    Stage.READY: "everything is here",
    Flushing.RUNNING: "frames are sent and delivered",
    Flushing.STOPPED: "what is held was reported; what the application says waits",
    Flushing.FETCHING: "bodies are on their way",
}


def follows(table: Table, before: State, after: State) -> bool:
    """May the one state follow the other? To stay needs no rule."""
    return before is after or (before, after) in table


def markdown(table: Table) -> str:
    """A drawing for the page about states."""
    kind = type(next(iter(table))[0])
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {s.name}: {s.name}<br>{MEANINGS[s]}" for s in MEANINGS if type(s) is kind]
    lines += [f"    {a.name} --> {b.name}: {why}" for (a, b), why in table.items()]
    return "\n".join([*lines, "```"])
