"""A cycle in the union of the delivery orders, as short as it can be made, and as evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.kernels.findings import Evidence
from ordercast.pipeline.kernels.merge import Merged, Sequences
from ordercast.pipeline.kernels.opposites import Opposites
from ordercast.pipeline.kernels.run import NONE, Ints, Run

MAX_SHORTENED = 200  # messages; a longer cycle is shown as it was found


@dataclass(frozen=True)
class Edge:
    """`process` delivers `earlier` before `later`."""

    process: int
    earlier: int
    later: int


def opposite_edges(opposites: Opposites, line: int) -> list[Edge]:
    """The cycle of two that one line of `opposites` is."""
    first, second = int(opposites.first[line]), int(opposites.second[line])
    return [
        Edge(int(opposites.high[line]), first, second),
        Edge(int(opposites.low[line]), second, first),
    ]


def find_cycle(run: Run, sequences: Sequences, merged: Merged, scope: int) -> list[Edge]:
    """A cycle in a scope that got stuck; the shortest on its messages."""
    cycle = _follow_blockers(run, sequences, merged, scope)
    if not 2 < len(cycle) <= MAX_SHORTENED:
        return cycle
    return _shorten(run, sequences, merged, scope, cycle)


def _follow_blockers(run: Run, sequences: Sequences, merged: Merged, scope: int) -> list[Edge]:
    """From a blocked head to the head before it in another sequence, until one comes again."""
    live = [
        s for s in sequences.in_scope(scope)
        if merged.taking[s] and merged.stuck_at[s] < sequences.bounds[s + 1]
    ]  # fmt: skip
    head = {s: int(sequences.messages[merged.stuck_at[s]]) for s in live}
    is_head = np.zeros(run.message_count, np.bool_)
    is_head[list(head.values())] = True
    blocker = np.full(run.message_count, NONE, np.int32)  # a sequence where it comes later
    for s in live:
        rest = sequences.messages[merged.stuck_at[s] + 1 : sequences.bounds[s + 1]]
        blocker[rest[is_head[rest]]] = s
    message = head[live[0]]
    path: list[Edge] = []
    seen: dict[int, int] = {}
    while message not in seen:
        seen[message] = len(path)
        s = int(blocker[message])
        path.append(Edge(int(sequences.process[s]), head[s], message))
        message = head[s]
    return path[seen[message] :][::-1]


def _shorten(
    run: Run, sequences: Sequences, merged: Merged, scope: int, cycle: list[Edge]
) -> list[Edge]:
    """The shortest cycle on the messages of `cycle`."""
    messages = np.array([edge.earlier for edge in cycle])
    holder = _holders(run, sequences, merged, scope, messages)
    follows = [np.flatnonzero(row != NONE).tolist() for row in holder]
    cycles = (_cycle_through(follows, start) for start in range(len(messages)))
    steps = min((found for found in cycles if found), key=len)
    return [
        Edge(int(holder[a, b]), int(messages[a]), int(messages[b]))
        for a, b in zip(steps, [*steps[1:], steps[0]], strict=True)
    ]


def _holders(run: Run, sequences: Sequences, merged: Merged, scope: int, messages: Ints) -> Ints:
    """[a, b]: a process that delivers the a-th of `messages` before the b-th."""
    number = np.full(run.message_count, NONE, np.int32)
    number[messages] = np.arange(len(messages))
    holder = np.full((len(messages), len(messages)), NONE, np.int32)
    for s in sequences.in_scope(scope):
        if not merged.taking[s]:
            continue
        own = number[sequences.of(s)]
        own = own[own != NONE]
        for k in range(len(own) - 1):
            row, later = holder[own[k]], own[k + 1 :]
            row[later[row[later] == NONE]] = sequences.process[s]
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
