"""Knots of delivery orders: sets of messages of which no single order fits all observers.

A knot is a set of two or more messages each of which comes before each other: some observer
delivers it earlier, or earlier than a third of the set that comes before the other (a strongly
connected component of the union of the orders). Every cycle lies in one knot, and knots share no
message, so faults that do not overlap are counted apart.

An order of all messages that fits most sequences leaves little to look at: a knot lies where some
sequence goes back in it, between the lowest and the highest rank that it goes back over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.merge import Merged, Sequences
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run
from ordercast.judge.kernels.strong_components import strong_components


@dataclass(frozen=True)
class OrderKnots:
    """The knots of all scopes, numbered by scope and then by rank."""

    count: int
    knot_of: Ints  # by message; NONE: in no knot
    scope: Ints  # by knot
    sequences: Sequences
    taking: Bools

    def logs(self, knot: int) -> list[tuple[int, Ints]]:
        """Who delivers which messages of a knot, in order."""
        found = []
        for s in self.sequences.in_scope(int(self.scope[knot])):
            messages = self.sequences.of(s)
            messages = messages[self.knot_of[messages] == knot]
            if self.taking[s] and len(messages):
                found.append((int(self.sequences.process[s]), messages))
        return found


def order_knots(run: Run, sequences: Sequences, taking: Bools, merged: Merged) -> OrderKnots:
    """The knots of the sequences for which `taking` holds; `merged` are all, to the end."""
    candidates = np.flatnonzero(merged.stuck[sequences.scope] & taking).tolist()
    doubtful = _gone_back_over(run, sequences, candidates, merged)
    parts = [(s, _only(doubtful, sequences.of(s))) for s in candidates]
    messages = np.concatenate([np.empty(0, np.int32), *(part for _, part in parts)])
    bounds = np.cumsum([0, *(len(part) for _, part in parts)])
    first = np.full(run.message_count, NONE, np.int32)
    ring = np.zeros(len(messages), np.int32)
    _close_rings(messages, np.full(run.message_count, NONE, np.int32), first, ring)
    places = np.arange(len(messages), dtype=np.int32)
    # A place comes after the one before it in its log, and all places of a message in a ring.
    place_knot, _ = strong_components(bounds, np.ones(len(messages), np.int8), places, ring)
    met = np.flatnonzero(first != NONE)
    knot = place_knot[first[met]]
    tied = np.bincount(knot, minlength=1)[knot] > 1
    met, knot = met[tied], knot[tied]
    scope = np.repeat(sequences.scope[[s for s, _ in parts]], np.diff(bounds))[first[met]]
    order = np.lexsort((merged.rank[met], scope))
    _, begins, number = np.unique(knot[order], return_index=True, return_inverse=True)
    by_rank = np.empty(len(begins), np.int32)
    by_rank[np.argsort(begins)] = np.arange(len(begins))
    knot_of = np.full(run.message_count, NONE, np.int32)
    knot_of[met[order]] = by_rank[number]
    return OrderKnots(len(begins), knot_of, scope[order][np.sort(begins)], sequences, taking)


def _gone_back_over(run: Run, sequences: Sequences, candidates: list[int], merged: Merged) -> Bools:
    """The messages whose ranks some sequence goes back over."""
    change = np.zeros(run.message_count + 1, np.int64)
    for s in candidates:
        rank = merged.rank[sequences.of(s)]
        back = rank[1:] < rank[:-1]
        np.add.at(change, rank[1:][back], 1)
        np.add.at(change, rank[:-1][back], -1)
    after = np.cumsum(change) > 0  # between each rank and the next
    at = after.copy()
    at[1:] |= after[:-1]
    return np.asarray(at[merged.rank] & (merged.rank != NONE))


def _only(chosen: Bools, messages: Ints) -> Ints:
    return messages[chosen[messages]]


@kernel
def _close_rings(messages: Ints, last: Ints, first: Ints, ring: Ints) -> None:
    """`ring`: by place, the place of the same message before it; at its first place, its last."""
    for place in range(len(messages)):
        m = messages[place]
        if first[m] == -1:
            first[m] = place
        ring[place] = last[m]
        last[m] = place
    for m in range(len(first)):
        if first[m] != -1:
            ring[first[m]] = last[m]
