"""Packets per message of each multicast, against group size."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.protocols.registry import PROTOCOLS

TITLE = "Packets per message"
ABOUT = """\
Every member sends, one message at a time, with pauses that let each message settle, on the network
that each multicast needs (reliable, first-in first-out), so that no link adds packets of its own.
Left, what is counted is everything: bodies, numbers, proposals, and the acknowledgements by which
members learn what all have. Right, bodies only, of `basic` and `reliable`: once a packet goes to
one receiver, once the network brings one packet to all that it is for (IP multicast)."""

STABILITY = {
    "Ack", "Answer", "CumSeqAck", "Delivered", "LinkAck", "NewView", "NewViewAck", "Stable",
    "Status",
}  # fmt: skip
"""Kinds of packets by which members learn what all have; they order nothing."""

CASTS = (("one to one", False), ("IP multicast", True))


def figure(rows: list[Row]) -> Figure:
    apart = only(rows, broadcast=False)
    every = [
        Line(name, against(only(apart, protocol=name), "members", "packets_per_message"))
        for name in _by_price(apart)
    ]
    copied = [
        Line(
            f"{name}, {said}",
            against(only(rows, protocol=name, broadcast=broadcast), "members", bodies),
        )
        for name in ("reliable", "basic")
        for said, broadcast in CASTS
    ]
    across = "members of the group"
    return Figure(
        TITLE,
        (
            Lines("All packets", across, "packets per message, one per receiver", every),
            Lines("Packets with a body", across, "bodies sent, per message", copied),
        ),
    )


def claims(rows: list[Row]) -> list[Claim]:
    return [_copies(rows), _relays(rows), _agreement(rows)]


def bodies(row: Row) -> float:
    """Packets with a body, per message."""
    return float(row["payload_bytes"] / row["size"] / row["sent"])


def to_order(row: Row) -> float:
    """Packets per message without those by which members learn what all have."""
    kinds = row["packet_kinds"].items()
    return float(sum(count for kind, count in kinds if kind not in STABILITY) / row["sent"])


def _by_price(rows: list[Row]) -> list[str]:
    most = max(distinct(rows, "members"))
    largest = only(rows, members=most)
    names = distinct(rows, "protocol")
    return sorted(names, key=lambda p: -middle(largest, "packets_per_message", protocol=p))


def _copies(rows: list[Row]) -> Claim:
    own = only(rows, protocol="basic")
    sizes = distinct(own, "members")
    sent = {
        broadcast: [middle(own, bodies, members=n, broadcast=broadcast) for n in sizes]
        for _, broadcast in CASTS
    }
    as_said = sent[False] == [n - 1 for n in sizes] and sent[True] == [1] * len(sizes)
    table: list[list[object]] = [list(line) for line in zip(sizes, *sent.values(), strict=True)]
    return Claim(
        claim="With unicast multiple copies of a message are sent; multicast is one-to-multiple.",
        where='001, slide "Different Comm. Methods"',
        measured="`basic`, bodies sent for each message:\n\n"
        + markdown_table(["members", *(said for said, _ in CASTS)], table),
        holds="yes" if as_said else "no",
        why="What the slide says of broadcast, that it abuses bandwidth, is not measured: this "
        "network brings a packet to nobody that it is not for."
        if as_said
        else "Other numbers of copies were sent than one for each other member, and one.",
    )


def _relays(rows: list[Row]) -> Claim:
    own = only(rows, protocol="reliable", broadcast=False)
    over = only(rows, protocol="reliable", broadcast=True)
    sizes = distinct(own, "members")
    copies = {n: middle(own, bodies, members=n) / n for n in sizes}
    table = markdown_table(
        [
            "members", "copies of a message that come to a process", "bodies sent, per message",
            "bodies sent, IP multicast",
        ],
        [[n, copies[n], copies[n] * n, middle(over, bodies, members=n)] for n in sizes],
    )  # fmt: skip
    as_relayed = all(abs(copies[n] - (n - 1)) < 0.005 * n for n in sizes)
    return Claim(
        claim="R-multicast over B-multicast is correct but inefficient: each message is sent |g| "
        "times to each process.",
        where='001, slide "Reliable Multicast (2)"',
        measured=f"`reliable`, bodies only:\n\n{table}",
        holds="yes" if as_relayed else "no",
        why="It is |g| - 1 here: a process sends itself no packet, since it has the message. IP "
        "multicast spares the sending, not the receiving: as many copies come to each process."
        if as_relayed
        else "Members that had the message already relayed it less often than the rule says.",
    )


def _agreement(rows: list[Row]) -> Claim:
    own = only(rows, broadcast=False)
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
