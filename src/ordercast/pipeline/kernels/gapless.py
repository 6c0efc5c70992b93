"""total.gapless: whoever delivers b has delivered before it all that others delivered before b.

    inversion   p delivers a before b, q delivers b before a
    gap         p delivers a before b, q delivers b where it owes a, and never a

For a gap it is enough to know, per pair of observers, how late in L_q anything lies that p
delivers after a given place: the suffix maximum of q's positions along p's log.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.pipeline.kernels.findings import Evidence, Findings
from ordercast.pipeline.kernels.membership import Span
from ordercast.pipeline.kernels.precedence import Absence
from ordercast.pipeline.kernels.run import Run
from ordercast.pipeline.kernels.total import Edge, opposite_evidence, opposite_pairs


def check_gapless(
    run: Run,
    observers: Sequence[int],
    absences: list[list[Absence]],
    disordered: Sequence[int],
    limit: int,
) -> Findings:
    """Judge `observers`; `disordered` are the groups whose union of orders has a cycle."""
    found = Findings(limit)
    for group in disordered:
        for first, second in opposite_pairs(run, observers, group):
            found.violated(opposite_evidence, run, first, second)
    for q in observers:
        comparisons: dict[tuple[int, int], _Comparison] = {}
        for absence in absences[q]:
            gap = _find_gap(run, observers, q, absence, comparisons)
            if gap is None:
                continue
            if run.logs[q].lost:
                found.doubt(_lost, run, q, gap)
            else:
                found.violated(_gap_evidence, run, q, gap)
    return found


@dataclass(frozen=True)
class _Comparison:
    """The messages of one group that both p and q deliver, in p's order."""

    at_p: list[int]
    at_q: list[int]
    messages: list[int]
    latest_at_q: list[int]  # maximum of at_q from each place on

    def first_in(self, after: int, span: Span) -> int | None:
        """A message that p delivers after its position `after`, and q within `span`."""
        start = bisect_right(self.at_p, after)
        if start == len(self.at_p) or self.latest_at_q[start] < span.first:
            return None
        for place in range(start, len(self.at_p)):
            if self.at_q[place] in span:
                return self.messages[place]
        return None


def _compare(run: Run, p: int, q: int, group: int) -> _Comparison:
    there = run.logs[q].where
    log = run.logs[p]
    common = [
        (at, m)
        for at, m in zip(log.delivered_at, log.deliveries, strict=True)
        if run.group_of[m] == group and m in there
    ]
    at_q = [there[m] for _, m in common]
    latest, top = [0] * len(at_q), -1
    for place in range(len(at_q) - 1, -1, -1):
        top = max(top, at_q[place])
        latest[place] = top
    return _Comparison([at for at, _ in common], at_q, [m for _, m in common], latest)


def _find_gap(
    run: Run,
    observers: Sequence[int],
    q: int,
    absence: Absence,
    comparisons: dict[tuple[int, int], _Comparison],
) -> Edge | None:
    a, group = absence.message, run.group_of[absence.message]
    for p in observers:
        after = run.logs[p].where.get(a)
        if after is None:
            continue
        if (p, group) not in comparisons:
            comparisons[p, group] = _compare(run, p, q, group)
        for span in absence.owed:
            b = comparisons[p, group].first_in(after, span)
            if b is not None:
                return Edge(p, a, b)
    return None


def _sentence(run: Run, q: int, gap: Edge) -> str:
    a, b = run.messages[gap.earlier], run.messages[gap.later]
    return (
        f"{run.processes[gap.process]} delivers {a} before {b}; {run.processes[q]} delivers {b} "
        f"and never {a}"
    )


def _lost(run: Run, q: int, gap: Edge) -> str:
    return f"{_sentence(run, q, gap)}; records of {run.processes[q]} are lost"


def _gap_evidence(run: Run, q: int, gap: Edge) -> Evidence:
    a, b = gap.earlier, gap.later
    witness: dict[str, object] = {
        "process": run.processes[q],
        "processes": [run.processes[gap.process], run.processes[q]],
        "messages": [run.messages[a], run.messages[b]],
        "missing": {"process": run.processes[q], "message": run.messages[a]},
        "events": [
            *run.send_event(a),
            *run.send_event(b),
            *run.delivery_event(gap.process, a),
            *run.delivery_event(gap.process, b),
            *run.delivery_event(q, b),
        ],
    }
    return _sentence(run, q, gap), witness
