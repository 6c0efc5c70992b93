"""total.group, total.global, total.pairwise: do all observers see one order?

The delivery orders are merged by their heads (Kahn): a message is taken when it heads every log
that contains it. If all logs run empty, their union is acyclic. If not, going from a head that
cannot be taken to the head that blocks it leads round a cycle: the witness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ordercast.pipeline.kernels.findings import Evidence, Findings
from ordercast.pipeline.kernels.run import Run


@dataclass(frozen=True)
class Edge:
    """`process` delivers `earlier` before `later`."""

    process: int
    earlier: int
    later: int


def sequences(run: Run, observers: Sequence[int], group: int | None = None) -> dict[int, list[int]]:
    """Per observer the messages it delivers, of one group or of all, in order."""
    return {
        q: [m for m in run.logs[q].deliveries if group is None or run.group_of[m] == group]
        for q in observers
    }


def find_cycle(run: Run, logs: dict[int, list[int]]) -> list[Edge]:
    """A cycle in the union of the delivery orders `logs`; empty if there is none."""
    copies: dict[int, int] = {}
    for log in logs.values():
        for m in log:
            copies[m] = copies.get(m, 0) + 1
    place = dict.fromkeys(logs, 0)
    heading: dict[int, list[int]] = {}  # message -> the observers whose log it heads
    ready: list[int] = []

    def expose(q: int) -> None:
        if place[q] < len(logs[q]):
            m = logs[q][place[q]]
            at_head = heading.setdefault(m, [])
            at_head.append(q)
            if len(at_head) == copies[m]:
                ready.append(m)

    for q in logs:
        expose(q)
    while ready:
        for q in heading.pop(ready.pop()):
            place[q] += 1
            expose(q)
    heads = {q: logs[q][place[q]] for q in logs if place[q] < len(logs[q])}
    return _follow_blockers(run, heads) if heads else []


def _follow_blockers(run: Run, heads: dict[int, int]) -> list[Edge]:
    """From a blocked head to the head before it in another log, until one comes again."""
    message = next(iter(heads.values()))
    path: list[Edge] = []
    seen: dict[int, int] = {}
    while message not in seen:
        seen[message] = len(path)
        q = next(q for q, head in heads.items() if head != message and message in run.logs[q].where)
        path.append(Edge(q, heads[q], message))
        message = heads[q]
    return path[seen[message] :][::-1]


def check_acyclic(
    run: Run, observers: Sequence[int], groups: Sequence[int | None], limit: int
) -> Findings:
    """total.group with each group in turn; total.global with the one "group" None."""
    found = Findings(limit)
    for group in groups:
        if cycle := find_cycle(run, sequences(run, observers, group)):
            found.violated(_cycle_evidence, run, cycle)
    return found


def _cycle_evidence(run: Run, cycle: list[Edge]) -> Evidence:
    steps = "; ".join(
        f"{run.processes[e.process]} delivers {run.messages[e.earlier]} before "
        f"{run.messages[e.later]}"
        for e in cycle
    )
    events: list[dict[str, object]] = []
    for edge in cycle:
        events += run.delivery_event(edge.process, edge.earlier)
        events += run.delivery_event(edge.process, edge.later)
    for edge in cycle:
        events += run.send_event(edge.later)
    witness: dict[str, object] = {
        "messages": [run.messages[e.earlier] for e in cycle],
        "processes": sorted({run.processes[e.process] for e in cycle}),
        "cycle": [
            {
                "process": run.processes[e.process],
                "before": run.messages[e.earlier],
                "after": run.messages[e.later],
            }
            for e in cycle
        ],
        "events": _unique(events),
    }
    return f"no single order fits: {steps}", witness


def _unique(events: list[dict[str, object]]) -> list[dict[str, object]]:
    return list({(e["process"], e["index"], e["kind"]): e for e in events}.values())


def opposite_pairs(
    run: Run, observers: Sequence[int], group: int | None = None
) -> Iterator[tuple[Edge, Edge]]:
    """One pair of edges for each two observers that deliver two messages in opposite orders."""
    logs = sequences(run, observers, group)
    for k, p in enumerate(observers):
        where = run.logs[p].where
        for q in observers[k + 1 :]:
            common = [m for m in logs[q] if m in where]
            for a, b in pairwise(common):
                if where[a] > where[b]:
                    yield Edge(q, a, b), Edge(p, b, a)
                    break


def check_pairwise(run: Run, observers: Sequence[int], limit: int) -> Findings:
    """total.pairwise. Comparing all pairs is only needed where the union has a cycle."""
    found = Findings(limit)
    for first, second in opposite_pairs(run, observers):
        found.violated(_cycle_evidence, run, [first, second])
    return found


def opposite_evidence(run: Run, first: Edge, second: Edge) -> Evidence:
    """The evidence for two observers that deliver two messages in opposite orders."""
    return _cycle_evidence(run, [first, second])
