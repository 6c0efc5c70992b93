"""Searches in a directed graph given as node -> set of next nodes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Node = TypeVar("Node")


def reachable(start: Node, next_of: Mapping[Node, Set[Node]]) -> set[Node]:
    """Everything that a path of at least one step leads to; `start` itself if on a cycle."""
    seen: set[Node] = set()
    waiting = list(next_of.get(start, ()))
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting.extend(next_of.get(here, ()))
    return seen


def transitive_closure(next_of: Mapping[Node, Set[Node]]) -> dict[Node, set[Node]]:
    """node -> everything reachable from it."""
    last_first = _last_first(next_of)
    if last_first is None:
        return {node: reachable(node, next_of) for node in next_of}
    closure: dict[Node, set[Node]] = {}
    for node in last_first:  # all that comes after it is known
        after = next_of.get(node, frozenset())
        closure[node] = set(after).union(*(closure[there] for there in after))
    return {node: closure[node] for node in next_of}


def knots(next_of: Mapping[Node, Set[Node]]) -> list[set[Node]]:
    """The sets of two or more nodes in which a path leads from each node to each other."""
    if _last_first(next_of) is not None:
        return []
    closure = {node: reachable(node, next_of) for node in next_of}
    found: list[set[Node]] = []
    for here in next_of:
        knot = {there for there in closure[here] if here in closure[there]}
        if len(knot) > 1 and knot not in found:
            found.append(knot)
    return found


def shortest_cycle(next_of: Mapping[Node, Set[Node]]) -> list[Node] | None:
    """A shortest path from some node back to itself, that node named once; None if acyclic."""
    if _last_first(next_of) is not None:
        return None
    cycles = [path for start in next_of if (path := _path_back(start, next_of)) is not None]
    return min(cycles, key=lambda path: (len(path), str(path))) if cycles else None


def _last_first(next_of: Mapping[Node, Set[Node]]) -> list[Node] | None:
    """The nodes, each after all that a path leads to from it; None if there is a cycle."""
    try:
        return list(TopologicalSorter(next_of).static_order())
    except CycleError:
        return None


def _path_back(start: Node, next_of: Mapping[Node, Set[Node]]) -> list[Node] | None:
    paths = [[start]]
    seen: set[Node] = set()
    for path in paths:  # grows while it is read: breadth first
        for there in sorted(next_of.get(path[-1], ()), key=str):
            if there == start:
                return path
            if there not in seen:
                seen.add(there)
                paths.append([*path, there])
    return None
