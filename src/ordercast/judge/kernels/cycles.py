"""A cycle in the union of the delivery orders, as short as it can be made, and as evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.findings import Evidence
from ordercast.judge.kernels.inversions import Inversions
from ordercast.judge.kernels.run import NONE, Ints, Run

Logs = list[tuple[int, Ints]]  # who delivers which messages of a knot, in order

MAX_SHORTENED = 200  # messages; a longer cycle is shown as it was found


@dataclass(frozen=True)
class Edge:
    """`process` delivers `earlier` before `later`."""

    process: int
    earlier: int
    later: int


def inversion_edges(inversions: Inversions, line: int, first: int, second: int) -> list[Edge]:
    """The cycle of two that two messages of a line of `inversions` are."""
    return [
        Edge(int(inversions.high[line]), first, second),
        Edge(int(inversions.low[line]), second, first),
    ]


def find_cycle(run: Run, logs: Logs) -> list[Edge]:
    """A cycle in a knot; the shortest on its messages."""
    # As they come in the logs: their numbers depend on the order in which rows were read.
    messages = np.array(list(dict.fromkeys(np.concatenate([log for _, log in logs]).tolist())))
    if len(messages) <= MAX_SHORTENED and (pair := _cycle_of_two(run, logs, messages)):
        return pair
    cycle = _follow_blockers(run, logs)
    if not 2 < len(cycle) <= MAX_SHORTENED:
        return cycle
    return _shorten(run, logs, cycle)


def _cycle_of_two(run: Run, logs: Logs, messages: Ints) -> list[Edge]:
    holder = _holders(run, logs, messages)
    first, second = np.nonzero((holder != NONE) & (holder.T != NONE))
    if not len(first):
        return []
    return _edges(holder, messages, [int(first[0]), int(second[0])])


def _follow_blockers(run: Run, logs: Logs) -> list[Edge]:
    """From the head of a log to the head of one where it comes later, until one comes again."""
    is_head = np.zeros(run.message_count, np.bool_)
    is_head[[log[0] for _, log in logs]] = True
    blocker = np.full(run.message_count, NONE, np.int32)  # a log where it comes later
    for number, (_, log) in enumerate(logs):
        rest = log[1:]
        blocker[rest[is_head[rest]]] = number
    message = int(logs[0][1][0])
    path: list[Edge] = []
    seen: dict[int, int] = {}
    while message not in seen:
        seen[message] = len(path)
        process, log = logs[int(blocker[message])]
        path.append(Edge(process, int(log[0]), message))
        message = int(log[0])
    return path[seen[message] :][::-1]


def _shorten(run: Run, logs: Logs, cycle: list[Edge]) -> list[Edge]:
    """The shortest cycle on the messages of `cycle`."""
    messages = np.array([edge.earlier for edge in cycle])
    holder = _holders(run, logs, messages)
    follows = [np.flatnonzero(row != NONE).tolist() for row in holder]
    cycles = (_cycle_through(follows, start) for start in range(len(messages)))
    return _edges(holder, messages, min((found for found in cycles if found), key=len))


def _edges(holder: Ints, messages: Ints, steps: list[int]) -> list[Edge]:
    return [
        Edge(int(holder[a, b]), int(messages[a]), int(messages[b]))
        for a, b in zip(steps, [*steps[1:], steps[0]], strict=True)
    ]


def _holders(run: Run, logs: Logs, messages: Ints) -> Ints:
    """[a, b]: a process that delivers the a-th of `messages` before the b-th."""
    number = np.full(run.message_count, NONE, np.int32)
    number[messages] = np.arange(len(messages))
    holder = np.full((len(messages), len(messages)), NONE, np.int32)
    for process, log in logs:
        own = number[log]
        own = own[own != NONE]
        for k in range(len(own) - 1):
            row, later = holder[own[k]], own[k + 1 :]
            row[later[row[later] == NONE]] = process
    return holder


def _cycle_through(follows: list[list[int]], start: int) -> list[int]:
    """The shortest way from `start` back to it, breadth first; empty if there is none."""
    came_from: dict[int, int] = {}
    layer = [start]
    while layer:
        coming: list[int] = []
        for a in layer:
            for b in follows[a]:
                if b == start:
                    return _way(came_from, start, a)
                if b not in came_from:
                    came_from[b] = a
                    coming.append(b)
        layer = coming
    return []


def _way(came_from: dict[int, int], start: int, end: int) -> list[int]:
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def cycle_evidence(run: Run, cycle: list[Edge]) -> Evidence:
    """The cycle in words, and as a witness that names who holds each edge."""
    steps = "; ".join(
        f"{run.processes[e.process]} delivers {run.name(e.earlier)} before {run.name(e.later)}"
        for e in cycle
    )
    events: list[dict[str, object]] = []
    for edge in cycle:
        events += run.delivery_event(edge.process, edge.earlier)
        events += run.delivery_event(edge.process, edge.later)
    for edge in cycle:
        events += run.send_event(edge.later)
    witness: dict[str, object] = {
        "messages": [run.name(e.earlier) for e in cycle],
        "processes": sorted({run.processes[e.process] for e in cycle}),
        "cycle": [
            {
                "process": run.processes[e.process],
                "before": run.name(e.earlier),
                "after": run.name(e.later),
            }
            for e in cycle
        ],
        "events": _unique(events),
    }
    return f"no single order fits: {steps}", witness


def _unique(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return list({(e["process"], e["index"], e["kind"], e["message"]): e for e in events}.values())
