"""A lost suffix: members that hear of the last number ask for it, others wait for the next."""

from __future__ import annotations

import json
from statistics import median

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, distinct, middle, only, values

TITLE = "A lost suffix"
ABOUT = """\
`javagroups` with six members. The sequencer alone sends, five messages in an instant, then nothing
for half a second on average. Who misses a number below one that came sees the gap, and asks after
20 ms. Who misses the last of a burst sees none, until the next burst comes or STATUS tells the last
number. That is what is changed here: how long an idle sequencer waits before it says STATUS to
those that have not acknowledged everything. With 5 s members hear of it, but long after the next
burst: that stands for the source, where nobody says so. It is finite, so that the end of the last
burst of all is not lost for ever. A member repeats no acknowledgement before: that would be
answered with STATUS as well."""


def status_ms(row: Row) -> float:
    """After which time an idle sequencer says the last number."""
    return float(json.loads(row["options"])["status_ms"])


def said(row: Row) -> float:
    """STATUS that arrived, per message."""
    return float(row["packet_kinds"].get("Status", 0) / row["sent"])


PANELS: tuple[tuple[str, str, Value], ...] = (
    ("Delay", "ms from send to delivery, percentile 99", "delay_p99_ms"),
    ("Mean delay", "ms from send to delivery, mean", "delay_mean_ms"),
    ("What it costs", "STATUS packets that arrived, per message", said),
    ("Messages sent again", "per message", lambda row: row["retransmissions"] / row["sent"]),
)


def figure(rows: list[Row]) -> Figure:
    return Figure(TITLE, [_panel(rows, *panel) for panel in PANELS])


def _panel(rows: list[Row], title: str, up: str, value: Value) -> Lines:
    lines = []
    for loss in distinct(rows, "loss"):
        points = []
        for ms in _periods(rows):
            found = values(_with(only(rows, loss=loss), ms), value)
            points.append((ms, median(found), min(found), max(found)))
        lines.append(Line(f"{100 * loss:g} % lost", points))
    return Lines(title, "STATUS after so many ms", up, lines, even_steps=True)


def _periods(rows: list[Row]) -> list[float]:
    return sorted({status_ms(row) for row in rows})


def _with(rows: list[Row], ms: float) -> list[Row]:
    return [row for row in rows if status_ms(row) == ms]


def claims(rows: list[Row]) -> list[Claim]:
    return [_suffix(rows)]


def _suffix(rows: list[Row]) -> Claim:
    soonest, *_, latest = _periods(rows)
    table: list[list[object]] = []
    faster = []
    for loss in distinct(rows, "loss"):
        own = only(rows, loss=loss)
        for ms in _periods(rows):
            at = _with(own, ms)
            table.append(
                [
                    100 * loss,
                    ms,
                    middle(at, "deliveries"),
                    middle(at, "delay_mean_ms"),
                    middle(at, "delay_p99_ms"),
                    middle(at, said),
                ]
            )
        told, untold = (values(_with(own, ms), "delay_mean_ms") for ms in (soonest, latest))
        faster.append(max(told) < min(untold))
    head = ["% lost", "STATUS after, ms", "deliveries", "mean delay, ms", "percentile 99, ms",
            "STATUS, per message"]  # fmt: skip
    holds: Holds = "yes" if all(faster) else "in part" if any(faster) else "no"
    return Claim(
        claim="The retransmission thread does not know if there is a suffix of messages that needs "
        "to be retransmitted. If each server knew the sequence id of the last broadcast message, "
        "it could actively request a lost suffix.",
        where='003, "Future Improvements"',
        measured=f"Medians over seeds:\n\n{markdown_table(head, table)}\n\n"
        f"With STATUS after {soonest:g} ms every mean delay of a seed is shorter than any "
        f"with {latest:g} ms, at {sum(faster)} of {len(faster)} rates of loss: that is judged.",
        holds=holds,
        why="Nothing is lost for ever either way, since a later message shows the gap; the last "
        "suffix of all would be. STATUS goes only to who has not acknowledged everything, which "
        "takes the positive acknowledgements that the source also thinks of.",
    )
