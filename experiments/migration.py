"""What senders pay when their group goes to another sequencer while they send."""

from __future__ import annotations

import json

from experiments.claims import Claim, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only, values

TITLE = "Moving a group to another sequencer"
ABOUT = """\
A cluster of four members of a group and two sequencers. The group goes from one sequencer to the
other and back, four times in a run, while all members send. Links take 0.1 ms. What comes to a
sequencer that has given the group away is forwarded. When the next one has everything, the former
one tells all members (MOVED), whether they have sent anything or not. *Bodies travel*: messages
that not all members have acknowledged go along with the group. *Bodies stay* (`bodies_stay=True`):
the source's way."""

WAYS = {False: "bodies travel", True: "bodies stay"}
PACE = "messages per second of each member"


def figure(rows: list[Row]) -> Figure:
    own = prepared(rows)
    travel = only(own, stay=False)
    delays = [
        Line("forwarded", against(travel, "pace", "forwarded_delay_ms")),
        Line("all others", against(travel, "pace", "other_delay_ms")),
    ]
    return Figure(
        TITLE,
        (
            Lines("Requests that are forwarded", PACE, "per member and move: mean and most", [
                Line("mean", against(travel, "pace", forwarded_each)),
                Line("most", against(travel, "pace", "forwarded_most")),
            ]),
            Lines("Delay", PACE, "ms from send to delivery, median", delays),
            Lines("Last message that is forwarded", PACE, "ms after the order to move, sent",
                  _by_way(own, "forwarded_until_ms")),
            Lines("What goes to the next sequencer", PACE, "bytes per move",
                  _by_way(own, bytes_each)),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_once_only(rows), _bodies_left(rows)]


def prepared(rows: list[Row]) -> list[Row]:
    """With the pace of one member, and what becomes of bodies."""
    return [
        row
        | {
            "pace": 1e6 / row["every_us"] / row["members"],
            "stay": bool(json.loads(row["options"]).get("bodies_stay")),
        }
        for row in rows
    ]


def forwarded_each(row: Row) -> float:
    """Requests that were forwarded, per member and move."""
    return float(row["forwarded"] / row["members"] / row["moves"])


def bytes_each(row: Row) -> float:
    """Bytes from sequencer to sequencer, per move; the first one has nothing to bring yet."""
    return float(row["handed_bytes"] / row["moves"])


def _by_way(own: list[Row], value: Value) -> list[Line]:
    return [Line(said, against(only(own, stay=way), "pace", value)) for way, said in WAYS.items()]


def _once_only(rows: list[Row]) -> Claim:
    own = only(prepared(rows), stay=False)
    table: list[list[object]] = []
    for pace in distinct(own, "pace"):
        here = only(own, pace=pace)
        late = values(here, "forwarded_until_ms")
        detour = values(here, "forwarded_delay_ms")
        table.append(
            [
                pace,
                middle(here, "sent"),
                middle(here, forwarded_each),
                max(values(here, "forwarded_most")),
                max(late) if late else "none",
                middle(here, "forwarded_delay_ms") if detour else "none",
                middle(here, "other_delay_ms"),
            ]
        )
    latest = max(values(own, "forwarded_until_ms"))
    most = max(values(own, "forwarded_most"))
    share = max(sum(values(only(own, pace=p), "forwarded")) / sum(values(only(own, pace=p), "sent"))
                for p in distinct(own, "pace"))  # fmt: skip
    head = [
        PACE, "messages in a run", "forwarded, per member and move", "most of one member at a move",
        "last one sent, ms after the order", "delay if forwarded, ms", "delay of all others, ms",
    ]  # fmt: skip
    once = latest < _between_moves_ms(own) / 2
    return Claim(
        claim="Senders experience a once-only cost when a port migrates: a message to the old "
        "address is forwarded, and the sender learns the new address, so the forwarding pointer "
        "is not used by that sender thereafter.",
        where="000, section 4.3",
        measured=f"{own[0]['moves']} moves in a run:\n\n{markdown_table(head, table)}\n\n"
        f"No message that was sent later than {latest:.2f} ms after the order to move was "
        f"forwarded, of all runs; at most {100 * share:.1f} % of the messages of a pace were.",
        holds="yes" if once and most <= 1 else "in part" if once else "no",
        why="The cost ends for good when the sender has heard of the move. Until then every "
        "message that it sends takes the detour, so a sender that is fast pays for several, at "
        "each move. Who is slow mostly pays nothing: here all are told by the former sequencer, "
        "and not only when they use the old address.",
    )


def _between_moves_ms(own: list[Row]) -> float:
    return min(float(r["messages"] * r["every_us"] / 1000 / (r["moves"] + 1)) for r in own)


def _bodies_left(rows: list[Row]) -> Claim:
    own = prepared(rows)
    table: list[list[float]] = [
        [
            pace,
            *(
                middle(own, value, pace=pace, stay=way)
                for value in (bytes_each, "delay_p99_ms", "forwarded")
                for way in WAYS
            ),
        ]
        for pace in distinct(own, "pace")
    ]
    smaller = all(row[2] <= row[1] for row in table)
    said = ("bytes per move", "delay p99, ms", "forwarded in a run")
    head = [PACE, *(f"{what}: {way}" for what in said for way in WAYS.values())]
    return Claim(
        claim="The transfer only sends enough of the history buffers to detect repeated requests. "
        "If members do not miss any messages, as is likely on most LANs, they will not require the "
        "bodies, which stay at the source.",
        where="000, section 4.3",
        measured="The same runs, and those in which bodies stay:\n\n" + markdown_table(head, table),
        holds="yes" if smaller else "no",
        why="It saves bytes, and a part of the pause. How much of it depends on how many messages "
        "are unstable: few here, where members acknowledge after 5 ms. It is off by default: if "
        "the former sequencer then dies, a body that some member still lacks is lost, and with it "
        "all later messages of the group (`docs/decisions/0016-sequencing.md` has the figures for "
        "thousands of unstable messages).",
    )
