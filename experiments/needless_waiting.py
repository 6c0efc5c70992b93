"""Which share of the waiting is needless, over the degree of overlap."""

from __future__ import annotations

from experiments.causal_blocks import EXACT, in_order
from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Needless waiting"
ABOUT = """\
The same twelve members in six groups, once with a message every tenth of a millisecond, once every
two. A message waits *needlessly* from the moment at which everything that its sender had sent or
delivered before was delivered here. What this tells is no header, but what the applications did. A
message that waits for one that waits needlessly waits for good reason by this measure. So the whole
waiting time stands beside it, and what it is for CBCAST, which gets the same messages. Where there
is little overlap there is little waiting, and one wait more or less is a large share of it: the
whiskers say how much that differs between seeds."""

BY_BLOCKS = ("slow", "relative")


def figure(rows: list[Row]) -> Figure:
    over = "groups that a member is in"
    panels = []
    for us in distinct(rows, "every_us"):
        own = only(rows, every_us=us)
        pace = f"{1e6 / us:,.0f} messages per second"
        panels.append(
            Lines(f"Needless part, {pace}", over, "% of the waiting time", [
                Line(name, against(only(own, protocol=name), "overlap", _share))
                for name in in_order(own)
            ])
        )  # fmt: skip
        panels.append(
            Lines(f"Waiting, {pace}", over, "ms from arrival to delivery, mean", [
                Line(name, against(only(own, protocol=name), "overlap", "hold_back_mean_ms"))
                for name in in_order(own)
            ])
        )  # fmt: skip
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_fast(rows), _blocks(rows)]


def _share(row: Row) -> float:
    return float(100 * row["needless_share"])


def _fast(rows: list[Row]) -> Claim:
    own = only(rows, protocol=EXACT)
    waits = {name: sum(row["waited"] for row in only(own, protocol=name)) for name in EXACT}
    needless = {
        name: sum(row["needless_waits"] for row in only(own, protocol=name)) for name in EXACT
    }
    table: list[list[object]] = [[f"`{name}`", waits[name], needless[name]] for name in EXACT]
    return Claim(
        claim="Fast delivers as early as possible: a message is delayed only if there is one that "
        "it depends on and that has not been delivered. So does CBCAST.",
        where="004, sections 5.1 and 6",
        measured="Over all runs:\n\n"
        + markdown_table(["", "messages that waited", "... needlessly"], table),
        holds="no" if any(needless.values()) else "yes",
        why=""
        if any(needless.values())
        else "This is `fast` with a vector by group and process. "
        "The printed one waits for messages that never come (E-M3).",
    )


def _blocks(rows: list[Row]) -> Claim:
    names = [name for name in in_order(rows) if name not in EXACT]
    head = [
        "messages per s", "groups of a member",
        *(f"`{name}`, % needless" for name in names),
        *(f"`{name}`, ms" for name in names),
        "`cbcast`, ms",
    ]  # fmt: skip
    table: list[list[object]] = []
    for us in distinct(rows, "every_us"):
        own = only(rows, every_us=us)
        for overlap in distinct(own, "overlap"):
            at = only(own, overlap=overlap)
            table.append(
                [
                    1e6 / us,
                    overlap,
                    *(middle(at, _share, protocol=name) for name in names),
                    *(middle(at, "hold_back_mean_ms", protocol=name) for name in names),
                    middle(at, "hold_back_mean_ms", protocol="cbcast"),
                ]
            )
    several = [row for row in rows if row["overlap"] > 1]
    waits = all(row["needless_ms"] > 0 for row in only(several, protocol=BY_BLOCKS))
    beyond = [
        f"`{name}` {100 * (1 - _waiting(several, 'cbcast') / _waiting(several, name)):.0f} %"
        for name in names
    ]
    return Claim(
        claim="With block completion a message waits for all with smaller numbers, though some of "
        "them may be concurrent (how many is not told).",
        where="004, section 5",
        measured="The needless part of the waiting time, and the whole of it for each message of "
        f"others:\n\n{markdown_table(head, table)}\n\nWhere groups overlap, CBCAST would have "
        f"spared {', '.join(beyond)} of the waiting.",
        holds="yes" if waits else "in part",
        why="What CBCAST would have spared is more than the needless part: one message that waits "
        "needlessly makes others wait that depend on it.",
    )


def _waiting(rows: list[Row], protocol: str) -> float:
    """Of all messages in all runs."""
    own = only(rows, protocol=protocol)
    return float(sum(row["hold_back_mean_ms"] * row["deliveries"] for row in own))
