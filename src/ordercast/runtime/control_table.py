"""A table of the messages of channel 0: which senders may send each of them to a node.

`Presence` looks up every message here before anything is done with it. The sender's part in the
cluster and this node's own state decide what happens to the message:

    the sender may send it           it is handed to the part of the node that handles it
    ... will be allowed to, soon     it is kept until then: the sender may be ahead of this node
    ... was allowed to, until now    it is dropped: the message and a change have crossed
    anything else                    it is the sender's fault, is counted, and ends its connection
"""

from __future__ import annotations

import enum

import msgspec

from ordercast.runtime import control
from ordercast.runtime.control import CONTROLS, Control, Withdrawn


class Standing(enum.Flag):
    """The state of the node that receives a message."""

    FOUNDING = enum.auto()  # it asks whether there is a cluster
    JOINING = enum.auto()  # it asks to be let in
    IN = enum.auto()  # it was let in, or began a cluster
    ENDED = enum.auto()  # this incarnation is over, or has not begun to ask


EVERYWHERE = ~Standing(0)


class Speaker(enum.Flag):
    """What the sender of a message is to the node that hears it."""

    COORDINATOR = enum.auto()  # of the view; before the first view, the node that let this one in
    NODE = enum.auto()  # of the view; before the first view, one that the coordinator named
    NEWCOMER = enum.auto()  # it was let in, and no view that is known here has it
    GONE = enum.auto()  # it was let in, or in a view, and is not any more
    ASKED = enum.auto()  # not let in; this node has asked it, and waits for the answer
    STRANGER = enum.auto()  # not let in; it has the credentials of the cluster


NOBODY = Speaker(0)
ANYBODY = ~NOBODY
INSIDE = Speaker.COORDINATOR | Speaker.NODE
LET_IN = INSIDE | Speaker.NEWCOMER

MEANINGS: dict[Speaker, str] = {
    Speaker.COORDINATOR: "the coordinator",
    Speaker.NODE: "another node of the view",
    Speaker.NEWCOMER: "a node that was let in and is in no view yet",
    Speaker.GONE: "a node that is gone",
    Speaker.ASKED: "a node that was asked",
    Speaker.STRANGER: "a process with the credentials of the cluster that was not let in",
}


class Verdict(enum.Enum):
    """What happens to a message."""

    TAKEN = "taken"
    KEPT = "kept"
    DROPPED = "dropped"
    REFUSED = "refused"


class Rule(msgspec.Struct, frozen=True):
    """Some kinds of messages."""

    messages: tuple[type[Control], ...]
    may_say: Speaker
    at: Standing  # of the node that hears it
    lasts: str  # for how long a lie of a sender that may say it has an effect, for people
    seen: str = "no"  # where people see such a lie
    kept: Speaker = NOBODY  # of these until they may say it, for a while
    dropped: Speaker = Speaker.GONE  # of these it is late, and no fault

    def verdict(self, standing: Standing, speaker: Speaker) -> Verdict:
        """What happens to such a message from this sender."""
        if standing & self.at and speaker & self.may_say:
            return Verdict.TAKEN
        if standing is Standing.ENDED or speaker & self.dropped:
            return Verdict.DROPPED
        return Verdict.KEPT if standing & self.at and speaker & self.kept else Verdict.REFUSED


