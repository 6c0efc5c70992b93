"""What the timestamps of Causal Blocks save over CBCAST: as claimed, and with all that is sent."""

from __future__ import annotations

from collections.abc import Callable

from experiments.causal_blocks import in_order
from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Header saving over CBCAST"
ABOUT = """\
The same twelve members in six groups. First a message every tenth of a millisecond, over the degree
of overlap. Then, where a member is in two groups, over how much is said. Once the header of a
packet that brings a message is weighed, as the source does; once all headers of all packets, which
a live protocol has to send: NULLs of silent members, and acknowledgements. CBCAST needs no NULLs.
The source counts vectors in full and says so; here all protocols send only what is news."""

IN_A_HEADER, IN_ALL = "header_mean_bytes", "header_bytes_per_message"
COUNTED: dict[str, Callable[[Row], int]] = {
    "slow": lambda row: 1,
    "fast_p": lambda row: row["members"],
    "relative": lambda row: row["group_size"] + row["groups"],
    "fast": lambda row: entries(row),
    "cbcast": lambda row: entries(row),
}
"""Integers of a timestamp with nothing left out, as the source counts them: without the block
number, except where there is nothing else."""


def entries(row: Row) -> int:
    """Of the vectors of all groups together."""
    return int(row["groups"] * row["group_size"])


