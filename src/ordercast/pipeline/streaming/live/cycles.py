"""total.group and total.global beyond pairs: p has a before b, q b before c, r c before a.

The graph has an edge for each two messages that a process delivered one after the other. It is kept
in an order that respects every edge, and is repaired in place when an edge contradicts the order
(Pearce and Kelly's way). An edge that would close a circle is not added: it is the witness.

A message that everybody has delivered and that nothing remembered precedes can be in no later
circle, and is forgotten. One that is overdue somewhere is taken out, so that it holds nothing up.
"""

from __future__ import annotations

from itertools import pairwise

from ordercast.pipeline.streaming.live.ledger import tell
from ordercast.pipeline.streaming.live.state import (
    EVERYTHING,
    NOBODY,
    Limits,
    Message,
    Precedence,
    Process,
    RunState,
)


def deliver(run: RunState, limits: Limits, q: Process, m: Message) -> None:
    """q delivers m for the first time."""
    if "total.global" in run.checks:
        _extend(run, limits, EVERYTHING, q, m)
    if "total.group" in run.checks and m.group != NOBODY:
        _extend(run, limits, m.group, q, m)


def _extend(run: RunState, limits: Limits, scope: int, q: Process, m: Message) -> None:
    graph = run.graphs.get(scope)
    if graph is None:
        graph = run.graphs[scope] = Precedence()
    if m.number not in graph.rank:
        graph.rank[m.number] = graph.next_rank
        graph.next_rank += 1
    previous = graph.last.get(q.number)
    graph.last[q.number] = m.number
    if previous is None or previous not in graph.rank:
        return
    circle = _add(graph, previous, m.number, q.number)
    if circle:
        _tell(run, limits, scope, graph, circle, q)


def _add(graph: Precedence, a: int, b: int, q: int) -> list[int]:
    """Add the edge a -> b; or the path from b to a that forbids it."""
    known = graph.after.setdefault(a, {})
    if b in known:
        if q not in known[b]:
            known[b].append(q)
        return []
    if graph.rank[a] > graph.rank[b]:
        path = _repair(graph, a, b)
        if path:
            return path
    known[b] = [q]
    graph.before.setdefault(b, set()).add(a)
    return []


def _repair(graph: Precedence, a: int, b: int) -> list[int]:
    """Move what follows b behind what precedes a; the path from b to a if that cannot be."""
    rank, lowest, highest = graph.rank, graph.rank[b], graph.rank[a]
    came_from = {b: b}
    waiting = [b]
    while waiting:
        here = waiting.pop()
        for there in graph.after.get(here, ()):
            if there == a:
                return [*_path(came_from, b, here), a]
            if there not in came_from and rank[there] < highest:
                came_from[there] = here
                waiting.append(there)
    ahead = {a}
    waiting = [a]
    while waiting:
        here = waiting.pop()
        for there in graph.before.get(here, ()):
            if there not in ahead and rank[there] > lowest:
                ahead.add(there)
                waiting.append(there)
    moved = sorted(ahead, key=rank.__getitem__) + sorted(came_from, key=rank.__getitem__)
    places = sorted(rank[message] for message in moved)
    for message, place in zip(moved, places, strict=True):
        rank[message] = place
    return []


def _path(came_from: dict[int, int], start: int, end: int) -> list[int]:
    path = [end]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def _tell(
    run: RunState, limits: Limits, scope: int, graph: Precedence, path: list[int], q: Process
) -> None:
    """`path` leads from m to what q delivered just before m."""
    steps = list(pairwise(path))
    holders = [graph.after[a][b] for a, b in steps] + [[q.number]]
    if len({one[0] for one in holders}) < 3:
        return  # two processes disagree: that is told as such
    names = [run.messages[number].id for number in path]
    who = [run.processes[one[0]].name for one in holders]
    said = ", ".join(
        f"{p} delivered {a} before {b}"
        for p, a, b in zip(who, names, [*names[1:], names[0]], strict=True)
    )
    witness: dict[str, object] = {"cycle": names, "processes": who}
    if scope == EVERYTHING:
        tell(run, limits, "total.global", ("circle",), f"{said}.", witness, holders)
    else:
        about = (run.groups[scope].name, "circle")
        tell(run, limits, "total.group", about, f"{said}.", witness, holders)


def forget(graph: Precedence, number: int) -> None:
    """Take a message out, with its edges."""
    graph.rank.pop(number, None)
    for there in graph.after.pop(number, {}):
        before = graph.before.get(there)
        if before is not None:
            before.discard(number)
            if not before:
                del graph.before[there]
    for there in graph.before.pop(number, ()):
        graph.after.get(there, {}).pop(number, None)


def step_over(graph: Precedence, number: int) -> None:
    """Take out a message that is overdue somewhere, and keep the order of its neighbours.

    It must not hold what follows it. A circle that only its late delivery closes is not found; two
    processes that disagree about it are (see `pairs`).
    """
    for following, holders in graph.after.get(number, {}).items():
        for preceding in graph.before.get(number, ()):
            both = [p for p in graph.after[preceding][number] if p in holders]
            known = graph.after[preceding].setdefault(following, [])
            known += [p for p in both if p not in known]
            if known:
                graph.before.setdefault(following, set()).add(preceding)
            else:
                del graph.after[preceding][following]
    forget(graph, number)


def is_out(run: RunState, m: Message) -> bool:
    """Leave each graph in which nothing precedes it; has it left them all?

    Two graphs may disagree about what comes first, so each is left by itself.
    """
    out = True
    for graph in run.graphs.values():
        if m.number in graph.before:
            out = False
        else:
            forget(graph, m.number)
    return out
