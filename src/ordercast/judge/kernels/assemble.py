"""A run from its sorted rows: who crashed, where each message was sent, first deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.ids import NONE, Ids
from ordercast.judge.kernels.run import (
    CRASH,
    DELIVER,
    END,
    LOST,
    SEND,
    Declaration,
    Ints,
    Run,
    Turn,
)
from ordercast.judge.kernels.scratch import Scratch


@dataclass(frozen=True)
class Names:
    """What the numbers in the columns stand for."""

    processes: list[str]
    groups: list[str]
    senders: list[str]
    ids: Ids


def assemble(
    names: Names,
    declarations: list[Declaration],
    columns: dict[str, Ints],
    start: Ints,
    turns: list[list[Turn]],
    kinds: frozenset[str],
    *,
    quiescent: bool,
    scratch: Scratch,
) -> Run:
    """A run from its sorted rows."""
    run = Run(
        processes=names.processes,
        groups=names.groups,
        ids=names.ids,
        kinds=kinds,
        declarations=declarations,
        scratch=scratch,
        start=start,
        index=columns["index"],
        kind=columns["kind"],
        message=columns["message"],
        group=columns["group"],
        named_sender=columns["sender"],
        names=names.senders,
        **_log_facts(columns["kind"], start, quiescent),
        turns=turns,
        **_first_sends(columns, start, len(names.ids)),
        **_first_deliveries(columns, start, len(names.ids), scratch),
    )
    _place_unsent(run)
    return run


def _log_facts(kind: Ints, start: Ints, quiescent: bool) -> dict[str, Any]:
    def has(code: int) -> Any:
        found = np.zeros(len(start) - 1, np.bool_)
        found[np.searchsorted(start, np.flatnonzero(kind == code), side="right") - 1] = True
        return found

    crashed = has(CRASH)
    return {
        "crashed": crashed,
        "ended": has(END) | (~crashed if quiescent else False),
        "lost": has(LOST),
    }


def _first_sends(columns: dict[str, Ints], start: Ints, messages: int) -> dict[str, Ints]:
    found = {name: np.full(messages, NONE, np.int32) for name in ("sender", "sent_row", "group_of")}
    number = np.zeros(messages, np.int32)
    rows = np.flatnonzero(columns["kind"] == SEND).astype(np.int32)
    again = np.zeros(len(rows), np.bool_)
    _note_sends(
        rows, columns["message"], columns["group"], start,
        found["sender"], found["sent_row"], found["group_of"], number, again,
    )  # fmt: skip
    return {**found, "number": number, "repeated_sends": rows[again]}


@kernel
def _note_sends(
    rows: Ints, message: Ints, group: Ints, start: Ints,
    sender: Ints, sent_row: Ints, group_of: Ints, number: Ints, again: Ints,
) -> None:  # fmt: skip
    p, count = 0, 0
    for k in range(len(rows)):
        row = rows[k]
        while row >= start[p + 1]:
            p, count = p + 1, 0
        m = message[row]
        if sender[m] != -1:
            again[k] = True
            continue
        count += 1
        sender[m], sent_row[m], group_of[m], number[m] = p, row, group[row], count


def _first_deliveries(
    columns: dict[str, Ints], start: Ints, messages: int, scratch: Scratch
) -> dict[str, Ints]:
    count = int(np.count_nonzero(columns["kind"] == DELIVER))
    delivered, rows = scratch.empty(count, np.int32), scratch.empty(count, np.int32)
    delivery_start = np.zeros(len(start), np.int32)
    repeats = np.zeros(count, np.int32)
    repeated = _note_deliveries(
        columns["kind"], columns["message"], start, np.full(messages, NONE, np.int32),
        delivered, rows, delivery_start, repeats,
    )  # fmt: skip
    first = int(delivery_start[-1])
    return {
        "delivered": delivered[:first],
        "delivered_row": rows[:first],
        "delivery_start": delivery_start,
        "repeats": repeats[:repeated].copy(),
    }


@kernel
def _note_deliveries(
    kind: Ints, message: Ints, start: Ints, by: Ints,
    delivered: Ints, rows: Ints, delivery_start: Ints, repeats: Ints,
) -> int:  # fmt: skip
    """`by`: per message, the last process that was seen to deliver it. Gives the repeats."""
    count, repeated = 0, 0
    for p in range(len(start) - 1):
        delivery_start[p] = count
        for row in range(start[p], start[p + 1]):
            if kind[row] != 1:  # DELIVER
                continue
            m = message[row]
            if by[m] == p:
                repeats[repeated] = row
                repeated += 1
                continue
            by[m] = p
            delivered[count] = m
            rows[count] = row
            count += 1
    delivery_start[-1] = count
    return repeated


def _place_unsent(run: Run) -> None:
    """A message without a send record belongs to the lowest group named by a first delivery."""
    unsent = np.flatnonzero(run.sender[run.delivered] == NONE)
    if not len(unsent):
        return
    by_name = np.array(sorted(range(len(run.groups)), key=run.groups.__getitem__), np.int32)
    place = np.empty(len(by_name), np.int32)  # group -> its place by name
    place[by_name] = np.arange(len(by_name))
    lowest = np.full(run.message_count, len(by_name), np.int32)
    np.minimum.at(lowest, run.delivered[unsent], place[run.group[run.delivered_row[unsent]]])
    found = np.flatnonzero(lowest < len(by_name))
    run.group_of[found] = by_name[lowest[found]]
