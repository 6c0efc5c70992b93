"""A body that goes through the sequencer, or from its sender to all: bytes, throughput, delay."""

from __future__ import annotations

import json

from experiments.claims import Claim, markdown_table
from experiments.drawing import Bars, Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Bodies through the sequencer, and apart"
ABOUT = """\
One group, total order, one further process as its sequencer, lines of 1 Gbit/s into and out of
every process. *Through the sequencer* (the default): the body goes to the sequencer, and from
there with its number to the members. *Apart* (`bodies_apart=True`): the sender brings it to all,
and the sequencer sends only numbers. Once everybody has all its messages to send at the start, and
how fast they come through is the limit; once there is a message every 5 ms. Both on a network with
multicast, which the source assumes, where a packet to several is sent and counted once; and on one
without, where it is sent and counted once for each of them."""

WAYS = {False: "through the sequencer", True: "apart"}
SHORT = {False: "through", True: "apart"}
NETWORKS = {True: "multicast", False: "one by one"}
SIZE = "bytes of a message"


def figure(rows: list[Row]) -> Figure:
    panels = (
        ("Throughput limit", "messages per second", fast(rows), "throughput_per_s"),
        ("Delay at leisure", "ms from send to delivery, median", slow(rows), "delay_p50_ms"),
    )
    lines = [
        Lines(f"{title}, {network}", SIZE, up, _by_way(only(own, broadcast=b), value))
        for title, up, own, value in panels
        for b, network in NETWORKS.items()
    ]
    return Figure(
        TITLE,
        (
            *lines,
            _counted("Bodies on the network", fast(rows), bodies),
            _counted("Bodies that one process sends, at most", fast(rows), most_bodies),
        ),
    )


def _counted(title: str, own: list[Row], value: Value) -> Bars:
    """Bars for what is the same whatever the size of a message."""
    kinds = [(n, b) for n in distinct(own, "members") for b in NETWORKS]
    return Bars(
        title,
        "per message; any size",
        [f"{n}, {NETWORKS[b]}" for n, b in kinds],
        {said: [middle(own, value, members=n, broadcast=b, apart=way) for n, b in kinds]
         for way, said in WAYS.items()},
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_bandwidth(rows), _two_packets(rows)]


def apart(row: Row) -> bool:
    """Whether senders brought the bodies."""
    return bool(json.loads(row["options"]).get("bodies_apart"))


def fast(rows: list[Row]) -> list[Row]:
    """The runs in which all is sent at the start."""
    return [row | {"apart": apart(row)} for row in only(rows, workload="saturating")]


def slow(rows: list[Row]) -> list[Row]:
    """The others."""
    return [row | {"apart": apart(row)} for row in only(rows, workload="paced")]


def bodies(row: Row) -> float:
    """Packets with a body, per message."""
    return float(row["payload_bytes"] / row["size"] / row["sent"])


def most_bodies(row: Row) -> float:
    """The same, by the process that sends most."""
    return float(row["most_bytes_sent"] / row["size"] / row["sent"])


def _by_way(own: list[Row], value: Value) -> list[Line]:
    return [
        Line(f"{said}, {n} members", against(only(own, apart=way, members=n), "size", value))
        for n in distinct(own, "members")
        for way, said in SHORT.items()
    ]


def _side_by_side(own: list[Row], *values: Value) -> list[tuple[str, list[float]]]:
    """A line for each network, group size and message size: each value, both ways."""
    return [
        (network, [n, size, *(
            middle(own, value, broadcast=b, members=n, size=size, apart=way)
            for value in values
            for way in WAYS
        )])
        for b, network in NETWORKS.items()
        for n in distinct(own, "members")
        for size in distinct(own, "size")
    ]  # fmt: skip


def _head(*said: str) -> list[str]:
    ways = [f"{what}: {way}" for what in said for way in WAYS.values()]
    return ["network", "members", "bytes", *ways]


def _bandwidth(rows: list[Row]) -> Claim:
    own = fast(rows)
    table = _side_by_side(own, bodies, most_bodies, "throughput_per_s")
    twice = all(row[2] == 2 for network, row in table if network == NETWORKS[True])
    fewer = all(row[3] < row[2] for _, row in table)
    head = _head("bodies on the network", "by the process that sends most", "messages per s")
    return Claim(
        claim="Each message body is transmitted twice, once in DO-MULTICAST and once in ACCEPT; "
        "the alternative, in which clients multicast the body and the sequencer only numbers it, "
        "reduces bandwidth utilisation.",
        where="000, section 4 (after Kaashoek and Tanenbaum)",
        measured="Per message, all sent at the start:\n\n"
        + markdown_table(head, [[network, *row] for network, row in table]),
        holds="yes" if twice and fewer else "in part" if fewer else "no",
        why="Twice and once are counted with a network that multicasts. Where each member gets a "
        "packet of its own, one body of many is saved. What is gained then is another thing: the "
        "work is divided. Through the sequencer one process sends every body to every member; "
        "apart, each sender its own. That decides the limit for large bodies, and for small ones "
        "there is little to gain.",
    )


def _two_packets(rows: list[Row]) -> Claim:
    table = _side_by_side(slow(rows), "delay_p50_ms", "packets_per_message", "cpu_us_per_message")
    slower = [row[3] > row[2] for _, row in table]
    head = _head("delay, ms", "packets", "processor, µs")
    return Claim(
        claim="The reduction is traded off against the need for group members to receive two "
        "messages before the body can be delivered.",
        where="000, section 4",
        measured="Per message, one every 5 ms:\n\n"
        + markdown_table(head, [[network, *row] for network, row in table]),
        holds="yes" if all(slower) else "in part" if any(slower) or _dearer(table) else "no",
        why="More packets come to a member, and take processor time. But body and number travel at "
        "the same time, and the body no longer goes two ways one after the other: the larger it "
        "is, the more that counts.",
    )


def _dearer(table: list[tuple[str, list[float]]]) -> bool:
    """Whether apart takes more packets, everywhere."""
    return all(row[5] > row[4] for _, row in table)
