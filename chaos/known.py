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


def _mixed_resilience(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
    """Groups of the sequencing service with and without a resilience are at the same nodes.

    Goes when such groups can be mixed.
    """
    texts = (entry[3] for log in logs for entry in log.of_kind("failed"))
    return (
        finding.property in ("recovery", "no failure", "no end")
        and len({_resilience(group.join) for group in plan.groups}) > 1
        and any("AskHolding" in text for text in texts)
    )


def _leave_while_out(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
    """`leave()` raised NotPrimary, and the node came back to the group that it wanted to be out of.

    Goes when a leave is kept until the node is back, as docs/API.md says.
    """
    return finding.property == "recovery" and any(
        entry[3] == "NotPrimary" and log.name not in outcome.wanted[entry[2]]
        for log in logs
        if log.process in outcome.living
        for entry in log.of_kind("leave failed")
    )


def _sides_of_a_merge(plan: Plan, outcome: Outcome, logs: Sequence[Log], finding: Finding) -> bool:
    """With `partition="merge"` a total order holds inside each side; Spark is not told of sides.

    What was under way when the network split is ordered by each side for itself. Goes when a trace
    says which sides there were. (The judge compares those who went on together: `agreement`.)
    """
    merged = any(any(log.of_kind("merge")) for log in logs)
    return plan.merges and merged and finding.property.startswith("spark total.")


def _resilience(join: dict[str, object]) -> tuple[object, object]:
    return join.get("resilience"), join.get("uniform")


RULES: dict[str, Rule] = {
    MAJORITY_LOST: _no_majority(MAJORITY_LOST),
    LOST_IN_A_CHANGE: _no_majority(LOST_IN_A_CHANGE),
    "mixed resilience": _mixed_resilience,
    "leave while out": _leave_while_out,
    "sides of a merge": _sides_of_a_merge,
}
