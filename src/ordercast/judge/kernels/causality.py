"""Happened-before, as one stamp per sent message, and what each observer knew when.

    stamp(m)[s] = how many sends of s happened before send(m), m itself included

Causality leaves a process only by its sends, and with the n-th send of s all earlier ones of s
are in the past too. So one number per sender says everything, and it needs no wall clock:

    one scan in happened-before order (a log waits at a delivery until its send is stamped);
    clock[p] joins the stamps of what p delivered;  send(m) by p:  clock[p][p] += 1, stamp(m) :=
    clock[p];  delivering the n-th send of s while clock[p][s] >= n is an inversion

A cycle leaves logs waiting for ever. Reachability is still well defined then: see causal_knots.py.

The components of a clock do not depend on each other. A scan may keep only those of some
senders: then it judges the messages of these, and the parts together judge all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ordercast.judge.kernels.causal_knots import stamp_knots
from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.run import NONE, Ints, Run

FIFO, CAUSAL = 1, 2  # what a delivery inverts, as bits

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Logs:
    """Sends and first deliveries of sent messages, in the order of their logs.

    The log of a process is one log, or for causality inside groups one log per group.
    """

    steps: Ints  # m: a send of m; ~m: a delivery of m
    rows: Ints
    bounds: Ints  # log -> its first step; one entry more
    process: Ints  # log -> its process
    group: Ints  # log -> its group; NONE: all groups

    def of(self, process: int, group: int) -> int | None:
        """The log of a process for the messages of a group."""
        if not len(self.group) or self.group[0] == NONE:
            return process
        first, last = np.searchsorted(self.process, [process, process + 1])
        at = first + int(np.searchsorted(self.group[first:last], group))
        return at if at < last and self.group[at] == group else None

    def deliveries(self, log: int) -> tuple[Ints, Ints]:
        """Messages and rows of its deliveries."""
        here = slice(int(self.bounds[log]), int(self.bounds[log + 1]))
        steps = self.steps[here]
        chosen = steps < 0
        return ~steps[chosen], self.rows[here][chosen]


@dataclass(frozen=True)
class Causality:
    """The stamps of all sent messages, with the components of some senders."""

    stamps: Ints  # message x column
    column: Ints  # process -> its column, NONE if it is not kept
    cyclic: bool
    by_group: bool  # happened-before inside the group of each message only

    def known(self, process: int, messages: Ints, number: int) -> Bools:
        """Did the `number`-th send of `process` happen before (or at) the send of each of these?"""
        column = self.column[process]
        if column == NONE:
            return np.zeros(len(messages), np.bool_)
        return np.asarray(self.stamps[messages, column] >= number)


@dataclass(frozen=True)
class Scan:
    """What one scan found."""

    logs: Logs
    causality: Causality
    inverted: Ints  # uint8 per step: FIFO and CAUSAL bits
    fifo_reach: Ints  # log x column: the highest number delivered of each sender
    causal_reach: Ints  # log x column: how far all that was delivered reaches

    def inverted_logs(self, bit: int) -> set[int]:
        """The logs with a delivery that comes too late."""
        steps = np.flatnonzero(self.inverted & bit)
        return set((np.searchsorted(self.logs.bounds, steps, side="right") - 1).tolist())

    def reach(self, bit: int) -> Ints:
        return self.fifo_reach if bit == FIFO else self.causal_reach


def whole_logs(run: Run) -> Logs:
    """One log per process."""
    count = int(np.count_nonzero(run.sender != NONE)) + len(run.delivered)
    steps, rows = run.scratch.empty(count, np.int32), run.scratch.empty(count, np.int32)
    processes = len(run.processes)
    bounds = np.zeros(processes + 1, np.int32)
    _steps(
        run.kind, run.message, run.start, run.sender, run.sent_row,
        run.delivery_start, run.delivered, run.delivered_row, steps, rows, bounds,
    )  # fmt: skip
    return Logs(
        steps[: bounds[-1]],
        rows[: bounds[-1]],
        bounds,
        np.arange(processes, dtype=np.int32),
        np.full(processes, NONE, np.int32),
    )


@kernel
def _steps(
    kind: Ints, message: Ints, start: Ints, sender: Ints, sent_row: Ints,
    delivery_start: Ints, delivered: Ints, delivered_row: Ints,
    steps: Ints, rows: Ints, bounds: Ints,
) -> None:  # fmt: skip
    count = 0
    for p in range(len(start) - 1):
        bounds[p] = count
        d, last = delivery_start[p], delivery_start[p + 1]
        for row in range(start[p], start[p + 1]):
            if d < last and delivered_row[d] == row:
                m = delivered[d]
                d += 1
                if sender[m] != -1:
                    steps[count], rows[count] = ~m, row
                    count += 1
            elif kind[row] == 0 and sent_row[message[row]] == row:  # SEND
                steps[count], rows[count] = message[row], row
                count += 1
    bounds[-1] = count


def logs_by_group(run: Run, logs: Logs) -> Logs:
    """One log per process and group, from one log per process."""
    steps = run.scratch.empty(len(logs.steps), np.int32)
    rows = run.scratch.empty(len(logs.steps), np.int32)
    most = min(len(run.processes) * len(run.groups), len(logs.steps))
    bounds, process, group = (np.zeros(most + 1, np.int32) for _ in range(3))
    count = _by_group(
        logs.steps, logs.rows, logs.bounds, run.group_of, len(run.groups),
        steps, rows, bounds, process, group,
    )  # fmt: skip
    return Logs(steps, rows, bounds[: count + 1], process[:count], group[:count])


@kernel
def _by_group(
    steps: Ints, rows: Ints, starts: Ints, group_of: Ints, groups: int,
    new_steps: Ints, new_rows: Ints, bounds: Ints, process: Ints, group: Ints,
) -> int:  # fmt: skip
    """Bring the steps of each process together by group, in their order. Gives the logs."""
    count, first = 0, 0
    place = np.zeros(groups, np.int64)
    for p in range(len(starts) - 1):
        place[:] = 0
        for k in range(starts[p], starts[p + 1]):
            m = steps[k] if steps[k] >= 0 else ~steps[k]
            place[group_of[m]] += 1
        for g in range(groups):
            if place[g]:
                bounds[count], process[count], group[count] = first, p, g
                count += 1
                first, place[g] = first + place[g], first
        for k in range(starts[p], starts[p + 1]):
            m = steps[k] if steps[k] >= 0 else ~steps[k]
            g = group_of[m]
            new_steps[place[g]], new_rows[place[g]] = steps[k], rows[k]
            place[g] += 1
    bounds[count] = first
    return count


def scan(run: Run, logs: Logs, senders: Sequence[int] | None = None) -> Scan:
    """Stamp all sends and check all deliveries, with the components of `senders` or of all."""
    column = _columns(run, senders)
    width = int(column.max(initial=NONE)) + 1
    stamps = np.zeros((run.message_count, width), np.int32)
    inverted = run.scratch.full(len(logs.steps), 0, np.uint8)
    reach = [np.zeros((len(logs.process), width), np.int32) for _ in range(2)]
    known = np.zeros(run.message_count, np.bool_)
    arrays = (
        logs.steps, logs.bounds, logs.process, run.sender, run.number, column,
        stamps, known, inverted, *reach,
    )  # fmt: skip
    done = _scan(*arrays)
    if not done:
        stamp_knots(run, logs.steps, logs.bounds, logs.process, column, stamps)
        known.fill(True)
        for column_of_findings in (inverted, *reach):
            column_of_findings.fill(0)
        _scan(*arrays)
    by_group = bool(len(logs.group)) and logs.group[0] != NONE
    causality = Causality(stamps, column, not done, by_group)
    return Scan(logs, causality, inverted, *reach)


def _columns(run: Run, senders: Sequence[int] | None) -> Ints:
    sends = np.zeros(len(run.processes), np.bool_)
    sends[run.sender[run.sender != NONE]] = True
    if senders is not None:
        asked = np.zeros(len(sends), np.bool_)
        asked[list(senders)] = True
        sends &= asked
    return np.where(sends, np.cumsum(sends) - 1, NONE).astype(np.int32)


@kernel
def _scan(
    steps: Ints, bounds: Ints, process: Ints, sender: Ints, number: Ints, column: Ints,
    stamps: Ints, known: Any, inverted: Ints, fifo: Ints, causal: Ints,
) -> bool:  # fmt: skip
    """Did every log come to its end?

    `causal` is the clock of each log without what it sent itself: that is `own`.
    """
    logs, width = len(bounds) - 1, stamps.shape[1]
    place = bounds[:-1].copy()
    own = np.zeros(logs, np.int32)
    waits_for = np.full(len(known), -1, np.int32)  # message -> the last log that waits for it
    waits_too = np.full(logs, -1, np.int32)  # log -> another that waits for the same
    ready = np.arange(logs)[::-1].copy()
    count, finished = logs, 0
    while count:
        count -= 1
        log = ready[count]
        clock, highest, me = causal[log], fifo[log], column[process[log]]
        at, last = place[log], bounds[log + 1]
        while at < last:
            step = steps[at]
            if step < 0:
                m = ~step
                if not known[m]:
                    waits_too[log] = waits_for[m]
                    waits_for[m] = log
                    break
                c = column[sender[m]]
                stamp = stamps[m]
                if c >= 0:
                    n = number[m]
                    if clock[c] >= n:
                        inverted[at] |= 2  # CAUSAL
                    if highest[c] >= n:
                        inverted[at] |= 1  # FIFO
                    else:
                        highest[c] = n
                for k in range(width):
                    clock[k] = max(clock[k], stamp[k])
            else:
                stamp = stamps[step]
                own[log] = number[step]
                for k in range(width):
                    stamp[k] = max(stamp[k], clock[k])
                if me >= 0:
                    stamp[me] = max(stamp[me], own[log])
                if not known[step]:
                    known[step] = True
                    other = waits_for[step]
                    while other >= 0:
                        ready[count] = other
                        count += 1
                        other = waits_too[other]
            at += 1
        place[log] = at
        if at == last:
            finished += 1
    return finished == logs


def chain(run: Run, causality: Causality, a: int, b: int) -> list[int]:
    """Messages from a to b, each delivered or sent by the sender of the next before it sent that.

    The evidence that send(a) happened before send(b). Where causality has a cycle the way back
    may lead round it; then all ways are tried.
    """
    path, seen = [b], {b}
    while not sent_from(run, a, path[0]):
        before = _carrier(run, causality, a, path[0], seen)
        if before is None:
            path = _shortest(run, causality, a, b)
            break
        path.insert(0, before)
        seen.add(before)
    return path if path[0] == a else [a, *path]


def sent_from(run: Run, a: int, b: int) -> bool:
    """Did the sender of a send b, as the same message or later?"""
    return bool(run.sender[a] == run.sender[b] and run.number[a] <= run.number[b])


def _shortest(run: Run, causality: Causality, a: int, b: int) -> list[int]:
    """The shortest way back from b to a, or to what the sender of a sent later: breadth first."""
    leads_to = {b: b}  # message -> the next one on the way to b
    asked = run.delivery_start[:-1].copy()  # process -> its first delivery not yet looked at
    queue = deque([b])
    while not sent_from(run, a, queue[0]):
        m = queue.popleft()
        p = int(run.sender[m])
        until = np.searchsorted(run.delivered_row[run.deliveries(p)], run.sent_row[m])
        last = int(run.delivery_start[p] + until)
        for heard in _heard(run, causality, a, run.delivered[asked[p] : last]).tolist():
            if heard not in leads_to:
                leads_to[heard] = m
                queue.append(heard)
        asked[p] = max(last, asked[p])
    path = [queue[0]]
    while path[-1] != b:
        path.append(leads_to[path[-1]])
    return path


def _heard(run: Run, causality: Causality, a: int, messages: Ints) -> Ints:
    """Those that can carry news of a."""
    messages = messages[run.sender[messages] != NONE]
    if causality.by_group:
        messages = messages[run.group_of[messages] == run.group_of[a]]
    return messages


def _carrier(run: Run, causality: Causality, a: int, b: int, seen: set[int]) -> int | None:
    """A message that brought news of a to the sender of b; a itself if it can be.

    One whose sender knew a itself comes before others: that makes the chain short.
    """
    here = run.deliveries(int(run.sender[b]))
    until = int(np.searchsorted(run.delivered_row[here], run.sent_row[b]))
    heard = run.delivered[here][:until]
    if (heard == a).any():
        return a
    heard = _heard(run, causality, a, heard)
    told = heard[causality.known(int(run.sender[a]), heard, int(run.number[a]))]
    told = np.concatenate((told[directly(run, a, told)], told))
    return next((int(m) for m in told if int(m) not in seen), None)


def directly(run: Run, a: int, messages: Ints) -> Bools:
    """Which of these were sent by a process that had sent or delivered a before?"""
    knew = np.full(len(run.processes), len(run), np.int64)  # process -> since which row
    places = np.flatnonzero(run.delivered == a)
    deliverers = np.searchsorted(run.delivery_start, places, side="right") - 1
    knew[deliverers] = run.delivered_row[places]
    knew[run.sender[a]] = run.sent_row[a]
    return np.asarray(knew[run.sender[messages]] < run.sent_row[messages])
