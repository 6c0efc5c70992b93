"""States, packets, and who may say them: the agreement on node views as a table.

`Agreement.receive` looks up every packet here. A packet for which this node's standing has no place
is not looked at. One that names another view than the one in force shows that one of the two nodes
lags behind, and that is mended. One that names the view in force must come from a node that may say
it; otherwise its sender has broken the protocol, which is a `PeerError`.
"""

from __future__ import annotations

import enum

import msgspec

from ordercast.membership import agreement_headers as headers
from ordercast.membership.options import Policy


class Standing(enum.IntEnum):
    """How a node stands in its cluster."""

    OUTSIDE = 1
    IN = 2
    CUT_OFF = 3
    OUT = 4
    LEAVING = 5


MEANINGS: dict[Standing, str] = {
    Standing.OUTSIDE: "it asks to be let in",
    Standing.IN: "it is in a view, and hears a majority of its voters",
    Standing.CUT_OFF: "it is in a view, and hears too few of its voters",
    Standing.LEAVING: "the next view is without it; it stays until enough others have that view",
    Standing.OUT: "the end of this incarnation",
}

TRANSITIONS: dict[tuple[Standing, Standing], str] = {
    (Standing.OUTSIDE, Standing.IN): "it founds a cluster, or was let in",
    (Standing.IN, Standing.IN): "the next view begins",
    (Standing.IN, Standing.CUT_OFF): "it hears too few voters",
    (Standing.CUT_OFF, Standing.IN): "it hears enough again, or a next view begins",
    (Standing.IN, Standing.LEAVING): "the next view is without it",
    (Standing.CUT_OFF, Standing.LEAVING): "the next view is without it",
    (Standing.LEAVING, Standing.OUT): "enough others have the view, or time is up",
    (Standing.IN, Standing.OUT): "a later view is without it; it was the last; its side goes over",
    (Standing.CUT_OFF, Standing.OUT): "a later view is without it; it was the last",
}


class Phase(enum.IntEnum):
    """Of an attempt to decide the next view."""

    ENDING = 1  # promises are asked for
    PROPOSING = 2  # a proposal is out


class Role(enum.Flag):
    """What the sender of a packet is to the node that receives it."""

    VOTER = enum.auto()  # of the view in force; every node, where every side goes on
    MEMBER = enum.auto()  # of the view in force, without a vote
    FORMER = enum.auto()  # it was excluded from a view, and may not know that
    APPLICANT = enum.auto()  # it asks to be let in, or is named by the proposal that is out
    CONTACT = enum.auto()  # this node asks it to be let in
    STRANGER = enum.auto()  # there is a connection, and nothing else is known


ANYBODY = ~Role(0)
INSIDE = Role.VOTER | Role.MEMBER
OUTSIDE = Role.FORMER | Role.APPLICANT | Role.STRANGER

INVOLVED = (Standing.IN, Standing.CUT_OFF)


class Rule(msgspec.Struct, frozen=True):
    """One kind of packet."""

    header: type[msgspec.Struct]
    may_say: Role
    at: tuple[Standing, ...]  # standings of the receiver in which it is looked at
    handler: str  # the method of `Agreement`, or of one of its parts: "part.method"
    effect: str  # what it does, for people
    lasts: str  # for how long a lie of a sender that may say it has an effect, for people
    seen: str = "no"  # where people see such a lie
    names_view: bool = True  # it counts only in the view that it names
    phase: Phase | None = None  # of the receiver's attempt; in another phase it comes too late
    policy: Policy | None = None  # it exists only where partitions are treated so
    outside: str | None = None  # the method, at a node that is still outside: it knows no roles


