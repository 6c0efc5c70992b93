"""A body that goes through the sequencer, or from its sender to all: bytes, throughput, delay."""

from __future__ import annotations

import json

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Bodies through the sequencer, and apart"
ABOUT = """\
One group, total order, one further process as its sequencer, lines of 1 Gbit/s into and out of
every process. *Through the sequencer* (the default): the body goes to the sequencer, and from
there with its number to the members. *Apart* (`bodies_apart=True`): the sender brings it to all,
and the sequencer sends only numbers. Once everybody has all its messages to send at the start, and
how fast they come through is the limit; once there is a message every 5 ms. Packets to several are
counted, and sent, one by one: there is no multicast in the network."""

WAYS = {False: "through the sequencer", True: "apart"}
SHORT = {False: "through", True: "apart"}
SIZE = "bytes of a message"


def figure(rows: list[Row]) -> Figure:
    panels = (
        ("Throughput limit", "messages per second", fast(rows), "throughput_per_s"),
        ("Delay at leisure", "ms from send to delivery, median", slow(rows), "delay_p50_ms"),
        ("Most that one process sends", "bodies per message", fast(rows), most_bodies),
        ("Bodies on the network", "per message, one per receiver", fast(rows), bodies),
    )
    return Figure(
        TITLE, [Lines(title, SIZE, up, _by_way(own, value)) for title, up, own, value in panels]
    )


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


def _side_by_side(own: list[Row], *values: Value) -> list[list[object]]:
    """A line for each group size and message size: each value, both ways."""
    return [
        [
            n,
            size,
            *(
                middle(own, value, members=n, size=size, apart=way)
                for value in values
                for way in WAYS
            ),
        ]
        for n in distinct(own, "members")
        for size in distinct(own, "size")
    ]


def _head(*said: str) -> list[str]:
    return ["members", "bytes", *(f"{what}: {way}" for what in said for way in WAYS.values())]


def _bandwidth(rows: list[Row]) -> Claim:
    table = _side_by_side(fast(rows), bodies, most_bodies, "throughput_per_s")
    fewer = all(row[3] < row[2] for row in table)  # type: ignore[operator]
    head = _head("bodies on the network", "by the process that sends most", "messages per s")
    return Claim(
        claim="Each message body is transmitted twice, once in DO-MULTICAST and once in ACCEPT; "
        "the alternative, in which clients multicast the body and the sequencer only numbers it, "
        "reduces bandwidth utilisation.",
        where="000, section 4 (after Kaashoek and Tanenbaum)",
        measured="Per message, all sent at the start:\n\n" + markdown_table(head, table),
        holds="yes" if fewer else "no",
        why="Twice and once are counted with a network that multicasts. Where each member gets a "
        "packet of its own, one body of many is saved. What is gained then is another thing: the "
        "work is divided. Through the sequencer one process sends every body to every member; "
        "apart, each sender its own. That decides the limit for large bodies, and for small ones "
        "there is little to gain.",
    )


def _two_packets(rows: list[Row]) -> Claim:
    table = _side_by_side(slow(rows), "delay_p50_ms", "packets_per_message", "cpu_us_per_message")
    slower = [row[3] > row[2] for row in table]  # type: ignore[operator]
    head = _head("delay, ms", "packets", "processor, µs")
    return Claim(
        claim="The reduction is traded off against the need for group members to receive two "
        "messages before the body can be delivered.",
        where="000, section 4",
        measured="Per message, one every 5 ms:\n\n" + markdown_table(head, table),
        holds="yes" if all(slower) else "in part" if any(slower) or _dearer(table) else "no",
        why="More packets come to a member, and take processor time. But body and number travel at "
        "the same time, and the body no longer goes two ways one after the other: the larger it "
        "is, the more that counts.",
    )


def _dearer(table: list[list[object]]) -> bool:
    """Whether apart takes more packets, everywhere."""
    return all(row[5] > row[4] for row in table)  # type: ignore[operator]
