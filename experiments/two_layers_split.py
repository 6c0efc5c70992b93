"""002: into how many subgroups a group is best cut."""

from __future__ import annotations

from math import sqrt

from experiments.claims import Claim, Holds, markdown_table
from experiments.crossover import DELAY
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, only

TITLE = "Two layers: how many subgroups"
ABOUT = """\
Groups of a fixed size, cut into k subgroups of equally many members: at least two subgroups of at
least two, as the source has it. One message at a time, each confirmed by all before the next:
members tell their gateway, gateways tell each other. The work of a gateway is that of the process
which worked most, with its share of all words that confirm a message. Packets travel 10 µs, which
is also the shortest time that is told apart."""

NETWORKS = (("one-to-one network", False), ("broadcast network", True))
WORK = "busiest_us_per_message"
NEAR = 1.1  # so many times the least still counts as the least


def figure(rows: list[Row]) -> Figure:
    panels = []
    for what, up, column in (
        ("Work of a gateway", "µs per message", WORK),
        ("Delay", "until all have a message, ms", DELAY),
    ):
        for said, broadcast in NETWORKS:
            own = only(rows, broadcast=broadcast)
            lines = [
                Line(
                    f"n = {n}, root {sqrt(n):g}", against(only(own, members=n), "subgroups", column)
                )
                for n in distinct(own, "members")
            ]
            panels.append(Lines(f"{what}, {said}", "subgroups", up, lines))
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_work(rows), _delay(rows)]


def _work(rows: list[Row]) -> Claim:
    table, near = _least(rows, WORK)
    formula = ", ".join(
        f"{_by_formula(only(rows, members=n))} for n = {n}" for n in distinct(rows, "members")
    )
    return Claim(
        claim="The overhead of a gateway process is O((l + k) l + k²); the minimum is obtained for "
        "k = sqrt(n).",
        where="002, section 5",
        measured="Work of the gateway that worked most, µs per message:\n\n"
        f"{table}\n\nOf the numbers of subgroups that were run, the formula of the source is "
        f"least at {formula}.",
        holds=near,
        why="The formula adds up entries of vectors that a gateway has to do with: l vectors of "
        "l + k entries, k of k. On a computer each packet costs, too, and one to hand over each "
        "copy: l of the message and l of what all have, k of a confirmation. Both are sums of "
        "something that falls with k and something that rises, and flat near the least.",
    )


def _delay(rows: list[Row]) -> Claim:
    table, near = _least(rows, DELAY)
    return Claim(
        claim="We assume that every subgroup includes the same number of processes and "
        "k = sqrt(n) (for the figures of delay).",
        where="002, section 5",
        measured=f"Delay until all have a message, ms:\n\n{table}",
        holds=near,
        why="Three senders work one after the other: in two subgroups of n / k and among k "
        "gateways. Where each copy costs, 2 n / k + k is least for k = sqrt(2 n), a bit more than "
        "the root. Where only entries cost, the local headers with their l + k count twice.",
    )


def _by_formula(rows: list[Row]) -> int:
    """Of the splits that were run, the one with the least (l + k) l + k²."""
    splits: list[int] = distinct(rows, "subgroups")
    n: int = rows[0]["members"]
    return min(splits, key=lambda k: (n / k + k) * n / k + k * k)


def _least(rows: list[Row], column: str) -> tuple[str, Holds]:
    """A table of the best split against the root, and whether the root is as good."""
    lines: list[list[object]] = []
    near = []
    for said, broadcast in NETWORKS:
        for n in distinct(rows, "members"):
            points = against(only(rows, broadcast=broadcast, members=n), "subgroups", column)
            k, least, _, _ = min(points, key=lambda point: point[1])
            root, there, _, _ = min(points, key=lambda point: abs(point[0] - sqrt(n)))
            ends = max(points[0][1], points[-1][1])
            lines.append([said, n, root, there, k, least, there / least, ends])
            near.append(there <= NEAR * least)
    head = [
        "network", "members", "k next to sqrt(n)", "with it", "best k of those run", "with that",
        "ratio", "with the worse of the least and the largest k",
    ]  # fmt: skip
    holds: Holds = "yes" if all(near) else "in part" if any(near) else "no"
    return markdown_table(head, lines), holds