RULES: tuple[Rule, ...] = (
    Rule(
        headers.Heartbeat, INSIDE, (*INVOLVED, Standing.LEAVING), "heartbeats.on_heartbeat",
        "the sender is not silent; whoever lags behind is sent the view",
        "until the next one",
    ),
    Rule(
        headers.Suspect, INSIDE, INVOLVED, "suspicions.on_suspect",
        "the two are at odds; if that lasts, one of them is removed: never the accused, as long "
        "as the accuser stands alone",
        "`suspect_ms` after it was last said",
        seen="the accuser is excluded",
    ),
    Rule(
        headers.Renew, INSIDE, INVOLVED, "reconfiguration.on_renew",
        "the coordinator makes a next view with the same nodes, at most once in `suspect_ms`",
        "one view",
        seen="views in which nobody came or went",
    ),
    Rule(
        headers.JoinView, OUTSIDE | INSIDE, INVOLVED, "entrance.on_join",
        "the coordinator asks all voters for a connection to the applicant, and lets it in when "
        "all have one",
        "twice `suspect_ms` after it was last said",
        names_view=False,
    ),
    Rule(
        headers.Introduce, INSIDE, INVOLVED, "entrance.on_introduce",
        "as if the applicant had asked the coordinator itself",
        "twice `suspect_ms` after it was last said",
    ),
    Rule(
        headers.Reach, Role.VOTER, INVOLVED, "entrance.on_reach",
        "answered when there is a connection", "twice `suspect_ms`",
    ),
    Rule(
        headers.Reached, INSIDE, INVOLVED, "entrance.on_reached",
        "one voter more that reaches an applicant", "until the applicant is in, or gone",
    ),
    Rule(
        headers.LeaveView, INSIDE, INVOLVED, "reconfiguration.on_leave",
        "the next view is without the sender", "for good: it concerns the sender alone",
        seen="the sender is out",
    ),
    Rule(
        headers.Forget, INSIDE, INVOLVED, "reconfiguration.on_forget",
        "an operator's word: nodes that are not heard count in no vote; a recovered view follows, "
        "in the next generation, and names them",
        "for good, where the coordinator is cut off; else until the next view",
        seen="the view names who was forgotten, and is of the next generation",
    ),
    Rule(
        headers.EndView, Role.VOTER, INVOLVED, "acceptor.on_end",
        "promised, when all voters before the sender are suspected here, too",
        "until the next view",
        seen="ballots above 1",
    ),
    Rule(
        headers.ViewReport, INSIDE, INVOLVED, "proposer.on_report",
        "counted; with a majority the attempt goes on",
        "one attempt; what it says was accepted counts only if it may have been decided",
        phase=Phase.ENDING,
        seen="the next view, agreed by all",
    ),
    Rule(
        headers.ProposeView, Role.VOTER, INVOLVED, "acceptor.on_propose",
        "accepted, when the sender may lead, and the proposal follows from the view; a newcomer "
        "that it names answers, without a vote",
        "until the next view",
        outside="entrance.show_that_it_lives",
        seen="the next view, agreed by all",
    ),
    Rule(
        headers.ViewAccepted, INSIDE | Role.APPLICANT, INVOLVED, "proposer.on_accepted",
        "counted; with a majority the proposal is decided", "one attempt",
        phase=Phase.PROPOSING,
    ),
    Rule(
        headers.InstallView, ANYBODY, (Standing.OUTSIDE, *INVOLVED, Standing.LEAVING),
        "on_install",
        "in force at once if it was accepted here; else when no majority of this view denies it; "
        "of strangers only when this node was cut off for long",
        "for good, if it is believed",
        names_view=False,
        seen="`Out` names who said it",
    ),
    Rule(
        headers.Overruled, INSIDE, INVOLVED, "proposer.on_overruled",
        "one promise less; if a majority is out of reach, the next ballot is higher",
        "one attempt",
        seen="ballots above 1",
    ),
    Rule(
        headers.Sighted, INSIDE | OUTSIDE, INVOLVED, "sides.on_sighted",
        "told to the coordinator; the smaller side offers to come over. A side counts for as many "
        "nodes as have said so", "one word",
        names_view=False, policy="merge",
    ),
    Rule(
        headers.Offer, INSIDE | OUTSIDE, INVOLVED, "sides.on_offer",
        "the coordinator says welcome, and stays for a while", "a few heartbeats",
        names_view=False, policy="merge",
    ),
    Rule(
        headers.Welcome, INSIDE | OUTSIDE, INVOLVED, "sides.on_welcome",
        "this side ends in order and goes over, if it has asked that node", "for good",
        names_view=False, policy="merge",
        seen="`Dissolved` names the other side",
    ),
)  # fmt: skip

TABLE: dict[type[msgspec.Struct], Rule] = {rule.header: rule for rule in RULES}


def markdown() -> str:
    """The page about it."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {s.name}: {s.name}<br>{meaning}" for s, meaning in MEANINGS.items()]
    lines += [f"    {a.name} --> {b.name}: {why}" for (a, b), why in TRANSITIONS.items()]
    lines += [
        "```",
        "",
        "| packet | who may say it | to a node that is | effect | a lie lasts | and is seen |",
    ]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| `{r.header.__name__}` | {_who(r)} | {_where(r)} | {r.effect} | {r.lasts} | {r.seen} |"
        for r in RULES
    ]
    return "\n".join(lines) + "\n"


def _who(rule: Rule) -> str:
    if rule.may_say == ANYBODY:
        return "anybody"
    return ", ".join(str(role.name).lower() for role in Role if role & rule.may_say)


def _where(rule: Rule) -> str:
    outside = ("OUTSIDE (of anybody)",) if rule.outside is not None else ()
    where = ", ".join((*outside, *(standing.name for standing in rule.at)))
    if rule.phase is not None:
        where += f", and leads ({rule.phase.name})"
    return where if rule.policy is None else f'{where}; only with `partition="{rule.policy}"`'
