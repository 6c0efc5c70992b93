"""Which orders hold with which protocol, promised or not: in one group, and across several."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Bars, Figure
from experiments.price_list import SHAPES, by_order
from experiments.rows import Row, breaks, only
from ordercast.protocols.registry import PROTOCOLS

TITLE = "What each order keeps, and what it breaks"
ABOUT = """\
Eight members, once as one group, once as four groups of four that overlap, so that every member is
in two. A run has twelve messages and their answers, and packets overtake each other. Each run is
judged for every order, promised or not. What a protocol promises was kept in every run; what it
does not promise may hold by luck. The orders across groups are those of 001: global FIFO, global
causal, pairwise total; and one acyclic order of all messages. In one group pairwise and acyclic
are the same. A run is broken if one pair of messages is; the share of runs says how likely that is
with so few messages, not how many pairs are affected."""

ORDERS = (
    ("First-in first-out, across groups", "fifo.global"),
    ("Causal, across groups", "causal.global"),
    ("Total, between each two groups", "total.pairwise"),
    ("Total, one acyclic order of all", "total.global"),
)


def figure(rows: list[Row]) -> Figure:
    names = by_order(rows)
    return Figure(
        TITLE,
        [
            Bars(title, "% of the runs that break it", names, {
                said: [_share(only(rows, protocol=name, groups=groups), order) for name in names]
                for said, groups in SHAPES
            }, most=100)
            for title, order in ORDERS
        ],
        shows="shares of them",
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_fifo(rows), _total(rows), _table(rows)]


def _share(rows: list[Row], order: str) -> float:
    """Per cent of the runs."""
    return 100 * sum(breaks(row, order) for row in rows) / len(rows)


def _told(protocol: str, order: str, share: float, *, alone: bool) -> str:
    """What a table says of an order that was broken so often. In a group that is alone an order
    across groups is the one in the group."""
    inside = f"{order.partition('.')[0]}.group"
    promised = {order, inside} if alone else {order}
    kept = promised & {*PROTOCOLS[protocol].declaration.promises} and not share
    return "promised" if kept else f"{share:.1f}"


def _fifo(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    for name in ("basic", "fifo", "global_fifo"):
        shares = [
            _share(only(rows, protocol=name, groups=groups), order)
            for order in ("fifo.group", "fifo.global")
            for _, groups in SHAPES
        ]
        table.append([f"`{name}`", *shares])
    head = ["%", *(
        f"{what}, {said}" for what in ("in each group", "across groups") for said, _ in SHAPES
    )]  # fmt: skip
    own = only(rows, protocol="fifo")
    across = _share(own, "fifo.global") > 0
    inside = _share(own, "fifo.group") > 0
    holds: Holds = "no" if not across else "yes" if inside else "in part"
    return Claim(
        claim="FIFO ordering is reached only under the assumption that groups are non-overlapping.",
        where='001, slide "FIFO Ordering (2)"',
        measured="Runs that break it:\n\n" + markdown_table(head, table),
        holds=holds,
        why="By the definition on the slide before it, which speaks of one group, it is reached "
        "where groups overlap, too. Across groups it is not; numbers that are not kept for each "
        "group apart (`global_fifo`) reach that."
        if across and not inside
        else "Nothing was broken in these runs."
        if not across
        else "",
    )


def _total(rows: list[Row]) -> Claim:
    several = [row for row in rows if row["groups"] > 1]
    inside = [n for n in by_order(rows) if PROTOCOLS[n].declaration.order in ("total", "hybrid")]
    table: list[list[object]] = [
        [f"`{name}`", PROTOCOLS[name].declaration.scope, *(
            _share(only(several, protocol=name), order)
            for order in ("total.group", "total.pairwise", "total.global")
        )]
        for name in inside
    ]  # fmt: skip
    across = [
        _share(only(several, protocol=name), "total.pairwise")
        for name in inside
        if "total.pairwise" not in PROTOCOLS[name].declaration.promises
    ]
    return Claim(
        claim="Total order in each group is not pairwise total order across overlapping groups: "
        "that must be asked for (how often they differ is not told).",
        where='001, slide "Overlapping Groups"; 000, on groups with different sequencers',
        measured="Groups overlap:\n\n"
        + markdown_table(
            ["% of runs that break it", "scope", "in each group", "pairwise", "acyclic"], table
        ),
        holds="yes" if across and all(across) else "in part" if any(across) else "no",
        why=""
        if across and all(across)
        else "Some of those that do not promise it kept it in these runs.",
    )


def _table(rows: list[Row]) -> Claim:
    tables = []
    for said, groups in SHAPES:
        own = only(rows, groups=groups)
        table: list[list[object]] = [
            [f"`{name}`", PROTOCOLS[name].declaration.order, *(
                _told(name, order, _share(only(own, protocol=name), order), alone=groups == 1)
                for _, order in ORDERS
            )]
            for name in by_order(own)
        ]  # fmt: skip
        head = ["", "order", *(order for _, order in ORDERS)]
        tables.append(
            f"{said.capitalize()}, % of runs that break it, unless it is promised and was kept:\n\n"
            + markdown_table(head, table)
        )
    return Claim(
        claim="None of the sources tells how often an order that was not asked for is broken.",
        where="None",
        measured="\n\n".join(tables),
        holds="nothing was claimed",
    )
