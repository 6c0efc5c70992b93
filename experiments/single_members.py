"""004: what those who are in one group only pay for the overlap of the groups."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Bars, Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Members of one group among overlapping groups"
ABOUT = """\
Twenty-four members in six groups on a ring. Each group shares some members with the next, and the
others are in this group only: all of them at overlap 1, one in seven at 1.75. What is told here is
what messages wait *at these* before they are delivered. A wait is needless from the moment at which
everything that the message depends on was delivered here. Messages every tenth of a millisecond,
and every two."""

EXACT = ("relative", "fast", "cbcast")
WAIT = "single_hold_back_mean_ms"


def figure(rows: list[Row]) -> Figure:
    over = "groups that a member is in, on average"
    paces = distinct(rows, "every_us")
    panels: list[Lines | Bars] = []
    for us in paces:
        own = only(rows, every_us=us)
        lines = [
            Line(name, against(only(own, protocol=name), "overlap", WAIT))
            for name in _in_order(own)
        ]
        title = f"Waiting in one group only, {_pace(us)}"
        panels.append(Lines(title, over, "ms from arrival to delivery, mean", lines, powers=True))
    names = _in_order(rows)
    needless = {_pace(us): [_needless(only(rows, protocol=n, every_us=us)) for n in names]
                for us in paces}  # fmt: skip
    said = "% of the messages that waited, all runs together"
    panels.append(Bars("Waited needlessly in one group only", said, names, needless, most=100))
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_relative(rows), _one_integer(rows)]


def _in_order(rows: list[Row]) -> list[str]:
    """Who waits longest first."""
    names = distinct(rows, "protocol")
    return sorted(names, key=lambda name: -middle(rows, WAIT, protocol=name))


def _pace(us: float) -> str:
    return f"{1e6 / us:,.0f} messages per s"


def _needless(rows: list[Row]) -> float:
    """Per cent of all waits in these runs."""
    waits, needless = _counts(rows)
    return 100 * needless / waits if waits else 0.0


def _relative(rows: list[Row]) -> Claim:
    names = _in_order(rows)
    table: list[list[object]] = []
    for us in distinct(rows, "every_us"):
        for overlap in distinct(rows, "overlap"):
            own = only(rows, every_us=us, overlap=overlap)
            waits = [middle(own, WAIT, protocol=name) for name in names]
            table.append([1e6 / us, overlap, *waits])
    head = ["messages per s", "groups of a member", *(f"`{name}`, ms" for name in names)]
    counts: list[list[object]] = [[f"`{n}`", *_counts(only(rows, protocol=n))] for n in names]
    needless = _counts(only(rows, protocol="relative"))[1]
    return Claim(
        claim="The Relative protocol does not impose any extra delay at destinations that do not "
        "belong to multiple groups: its vector allows delivery as early as possible.",
        where="004, section 6",
        measured="The mean wait at members of one group only, medians over seeds:\n\n"
        f"{markdown_table(head, table)}\n\nAll runs together:\n\n"
        + markdown_table(["", "messages that waited there", "... needlessly"], counts),
        holds="yes" if not needless else "no",
        why="As early as possible is not as early as with CBCAST. A message depends on what its "
        "sender had delivered, and members of several groups deliver later with Relative: what "
        "they pass on comes later. So the waits of the exact protocols differ a little, in either "
        "direction."
        if not needless
        else "Some messages waited there longer than they had to.",
    )


def _counts(rows: list[Row]) -> tuple[int, int]:
    """Waits, and needless ones."""
    return (
        sum(row["single_waits"] for row in rows),
        sum(row["single_needless_waits"] for row in rows),
    )


def _one_integer(rows: list[Row]) -> Claim:
    slow, exact = only(rows, protocol="slow"), only(rows, protocol="relative")
    paced = [(us, o) for us in distinct(rows, "every_us") for o in distinct(rows, "overlap")]
    more = [
        middle(slow, WAIT, every_us=us, overlap=o) - middle(exact, WAIT, every_us=us, overlap=o)
        for us, o in paced
    ]
    longer = sum(ms > 0 for ms in more)
    holds: Holds = "yes" if longer == len(more) else "in part" if longer else "no"
    return Claim(
        claim="A protocol that sends one integer for each group and no vector imposes delay at all "
        "destinations, even if a destination belongs to one group only.",
        where="004, section 6, of a protocol by others that is not built here",
        measured="Of ours `slow` sends one integer. At members of one group only its messages wait "
        f"{min(more):.1f} to {max(more):.1f} ms longer than those of `relative`.",
        holds=holds,
        why="" if holds == "yes" else "Not everywhere did it wait longer.",
    )
