"""Packets per message of each multicast, against group size and loss."""

from __future__ import annotations

from collections.abc import Callable

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.protocols.registry import PROTOCOLS

TITLE = "Packets per message"
ABOUT = """\
Every member sends, one message at a time, with pauses that let each message settle. Left: each
multicast on the network that it needs (reliable, first-in first-out), so that no link adds packets
of its own. What is counted is everything: bodies, numbers, proposals, and the acknowledgements by
which members learn what all have. The other two: eight members on a network that loses packets.
`nak` asks for what is missing. `basic` runs over links that acknowledge what came: each packet, or
up to 16 together. Without loss `basic` needs no links. In the last panel it matters how much is
said."""

PACED_LOSS = 0.01
ACK_EACH, ACK_MANY = '{"ack_every":1}', '{"ack_every":16}'
LOSSY = (
    ("nak: what is missing", "nak", "{}"),
    ("basic: ack each", "basic", ACK_EACH),
    ("basic: ack up to 16", "basic", ACK_MANY),
)


STABILITY = {
    "Ack", "Answer", "CumSeqAck", "Delivered", "LinkAck", "NewView", "NewViewAck", "Stable",
    "Status",
}  # fmt: skip
"""Kinds of packets by which members learn what all have; they order nothing."""


def figure(rows: list[Row]) -> Figure:
    by_size = lossless(rows)
    sizes = [
        Line(name, against(only(by_size, protocol=name), "members", "packets_per_message"))
        for name in _by_price(by_size)
    ]
    losses = [
        Line(name, [(100 * x, *ys) for x, *ys in against(own, "loss", "packets_per_message")])
        for name, own in _lossy(rows)
    ]
    paces = [
        Line(name, sorted((1e6 / x, *ys) for x, *ys in _against_pace(own)))
        for name, own in _paced(rows)
    ]
    up = "packets per message, one per receiver"
    return Figure(
        TITLE,
        (
            Lines("No loss", "members of the group", up, sizes),
            Lines(f"{_lossy_members(rows)} members", "packets lost, per cent", up, losses,
                  even_steps=True),
            Lines(f"{_lossy_members(rows)} members, 1 % lost", "messages per second, all together",
                  up, paces),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_relays(rows), _negative(rows), _agreement(rows)]


def lossless(rows: list[Row]) -> list[Row]:
    """The runs against group size."""
    return only(rows, fifo=True)


def bodies(row: Row) -> float:
    """Packets with a body, per message."""
    return row["payload_bytes"] / row["size"] / row["sent"]


def to_order(row: Row) -> float:
    """Packets per message without those by which members learn what all have."""
    kinds = row["packet_kinds"].items()
    return sum(count for kind, count in kinds if kind not in STABILITY) / row["sent"]


def _by_price(rows: list[Row]) -> list[str]:
    most = max(distinct(rows, "members"))
    largest = only(rows, members=most)
    names = distinct(rows, "protocol")
    return sorted(names, key=lambda p: -middle(largest, "packets_per_message", protocol=p))


def _lossy_members(rows: list[Row]) -> int:
    return max(distinct(only(rows, fifo=False), "members"))


def _lossy(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Name and runs of each way to repair a loss, at the pace of the other panels."""
    pace = lossless(rows)[0]["every_us"]
    own = only(rows, fifo=False, every_us=pace, members=_lossy_members(rows))
    return [(name, only(own, protocol=p, options=options)) for name, p, options in LOSSY]


def _paced(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    own = only(rows, fifo=False, loss=PACED_LOSS, members=_lossy_members(rows))
    return [(name, only(own, protocol=p, options=options)) for name, p, options in LOSSY]


def _against_pace(own: list[Row]) -> list[tuple[float, float, float, float]]:
    return against(own, "every_us", "packets_per_message")


def _relays(rows: list[Row]) -> Claim:
    own = only(lossless(rows), protocol="reliable")
    sizes = distinct(own, "members")
    copies = {n: middle(own, bodies, members=n) / n for n in sizes}
    table = markdown_table(
        ["members", "copies of a message that come to a process", "bodies sent, per message"],
        [[n, copies[n], copies[n] * n] for n in sizes],
    )
    as_relayed = all(abs(copies[n] - (n - 1)) < 0.005 * n for n in sizes)
    return Claim(
        claim="R-multicast over B-multicast is correct but inefficient: each message is sent |g| "
        "times to each process.",
        where='001, slide "Reliable Multicast (2)"',
        measured=f"`reliable`, bodies only:\n\n{table}",
        holds="yes" if as_relayed else "no",
        why="It is |g| - 1 here: a process sends itself no packet, since it has the message."
        if as_relayed
        else "Members that had the message already relayed it less often than the rule says.",
    )


def _negative(rows: list[Row]) -> Claim:
    by_loss = _side_by_side(_lossy(rows), "loss", lambda loss: 100 * loss)
    by_pace = _side_by_side(_paced(rows), "every_us", lambda us: 1e6 / us)
    head = ["requests", "packets with NAK", "with ACK of each", "with ACK of up to 16"]
    silent = by_loss[0][1] == 0
    busiest, quietest = by_pace[0], by_pace[-1]
    cheaper = {
        "busiest": busiest[2] < min(busiest[3:]),
        "quietest": quietest[2] < min(quietest[3:]),
    }
    said = (
        f"With {busiest[0]:,.0f} messages per second NAK takes {busiest[2]:.1f} packets for each, "
        f"with {quietest[0]:,.0f} it takes {quietest[2]:.1f}."
    )
    return Claim(
        claim="With piggybacked acknowledgements processes send a separate response only when they "
        "detect that they have missed a message.",
        where='001, slide "Reliable Multicast" (over IP multicast)',
        measured=f"Per message, {_lossy_members(rows)} members:\n\n"
        f"{markdown_table(['% lost', *head], by_loss)}\n\n"
        f"{markdown_table(['messages per s', *head], by_pace)}\n\n{said}",
        holds="yes" if silent and all(cheaper.values()) else "in part" if silent else "no",
        why="Nobody asks for anything where nothing is lost. But a lost last message shows no gap "
        "(erratum E-C3), so who has nothing to say repeats its STATUS until all have all. "
        "Acknowledgements ride on other messages only where there are others: the less is said, "
        "the more packets of their own they need.",
    )


def _side_by_side(
    ways: list[tuple[str, list[Row]]], x: str, shown: Callable[[float], float]
) -> list[list[float]]:
    """A line for each x: requests of the first way, then packets per message of each."""
    (_, nak), *_ = ways
    return [
        [
            shown(at),
            middle(nak, _asked, **{x: at}),
            *(middle(own, "packets_per_message", **{x: at}) for _, own in ways),
        ]
        for at in distinct(nak, x)
    ]


def _asked(row: Row) -> float:
    return row["packet_kinds"].get("Nak", 0) / row["sent"]


def _agreement(rows: list[Row]) -> Claim:
    own = lossless(rows)
    names = ("sequencer_pb", "sequencer_bb", "javagroups", "agreed")
    sizes = distinct(own, "members")
    table: list[list[object]] = [
        [
            f"`{name}`",
            PROTOCOLS[name].declaration.packets,
            *(middle(own, "packets_per_message", protocol=name, members=n) for n in sizes),
            middle(own, to_order, protocol=name, members=sizes[-1]),
            middle(own, "delay_p50_ms", protocol=name, members=sizes[-1]),
        ]
        for name in names
    ]
    last = f"at n = {sizes[-1]}"
    head = ["", "declared", *(f"n = {n}" for n in sizes), f"to order, {last}", f"delay {last}, ms"]
    return Claim(
        claim="Identifiers for a total order come from a sequencer, or from an agreement of all "
        "members (no cost is given for either).",
        where='001, slides "Total Ordering (2)" to "(6)"',
        measured="Packets per message of all kinds, those that acknowledge nothing, "
        "and the median delay from send to delivery:\n\n" + markdown_table(head, table),
        holds="nothing was claimed",
    )
