"""Which missing messages may be gaps in total order, and who could show it.

Let B be what q delivers of the group within the span in which it owes a. Whoever delivers by
ascending rank can show the gap a only if the rank of a is below the highest in B. In a run where
crashed processes alone lack messages, and these are the last ones, that leaves no suspects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.agreed import Agreed, agree
from ordercast.judge.kernels.membership import Span
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run


@dataclass(frozen=True)
class Suspects:
    """Messages that q owes within a span and never delivers, and who might show them as gaps."""

    group: int
    span: Span
    messages: Ints
    observers: Ints


def find_suspects(run: Run, missing: Sequence[Sequence[MissingInSpan]]) -> list[list[Suspects]]:
    """By process, as `missing` is."""
    if not any(missing):
        return [[] for _ in missing]
    agreed, observers = agree(run), _observers(run)
    return [
        [
            suspects
            for block in blocks
            for suspects in _suspects(run, q, block, agreed, observers[block.group])
            if len(suspects.messages) and len(suspects.observers)
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


def _suspects(
    run: Run, q: int, block: MissingInSpan, agreed: Agreed, observers: Ints
) -> Iterator[Suspects]:
    inside = delivered_within(run, q, block)
    if not len(inside):
        return
    others = observers[observers != q]
    stray = agreed.is_stray(block.group, others)
    yield Suspects(block.group, block.span, block.messages, others[stray])
    rank = agreed.rank[block.messages]
    before: Bools = (rank != NONE) & (rank < agreed.rank[inside].max())
    yield Suspects(block.group, block.span, block.messages[before], others[~stray])


def _observers(run: Run) -> list[Ints]:
    """Per group, the processes that deliver anything of it."""
    found: list[list[int]] = [[] for _ in run.groups]
    for p in range(len(run.processes)):
        groups = run.group_of[run.delivered[run.deliveries(p)]]
        for group in np.flatnonzero(np.bincount(groups)).tolist():
            found[group].append(p)
    return [np.array(processes, np.int32) for processes in found]
