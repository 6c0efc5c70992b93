"""Which groups must have one sequencer: those that share a member (S1), or two (S2)."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, breaks, distinct, middle, only

TITLE = "Groups that share one member"
ABOUT = """\
Groups of four, drawn at random from 64 members, more and more of them; 8 sequencers. Under S1
(`sequencing_global`) groups that share a member have one sequencer, and so have all that hang
together by such pairs; under S2 (`sequencing`) only those that share two members. Packets overtake
each other. Every run is judged for the order that S2 is to keep, the same between any two groups
at all who are in both (`total.pairwise`), and for one that nobody promised: one acyclic order of
all messages (`total.global`)."""

S1, S2 = "sequencing_global", "sequencing"
NAMES = {S1: "S1", S2: "S2"}


def figure(rows: list[Row]) -> Figure:
    cyclic = [
        (float(g), share, share, share)
        for g in distinct(rows, "groups")
        for share in [_cyclic(only(rows, protocol=S2, groups=g))]
    ]
    return Figure(
        TITLE,
        (
            Lines("Groups that must have one sequencer", "groups", "largest set, per cent of them",
                  [Line(said, against(only(rows, protocol=name), "groups", largest))
                   for name, said in NAMES.items()]),
            Lines("Runs with a cycle over three or more groups", "groups", "per cent of the runs",
                  [Line("S2", cyclic)]),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_not_necessary(rows)]


def largest(row: Row) -> float:
    """The largest set that needs one sequencer, in per cent of the groups."""
    return 100 * float(row["largest_part"])


def _cyclic(rows: list[Row]) -> float:
    return 100 * sum(breaks(row, "total.global") for row in rows) / len(rows)


def _not_necessary(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    for groups in distinct(rows, "groups"):
        own = only(rows, protocol=S2, groups=groups)
        table.append(
            [
                groups,
                *(middle(rows, largest, protocol=name, groups=groups) for name in NAMES),
                100 * sum(breaks(row, "total.pairwise") for row in own) / len(own),
                _cyclic(own),
            ]
        )
    head = ["groups", "largest set by S1, % of groups", "by S2, %",
            "% of runs of S2 that break the order between two groups",
            "% that have a cycle over several"]  # fmt: skip
    kept = not any(breaks(row, "total.pairwise") for row in only(rows, protocol=S2))
    smaller = any(
        middle(rows, largest, protocol=S2, groups=g) < middle(rows, largest, protocol=S1, groups=g)
        for g in distinct(rows, "groups")
    )
    cycles = max(_cyclic(only(rows, protocol=S2, groups=g)) for g in distinct(rows, "groups"))
    holds: Holds = "no" if not kept else "yes" if smaller else "in part"
    return Claim(
        claim="Condition S1 is not necessary: two groups may have one member in common and still "
        "be sequenced by different sequencers (S2), because there is no other process with which "
        "to disagree.",
        where="000, section 4.2",
        measured=markdown_table(head, table),
        holds=holds,
        why="That is so for any two groups, which is how the source defines a total order. Over "
        "three groups that share one member each, deliveries may form a cycle "
        f"([SOURCES.md](SOURCES.md), E-K7): in up to {cycles:.0f} % of these runs. Who needs one "
        "order of all messages needs S1, and with it next to one sequencer for all where groups "
        "overlap at random.",
    )
