"""Delivery orders merged by their heads (Kahn): is there one order that fits all of them?

A message is taken when it heads every sequence that contains it. Where all sequences run empty,
the order in which messages were taken fits them all. Where that gets stuck, the union of the
orders has a cycle.

Past that point the merge can go on: the message for which the fewest sequences are not ready is
taken all the same. The order found then fits as many sequences as can be had without search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run

PATIENCE = 50_000_000  # looks at heads in one merge; after that any head will do


@dataclass
class Sequences:
    """Messages as processes deliver them; sequences of one scope may share messages.

    A scope is a group, or the whole run. Sequence s is messages[bounds[s]:bounds[s + 1]], and
    those of scope c are scope_bounds[c] .. scope_bounds[c + 1] - 1.
    """

    messages: Ints
    bounds: Ints
    process: Ints  # whose sequence it is
    scope_bounds: Ints
    groups: list[int]  # of each scope

    def __len__(self) -> int:
        return len(self.process)

    def of(self, sequence: int) -> Ints:
        """The messages of a sequence, in order."""
        return self.messages[self.bounds[sequence] : self.bounds[sequence + 1]]

    def in_scope(self, scope: int) -> range:
        """The sequences of a scope."""
        return range(int(self.scope_bounds[scope]), int(self.scope_bounds[scope + 1]))

    @cached_property
    def scope(self) -> Ints:
        """The scope of each sequence."""
        sizes = np.diff(self.scope_bounds)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def whole_orders(run: Run) -> Sequences:
    """All that each process delivers, as one scope."""
    count = len(run.processes)
    return Sequences(
        messages=run.delivered,
        bounds=run.delivery_start.astype(np.int64),
        process=np.arange(count, dtype=np.int32),
        scope_bounds=np.array([0, count], np.int64),
        groups=[NONE],
    )


def orders_by_group(run: Run) -> Sequences:
    """What each process delivers of each group; a scope per group."""
    parts = sorted(
        (
            (group, p, places)
            for p in range(len(run.processes))
            for group, places in run.deliveries_by_group(p)
        ),
        key=lambda part: part[:2],
    )
    groups = sorted({group for group, _, _ in parts})
    places = np.concatenate([places for _, _, places in parts])
    return Sequences(
        messages=run.delivered[places],
        bounds=np.cumsum([0, *(len(places) for _, _, places in parts)]),
        process=np.array([p for _, p, _ in parts], np.int32),
        scope_bounds=np.searchsorted([group for group, _, _ in parts], [*groups, len(run.groups)]),
        groups=groups,
    )


@dataclass
class Merged:
    """How far a merge came."""

    stuck: Bools  # by scope: the union of the orders has a cycle
    rank: Ints  # by message: when it was taken; NONE: it was not

    def fits(self, messages: Ints) -> bool:
        """Is a sequence in the order in which messages were taken?"""
        rank = self.rank[messages]
        return bool((rank[1:] > rank[:-1]).all())


def merge(run: Run, sequences: Sequences, taking: Bools, *, to_the_end: bool) -> Merged:
    """Merge the sequences for which `taking` holds, past the first cycle too if `to_the_end`."""
    stuck = np.zeros(len(sequences.groups), np.bool_)
    rank = np.full(run.message_count, NONE, np.int32)
    _merge(
        sequences.messages, sequences.bounds, sequences.scope_bounds, taking, to_the_end, PATIENCE,
        np.zeros(run.message_count, np.int32), np.full(run.message_count, NONE, np.int32),
        stuck, rank,
    )  # fmt: skip
    return Merged(stuck, rank)


@kernel
def _merge(
    messages: Ints, bounds: Ints, scope_bounds: Ints, taking: Bools, to_the_end: bool,
    patience: int, unready: Ints, heading: Ints, stuck: Bools, rank: Ints,
) -> None:  # fmt: skip
    """`unready`: by message, the sequences that it does not head yet; NONE: taken before that.
    `heading`: by message, one sequence that it heads; `following` leads on to the others."""
    following = np.full(len(taking), -1, np.int32)
    place = np.zeros(len(taking), np.int64)
    advanced = np.zeros(len(taking), np.int32)  # a stack: sequences whose head is to be looked at
    for s in range(len(taking)):
        place[s] = bounds[s]
        if taking[s]:
            for at in range(bounds[s], bounds[s + 1]):
                unready[messages[at]] += 1
    taken = 0
    for scope in range(len(stuck)):
        first, last = scope_bounds[scope], scope_bounds[scope + 1]
        waiting = 0
        for s in range(first, last):
            if taking[s]:
                advanced[waiting] = s
                waiting += 1
        while True:
            m = -1
            if waiting > 0:
                waiting -= 1
                s = advanced[waiting]
                at, end = place[s], bounds[s + 1]
                while at < end and unready[messages[at]] < 0:
                    at += 1
                place[s] = at
                if at < end:
                    head = messages[at]
                    following[s] = heading[head]
                    heading[head] = s
                    unready[head] -= 1
                    if unready[head] == 0:
                        m = head
            else:
                fewest = len(taking) + 1
                for s in range(first, last):
                    if taking[s] and place[s] < bounds[s + 1]:
                        head = messages[place[s]]
                        if unready[head] < fewest:
                            fewest = unready[head]
                            m = head
                        if patience <= 0:
                            break
                    elif s == first:
                        first += 1
                    patience -= 1
                if m == -1:
                    break
                stuck[scope] = True
                if not to_the_end:
                    break
                unready[m] = -1
            if m != -1:
                rank[m] = taken
                taken += 1
                s = heading[m]
                while s != -1:
                    place[s] += 1
                    advanced[waiting] = s
                    waiting += 1
                    s = following[s]
