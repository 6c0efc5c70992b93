"""What the timestamps of Causal Blocks save over CBCAST: as claimed, and with all that is sent."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from experiments.causal_blocks import in_order
from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, only, values

TITLE = "Header saving over CBCAST"
ABOUT = """\
Twelve members, a message every tenth of a millisecond. Groups overlap in two ways: six groups that
grow, and more and more groups of four. What is saved is told in four ways. *Integers*: those of a
timestamp with nothing left out, as the source counts them; its footnote 5 leaves compression aside.
*In full*: the same in bytes, one for each integer, on top of what a header of `slow` has. *Packet*:
the header of a packet that brings a message, as it was sent: here all protocols send only what is
news. *All*: the headers of all packets, which a live protocol has to send: NULLs of silent members,
and acknowledgements. CBCAST needs no NULLs."""

IN_A_HEADER, IN_ALL = "header_mean_bytes", "header_bytes_per_message"
GROUPS, SIZE = 6, 4  # how many if they grow; of which size if there are more and more
COUNTED: dict[str, Callable[[Row], int]] = {
    "slow": lambda row: 1,
    "fast_p": lambda row: row["members"],
    "relative": lambda row: row["group_size"] + row["groups"],
    "fast": lambda row: entries(row),
    "cbcast": lambda row: entries(row),
}
"""Integers of a timestamp with nothing left out, as the source counts them: without the block
number, except where there is nothing else."""

Read = Callable[[Row], float]
Table = list[list[object]]


def entries(row: Row) -> int:
    """Of the vectors of all groups together."""
    return int(row["groups"] * row["group_size"])


def figure(rows: list[Row]) -> Figure:
    across = "groups that a member is in"
    panels = []
    for up, value in (
        ("% of CBCAST's integers that are saved", counted),
        ("% of CBCAST's header bytes that are saved: packet", IN_A_HEADER),
        ("% of CBCAST's header bytes that are saved: all", IN_ALL),
    ):
        for title, own in shapes(rows):
            names = [name for name in in_order(own) if name != "cbcast"]
            lines = [Line(n, against_cbcast(own, n, "overlap", value)) for n in names]
            panels.append(Lines(title, across, up, lines))
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_fast(rows), _relative(rows)]


def shapes(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """The runs of each way to overlap."""
    return [
        (f"{GROUPS} groups that grow", only(rows, groups=GROUPS)),
        (f"More groups of {SIZE}", only(rows, group_size=SIZE)),
    ]


def counted(row: Row) -> float:
    """Integers of its timestamp."""
    return float(COUNTED[row["protocol"]](row))


def in_full(rows: list[Row]) -> Read:
    """Bytes of a header with nothing left out: that of `slow`, and one for each integer."""
    base = median(values(only(rows, protocol="slow"), IN_A_HEADER))
    return lambda row: base + counted(row)


def saved(rows: list[Row], protocol: str, x: str, at: float, value: Value) -> float:
    """Per cent of what CBCAST has, at this x."""
    [(_, middle, _, _)] = against_cbcast(only(rows, **{x: at}), protocol, x, value)
    return middle


def against_cbcast(
    rows: list[Row], name: str, x: str, value: Value
) -> list[tuple[float, float, float, float]]:
    """What is saved, for each x, with the least and the most over seeds: each run against the run
    of CBCAST with the same messages."""
    read: Read = value if callable(value) else lambda row: row[value]
    most = {(row[x], row["seed"]): read(row) for row in only(rows, protocol="cbcast")}
    return against(
        only(rows, protocol=name), x, lambda row: 100 * (1 - read(row) / most[row[x], row["seed"]])
    )


def _savings(rows: list[Row], name: str) -> Table:
    """A line for each way to overlap and degree: groups, size, overlap, then what is saved."""
    lines: Table = []
    for _, own in shapes(rows):
        for overlap in distinct(own, "overlap"):
            at = only(own, overlap=overlap)
            ways: tuple[Value, ...] = (counted, in_full(rows), IN_A_HEADER, IN_ALL)
            spared = [saved(at, name, "overlap", overlap, way) for way in ways]
            lines.append([at[0]["groups"], at[0]["group_size"], overlap, *spared])
    return lines


HEAD = [
    "groups", "of", "groups of a member", "integers, %", "in full, %", "packet, %", "all, %",
]  # fmt: skip


def _where_overlapping(table: Table, column: int) -> list[float]:
    return [line[column] for line in table if line[2] > 1]  # type: ignore[misc, operator]


def _growing(rows: list[Row], name: str, value: Value) -> bool:
    """Is more saved the more groups overlap, in either way?"""
    found = [[y for _, y, _, _ in against_cbcast(own, name, "overlap", value)]
             for _, own in shapes(rows)]  # fmt: skip
    return all(ys == sorted(ys) for ys in found)


def _fast(rows: list[Row]) -> Claim:
    printed, exact = _savings(rows, "fast_p"), _savings(rows, "fast")
    table = [[*one, other[5]] for one, other in zip(printed, exact, strict=True)]
    fewer = min(_where_overlapping(printed, 3) + _where_overlapping(printed, 5)) > 0
    more = all(_growing(rows, "fast_p", value) for value in (counted, IN_A_HEADER))
    holds: Holds = "in part" if fewer or more else "no"
    if fewer and more and min(_where_overlapping(exact, 5)) > 0:
        holds = "yes"
    return Claim(
        claim="Fast carries one number for each process, CBCAST a vector for each group: "
        "|GLDV| < sum of |g|. The more groups overlap, the smaller is the overhead of Fast "
        "compared with CBCAST.",
        where='004, section 5.4, "Message space overhead when using the GLDV vectors"',
        measured="Saved by `fast_p`, which has the printed vector, in per cent of what CBCAST has; "
        "and by `fast`, which delivers as early as possible. In integers: 1 - processes / sum of "
        f"|g|.\n\n{markdown_table([*HEAD, '`fast`: packet, %'], table)}",
        holds=holds,
        why="The printed vector is smaller, with nothing left out and as it is sent"
        + (", and the more so the more groups overlap. " if more else ". ")
        + "But it is not enough for an exact protocol: that waits for ever for numbers of groups "
        "that a process is not in (E-M3). Made live with NULLs (`fast_p`) it waits for more than "
        "causes. Made live by group and process (`fast`) it has as many entries as CBCAST and a "
        "block number more (E-M4). What is sent saves less than what is counted: vectors that "
        "carry only what is news grow with what happened since the sender's last message, not "
        "with the number of processes or groups.",
    )


def _relative(rows: list[Row]) -> Claim:
    table = _savings(rows, "relative")
    full, sent, every = (_where_overlapping(table, column) for column in (4, 5, 6))
    smaller = [saving > 0 for saving in full + sent]
    return Claim(
        claim="Relative carries one integer for each group and one vector, CBCAST a vector for "
        "each group, whether the sender is in it or not: for complex structures a large overhead.",
        where="004, sections 1 and 6",
        measured="Saved by `relative`, in per cent of what CBCAST has. In integers: "
        f"1 - (|g| + groups) / sum of |g|.\n\n{markdown_table(HEAD, table)}",
        holds="yes" if all(smaller) else "in part" if any(smaller) else "no",
        why=f"With nothing left out it saves {min(full):.0f} to {max(full):.0f} % of the header "
        f"where groups overlap. As they are sent, headers save {min(sent):.0f} to {max(sent):.0f} "
        "%: compression, which the source leaves aside, takes more from CBCAST, whose vectors "
        "have more entries that are no news. With NULLs and acknowledgements it is "
        f"{min(every):.0f} to {max(every):.0f} %.",
    )
