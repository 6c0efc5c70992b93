"""One sequencer, and four, against how much is said."""

from __future__ import annotations

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "A sequencer under load"
ABOUT = """\
Four cells of 8 members that have nothing to do with each other, with four groups of 5 in each. One
further process numbers all messages, or four do, one for each cell. Messages come at random times,
more and more of them. Packets take 0.1 ms."""

PACE = "messages per second, all together"
SLOW = 2.0
"""Times the delay at leisure: from here on something is a bottleneck."""


def figure(rows: list[Row]) -> Figure:
    own = paced(rows)
    panels: tuple[tuple[str, str, Value], ...] = (
        ("Work of the busiest process", "% of the time", busy),
        ("Delay", "ms from send to delivery, percentile 99", "delay_p99_ms"),
    )
    return Figure(TITLE, [
        Lines(title, PACE, up, [
            Line(_sequencers(k), against(only(own, sequencers=k), "pace", value))
            for k in distinct(own, "sequencers")
        ])
        for title, up, value in panels
    ])  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_bottleneck(rows)]


def paced(rows: list[Row]) -> list[Row]:
    """With how many messages a second there are."""
    return [row | {"pace": round(1e6 / row["every_us"])} for row in rows]


def busy(row: Row) -> float:
    """How much the busiest process works, in per cent of the time."""
    return 100 * float(row["busiest"])


def _sequencers(count: int) -> str:
    return "1 sequencer" if count == 1 else f"{count} sequencers"


def _bottleneck(rows: list[Row]) -> Claim:
    own = paced(rows)
    counts, paces = distinct(own, "sequencers"), distinct(own, "pace")
    columns: tuple[Value, ...] = (busy, "delay_p50_ms", "delay_p99_ms", "throughput_per_s")
    table: list[list[object]] = [
        [p, *(middle(own, c, pace=p, sequencers=k) for c in columns for k in counts)] for p in paces
    ]
    said = ("busiest, %", "delay, ms", "p99, ms", "messages per s")
    head = [PACE, *(f"{what}: {_sequencers(k)}" for what in said for k in counts)]

    def slower(count: int) -> float:
        """Times the delay at leisure, when most is said."""
        ends = [middle(own, "delay_p50_ms", pace=p, sequencers=count) for p in paces]
        return ends[-1] / ends[0]

    shares = [middle(own, busy, pace=p, sequencers=1) for p in paces]
    one, several = slower(counts[0]), slower(counts[-1])
    holds: Holds = "no"
    if shares == sorted(shares) and one > SLOW:
        holds = "yes" if several < SLOW else "in part"
    return Claim(
        claim="There is a tendency for a single sequencer process to become a bottleneck as the "
        "usage of group communication increases.",
        where="000, section 3.3",
        measured=f"{markdown_table(head, table)}\n\nA sequencer counts as the bottleneck if it "
        f"works more the more is said, the delay at the highest pace is more than {SLOW:g} times "
        f"that at the lowest, and with {_sequencers(counts[-1])} it is not. It is {one:.2f} times "
        f"with one, {several:.2f} times with {counts[-1]}.",
        holds=holds,
        why="Nothing is to be seen of it as long as the sequencer has pauses: at half its load the "
        "median delay is hardly longer than at leisure."
        if holds == "yes"
        else "The delay does not tell one sequencer from several.",
    )
