"""Findings that are explained, each by a narrow rule. Whatever no rule explains is news.

A rule says exactly under which circumstances a finding is no surprise, computed from the plan and
from what the programs wrote. It is removed together with the fault that it describes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from chaos.judge import Finding
from chaos.logs import Log
from chaos.outcome import Outcome
from chaos.plan import Plan
from chaos.recovery import LOST_IN_A_CHANGE, MAJORITY_LOST

Rule = Callable[[Plan, Outcome, Sequence[Log], Finding], bool]


def explanation(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> str:
    """The name of the rule that explains a finding; empty: none does."""
    return next((name for name, rule in RULES.items() if rule(plan, outcome, logs, finding)), "")


def _no_majority(rule: str) -> Rule:
    """So much of the last node view was killed that nothing comes back: see `chaos.recovery`."""

    def holds(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
        return finding.property == "recovery" and outcome.given_up == rule

    return holds


def _sides_of_a_merge(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
    """With `partition="merge"` a total order holds inside each side; Spark is not told of sides.

    What was under way when the network split is ordered by each side for itself. Goes when a trace
    says which sides there were. (The judge compares those who went on together: `agreement`.)
    """
    merged = any(any(log.of_kind("merge")) for log in logs)
    return plan.merges and merged and finding.property.startswith("spark total.")


def _nobody_is_left(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
    """Every process that ever was in the cluster is dead: there is none that another could join.

    Programs of these runs start again with `seeds=` alone. One that also has `bootstrap=True`
    begins the cluster anew.
    """
    were_in = {log.process for log in logs if any(log.of_kind("up"))}
    gone = {*outcome.killed, *outcome.departed}
    return finding.property == "recovery" and bool(were_in) and were_in <= gone


RULES: dict[str, Rule] = {
    "nobody is left": _nobody_is_left,
    MAJORITY_LOST: _no_majority(MAJORITY_LOST),
    LOST_IN_A_CHANGE: _no_majority(LOST_IN_A_CHANGE),
    "sides of a merge": _sides_of_a_merge,
}
