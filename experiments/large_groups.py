"""002: tens of processes and hundreds of them, flat and in two layers."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.crossover import FLAT, NAMES, Panel, against_size
from experiments.drawing import Figure
from experiments.rows import Row, Value, distinct, middle, only

TITLE = "Groups of tens and of hundreds"
ABOUT = """\
Ten members send as fast as they may, each with up to eight messages that not all have delivered,
on a one-to-one network whose packets take 50 to 150 µs. Senders and messages are the same whatever
the size of the group. What work costs is calibrated for each protocol, so a processor that is busy
all the time is what limits the group."""

HALF = 0.5


def deliveries_per_s(row: Row) -> float:
    """Of all members together."""
    return float(row["throughput_per_s"] * row["members"])


PANELS: tuple[Panel, ...] = (
    ("Throughput", "messages per second that all members got", "throughput_per_s"),
    ("Deliveries", "per second, all members together", deliveries_per_s),
    ("The busiest process", "share of the time that it worked", "busiest"),
    ("Processor time", "µs per message, all members together", "cpu_us_per_message"),
)


def figure(rows: list[Row]) -> Figure:
    return Figure(TITLE, against_size(rows, PANELS), shows="one run at a point")


def claims(rows: list[Row]) -> list[Claim]:
    return [_hundreds(rows)]


def _table(rows: list[Row]) -> str:
    values: tuple[Value, ...] = ("throughput_per_s", deliveries_per_s, "busiest")
    lines: list[list[object]] = [
        [n, *(middle(rows, value, members=n, protocol=name) for value in values for name in NAMES)]
        for n in distinct(rows, "members")
    ]
    head = [
        "members", "messages per s, flat", "two layers", "deliveries per s, flat", "two layers",
        "busiest, flat", "two layers",
    ]  # fmt: skip
    return markdown_table(head, lines)


def _left(rows: list[Row], protocol: str) -> float:
    """Which share of the deliveries per second of the smallest group the largest still has."""
    own = only(rows, protocol=protocol)
    sizes = distinct(own, "members")
    least, most = (middle(own, deliveries_per_s, members=n) for n in (sizes[0], sizes[-1]))
    return most / least


def _hundreds(rows: list[Row]) -> Claim:
    sizes = distinct(rows, "members")
    left = _left(rows, FLAT)
    flat, two = (
        middle(rows, "throughput_per_s", members=sizes[-1], protocol=name) for name in NAMES
    )
    done = all(row["verdict"] == "kept" for row in only(rows, protocol=FLAT))
    holds: Holds = "yes" if not done else "no" if left >= HALF else "in part"
    return Claim(
        claim="Even if a group of tens processes can be realized by traditional group protocols, "
        "it is difficult, maybe impossible to support a group of hundreds of processes, due to "
        "large computation and communication overheads.",
        where="002, section 1",
        measured=f"{_table(rows)}\n\nFrom {sizes[0]} to {sizes[-1]} members a flat group keeps "
        f"{left:.2f} of its deliveries per second. Yes if a run was not brought to its end; no if "
        "at least half of them is left: a message then costs as many copies more as there are "
        "members more, and little else; in part between. In two layers the largest group has "
        f"{two / flat:.2f} times the throughput of the flat one.",
        holds=holds,
        why="A message costs a packet for each member whatever its header is, and throughput falls "
        "with the size for that alone. Longer headers come on top, and cost a computer of today "
        "little against the packet: it is not impossible.",
    )
