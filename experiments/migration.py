"""What senders pay when their group goes to another sequencer while they send."""

from __future__ import annotations

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only, values

TITLE = "Moving a group to another sequencer"
ABOUT = """\
A cluster of four members of a group and two sequencers. The group goes from one sequencer to the
other and back, four times in a run, while all members send. Links take 0.1 ms. A move is a change
as any other: the former sequencer stops, all members report what they hold, fetch what they lack,
and begin the next era with the other sequencer. Requests that come to the former sequencer
meanwhile are void, and repeated by their senders in the next era."""

PACE = "messages per second of each member"


def figure(rows: list[Row]) -> Figure:
    own = prepared(rows)
    small = only(own, size=min(distinct(own, "size")))
    delays = [
        Line("repeated", against(small, "pace", "repeated_delay_ms")),
        Line("all others", against(small, "pace", "other_delay_ms")),
    ]
    return Figure(
        TITLE,
        (
            Lines("Requests that are repeated", PACE, "per member and move: mean and most", [
                Line("mean", against(small, "pace", repeated_each)),
                Line("most", against(small, "pace", "repeated_most")),
            ]),
            Lines("Delay", PACE, "ms from send to delivery, median", delays),
            Lines("Last message that is repeated", PACE, "ms after the order to move, sent",
                  _by_size(own, "repeated_until_ms")),
            Lines("Packets of a move", PACE, "bytes per move", _by_size(own, bytes_each)),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_once_only(rows), _bodies_left(rows)]


def prepared(rows: list[Row]) -> list[Row]:
    """With the pace of one member."""
    return [row | {"pace": 1e6 / row["every_us"] / row["members"]} for row in rows]


def repeated_each(row: Row) -> float:
    """Requests that were repeated, per member and move."""
    return float(row["repeated"] / row["members"] / row["moves"])


def bytes_each(row: Row) -> float:
    """Bytes of the packets of a change, per move."""
    return float(row["change_bytes"] / row["moves"])


def _by_size(own: list[Row], value: Value) -> list[Line]:
    return [
        Line(f"messages of {size} bytes", against(only(own, size=size), "pace", value))
        for size in distinct(own, "size")
    ]


def _once_only(rows: list[Row]) -> Claim:
    own = prepared(rows)
    own = only(own, size=min(distinct(own, "size")))
    table: list[list[object]] = []
    for pace in distinct(own, "pace"):
        here = only(own, pace=pace)
        late = values(here, "repeated_until_ms")
        again = values(here, "repeated_delay_ms")
        table.append(
            [
                pace,
                middle(here, "sent"),
                middle(here, repeated_each),
                max(values(here, "repeated_most")),
                max(late) if late else "none",
                middle(here, "repeated_delay_ms") if again else "none",
                middle(here, "other_delay_ms"),
            ]
        )
    latest = max(values(own, "repeated_until_ms"))
    most = max(values(own, "repeated_most"))
    share = max(sum(values(only(own, pace=p), "repeated")) / sum(values(only(own, pace=p), "sent"))
                for p in distinct(own, "pace"))  # fmt: skip
    head = [
        PACE, "messages in a run", "repeated, per member and move", "most of one member at a move",
        "last one sent, ms after the order", "delay if repeated, ms", "delay of all others, ms",
    ]  # fmt: skip
    once = latest < _between_moves_ms(own) / 2
    return Claim(
        claim="Senders experience a once-only cost when a port migrates: a message to the old "
        "address is forwarded, and the sender learns the new address, so the forwarding pointer "
        "is not used by that sender thereafter.",
        where="000, section 4.3",
        measured=f"{own[0]['moves']} moves in a run:\n\n{markdown_table(head, table)}\n\n"
        f"No message that was sent later than {latest:.2f} ms after the order to move was "
        f"repeated, of all runs; at most {100 * share:.1f} % of the messages of a pace were.",
        holds="yes" if once and most <= 1 else "in part" if once else "no",
        why="Nothing is forwarded here: what comes to a sequencer that has stopped is void, and "
        "its sender repeats it when the next era begins. The cost ends for good with the move. "
        "Until then every message that is sent pays it, so a sender that is fast pays for "
        "several, at each move; who sends nothing meanwhile pays nothing.",
    )


def _between_moves_ms(own: list[Row]) -> float:
    return min(float(r["messages"] * r["every_us"] / 1000 / (r["moves"] + 1)) for r in own)


def _bytes(own: list[Row], pace: float, size: int) -> float:
    return middle(own, bytes_each, pace=pace, size=size)


def _bodies_left(rows: list[Row]) -> Claim:
    own = prepared(rows)
    sizes = distinct(own, "size")
    table: list[list[float]] = [
        [
            pace,
            *(
                middle(own, value, pace=pace, size=size)
                for value in (bytes_each, "delay_p99_ms")
                for size in sizes
            ),
        ]
        for pace in distinct(own, "pace")
    ]
    small, large = min(sizes), max(sizes)
    differ = max(
        abs(_bytes(own, pace, large) - _bytes(own, pace, small)) for pace in distinct(own, "pace")
    )
    said = ("bytes per move", "delay p99, ms")
    head = [PACE, *(f"{what}: messages of {size} bytes" for what in said for size in sizes)]
    return Claim(
        claim="The transfer only sends enough of the history buffers to detect repeated requests. "
        "If members do not miss any messages, as is likely on most LANs, they will not require the "
        "bodies, which stay at the source.",
        where="000, section 4.3",
        measured="The same runs, and those with larger messages:\n\n" + markdown_table(head, table),
        holds="yes" if differ < large - small else "no",
        why="The packets of a change name numbers and the last message of each sender. A body "
        "travels only to a member that lacks it, from one that has it, before the next era begins; "
        "so nothing is lost if the former sequencer dies afterwards.",
    )
