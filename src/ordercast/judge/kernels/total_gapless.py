"""total.gapless: whoever delivers b has delivered before it all that others delivered before b.

inversion   p delivers a before b, q delivers b before a
gap         p delivers a before b, q delivers b where it owes a, and never a
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordercast.judge.kernels.cycles import Edge
from ordercast.judge.kernels.findings import Evidence, Findings, TwoForms
from ordercast.judge.kernels.gap_candidates import delivered_within
from ordercast.judge.kernels.gaps import find_gaps
from ordercast.judge.kernels.inversions import Inversions
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import Bools, Ints, Run
from ordercast.judge.kernels.total import count_inversions


def check_gapless(
    run: Run,
    missing: Sequence[Sequence[MissingInSpan]],
    disordered: Inversions,
    disordered_uniform: Inversions,
    limit: int,
) -> TwoForms:
    """`missing` by process; `disordered`: who disagrees inside which group, in both forms."""
    found = TwoForms(
        count_inversions(run, disordered, limit), count_inversions(run, disordered_uniform, limit)
    )
    everyone = np.ones(len(run.processes), np.bool_)
    for gaps in find_gaps(run, missing):
        q, blocks = gaps.process, missing[gaps.process]
        if not run.crashed[q]:
            _count_gaps(found.plain, gaps.shown_by_correct, _Lacking(run, q, blocks, ~run.crashed))
        _count_gaps(found.uniform, gaps.shown_by_any, _Lacking(run, q, blocks, everyone))
    return found


def _count_gaps(found: Findings, messages: Ints, lacking: _Lacking) -> None:
    if lacking.records_lost:
        found.doubt_many(lacking.lost, messages)
    else:
        found.violated_many(lacking.evidence, messages)


class _Lacking:
    """Words for the gaps of one process, as other observers show them."""

    def __init__(self, run: Run, q: int, blocks: Sequence[MissingInSpan], observers: Bools) -> None:
        self._run = run
        self._q = q
        self._blocks = blocks
        self._observers = observers

    @property
    def records_lost(self) -> bool:
        return bool(self._run.lost[self._q])

    def lost(self, message: int) -> str:
        return f"{self._sentence(self._edge(message))}; records of {self._name} are lost"

    def evidence(self, message: int) -> Evidence:
        run, q, edge = self._run, self._q, self._edge(message)
        a, b = edge.earlier, edge.later
        witness: dict[str, object] = {
            "process": self._name,
            "processes": [run.processes[edge.process], self._name],
            "messages": [run.name(a), run.name(b)],
            "missing": {"process": self._name, "message": run.name(a)},
            "events": [
                *run.send_event(a),
                *run.send_event(b),
                *run.delivery_event(edge.process, a),
                *run.delivery_event(edge.process, b),
                *run.delivery_event(q, b),
            ],
        }
        return self._sentence(edge), witness

    @property
    def _name(self) -> str:
        return self._run.processes[self._q]

    def _sentence(self, edge: Edge) -> str:
        a, b = self._run.name(edge.earlier), self._run.name(edge.later)
        shows = self._run.processes[edge.process]
        return f"{shows} delivers {a} before {b}; {self._name} delivers {b} and never {a}"

    def _edge(self, a: int) -> Edge:
        """The first observer that shows the gap, and the first b after a that does."""
        run = self._run
        deliverers = [p for p in run.deliverers(a) if self._observers[p]]
        for block in self._blocks:
            if a not in block.messages:
                continue
            inside = np.zeros(run.message_count, np.bool_)
            inside[delivered_within(run, self._q, block)] = True
            for p in deliverers:
                log = run.delivered[run.deliveries(p)]
                after = log[int(np.flatnonzero(log == a)[0]) + 1 :]
                later = np.flatnonzero(inside[after])
                if len(later):
                    return Edge(p, a, int(after[later[0]]))
        raise AssertionError("a gap that nobody shows")
