"""How much several sequencers can order, against the overlap of their groups."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "One sequencer and several"
ABOUT = """\
Members live in cells of 8, with 16 groups of 5 to a cell, but for a share of the members that is
drawn from anywhere else. That share is the overlap: with none, cells have nothing to do with each
other; if all are drawn from elsewhere, groups overlap at random. Some further processes do nothing
but number messages. Groups that an order keeps together have one sequencer (`sequencing`: those
that share two members, and whatever hangs together by such pairs); apart from that the groups are
spread as evenly as can be. Every member has equally many messages for each of its groups, all at
the start: how fast they come through is the limit. The control is `sequencing_hybrid`, by which
any sequencer may number any group."""

TOTAL, HYBRID = "sequencing", "sequencing_hybrid"
ACROSS = "members from outside the cell, per cent"
MOST_OF = 0.6
"""Of k times the throughput of one sequencer: what counts as a bottleneck that is removed."""


def figure(rows: list[Row]) -> Figure:
    limits = [
        Lines(
            f"Throughput limit, {said}",
            ACROSS,
            "messages per second",
            [
                Line(_sequencers(k), _by_share(only(rows, protocol=name, sequencers=k), _rate))
                for k in distinct(rows, "sequencers")
            ],
            even_steps=True,
        )
        for name, said in ((TOTAL, "total order"), (HYBRID, "hybrid order"))
    ]
    most = max(distinct(rows, "sequencers"))
    parts = [
        Line(said, _by_share(only(rows, protocol=name, sequencers=most), _largest_percent))
        for name, said in ((TOTAL, "total"), (HYBRID, "hybrid"))
    ]
    contexts = [
        Line(
            f"{said}, {_sequencers(k)}",
            _by_share(only(rows, protocol=name, sequencers=k), "context_mean"),
        )
        for name, said in ((TOTAL, "total"), (HYBRID, "hybrid"))
        for k in sorted({1, most})
    ]
    return Figure(
        TITLE,
        (
            *limits,
            Lines("Groups that must have one sequencer", ACROSS, "largest set, per cent of groups",
                  parts, even_steps=True),
            Lines("Context of a message", ACROSS, "other groups that it names, mean", contexts,
                  even_steps=True),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_several(rows), _control(rows)]


def gain(rows: list[Row], protocol: str, outside: float) -> float:
    """How many times as much the most sequencers can order as one can."""
    own = only(rows, protocol=protocol, outside=outside)
    counts = distinct(own, "sequencers")
    return middle(own, _rate, sequencers=counts[-1]) / middle(own, _rate, sequencers=counts[0])


def _rate(row: Row) -> float:
    return float(row["throughput_per_s"])


def _largest_percent(row: Row) -> float:
    return 100 * float(row["largest_part"])


def _sequencers(count: int) -> str:
    return "1 sequencer" if count == 1 else f"{count} sequencers"


def _by_share(own: list[Row], value: Value) -> list[tuple[float, float, float, float]]:
    return [(100 * x, y, least, most) for x, y, least, most in against(own, "outside", value)]


def _several(rows: list[Row]) -> Claim:
    counts = distinct(rows, "sequencers")
    shares = distinct(rows, "outside")
    own = only(rows, protocol=TOTAL)
    table: list[list[object]] = [
        [
            100 * share,
            *(middle(own, _rate, outside=share, sequencers=k) for k in counts),
            gain(rows, TOTAL, share),
            100 * middle(own, "largest_part", outside=share),
        ]
        for share in shares
    ]
    head = [
        "% outside", *map(_sequencers, counts), f"{counts[-1]} against 1",
        "largest set of groups that must be together, %",
    ]  # fmt: skip
    gains = [gain(rows, TOTAL, share) for share in shares]
    enough = [one > MOST_OF * counts[-1] for one in gains]
    holds: Holds = "yes" if all(enough) else "in part" if any(enough) else "no"
    return Claim(
        claim="It is desirable on performance grounds to divide sequencing between several peer "
        "sequencers; the aim is to remove the bottleneck that a single sequencer is. (Never "
        "measured: the advantage depends on the application.)",
        where="000, sections 2, 4.2 and 7",
        measured=f"Total order, messages per second. {counts[-1]} sequencers could give "
        f"{counts[-1]} times as much as one, or a bit more, since members then put more "
        f"acknowledgements together:\n\n{markdown_table(head, table)}",
        holds=holds,
        why="It depends on which groups overlap, not on how many sequencers there are. Two groups "
        "that share two members have one sequencer, and so do all that hang together by such "
        "pairs. A few members from outside are enough to bind cells to each other. From some "
        "overlap on nearly all groups are one set, and all other sequencers have next to nothing "
        "to do. The limit of one sequencer falls with the overlap, too: contexts become longer, "
        "and with them the work for each message.",
    )


def _control(rows: list[Row]) -> Claim:
    counts = distinct(rows, "sequencers")
    shares = distinct(rows, "outside")
    own = only(rows, protocol=HYBRID)
    ends = (counts[0], counts[-1])
    table: list[list[object]] = [
        [
            100 * share,
            *(middle(own, _rate, outside=share, sequencers=k) for k in counts),
            gain(rows, HYBRID, share),
            *(middle(own, "context_mean", outside=share, sequencers=k) for k in ends),
        ]
        for share in shares
    ]
    head = [
        "% outside", *map(_sequencers, counts), f"{counts[-1]} against 1",
        f"context with {_sequencers(counts[0])}", f"with {_sequencers(counts[-1])}",
    ]  # fmt: skip
    kept = all(row["verdict"] == "kept" for row in own)
    apart = all(
        middle(own, "largest_part", outside=share) * own[0]["groups"] == 1 for share in shares
    )
    gains = [gain(rows, HYBRID, share) for share in shares]
    longest = max(
        middle(own, "context_mean", outside=share, sequencers=ends[1]) for share in shares
    )
    return Claim(
        claim="With the hybrid order any sequencer may sequence any group.",
        where="000, section 5",
        measured="Hybrid order, messages per second, and other groups that a context names:\n\n"
        + markdown_table(head, table)
        + "\n\nGroups are spread evenly, whatever they share. "
        + ("Every run kept its order." if kept else "Not every run kept its order."),
        holds="yes" if kept and apart else "no",
        why="Order is kept, but not for nothing. A context names every group that its sender has "
        "seen something of and that may not be stable, and a sequencer knows what is stable in its "
        f"own groups only. So with {_sequencers(ends[1])}, and groups that overlap at random, a "
        f"context names {longest:.1f} of {own[0]['groups']} groups, and that is work for each "
        f"message: {ends[1]} sequencers then let through {min(gains):.2f} times what one does. It "
        "is still more than a total order gains there.",
    )
