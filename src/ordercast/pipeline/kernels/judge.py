"""All 32 verdicts of one run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ordercast.pipeline.kernels import integrity, liveness, precedence, total, views
from ordercast.pipeline.kernels.causality import Causality, stamp
from ordercast.pipeline.kernels.findings import Findings, TwoForms
from ordercast.pipeline.kernels.gapless import check_gapless
from ordercast.pipeline.kernels.membership import Membership, missing
from ordercast.pipeline.kernels.precedence import Absence, Order
from ordercast.pipeline.kernels.run import Run, build_run
from ordercast.trace.schema import PROPERTIES, Verdict

DEFAULT_WITNESSES = 20  # kept per property and run; all violations are counted

HYBRIDS = {
    "hybrid.total_fifo": ("total.group", "fifo.group"),
    "hybrid.total_causal": ("total.global", "causal.global"),
    "hybrid.kindberg": ("total.group", "causal.global"),
}


@dataclass(frozen=True)
class Judged:
    """One property of one run."""

    property: str
    verdict: Verdict
    findings: Findings


def judge_table(
    table: pa.Table, *, quiescent: bool = False, witnesses: int = DEFAULT_WITNESSES
) -> list[Judged]:
    """The verdicts on the run whose rows are `table`, in the order of PROPERTIES."""
    run = build_run(table, quiescent=quiescent)
    found = _judge(run, witnesses)
    for hybrid, parts in HYBRIDS.items():
        for form in ("", ".uniform"):
            both = Findings(witnesses)
            for part in parts:
                both.add(found[part + form])
            found[hybrid + form] = both
    return [
        Judged(name, found[name].verdict if _applies(name, run.kinds) else "n/a", found[name])
        for name in PROPERTIES
    ]


def _applies(name: str, kinds: frozenset[str]) -> bool:
    """Can this property be asked of a run with these kinds of events?"""
    if name == "wellformed":
        return True
    if name in ("views", "vsync", "sending_view"):
        return "view" in kinds
    if name == "validity":
        return "send" in kinds
    if name.startswith(("fifo.", "causal.")):
        return {"send", "deliver"} <= kinds
    return "deliver" in kinds  # a hybrid too: its `total` part needs no send


def _judge(run: Run, limit: int) -> dict[str, Findings]:
    causality = stamp(run)
    members = Membership(run, causality)
    absences = _absences(run, members)
    agreement, uniform_agreement = liveness.agreement(run, members, limit)
    found = {
        "wellformed": integrity.wellformed(run, causality, limit),
        "no_duplication": integrity.no_duplication(run, limit),
        "no_creation": integrity.no_creation(run, causality, limit),
        "membership": integrity.membership(run, members, limit),
        "validity": liveness.validity(run, members, limit),
        "agreement": agreement,
        "agreement.uniform": uniform_agreement,
        "views": views.check_views(run, members, limit),
        "vsync": views.check_vsync(run, members, limit),
        "sending_view": views.check_sending_view(run, members, limit),
    }
    for name, forms in _precedence(run, causality, absences, limit).items():
        found[name], found[name + ".uniform"] = forms.plain, forms.uniform
    everyone = list(range(len(run.logs)))
    correct = [q for q in everyone if not run.logs[q].crashed]
    plain = _total(run, correct, absences, limit)
    uniform = plain if correct == everyone else _total(run, everyone, absences, limit)
    found |= plain
    found |= {name + ".uniform": findings for name, findings in uniform.items()}
    return found


def _absences(run: Run, members: Membership) -> list[list[Absence]]:
    """Per process, what it never delivers though at some place it owes it."""
    return [
        [Absence(m, owed) for m in missing(run, members, q) if (owed := members.owed(q, m))]
        for q in range(len(run.logs))
    ]


def _precedence(
    run: Run, causality: Causality, absences: list[list[Absence]], limit: int
) -> dict[str, TwoForms]:
    """fifo.* and causal.*: once over everything, then group by group."""
    everything = precedence.sent_scope(run)
    found = {
        "fifo.group": TwoForms.empty(limit),
        "causal.group": TwoForms.empty(limit),
    }
    for name, causal in (("fifo", False), ("causal", True)):
        order = Order(run, causality, causal=causal)
        found[f"{name}.global"] = precedence.check(order, everything, absences, limit)
    for g in sorted({run.group_of[m] for m in np.flatnonzero(everything).tolist()}):
        scope = precedence.sent_scope(run, g)
        inside = stamp(run, scope.tolist())
        for name, causal in (("fifo", False), ("causal", True)):
            order = Order(run, inside, causal=causal)
            found[f"{name}.group"].add(precedence.check(order, scope, absences, limit))
    return found


def _total(
    run: Run, observers: list[int], absences: list[list[Absence]], limit: int
) -> dict[str, Findings]:
    groups = sorted({g for g in run.group_of if g >= 0})
    overall = total.check_acyclic(run, observers, [None], limit)
    by_group = {g: total.check_acyclic(run, observers, [g], limit) for g in groups}
    within = Findings(limit)
    for findings in by_group.values():
        within.add(findings)
    pairs = total.check_pairwise(run, observers, limit) if overall.violations else Findings(limit)
    disordered = [g for g, findings in by_group.items() if findings.violations]
    return {
        "total.group": within,
        "total.global": overall,
        "total.pairwise": pairs,
        "total.gapless": check_gapless(run, observers, absences, disordered, limit),
    }
