"""002, theorem 4: how many concurrent messages a two-layered group orders by accident."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, distinct, only

TITLE = "Two layers: order by accident"
ABOUT = """\
Groups of about sqrt(n) subgroups; three in ten messages are answered. Two messages are concurrent
if neither was sent by somebody who had sent or delivered the other: that is taken from what the
applications did. Which of these pairs the protocol orders is read off the vectors in its packets.
*Gateways*: among the gateways one waits for the other, of one subgroup or of two. *Waits*: in
a subgroup one waits for the other. *Rule 1*: both vectors of the one are below those of the other,
which is what the source calls ordered. Pairs of all seeds are counted together. Where little is
said few messages are concurrent: the tables tell how many pairs a share is of."""

RATES = (
    ("gateways: of one", "gateways_same", "same_subgroup_pairs"),
    ("gateways: of two", "gateways_other", "two_subgroup_pairs"),
    ("waits", "waiting_pairs", "seen_pairs"),
    ("rule 1", "rule_1_pairs", "seen_pairs"),
)


def figure(rows: list[Row]) -> Figure:
    panels = []
    for us in distinct(rows, "every_us"):
        own = only(rows, every_us=us)
        lines = [
            Line(
                name, [_point(only(own, members=n), part, whole) for n in distinct(own, "members")]
            )
            for name, part, whole in RATES
        ]
        title = f"A message every {us / 1000:g} ms"
        panels.append(Lines(title, "members", "% of concurrent pairs that are ordered", lines))
    return Figure(TITLE, panels, shows="pairs of all of them together")


def claims(rows: list[Row]) -> list[Claim]:
    return [_same_subgroup(rows), _two_subgroups(rows), _in_subgroup(rows)]


def _point(rows: list[Row], part: str, whole: str) -> tuple[float, float, float, float]:
    rate = _rate(rows, part, whole)
    return rows[0]["members"], rate, rate, rate


def _sum(rows: list[Row], column: str) -> int:
    if column == "two_subgroup_pairs":
        return _sum(rows, "concurrent_pairs") - _sum(rows, "same_subgroup_pairs")
    return sum(row[column] for row in rows)


def _rate(rows: list[Row], part: str, whole: str) -> float:
    """Per cent."""
    pairs = _sum(rows, whole)
    return 100 * _sum(rows, part) / pairs if pairs else 0.0


def _table(rows: list[Row], *wanted: int) -> str:
    chosen = [RATES[k] for k in wanted]
    table: list[list[object]] = []
    for members in distinct(rows, "members"):
        for us in distinct(rows, "every_us"):
            own = only(rows, members=members, every_us=us)
            rates = [
                x for _, part, whole in chosen for x in (_sum(own, whole), _rate(own, part, whole))
            ]
            table.append([members, us / 1000, *rates])
    named = [x for name, _, _ in chosen for x in (f"pairs: {name}", "% ordered")]
    return "\n\n" + markdown_table(["members", "a message every, ms", *named], table)


def _same_subgroup(rows: list[Row]) -> Claim:
    ordered = _sum(rows, "gateways_same")
    return Claim(
        claim="For a pair of messages sent in the same subgroup the global message of one may "
        "precede that of the other even if they are concurrent (how often is not told).",
        where="002, section 4, before theorem 4",
        measured="Concurrent messages of one subgroup:" + _table(rows, 0),
        holds="yes" if ordered else "no",
        why="A gateway sends what its members say in one line; only what two members say at the "
        "same time as another gateway's word arrives is told apart."
        if ordered
        else "",
    )


def _two_subgroups(rows: list[Row]) -> Claim:
    ordered = _sum(rows, "gateways_other")
    return Claim(
        claim="If m1 causally precedes m2 and they are of different subgroups, the global message "
        "of m1 precedes that of m2 (and, by the example, concurrent ones are not ordered).",
        where="002, theorem 4 and the example of figure 3",
        measured="Concurrent messages of two subgroups:" + _table(rows, 1),
        holds="no" if ordered else "yes",
        why="That what is ordered by cause is ordered by the rules is what every run was judged "
        "for; the table counts the concurrent pairs of two subgroups.",
    )


def _in_subgroup(rows: list[Row]) -> Claim:
    rule, waits = (
        _rate(rows, "rule_1_pairs", "seen_pairs"),
        _rate(rows, "waiting_pairs", "seen_pairs"),
    )
    holds: Holds = "yes" if rule < waits else "no"
    return Claim(
        claim="In a local process messages are ordered by both vectors, rsq and RSQ (what the "
        "second one spares is not told).",
        where="002, ordering rule 1",
        measured="Concurrent messages, as each subgroup sees them:" + _table(rows, 2, 3),
        holds=holds,
        why="Both vectors together tell concurrent messages apart that the first one takes to be "
        "ordered. But what is waited for follows from the first one alone: nearly all that comes "
        "from outside stands in the one line of the gateway.",
    )
