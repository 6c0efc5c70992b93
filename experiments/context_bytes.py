"""Headers against the number of processes, and against the number of groups."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Headers: groups against processes"
ABOUT = """\
Groups on a ring, two forms. As many groups of more and more processes: 12 groups, and each member
is in four of them. And as many processes in more and more groups: 48 members, and groups of 8.
Members are the sequencers. A message of 100 bytes every quarter of a millisecond.
`cbcast` has vectors, with an entry for each process that one hears from; it sends only those
that changed since its sender spoke last, so it is a better rival than the one that the source had
in mind."""

NAMES = {"sequencing": "total", "sequencing_hybrid": "hybrid", "cbcast": "cbcast"}
CONTEXTS = ("sequencing", "sequencing_hybrid")
VECTORS = "cbcast"
SAME, LESS = 1.25, 0.5
"""Times the bytes at the start: no more; times those of vectors: much less."""


def figure(rows: list[Row]) -> Figure:
    def lines(own: list[Row], x: str, value: Value, names: tuple[str, ...]) -> list[Line]:
        return [Line(NAMES[n], against(only(own, protocol=n), x, value)) for n in names]

    return Figure(
        TITLE,
        (
            Lines("As many groups, more processes", "members", "bytes of the header, mean",
                  lines(by_members(rows), "members", "header_mean_bytes", tuple(NAMES))),
            Lines("As many processes, more groups", "groups", "bytes of the header, mean",
                  lines(by_groups(rows), "groups", "header_mean_bytes", tuple(NAMES))),
            Lines("As many groups, more processes", "members", "other groups that are named, mean",
                  lines(by_members(rows), "members", "context_mean", CONTEXTS)),
            Lines("As many processes, more groups", "groups", "other groups that are named, mean",
                  lines(by_groups(rows), "groups", "context_mean", CONTEXTS)),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_bounded(rows), _cheaper(rows)]


def by_members(rows: list[Row]) -> list[Row]:
    """The runs with as many groups in each, and every member in as many of them."""
    most = max(row["overlap"] for row in rows if row["members"] == min(distinct(rows, "members")))
    widest = max(distinct(rows, "members"))
    return only(rows, overlap=most, groups=only(rows, members=widest)[0]["groups"])


def by_groups(rows: list[Row]) -> list[Row]:
    """The runs with as many members in each, and groups of one size."""
    shapes = {(row["members"], row["group_size"]) for row in rows}
    most = max(shapes, key=lambda s: len({r["groups"] for r in rows
                                          if (r["members"], r["group_size"]) == s}))  # fmt: skip
    return only(rows, members=most[0], group_size=most[1])


def _table(own: list[Row], x: str) -> list[list[object]]:
    return [
        [
            at,
            *(middle(own, "context_mean", protocol=n, **{x: at}) for n in CONTEXTS),
            *(middle(own, "header_mean_bytes", protocol=n, **{x: at}) for n in NAMES),
        ]
        for at in distinct(own, x)
    ]


def _head(x: str) -> list[str]:
    return [x, *(f"context, {NAMES[n]}" for n in CONTEXTS),
            *(f"header, bytes: {said}" for said in NAMES.values())]  # fmt: skip


def _growth(own: list[Row], x: str, protocol: str) -> float:
    ends = (distinct(own, x)[0], distinct(own, x)[-1])
    first, last = (middle(own, "header_mean_bytes", protocol=protocol, **{x: at}) for at in ends)
    return last / first


def _bounded(rows: list[Row]) -> Claim:
    own = by_members(rows)
    grown = {n: _growth(own, "members", n) for n in NAMES}
    flat = [grown[n] <= SAME for n in CONTEXTS]
    holds: Holds = "yes" if all(flat) else "in part" if any(flat) else "no"
    ends = distinct(own, "members")
    return Claim(
        claim="The size of the context information that is sent in messages is bounded by the "
        "number of groups, not by the number of processes.",
        where="000, section 6 (against ISIS, and Florin and Toinard)",
        measured=f"{own[0]['groups']} groups:\n\n"
        + markdown_table(_head("members"), _table(own, "members"))
        + f"\n\nFrom {ends[0]} to {ends[-1]} members headers grow to "
        + ", ".join(f"{grown[n]:.2f} times ({said})" for n, said in NAMES.items())
        + f". Up to {SAME:g} times counts as not at all.",
        holds=holds,
        why="The vectors are bounded, too, if few messages are sent: by what changed since their "
        "sender spoke last."
        if holds == "yes"
        else "The bound holds, but below it a context may grow with the number of processes.",
    )


def _cheaper(rows: list[Row]) -> Claim:
    own = by_groups(rows)
    both = (by_members(rows), "members"), (own, "groups")
    shares = {
        (x, at, n): middle(found, "header_mean_bytes", protocol=n, **{x: at})
        / middle(found, "header_mean_bytes", protocol=VECTORS, **{x: at})
        for found, x in both
        for at in distinct(found, x)
        for n in CONTEXTS
    }
    least, most = min(shares.values()), max(shares.values())
    holds: Holds = "yes" if most <= LESS else "in part" if least < 1 else "no"
    return Claim(
        claim="In general this is much less expensive in bandwidth than per-process information "
        "(vector timestamps).",
        where="000, section 6",
        measured=f"Beside the table above, {own[0]['members']} members:\n\n"
        + markdown_table(_head("groups"), _table(own, "groups"))
        + f"\n\nIn all these runs a header has {least:.2f} to {most:.2f} times the bytes of one "
        f"with vectors. (Much less: at most {LESS:g} times, everywhere.)",
        holds=holds,
        why="A header also has the message's own number, its origin and what is stable, and our "
        "vectors are sent as changes. It pays to count groups where they are fewer than the "
        "members that one hears from.",
    )