def figure(rows: list[Row]) -> Figure:
    by_overlap = _by_overlap(rows)
    names = [name for name in in_order(by_overlap) if name != "cbcast"]
    over = "groups that a member is in"
    return Figure(
        TITLE,
        (
            Lines("As the source counts", over, "% of CBCAST's integers that are saved",
                  _curves(by_overlap, names, "overlap", _counted)),
            Lines("In a packet with a message", over, "% of CBCAST's header bytes that are saved",
                  _curves(by_overlap, names, "overlap", IN_A_HEADER)),
            Lines("In all packets", over, "% of CBCAST's header bytes that are saved",
                  _curves(by_overlap, names, "overlap", IN_ALL)),
            Lines("In all packets, a member in 2 groups", "messages per second, all together",
                  "% of CBCAST's header bytes that are saved",
                  [_by_rate(line) for line in _curves(_paced(rows), names, "every_us", IN_ALL)]),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [
        _fast(rows),
        _relative(rows),
        _live(rows),
    ]


def _by_overlap(rows: list[Row]) -> list[Row]:
    """The runs at the pace at which every degree of overlap was run."""
    paces = distinct(rows, "every_us")
    most = max(paces, key=lambda us: len(distinct(only(rows, every_us=us), "overlap")))
    return only(rows, every_us=most)


def _paced(rows: list[Row]) -> list[Row]:
    """The runs at the degree of overlap at which every pace was run."""
    degrees = distinct(rows, "overlap")
    most = max(degrees, key=lambda o: (len(distinct(only(rows, overlap=o), "every_us")), o == 2))
    return only(rows, overlap=most)


def _counted(row: Row) -> float:
    return float(COUNTED[row["protocol"]](row))


def saved(rows: list[Row], protocol: str, x: str, at: float, value: Value) -> float:
    """Per cent of what CBCAST has, at this x."""
    [(_, median, _, _)] = _against_cbcast(only(rows, **{x: at}), protocol, x, value)
    return median


def _curves(rows: list[Row], names: list[str], x: str, value: Value) -> list[Line]:
    """For each x: what is saved, with the least and the most over seeds."""
    return [Line(name, _against_cbcast(rows, name, x, value)) for name in names]


def _against_cbcast(
    rows: list[Row], name: str, x: str, value: Value
) -> list[tuple[float, float, float, float]]:
    """Each run against the run of CBCAST with the same messages."""
    read: Callable[[Row], float] = value if callable(value) else lambda row: row[value]
    most = {(row[x], row["seed"]): read(row) for row in only(rows, protocol="cbcast")}
    return against(
        only(rows, protocol=name), x, lambda row: 100 * (1 - read(row) / most[row[x], row["seed"]])
    )


def _by_rate(line: Line) -> Line:
    return Line(line.name, sorted((round(1e6 / x), y, a, b) for x, y, a, b in line.points))


def _fast(rows: list[Row]) -> Claim:
    own = _by_overlap(rows)
    degrees = distinct(own, "overlap")
    table: list[list[object]] = [
        [
            overlap,
            *(
                saved(own, "fast_p", "overlap", overlap, how)
                for how in (_counted, IN_A_HEADER, IN_ALL)
            ),
            saved(own, "fast", "overlap", overlap, IN_A_HEADER),
        ]
        for overlap in degrees
    ]
    head = [
        "groups of a member", "claimed, %", "`fast_p`, packet with a message, %",
        "`fast_p`, all packets, %", "`fast`, packet with a message, %",
    ]  # fmt: skip
    overlapping = [line[2:] for line in table if line[0] > 1]  # type: ignore[operator]
    small = all(line[0] > 0 for line in overlapping)  # type: ignore[operator]
    exact = all(line[2] > 0 for line in overlapping)  # type: ignore[operator]
    growing = [line[2] for line in table] == sorted(line[2] for line in table)  # type: ignore[type-var]
    holds: Holds = "no"
    if small:
        holds = "yes" if exact and growing else "in part"
    return Claim(
        claim="Fast carries one number for each process, CBCAST a vector for each group: "
        "|GLDV| < sum of |g|. The more groups overlap, the smaller is the overhead of Fast "
        "compared with CBCAST.",
        where='004, section 5.4, "Message space overhead when using the GLDV vectors"',
        measured="Saved, in per cent of what CBCAST has. Claimed: 1 - processes / sum of |g|."
        f"\n\n{markdown_table(head, table)}",
        holds=holds,
        why="One number for each process is not enough for an exact protocol: it waits for ever "
        "for numbers of groups that a process is not in (E-M3). Made live by group and process "
        "(`fast`) it has as many entries as CBCAST and a block number more (E-M4). Made live with "
        "NULLs (`fast_p`) its header is smaller and it waits for more than causes. And vectors "
        "that carry only what is news grow with what happened since the sender's last message, "
        "not with the number of processes or groups.",
    )


def _relative(rows: list[Row]) -> Claim:
    own = _by_overlap(rows)
    table: list[list[object]] = [
        [
            overlap,
            *(
                saved(own, "relative", "overlap", overlap, how)
                for how in (_counted, IN_A_HEADER, IN_ALL)
            ),
        ]
        for overlap in distinct(own, "overlap")
    ]
    head = ["groups of a member", "claimed, %", "packet with a message, %", "all packets, %"]
    several = [line[2:] for line in table if line[0] > 1]  # type: ignore[operator]
    smaller = [saving > 0 for line in several for saving in line]  # type: ignore[operator]
    return Claim(
        claim="Relative carries one integer for each group and one vector, CBCAST a vector for "
        "each group, whether the sender is in it or not: for complex structures a large overhead.",
        where="004, sections 1 and 6",
        measured="Saved, in per cent of what CBCAST has. Claimed: 1 - (|g| + groups) / sum of |g|."
        f"\n\n{markdown_table(head, table)}",
        holds="yes" if all(smaller) else "in part" if any(smaller) else "no",
        why="The saving is less than that of the formula, since no protocol here carries what its "
        "receivers know already, and every header has a few bytes besides the timestamp.",
    )


def _live(rows: list[Row]) -> Claim:
    own = _paced(rows)
    names = [name for name in in_order(own) if name not in ("cbcast", "fast")]
    paces = distinct(own, "every_us")
    table: list[list[object]] = [
        [
            1e6 / us,
            *(saved(own, name, "every_us", us, IN_ALL) for name in names),
            *(middle(own, nulls, protocol=name, every_us=us) for name in names),
        ]
        for us in paces
    ]
    head = [
        "messages per s",
        *(f"`{name}` saves, %" for name in names),
        *(f"NULLs of `{name}`" for name in names),
    ]
    live = all(row["verdict"] == "kept" for row in only(rows, protocol=names))
    return Claim(
        claim="All members of a group are lively: each will eventually multicast again. A simple "
        "mechanism with time-outs can take the place of this assumption (its cost is not told).",
        where="004, section 3",
        measured="Header bytes of all packets that are saved against CBCAST, and NULL packets per "
        f"message:\n\n{markdown_table(head, table)}",
        holds="yes" if live else "no",
        why="Its packets count, too: the longer members are silent, the more of them stand against "
        "what the smaller timestamps spare.",
    )


def nulls(row: Row) -> float:
    """NULL packets per message."""
    return float(row["packet_kinds"].get("Null", 0) / row["sent"])
