"""Asking for what is missing, against acknowledging everything, as packets are lost."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Negative acknowledgements against loss"
ABOUT = """\
One group of 8, a message every millisecond, packets take 0.1 to 0.3 ms and are lost at random. In
`sequencing` a member that misses a number asks for it, after 200 ms; a sender that does not get its
number repeats its request. Members tell the sequencer now and then how far they are, so that it
may forget. To compare: `basic`, where every packet of each pair is acknowledged, several in one,
and sent again until it is. It orders nothing. On a network that is known to lose nothing, it does
without acknowledgements."""

ASKING, ACKNOWLEDGING = "sequencing", "basic"
NAMES = {ASKING: "asks for what is missing", ACKNOWLEDGING: "acknowledges all"}
RARE = 0.01
EFFICIENT = 1.1
"""Times the packets without loss, where at most `RARE` of them are lost."""


def figure(rows: list[Row]) -> Figure:
    own = prepared(rows)

    def lines(value: Value) -> list[Line]:
        return [
            Line(f"{said}, {way}", against(only(own, protocol=n, broadcast=b), "percent", value))
            for n, said in (("sequencing", "asking"), ("basic", "all"))
            for b, way in ((True, "multicast"), (False, "one by one"))
        ]

    across = "packets that are lost, per cent"
    return Figure(
        TITLE,
        (
            Lines("Packets", across, "per message", lines("packets_per_message"), even_steps=True),
            Lines("Sent again", across, "per message", lines(again), even_steps=True),
            Lines("Delay", across, "ms from send to delivery, median", lines("delay_p50_ms"),
                  even_steps=True),
            Lines("Delay, the slowest", across, "ms, percentile 99", lines("delay_p99_ms"),
                  even_steps=True),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_efficient(rows)]


def prepared(rows: list[Row]) -> list[Row]:
    """With the loss in per cent."""
    return [row | {"percent": 100 * row["loss"]} for row in rows]


def again(row: Row) -> float:
    """What machines sent once more, per message."""
    return float(row["retransmissions"] / row["sent"])


def _efficient(rows: list[Row]) -> Claim:
    own = prepared(rows)
    columns: tuple[Value, ...] = ("packets_per_message", again, "delay_p50_ms", "delay_p99_ms")
    table: list[list[object]] = [
        [
            p,
            *(
                middle(own, c, protocol=n, broadcast=True, percent=p)
                for c in columns
                for n in NAMES
            ),
        ]
        for p in distinct(own, "percent")
    ]
    said = ("packets", "sent again", "delay, ms", "p99, ms")
    head = ["% lost", *(f"{what}: `{n}`" for what in said for n in NAMES)]

    def dearer(loss: float) -> float:
        """Times the packets without loss."""
        per = [middle(own, "packets_per_message", protocol=ASKING, broadcast=True, loss=found)
               for found in (0.0, loss)]  # fmt: skip
        return per[1] / per[0]

    rare = max(loss for loss in distinct(own, "loss") if loss <= RARE)
    most = max(distinct(own, "loss"))
    fewer = middle(own, "packets_per_message", protocol=ASKING, broadcast=True, loss=rare) < middle(
        own, "packets_per_message", protocol=ACKNOWLEDGING, broadcast=True, loss=rare
    )
    cheap = dearer(rare) <= EFFICIENT
    holds: Holds = "yes" if cheap and fewer else "in part" if cheap or fewer else "no"
    return Claim(
        claim="This negative acknowledgement scheme is efficient on a network on which packets are "
        "rarely dropped (a LAN or a local internetwork).",
        where="000, section 3.2, of Amoeba; the service has it too",
        measured=f"On a network with multicast, per message:\n\n{markdown_table(head, table)}\n\n"
        f"With {100 * rare:g} % lost it takes {dearer(rare):.2f} times the packets that it takes "
        f"without loss, with {100 * most:g} % {dearer(most):.2f} times. (Efficient: at most "
        f"{EFFICIENT:g} times at {100 * RARE:g} %, and fewer than with acknowledgements; in part: "
        "one of the two.)",
        holds=holds,
        why="Packets are saved, not time. One number that is missing holds up all that come after "
        "it until it was asked for, which is after 200 ms by default, so the slowest messages pay "
        "for a loss of one in a hundred already. Where much is lost, requests that are under way "
        "together are repeated together, and packets multiply.",
    )
