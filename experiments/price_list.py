"""What each order costs, all of them on one workload."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Bars, Figure
from experiments.rows import Row, distinct, middle, only
from ordercast.core.declaration import ORDERS
from ordercast.protocols.registry import PROTOCOLS

TITLE = "The price list of ordering"
ABOUT = """\
Eight members, a message of 100 bytes every half millisecond on average, packets that take 0.5 to
1.5 ms and may overtake each other, none lost. The seed fixes who sends what and when, so every
protocol gets the same messages. Once all members are one group; once there are four groups of four,
and every member is in two of them. Protocols that need more than this network get links, whose
packets count. Links keep packets in order, and what a message waits for that counts as waiting: it
is why `fast_p` and `relative`, which need links, wait longer in one group than `cbcast`, which
needs none ([there](#causal-blocks-timestamp-against-delay) on a network that keeps the order).
Orders inside one group say nothing across groups: what `scope` says is part of what one gets for
the price."""

SHAPES = (("one group of 8", 1), ("4 groups of 4, overlapping", 4))
PRICES = (
    ("Delay, median", "ms from send to delivery", "delay_p50_ms"),
    ("Delay, 99th percentile", "ms from send to delivery", "delay_p99_ms"),
    ("Held back", "ms from arrival to delivery, mean", "hold_back_mean_ms"),
    ("Packets", "per message, one per receiver", "packets_per_message"),
    ("Header bytes", "per message, of all packets", "header_bytes_per_message"),
    ("Processor time", "µs per message, all members together", "cpu_us_per_message"),
)


def figure(rows: list[Row]) -> Figure:
    names = by_order(rows)
    shapes = [(said, groups) for said, groups in SHAPES if only(rows, groups=groups)]
    panels = [
        Bars(
            title,
            unit,
            names,
            {
                said: [middle(rows, column, protocol=name, groups=groups) for name in names]
                for said, groups in shapes
            },
        )
        for title, unit, column in PRICES
    ]
    return Figure(TITLE, panels)


def claims(rows: list[Row]) -> list[Claim]:
    return [_prices(rows), _against_causal(rows)]


def by_order(rows: list[Row]) -> list[str]:
    """Weak orders first."""
    names = distinct(rows, "protocol")
    listed = list(PROTOCOLS)
    return sorted(
        names, key=lambda p: (ORDERS.index(PROTOCOLS[p].declaration.order), listed.index(p))
    )


def _prices(rows: list[Row]) -> Claim:
    tables = []
    for said, groups in SHAPES:
        own = only(rows, groups=groups)
        if not own:
            continue
        table: list[list[object]] = []
        for name in by_order(own):
            declared = PROTOCOLS[name].declaration
            prices = [middle(own, column, protocol=name) for _, _, column in PRICES]
            beyond = 100 * middle(own, "needless_share", protocol=name)
            table.append([f"`{name}`", declared.order, declared.scope, *prices, beyond])
        head = [
            "", "order", "scope", "delay p50, ms", "delay p99, ms", "held back, ms", "packets",
            "header bytes", "processor, µs", "% of waiting beyond causality",
        ]  # fmt: skip
        tables.append(f"{said.capitalize()}:\n\n{markdown_table(head, table)}")
    return Claim(
        claim="None of the sources measured all orders on one workload.",
        where="All five",
        measured="Per message, medians over seeds.\n\n" + "\n\n".join(tables),
        holds="nothing was claimed",
    )


def _against_causal(rows: list[Row]) -> Claim:
    own = only(rows, groups=1)
    names = [n for n in ("sequencer_pb", "sequencing", "agreed") if only(own, protocol=n)]
    columns = (
        "delay_p50_ms",
        "packets_per_message",
        "header_bytes_per_message",
        "cpu_us_per_message",
    )
    causal = {column: middle(own, column, protocol="cbcast") for column in columns}
    table: list[list[object]] = [
        [f"`{name}`", *(middle(own, column, protocol=name) / causal[column] for column in columns)]
        for name in names
    ]
    head = ["against `cbcast`", "delay", "packets", "header bytes", "processor time"]
    return Claim(
        claim="A total order needs a number for every message, of a sequencer or agreed on by all; "
        "a causal order needs vectors (no price is given for either).",
        where='001, slides "Total Ordering (2)" to "(6)" and "Causal Ordering (2)", "(3)"',
        measured="As multiples of what `cbcast` takes, in one group, medians over seeds:\n\n"
        + markdown_table(head, table),
        holds="nothing was claimed",
    )