CONTROL_RULES: tuple[Rule, ...] = (
    Rule(
        (control.StatusRequest, control.Dialback), ANYBODY, EVERYWHERE,
        "one answer; one call back at a time, to the host that asks", "`return_calls`",
    ),
    Rule(
        (control.TableRequest,), ANYBODY, EVERYWHERE, "one answer",
    ),
    Rule(
        (
            control.MigrateRequest, control.DrainRequest, control.UndrainRequest,
            control.ForgetRequest, control.RefoundRequest,
        ),
        ANYBODY, EVERYWHERE, "until it is undone; to forget and to refound is for good",
        "`ordercast groups`, log",
    ),
    Rule(
        (control.Apply,), Speaker.STRANGER, ~Standing.ENDED,
        "seconds: an applicant that does not come loses its name and place", "log",
    ),
    Rule(
        (control.StatusReply,), Speaker.ASKED, Standing.FOUNDING,
        "one round of questions: a node that says that it runs is asked to let this node in",
        "the error of `start`",
    ),
    Rule(
        (control.Redirect, control.Refused, control.Admitted), Speaker.ASKED, Standing.JOINING,
        "one attempt to join", "the error of `start`",
    ),
    Rule(
        (control.Welcome,), Speaker.ASKED, Standing.IN, "while it is connected",
    ),
    Rule(
        (control.NodeUp, control.NodeDown), Speaker.COORDINATOR, Standing.IN,
        "until the newcomer is in, or given up", "log",
        kept=Speaker.NODE | Speaker.NEWCOMER,
    ),
    Rule(
        (control.Enter, control.Visit), INSIDE, Standing.IN,
        "the number of a group without members; 4,096 are kept",
    ),
    Rule(
        (control.Entered, control.NotEntered), Speaker.COORDINATOR, Standing.IN,
        "one join of a group", "the error of `join`",
        dropped=Speaker.NODE | Speaker.GONE,
    ),
    Rule(
        (control.Lost,), INSIDE, Standing.IN,
        "nothing follows from it: exclusions are agreed", "log of the coordinator",
    ),
    Rule(
        (
            control.StateSought, control.StateWanted, control.StateAck, control.StateGivenUp,
            control.StateSettled, control.StateOffer,
        ),
        LET_IN, Standing.IN,
        "while it is connected; a state is given only to a member of the group",
        "the error of `join`",
    ),
    Rule(
        (
            control.StatePromised, control.StateRefused, control.StateBegin, control.StateChunk,
            control.StateEnd,
        ),
        INSIDE, Standing.IN,
        "one transfer, from the node that was asked for it; a false state is taken as it is",
        "the error of `join`",
    ),
    Rule(
        (control.PulseKey,), LET_IN | Speaker.GONE, Standing.IN,
        "while it is connected: it concerns the sender", "`pulses`",
    ),
    Rule(
        (control.NotReading,), INSIDE, Standing.IN,
        "until it is said again: it concerns the sender", "`slow_members`",
        dropped=Speaker.NEWCOMER | Speaker.GONE,
    ),
    Rule(
        (control.Goodbye,), ANYBODY, ~Standing.ENDED, "for good: it concerns the sender", "log",
    ),
    Rule(
        (
            control.TableReply, control.Done, control.UnderWay, control.NotDone,
            control.DialbackReply,
        ),
        NOBODY, EVERYWHERE, "no node sends the requests that these answer",
    ),
    Rule(
        tuple(kind for kind in CONTROLS if issubclass(kind, Withdrawn)),
        NOBODY, EVERYWHERE, "earlier releases sent these",
    ),
)  # fmt: skip

RULE_OF: dict[type[Control], Rule] = {
    kind: rule for rule in CONTROL_RULES for kind in rule.messages
}


def admit(message: Control, standing: Standing, speaker: Speaker) -> Verdict:
    """What happens to a message from this sender; without a rule for it, it is refused."""
    rule = RULE_OF.get(type(message))
    return Verdict.REFUSED if rule is None else rule.verdict(standing, speaker)


def who(speaker: Speaker) -> str:
    """In words."""
    if speaker == ANYBODY:
        return "any process with the credentials of the cluster"
    if speaker & INSIDE == INSIDE:
        rest = who(speaker & ~INSIDE)
        return "a node of the view" if rest == "nobody" else f"a node of the view, {rest}"
    return ", ".join(text for one, text in MEANINGS.items() if one & speaker) or "nobody"


def markdown() -> str:
    """The table of docs/SECURITY.md."""
    lines = [
        "| message | who may say it | to a node that | from others | a lie lasts | and is seen |",
        "|---|---|---|---|---|---|",
    ]
    for rule in CONTROL_RULES:
        names = ", ".join(f"`{kind.__name__}`" for kind in rule.messages)
        cells = (names, who(rule.may_say), _where(rule.at), _others(rule), rule.lasts, rule.seen)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


PLACES: dict[Standing, str] = {
    EVERYWHERE: "runs",
    ~Standing.ENDED: "looks for its cluster, or is in",
    Standing.FOUNDING: "asks whether there is a cluster",
    Standing.JOINING: "asks to be let in",
    Standing.IN: "is in",
}


def _where(at: Standing) -> str:
    return PLACES[at]


def _others(rule: Rule) -> str:
    """What happens to the message from other senders, where that is no fault of theirs."""
    found = []
    if rule.kept:
        found.append(f"{who(rule.kept)}: kept until that node coordinates")
    if crossed := rule.dropped & ~Speaker.GONE:
        found.append(f"{who(crossed)}: dropped")
    return "; ".join(found)
