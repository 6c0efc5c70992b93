"""001: acknowledgements that ride on messages, and requests for what was missed."""

from __future__ import annotations

from collections.abc import Callable

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Asking for what was missed"
ABOUT = """\
Eight members on a network that loses packets. `nak` acknowledges with the messages that it sends
anyway, and asks for what is missing. `basic` runs over links that acknowledge what came: each
packet, or up to 16 together; without loss it needs no links. Once a packet goes to one receiver;
once the network brings one packet to all that it is for, as the source has it (IP multicast), and
each receiver loses its own copy. First against how much is lost, at 500 messages per second; then
against how much is said, at 1 % lost."""

PACED_LOSS = 0.01
USUAL_US = 2000.0
WAYS = (
    ("nak", "nak", "{}"),
    ("ack of each", "basic", '{"ack_every":1}'),
    ("ack of up to 16", "basic", '{"ack_every":16}'),
)
CASTS = (("one to one", False), ("IP multicast", True))
Point = tuple[float, float, float, float]  # of a line
SENT = "packets_per_message"


def figure(rows: list[Row]) -> Figure:
    panels = []
    for said, broadcast in CASTS:
        own = only(rows, broadcast=broadcast)
        up = f"packets sent per message, {said}"
        losses = [Line(name, _by_loss(lost)) for name, lost in ways(only(own, every_us=USUAL_US))]
        paces = [Line(name, _by_pace(paced)) for name, paced in ways(only(own, loss=PACED_LOSS))]
        panels += [
            Lines(f"Against loss, {said}", "packets lost, per cent", up, losses, even_steps=True),
            Lines(f"Against pace, {said}", "messages per second, all together", up, paces),
        ]
    return Figure(TITLE, panels)


def _by_loss(rows: list[Row]) -> list[Point]:
    return [(100 * x, y, least, most) for x, y, least, most in against(rows, "loss", SENT)]


def _by_pace(rows: list[Row]) -> list[Point]:
    found = against(rows, "every_us", SENT)
    return sorted((1e6 / x, y, least, most) for x, y, least, most in found)


def claims(rows: list[Row]) -> list[Claim]:
    return [_only_when_missed(rows), _price(rows)]


def ways(rows: list[Row]) -> list[tuple[str, list[Row]]]:
    """Name and runs of each way to make a loss good."""
    return [(name, only(rows, protocol=p, options=options)) for name, p, options in WAYS]


def _each(*kinds: str) -> Callable[[Row], float]:
    """Packets of these kinds that arrived, per message."""
    return lambda row: sum(row["packet_kinds"].get(kind, 0) for kind in kinds) / row["sent"]


REQUESTS, COPIES, ALONE = _each("Nak"), _each("Retx"), _each("Status", "Answer")


def _only_when_missed(rows: list[Row]) -> Claim:
    own = only(rows, protocol="nak", broadcast=False)
    by_loss = only(own, every_us=USUAL_US)
    by_pace = only(own, loss=PACED_LOSS)
    head = ["requests", "copies for them", "acknowledgements alone"]
    counted = (REQUESTS, COPIES, ALONE)
    losses: list[list[object]] = [
        [100 * loss, *(middle(by_loss, count, loss=loss) for count in counted)]
        for loss in distinct(by_loss, "loss")
    ]
    paces: list[list[object]] = [
        [1e6 / us, *(middle(by_pace, count, every_us=us) for count in counted)]
        for us in distinct(by_pace, "every_us")
    ]
    lossless = only(by_loss, loss=0.0)
    asked, alone = max(map(REQUESTS, lossless)), max(map(ALONE, lossless))
    holds: Holds = "no" if asked else "in part" if alone else "yes"
    rare = (
        " Who lacks a message takes none of those behind it before it has got it, and then "
        "acknowledges all of them with one STATUS: the more is lost, the fewer of them."
    )
    return Claim(
        claim="Acknowledgements are piggybacked on the messages that processes send to the group. "
        "They send a separate response only when they detect that they have missed a message.",
        where='001, slide "Reliable Multicast" (over IP multicast)',
        measured="Packets of `nak` that arrive, per message. Where so much is lost:\n\n"
        f"{markdown_table(['% lost', *head], losses)}\n\nWhere so much is said, 1 % lost:\n\n"
        f"{markdown_table(['messages per s', *head], paces)}",
        holds=holds,
        why="Nobody asks for anything where nothing is lost. But acknowledgements ride on messages "
        "only where there are messages, and a lost last message shows no gap (erratum E-C3). So "
        "who has nothing to say tells with a STATUS what it has, until all have all: the less is "
        "said, the more of them." + rare * (losses[-1][3] < losses[0][3])  # type: ignore[operator]
        if holds == "in part"
        else "",
    )


def _price(rows: list[Row]) -> Claim:
    by_loss = only(rows, every_us=USUAL_US)
    nak = only(by_loss, protocol="nak", broadcast=False)
    most = max(distinct(nak, "loss"))
    fewer = middle(nak, SENT, loss=most) < middle(nak, SENT, loss=0.0)
    said = (
        " One to one, `nak` sends fewer packets the more are lost, since one STATUS then tells of "
        "several messages. Over IP multicast a STATUS is one packet for all, and copies, which go "
        "to one receiver, weigh more."
    )
    return Claim(
        claim="It is a combination of IP multicast, piggybacked and negative acknowledgements (how "
        "much that spares is not told).",
        where='001, slide "Reliable Multicast" (over IP multicast)',
        measured="Packets sent per message. Where so much is lost:\n\n"
        + _side_by_side(by_loss, "loss", "% lost", lambda x: 100 * x)
        + "\n\nWhere so much is said, 1 % lost:\n\n"
        + _side_by_side(
            only(rows, loss=PACED_LOSS), "every_us", "messages per s", lambda us: 1e6 / us
        )
        + "\n\nOver IP multicast links gain nothing where packets are lost: a link numbers and "
        "acknowledges packets for its one receiver, so no two receivers get the same packet. The "
        "numbers of `nak` are the same for all." + said * fewer,
        holds="nothing was claimed",
    )


def _side_by_side(rows: list[Row], x: str, name: str, shown: Callable[[float], float]) -> str:
    head = [name, *(f"{way}, {said}" for said, _ in CASTS for way, _, _ in WAYS)]
    table: list[list[object]] = [
        [
            shown(at),
            *(
                middle(own, SENT, broadcast=broadcast, **{x: at})
                for _, broadcast in CASTS
                for _, own in ways(rows)
            ),
        ]
        for at in distinct(rows, x)
    ]
    return markdown_table(head, table)
