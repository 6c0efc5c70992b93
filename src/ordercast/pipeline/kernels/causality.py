"""Happened-before, as one stamp per sent message.

    stamp(m)[s] = how many sends of s happened before send(m), m itself included

Causality leaves a process only by its sends, and with the n-th send of s all earlier ones of s
are in the past too. So one number per sender says everything, and it needs no wall clock:

    one scan in happened-before order (a process waits at a delivery until its send is stamped);
    R[p] joins the stamps of what p delivered;  send(m) by p:  R[p][p] += 1, stamp(m) := R[p]

A cycle leaves processes waiting for ever. Reachability is still well defined then, and the
stamps are raised until nothing changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ordercast.pipeline.kernels.run import NONE, Run

Stamps = npt.NDArray[np.int32]
Steps = Sequence[int]  # m: a send of m; ~m: a delivery of m; in log order


@dataclass(frozen=True)
class Causality:
    """The stamps of some or all messages of a run."""

    stamps: Stamps  # message x column
    column: list[int]  # process -> its column, NONE if it sends nothing
    cyclic: bool

    def reaches(self, process: int, number: int, message: int) -> bool:
        """Did the `number`-th send of `process` happen before (or at) send(message)?"""
        column = self.column[process]
        return column != NONE and bool(self.stamps[message, column] >= number)


def chain(run: Run, causality: Causality, a: int, b: int) -> list[int]:
    """Messages from a to b, each delivered or sent by the sender of the next before it sent that.

    The evidence that send(a) happened before send(b). Only messages that are stamped take part.
    Where causality has a cycle the search may go round it; then only a and b are named.
    """
    path, seen = [b], {b}
    while run.sender[path[0]] != run.sender[a] or run.number[path[0]] < run.number[a]:
        before = _carrier(run, causality, a, path[0], seen)
        if before is None:
            return [a, b]
        path.insert(0, before)
        seen.add(before)
    return path if path[0] == a else [a, *path]


def _carrier(run: Run, causality: Causality, a: int, b: int, seen: set[int]) -> int | None:
    """A message that brought news of a to the sender of b; a itself if it can be."""
    log = run.logs[run.sender[b]]
    if log.where.get(a, run.sent_at[b]) < run.sent_at[b]:
        return a
    until = bisect_left(log.delivered_at, run.sent_at[b])
    carriers = (
        m
        for m in log.deliveries[:until]
        if m not in seen and causality.reaches(run.sender[a], run.number[a], m)
    )
    return next(carriers, None)


def stamp(run: Run, counts: Sequence[bool] | None = None) -> Causality:
    """Happened-before over the messages that `counts`; over all without it."""
    steps = [_steps(run, p, counts) for p in range(len(run.logs))]
    column, senders = [NONE] * len(run.logs), 0
    for p, log in enumerate(run.logs):
        if log.sends:
            column[p], senders = senders, senders + 1
    stamps = np.zeros((len(run.messages), senders), dtype=np.int32)
    done = _scan(run, steps, stamps, column)
    if not done:
        _raise_to_fixpoint(run, steps, stamps, column)
    return Causality(stamps, column, cyclic=not done)


def _steps(run: Run, p: int, counts: Sequence[bool] | None) -> Steps:
    log = run.logs[p]
    places = [(at, m) for at, m in zip(log.sent_at, log.sends, strict=True)]
    places += [
        (at, ~m)
        for at, m in zip(log.delivered_at, log.deliveries, strict=True)
        if run.sender[m] != NONE
    ]
    places.sort()
    if counts is None:
        return [m for _, m in places]
    return [m for _, m in places if counts[m if m >= 0 else ~m]]


def _scan(run: Run, steps: list[Steps], stamps: Stamps, column: list[int]) -> bool:
    """Stamp in happened-before order. False if a cycle stopped the scan."""
    clocks = np.zeros((len(steps), stamps.shape[1]), dtype=np.int32)
    place = [0] * len(steps)
    stamped = bytearray(len(run.messages))
    waiting: dict[int, list[int]] = {}
    ready = list(range(len(steps)))
    while ready:
        p = ready.pop()
        clock, own, todo, at = clocks[p], column[p], steps[p], place[p]
        while at < len(todo):
            m = todo[at]
            if m >= 0:
                clock[own] = run.number[m]
                stamps[m] = clock
                stamped[m] = 1
                ready += waiting.pop(m, ())
            elif stamped[~m]:
                np.maximum(clock, stamps[~m], out=clock)
            else:
                waiting.setdefault(~m, []).append(p)
                break
            at += 1
        place[p] = at
    return not waiting


def _raise_to_fixpoint(run: Run, steps: list[Steps], stamps: Stamps, column: list[int]) -> None:
    changed = True
    while changed:
        changed = False
        for p, todo in enumerate(steps):
            clock = np.zeros(stamps.shape[1], dtype=np.int32)
            for m in todo:
                if m < 0:
                    np.maximum(clock, stamps[~m], out=clock)
                    continue
                clock[column[p]] = max(clock[column[p]], run.number[m])
                if (clock > stamps[m]).any():
                    np.maximum(stamps[m], clock, out=stamps[m])
                    changed = True
