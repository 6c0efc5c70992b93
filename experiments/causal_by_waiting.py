"""Whether a total order is causal if senders wait for the number of their last message."""

from __future__ import annotations

import json

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Bars, Figure
from experiments.rows import Row, breaks, distinct, only

TITLE = "Causal order by waiting"
ABOUT = """\
Eight members, once as one group, once as four groups on a ring of which neighbours share two
members; and a ring of three groups that share one member each. There are as many sequencers as
groups, or one. Groups that share two members have one sequencer in a total order, whatever there
are. A run has 12 messages, two at a time, and their answers, and packets overtake each other. Every
run is judged for causal order across groups, whether it was promised or not. `sequencing` promises
a total order only; it is run with senders that wait until they have the number of their last
message (a variant), as Amoeba's do, and without. The other two promise causal order by
contexts (the source's C1 to C4)."""

ORDERS = (("causal.global", "Causal order"), ("fifo.global", "First-in first-out order"))
PLAIN = "sequencing"
WAYS = {False: "does not wait", True: "waits"}
UNIT = "% of the runs that break it; left: groups/sequencers"


def figure(rows: list[Row]) -> Figure:
    own = prepared(rows)
    names = distinct(own, "name")
    return Figure(
        TITLE,
        [
            Bars(f"{said} across groups", UNIT, names, {
                wait: [_share(only(own, name=name, waits=way), order) for name in names]
                for way, wait in WAYS.items()
            })
            for order, said in ORDERS
        ],
        shows="shares of them",
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_amoeba(rows), _conditions(rows)]


def prepared(rows: list[Row]) -> list[Row]:
    """With whether senders wait, and a name for the order and its sequencers."""
    return [
        row | {"waits": bool(json.loads(row["options"]).get("blocking")), "name": _name(row)}
        for row in rows
    ]


def _name(row: Row) -> str:
    order = {PLAIN: "total", "sequencing_hybrid": "hybrid", "sequencing_causal": "causal-total"}
    return f"{order[row['protocol']]}, {row['groups']}/{row['sequencers']}"


def _share(rows: list[Row], order: str) -> float:
    """Per cent of the runs."""
    return 100 * sum(breaks(row, order) for row in rows) / len(rows)


def _table(own: list[Row]) -> str:
    table: list[list[object]] = [
        [*key, *(_share(only(own, protocol=key[0], groups=key[1], sequencers=key[2], waits=way), o)
                 for o, _ in ORDERS for way in WAYS)]
        for key in sorted({(r["protocol"], r["groups"], r["sequencers"]) for r in own})
    ]  # fmt: skip
    head = ["", "groups", "sequencers",
            *(f"{said}: {wait}" for _, said in ORDERS for wait in WAYS.values())]  # fmt: skip
    return "% of the runs that break it:\n\n" + markdown_table(head, table)


def _amoeba(rows: list[Row]) -> Claim:
    own = only(prepared(rows), protocol=PLAIN)
    waiting = only(own, waits=True)
    one = _share([row for row in waiting if row["groups"] == 1], "causal.global")
    several = _share([row for row in waiting if row["groups"] > 1], "causal.global")
    hasty = [row for row in own if not row["waits"]]
    alone = _share([row for row in hasty if row["groups"] == 1], "causal.global")
    holds: Holds = "no" if one else "yes"
    return Claim(
        claim="In Amoeba, which has one group, delivery is causal also, since senders await "
        "acknowledgement of the last broadcast before multicasting again.",
        where="000, section 6",
        measured=_table(own),
        holds=holds,
        why=f"In one group {alone:.0f} % of the runs break it without waiting, too: here a "
        "sequencer numbers the messages of a sender in their order, whatever order they come in "
        "([SOURCES.md](SOURCES.md), E-K1), and that is enough. Across groups waiting senders "
        f"break it in {several:.1f} % of the runs. It is not promised there: groups that share two "
        "members have one sequencer, which tells of what it numbered in both; but round a ring of "
        "groups an answer may overtake what it answers, and nothing tells the member to wait.",
    )


def _conditions(rows: list[Row]) -> Claim:
    own = [row for row in prepared(rows) if row["protocol"] != PLAIN]
    broken = _share(own, "causal.global")
    return Claim(
        claim="Multicasts are causally ordered if C1 to C4 hold; contexts satisfy them with "
        "several sequencers, too.",
        where="000, section 5, after Florin and Toinard",
        measured=_table(own),
        holds="no" if broken else "yes",
        why="As printed they do not: [SOURCES.md](SOURCES.md), E-K5 and E-K8. This is of the rules "
        "as they are here.",
    )
