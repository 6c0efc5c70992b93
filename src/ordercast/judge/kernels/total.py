"""total.group, total.global, total.pairwise: do all observers see one order?

    total.global     the union of all delivery orders is acyclic
    total.group      the same for the messages of each group
    total.pairwise   no two observers deliver two messages in opposite orders

What is counted are knots (`order_knots`, `inversions`): faults that do not overlap count apart.

Where the union over all observers and groups is acyclic, so is every part of it: one merge then
settles everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ordercast.judge.kernels.cycles import cycle_evidence, find_cycle, inversion_edges
from ordercast.judge.kernels.findings import Evidence, Findings, TwoForms
from ordercast.judge.kernels.inversions import (
    Inversions,
    inversions_by_group,
    inversions_overall,
    no_inversions,
)
from ordercast.judge.kernels.merge import (
    Merged,
    Sequences,
    merge,
    orders_by_group,
    whole_orders,
)
from ordercast.judge.kernels.order_knots import OrderKnots, order_knots
from ordercast.judge.kernels.run import Ints, Run

PROPERTIES = ("total.group", "total.global", "total.pairwise")


@dataclass(frozen=True)
class Orders:
    """The findings, and which observers disagree inside which group: total.gapless asks that."""

    findings: dict[str, TwoForms]
    disordered: Inversions  # of the processes that did not crash
    disordered_uniform: Inversions


def check_total(run: Run, limit: int) -> Orders:
    """total.group, total.global and total.pairwise, in both forms."""
    whole = whole_orders(run)
    merged = merge(run, whole, np.ones(len(whole), np.bool_), to_the_end=True)
    if not merged.stuck.any():
        clean = {name: TwoForms.empty(limit) for name in PROPERTIES}
        return Orders(clean, no_inversions(), no_inversions())
    groups = orders_by_group(run)
    overall = inversions_overall(run, whole, merged, groups)
    of_groups = merge(run, groups, np.ones(len(groups), np.bool_), to_the_end=True)
    inside = inversions_by_group(run, groups, of_groups)
    found = {
        "total.group": _acyclic(run, groups, of_groups, inside, limit),
        "total.global": _acyclic(run, whole, merged, overall, limit),
        "total.pairwise": TwoForms(
            count_inversions(run, overall.between(~run.crashed), limit),
            count_inversions(run, overall, limit),
        ),
    }
    return Orders(found, inside.between(~run.crashed), inside)


def count_inversions(run: Run, inversions: Inversions, limit: int) -> Findings:
    """One violation for each knot of two observers that disagree."""
    found = Findings(limit)
    found.violated_times(
        int(inversions.knots.sum()),
        (
            cycle_evidence(run, inversion_edges(inversions, line, first, second))
            for line in range(len(inversions))
            for first, second in inversions.each_knot(run, line)
        ),
    )
    return found


def _acyclic(
    run: Run, sequences: Sequences, merged: Merged, inversions: Inversions, limit: int
) -> TwoForms:
    """One violation for each knot; `merged` are the sequences of all observers."""
    everyone = np.ones(len(sequences), np.bool_)
    uniform = _count_knots(run, order_knots(run, sequences, everyone, merged), inversions, limit)
    if not run.crashed.any():
        plain = Findings(limit)
        plain.add(uniform)
        return TwoForms(plain, uniform)
    correct = ~run.crashed
    knots = order_knots(run, sequences, correct[sequences.process], merged)
    return TwoForms(_count_knots(run, knots, inversions.between(correct), limit), uniform)


def _count_knots(run: Run, knots: OrderKnots, inversions: Inversions, limit: int) -> Findings:
    found = Findings(limit)
    knot_of_line = knots.knot_of[inversions.first]
    found.violated_many(
        partial(_evidence, run, knots, inversions, knot_of_line), np.arange(knots.count)
    )
    return found


def _evidence(
    run: Run, knots: OrderKnots, inversions: Inversions, knot_of_line: Ints, knot: int
) -> Evidence:
    """Two observers that disagree, if there are any: no cycle is shorter."""
    lines = np.flatnonzero(knot_of_line == knot)
    if not len(lines):
        return cycle_evidence(run, find_cycle(run, knots.logs(knot)))
    line = int(lines[0])
    first, second = int(inversions.first[line]), int(inversions.second[line])
    return cycle_evidence(run, inversion_edges(inversions, line, first, second))
