"""Delay where few members send: sequencers, protocols that need a word of all, who sequences."""

from __future__ import annotations

import json

from experiments.claims import Claim, Holds, markdown_table
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Where few members send"
ABOUT = """\
One group of 8, a message every millisecond, of which one member sends all, or two, four, or all 8
send them by turns. Packets take 0.1 ms. The Total protocol, which the source speaks of, is not
built here. `block_total` is our nearest relative: it builds a total order from what members send,
too, but waits for a word of all of them and not of a majority; `slow` is a causal order of that
kind. Who has nothing to say sends a NULL after a while (`silence_ms`), which neither source has.
Of `sequencing` there are two forms: a further process sequences, or the first of the senders
does."""

SENDERS = "members that send"
SYMMETRIC = ("block_total", "slow")
SAME = 1.1
"""At most so many times another delay: it is the same."""


def figure(rows: list[Row]) -> Figure:
    own = named(rows)
    others = [row for row in own if row["protocol"] not in SYMMETRIC]

    def lines(rows: list[Row], column: str) -> list[Line]:
        return [
            Line(name, against(only(rows, name=name), "senders", column)) for name in _names(rows)
        ]

    blocks = only(own, protocol=SYMMETRIC)
    return Figure(
        TITLE,
        (
            Lines("A word of all is needed", SENDERS, "ms from send to delivery, median",
                  lines(blocks, "delay_p50_ms")),
            Lines("The same", SENDERS, "ms from send to delivery, percentile 99",
                  lines(blocks, "delay_p99_ms")),
            Lines("Nobody is waited for", SENDERS, "ms from send to delivery, median",
                  lines(others, "delay_p50_ms")),
            Lines("The same", SENDERS, "packets per message", lines(others, "packets_per_message")),
        ),
    )  # fmt: skip


def claims(rows: list[Row]) -> list[Claim]:
    return [_arbitrary(rows), _at_once(rows), _majority(rows)]


def named(rows: list[Row]) -> list[Row]:
    """With a name for the protocol and what was chosen of it."""
    return [row | {"name": _name(row)} for row in rows]


def _silence(row: Row) -> int:
    return int(json.loads(row["options"]).get("silence_ms", 20))  # as it is by default


def _names(own: list[Row]) -> list[str]:
    """Each once, short limits first."""
    return [name for _, _, name in sorted({(r["protocol"], _silence(r), r["name"]) for r in own})]


def _name(row: Row) -> str:
    protocol = row["protocol"]
    if protocol in SYMMETRIC:
        return f"{protocol}, {_silence(row)} ms"
    if protocol == "sequencing":
        return "sequencer apart" if row["sequencers"] else "a sender sequences"
    return str(protocol)


def _table(own: list[Row], *columns: str) -> list[list[object]]:
    """A line for each name: each column, by how many send."""
    return [
        [name, *(middle(own, column, name=name, senders=s)
                 for column in columns for s in distinct(own, "senders"))]
        for name in _names(own)
    ]  # fmt: skip


def _head(own: list[Row], *said: str) -> list[str]:
    return ["", *(f"{what}: {s} send" for what in said for s in distinct(own, "senders"))]


def _arbitrary(rows: list[Row]) -> Claim:
    own = only(named(rows), protocol=SYMMETRIC)
    total = only(own, protocol="block_total")
    few, everybody = distinct(own, "senders")[0], distinct(own, "senders")[-1]
    shortest, longest = _names(total)[0], _names(total)[-1]
    limited, arbitrary = (
        middle(total, "delay_p50_ms", name=name, senders=few) for name in (shortest, longest)
    )
    times = [
        middle(total, column, name=longest, senders=few)
        / middle(total, column, name=longest, senders=everybody)
        for column in ("delay_p50_ms", "delay_p99_ms")
    ]
    holds: Holds = "no"
    if arbitrary > SAME * limited:
        holds = "yes" if min(times) > SAME else "in part"
    return Claim(
        claim="Where a total order is built from messages that the members send, delivery is "
        "subject to arbitrary delays when only a minority of them send.",
        where="000, section 6, of the Total protocol",
        measured="Delay, ms:\n\n"
        + markdown_table(_head(own, "median", "p99"), _table(own, "delay_p50_ms", "delay_p99_ms"))
        + f"\n\nWith {few} of {everybody} members sending, the median of `block_total` goes from "
        f"{limited:.2f} to {arbitrary:.1f} ms with the limit. At the longest limit it is "
        f"{times[0]:.2f} times what it is with all sending, percentile 99 {times[1]:.2f} times. "
        "(Yes: it follows the limit, and both are longer where few send. In part: it follows it.)",
        holds=holds,
        why="The delay is what one waits until the silent ones speak. That is arbitrary if nothing "
        "makes them speak. Here they send a NULL after `silence_ms`, so the delay follows that "
        "limit, and not the number of senders alone: where all send, but each seldom, it is the "
        "same waiting. A short limit is paid for in packets.",
    )


def _at_once(rows: list[Row]) -> Claim:
    own = [row for row in named(rows) if row["protocol"] not in SYMMETRIC]
    apart = only(own, name="sequencer apart")
    found = [middle(apart, "delay_p99_ms", senders=s) for s in distinct(apart, "senders")]
    return Claim(
        claim="Sequencers establish the total order immediately, regardless of whether all the "
        "group members continually send.",
        where="000, section 7",
        measured="Delay, ms:\n\n"
        + markdown_table(_head(own, "median", "p99"), _table(own, "delay_p50_ms", "delay_p99_ms")),
        holds="yes" if max(found) <= SAME * min(found) else "no",
    )


def _majority(rows: list[Row]) -> Claim:
    own = only(named(rows), protocol="sequencing")
    table: list[list[object]] = [
        [s, *(middle(own, column, senders=s, name=name)
              for column in ("delay_p50_ms", "delay_p99_ms", "packets_per_message")
              for name in _names(own))]
        for s in distinct(own, "senders")
    ]  # fmt: skip
    head = [SENDERS, *(f"{what}: {name}" for what in ("delay, ms", "p99, ms", "packets")
                       for name in _names(own))]  # fmt: skip
    gains = {
        s: middle(own, "delay_p50_ms", senders=s, name="sequencer apart")
        / middle(own, "delay_p50_ms", senders=s, name="a sender sequences")
        for s in distinct(own, "senders")
    }
    few, many = min(gains), max(gains)
    holds: Holds = "no" if gains[few] <= SAME else "yes" if gains[few] > gains[many] else "in part"
    return Claim(
        claim="The sequencing can be migrated to the process that currently sends the majority of "
        "the messages, if there is such a process (for the performance; no figure is given).",
        where="000, section 7",
        measured=markdown_table(head, table)
        + f"\n\nThe median delay with a sequencer apart is {gains[few]:.2f} times that with the "
        f"sender as sequencer if {few} sends, {gains[many]:.2f} times if {many} send.",
        holds=holds,
        why="The request needs no packet then. With several senders only the messages of one gain "
        "by it.",
    )
