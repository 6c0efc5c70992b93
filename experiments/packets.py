"""Packets per message of each multicast, against group size and loss."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.protocols.registry import PROTOCOLS

TITLE = "Packets per message"
ABOUT = """\
Every member sends, one message at a time, with pauses that let each message settle. Left: each
multicast on the network that it needs (reliable, first-in first-out), so that no link adds packets
of its own. What is counted is everything: bodies, numbers, proposals, and the acknowledgements by
which members learn what all have. Right: eight members on a network that loses packets. `nak` asks
for what is missing. `basic` runs over links that acknowledge what came: each packet, or up to 16
together. Without loss `basic` needs no links."""

ACK_EACH, ACK_MANY = '{"ack_every":1}', '{"ack_every":16}'
LOSSY = (
    ("nak: what is missing", "nak", "{}"),
    ("basic: ack each", "basic", ACK_EACH),
    ("basic: ack up to 16", "basic", ACK_MANY),
)


def figure(rows: list[Row]) -> Figure:
    by_size = lossless(rows)
    sizes = [
        Line(name, against(only(by_size, protocol=name), "members", "packets_per_message"))
        for name in _by_price(by_size)
    ]
    losses = [
        Line(name, [(100 * x, *ys) for x, *ys in _against_loss(rows, protocol, options)])
        for name, protocol, options in LOSSY
    ]
    up = "packets per message, one per receiver"
    return Figure(
        TITLE,
        (
            Lines("No loss", "members of the group", up, sizes),
            Lines(f"{_lossy_members(rows)} members", "packets lost, per cent", up, losses,
                  even_steps=True),
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


def _by_price(rows: list[Row]) -> list[str]:
    most = max(distinct(rows, "members"))
    largest = only(rows, members=most)
    names = distinct(rows, "protocol")
    return sorted(names, key=lambda p: -middle(largest, "packets_per_message", protocol=p))


def _lossy_members(rows: list[Row]) -> int:
    return max(distinct(only(rows, fifo=False), "members"))


def _against_loss(
    rows: list[Row], protocol: str, options: str
) -> list[tuple[float, float, float, float]]:
    members = _lossy_members(rows)
    own = only(rows, fifo=False, protocol=protocol, options=options, members=members)
    return against(own, "loss", "packets_per_message")


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
    members = _lossy_members(rows)
    table, dearer = [], []
    for loss in distinct(only(rows, fifo=False), "loss"):
        at = {"loss": loss, "members": members, "fifo": False}
        nak = middle(rows, "packets_per_message", protocol="nak", **at)
        each, many = (
            middle(rows, "packets_per_message", protocol="basic", options=options, **at)
            for options in (ACK_EACH, ACK_MANY)
        )
        asked = middle(rows, _asked, protocol="nak", **at)
        table.append([100 * loss, asked, nak, each, many])
        dearer.append(each > nak)
    head = ["% lost", "requests", "packets with NAK", "with ACK of each", "with ACK of up to 16"]
    silent = table[0][1] == 0
    return Claim(
        claim="With piggybacked acknowledgements processes send a separate response only when they "
        "detect that they have missed a message.",
        where='001, slide "Reliable Multicast" (over IP multicast)',
        measured=f"Per message, {members} members:\n\n{markdown_table(head, table)}",
        holds="in part" if silent and all(dearer) else "no",
        why="Nobody asks where nothing is lost, and negative acknowledgements are cheaper than "
        "positive ones of each packet at every loss measured. But a lost last message shows no gap "
        "(erratum E-C3), so who is idle says STATUS until all have all: separate packets, with "
        "which the pauses between messages, as here, are filled.",
    )


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
            middle(own, "delay_p50_ms", protocol=name, members=sizes[-1]),
        ]
        for name in names
    ]
    head = ["", "declared", *(f"n = {n}" for n in sizes), f"delay at n = {sizes[-1]}, ms"]
    return Claim(
        claim="Identifiers for a total order come from a sequencer, or from an agreement of all "
        "members (no cost is given for either).",
        where='001, slides "Total Ordering (2)" to "(6)"',
        measured="Packets per message, all kinds, and the median delay from send to delivery:\n\n"
        + markdown_table(head, table),
        holds="nothing was claimed",
    )
