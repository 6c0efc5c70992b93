"""Which missing messages may be gaps in total order, and who could show it.

Let B be what q delivers of the group within the span in which it owes a. Whoever delivers by
ascending rank can show the gap a only if the rank of a is below the highest in B. In a run where
crashed processes alone lack messages, and these are the last ones, that leaves no candidates.

Ranks are those of an order that most observers follow; who does not is looked at in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.membership import Span
from ordercast.judge.kernels.merge import merge, orders_by_group, whole_orders
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run


@dataclass(frozen=True)
class GapCandidates:
    """Messages that q owes within a span and never delivers, and who might show them as gaps."""

    group: int
    span: Span
    messages: Ints
    observers: Ints


def find_gap_candidates(
    run: Run, missing: Sequence[Sequence[MissingInSpan]]
) -> list[list[GapCandidates]]:
    """By process, as `missing` is."""
    if not any(missing):
        return [[] for _ in missing]
    order, observers = common_order(run), _observers(run)
    return [
        [
            candidates
            for block in blocks
            for candidates in _candidates(run, q, block, order, observers[block.group])
            if len(candidates.messages) and len(candidates.observers)
        ]
        for q, blocks in enumerate(missing)
    ]


def delivered_within(run: Run, q: int, block: MissingInSpan) -> Ints:
    """B: what q delivers of the group within the span."""
    here = run.deliveries(q)
    rows = run.delivered_row[here]
    first, last = np.searchsorted(rows, (block.span.first, block.span.last))
    messages: Ints = run.delivered[here][first:last]
    inside: Bools = run.group_of[messages] == block.group
    return messages[inside]


def _candidates(
    run: Run, q: int, block: MissingInSpan, order: CommonOrder, observers: Ints
) -> Iterator[GapCandidates]:
    inside = delivered_within(run, q, block)
    if not len(inside):
        return
    others = observers[observers != q]
    stray = order.is_stray(block.group, others)
    yield GapCandidates(block.group, block.span, block.messages, others[stray])
    rank = order.rank[block.messages]
    before: Bools = (rank != NONE) & (rank < order.rank[inside].max())
    yield GapCandidates(block.group, block.span, block.messages[before], others[~stray])


def _observers(run: Run) -> list[Ints]:
    """Per group, the processes that deliver anything of it."""
    found: list[list[int]] = [[] for _ in run.groups]
    for p in range(len(run.processes)):
        groups = run.group_of[run.delivered[run.deliveries(p)]]
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            found[group].append(p)
    return [np.array(processes, np.int32) for processes in found]


@dataclass(frozen=True)
class CommonOrder:
    """Who is no stray delivers the messages of a group by ascending rank."""

    rank: Ints  # by message; NONE: nobody delivers it
    strays: dict[int, Ints]  # group -> processes

    def is_stray(self, group: int, processes: Ints) -> Bools:
        """Which of the processes do not follow the order of this group?"""
        strays = self.strays.get(group)
        return np.zeros(len(processes), np.bool_) if strays is None else np.isin(processes, strays)


def common_order(run: Run) -> CommonOrder:
    """One order for everything if that is possible, else one for each group."""
    whole = whole_orders(run)
    merged = merge(run, whole, np.ones(len(whole), np.bool_), to_the_end=False)
    if not merged.stuck.any():
        return CommonOrder(merged.rank, {})
    by_group = orders_by_group(run)
    merged = merge(run, by_group, np.ones(len(by_group), np.bool_), to_the_end=True)
    strays: dict[int, Ints] = {}
    for scope in np.flatnonzero(merged.stuck).tolist():
        lost = [s for s in by_group.in_scope(scope) if not merged.fits(by_group.of(s))]
        strays[by_group.groups[scope]] = by_group.process[lost]
    return CommonOrder(merged.rank, strays)
