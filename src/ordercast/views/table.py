"""Which word counts in which state of a node, and who may say it.

The machine of changes looks here before it looks at a word: one that comes too late is dropped; one
from somebody who may not say it is that peer's fault.
"""

from __future__ import annotations

import enum

import msgspec

from ordercast.views.headers import (
    AskRows,
    Install,
    Installed,
    LeaveConfirmed,
    Load,
    Plan,
    Ready,
    Report,
    Rows,
    Stop,
    WantDrained,
    WantIn,
    WantMoved,
    WantOut,
    WantRefounded,
)
from ordercast.views.states import Lead


class Says(enum.Enum):
    """Who may say a word."""

    NODE = "a node of the view"
    COORDINATOR = "the coordinator"
    ASKED = "a node whose report is waited for"
    PLANNED = "a node that takes part in the planned change"
    INSTALLING = "a node that takes part in the change that is being installed"
    ROWS = "the coordinator, or whom this coordinator has asked for its rows"


class Rule(msgspec.Struct, frozen=True):
    """What becomes of one kind of word."""

    handler: str
    says: Says
    lasts: str  # for how long a lie of a sender that may say it has an effect, for people
    seen: str = "no"  # where people see such a lie
    states: tuple[Lead, ...] = ()  # of the coordinator; empty: it counts at every node


LEADING = tuple(Lead)

TABLE: dict[type[msgspec.Struct], Rule] = {
    WantIn: Rule(
        "_on_want_in", Says.NODE, "it concerns the sender; what it says to remember lets it found "
        "a group without members", "the view names it", LEADING,
    ),
    WantOut: Rule(
        "_on_want_out", Says.NODE, "it concerns the sender alone", "the view is without it", LEADING
    ),
    WantMoved: Rule(
        "_on_want_moved", Says.NODE, "until somebody else moves it: every node may administer",
        "`ordercast groups`", LEADING,
    ),
    WantDrained: Rule(
        "_on_want_drained", Says.NODE, "until it is undone, or the coordinator goes",
        "`ordercast sequencers`", LEADING,
    ),
    WantRefounded: Rule(
        "_on_want_refounded", Says.NODE, "for good: who is absent is not waited for",
        "the next view of the group", LEADING,
    ),
    Load: Rule("_on_load", Says.NODE, "one window of load", "a move of a group", LEADING),
    Stop: Rule("_on_stop", Says.COORDINATOR, "until the next change", "the group pauses"),
    Report: Rule(
        "_on_report", Says.ASKED, "for good: it decides with others where the era ends; who does "
        "not report stops changes until it is excluded",
        "the coordinator shows whom its views wait for", (Lead.ASKING,),
    ),
    Plan: Rule("_on_plan", Says.COORDINATOR, "until it is installed, or another is planned"),
    Ready: Rule(
        "_on_ready", Says.PLANNED, "it concerns the sender alone", states=(Lead.PREPARING,)
    ),
    Install: Rule(
        "_on_install", Says.COORDINATOR, "for good: it is the order of changes", "the next view"
    ),
    Installed: Rule(
        "_on_installed", Says.INSTALLING, "it concerns the sender alone", states=(Lead.INSTALLING,)
    ),
    AskRows: Rule("_on_ask_rows", Says.COORDINATOR, "one answer"),
    Rows: Rule("_on_rows", Says.ROWS, "for good: it is the directory of groups", "the next view"),
    LeaveConfirmed: Rule(
        "_on_leave_confirmed", Says.COORDINATOR, "it concerns the receiver's own wish", "the view "
        "names it all the same",
    ),
}  # fmt: skip


def markdown() -> str:
    """For the page about security."""
    lines = ["| packet | who may say it | to a node that | a lie lasts | and is seen |"]
    lines.append("|---|---|---|---|---|")
    for header, rule in TABLE.items():
        at = "is in the view"
        if rule.states == LEADING:
            at = "coordinates"
        elif rule.states:
            at = f"coordinates, {', '.join(state.name for state in rule.states)}"
        name = header.__name__
        lines.append(f"| `{name}` | {rule.says.value} | {at} | {rule.lasts} | {rule.seen} |")
    return "\n".join(lines)
