"""What a total order takes on a local network with multicast, and on slow networks."""

from __future__ import annotations

import json

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Ordering on fast and on slow networks"
ABOUT = """\
One group of 8, packets take the same time each, 0.1 ms to 100 ms. `sequencing` has a further
process as sequencer. `agreed` and `block_total` are total orders without one, `cbcast` is a causal
order. Once there is a message every 2 ms; once all is sent at the start, and at most 8 messages of
a member are under way. *Blocking* is the source's first form: the next message waits for the
number of the one before, and for nothing else. A window is slower than that on a fast network: it
counts a message until all have acknowledged it, which they do after 5 ms, or 16 messages."""

WIRE = "delay of a packet, ms"
ORDERED = ("sequencing", "agreed", "block_total")
CAUSAL = "cbcast"
WORSE = 0.9
"""Of the share of the causal throughput on the fast network: below that, slowness is to blame."""


def figure(rows: list[Row]) -> Figure:
    own = prepared(rows)
    calm, full = only(own, workload="paced", broadcast=False), only(own, workload="saturating")
    names = [n for n in distinct(own, "name") if n != "block_total"]

    def lines(rows: list[Row], value: Value) -> list[Line]:
        return [Line(n, against(found, "wire", value)) for n in names
                if (found := only(rows, name=n))]  # fmt: skip

    return Figure(
        TITLE,
        (
            Lines("Delay", WIRE, "times that of a packet, median", lines(calm, trips)),
            Lines("Throughput with a window of 8", WIRE, "messages per second",
                  lines(full, "throughput_per_s")),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_low(rows), _slow(rows)]


def prepared(rows: list[Row]) -> list[Row]:
    """With the time on the wire, and whether senders wait for each number."""
    return [
        row
        | {
            "wire": float(row["delay"].split()[1]) / 1000,
            "name": row["protocol"]
            + (", blocking" if json.loads(row["options"]).get("blocking") else ""),
        }
        for row in rows
    ]


def trips(row: Row) -> float:
    """The delay of a message by that of a packet."""
    return float(row["delay_p50_ms"] / row["wire"])


def _low(rows: list[Row]) -> Claim:
    own = only(prepared(rows), workload="paced")
    own = only(own, wire=min(distinct(own, "wire")))
    names = (*ORDERED, CAUSAL)
    columns = ("delay_p50_ms", "delay_p99_ms", "packets_per_message", "cpu_us_per_message")
    table: list[list[object]] = [
        [
            f"`{n}`",
            *(middle(own, c, name=n, broadcast=way) for c in columns for way in (True, False)),
        ]
        for n in names
    ]
    said = ("delay, ms", "p99, ms", "packets", "processor, µs")
    head = ["", *(f"{what}: {way}" for what in said for way in ("multicast", "one by one"))]
    lowest = [middle(own, "delay_p50_ms", name=n, broadcast=True) for n in ORDERED]
    return Claim(
        claim="Over a local area network with a multicast capability, a sequencer-based protocol "
        "produces relatively low latencies.",
        where="000, section 3.3",
        measured=f"Packets take {own[0]['wire']:g} ms:\n\n{markdown_table(head, table)}",
        holds="yes" if lowest[0] == min(lowest) else "no",
        why="Compared with the other total orders here. A causal order needs one packet where the "
        "sequencer needs two in a row. Multicast saves packets, and the work of sending them; it "
        "is not what makes the delay low.",
    )


def _slow(rows: list[Row]) -> Claim:
    own = prepared(rows)
    calm, full = only(own, workload="paced", broadcast=False), only(own, workload="saturating")
    wires = distinct(full, "wire")
    several = distinct(full, "name")
    plain = [n for n in several if "blocking" not in n]
    table: list[list[object]] = [
        [
            w,
            *(middle(calm, trips, name=n, wire=w) for n in plain),
            *(middle(full, "throughput_per_s", name=n, wire=w) for n in several),
        ]
        for w in wires
    ]
    head = [WIRE, *(f"delay by that of a packet: `{n}`" for n in plain),
            *(f"messages per s: {n}" for n in several)]  # fmt: skip
    plain_shares, blocking_shares = (
        [
            middle(full, "throughput_per_s", name=name, wire=w)
            / middle(full, "throughput_per_s", name=CAUSAL, wire=w)
            for w in (wires[0], wires[-1])
        ]
        for name in ("sequencing", "sequencing, blocking")
    )
    falls, first_form_falls = (
        last < WORSE * first for first, last in (plain_shares, blocking_shares)
    )
    holds: Holds = "yes" if falls else "in part" if first_form_falls else "no"
    return Claim(
        claim="High-latency networks may not be able to sustain total ordering efficiently (a "
        "suspicion; nothing was measured).",
        where="000, section 7",
        measured=f"{markdown_table(head, table)}\n\nWith the same window `sequencing` lets through "
        f"{plain_shares[0]:.2f} times what `{CAUSAL}` does where packets take {wires[0]:g} ms, and "
        f"{plain_shares[1]:.2f} times where they take {wires[-1]:g} ms; if senders block, "
        f"{blocking_shares[0]:.2f} and {blocking_shares[1]:.3f} times. (Not sustained: less than "
        f"{WORSE:g} of the share that it has on the fast network.)",
        holds=holds,
        why="With a window the throughput falls as the network gets slower with any order, and "
        "with one that needs more packets in a row by that factor more. Total order is dearer than "
        "causal order everywhere, but not for the slowness: its delay does not become more times "
        "that of a packet. What slow networks do not bear is the first form of the causal orders: "
        "a sender that blocks has a window of one.",
    )
