"""fifo and causal: an observer that delivers b has delivered before it all that precedes b.

Each delivery of b by q reaches into the sequence of every sender s:

    fifo     reach(b)[s] = the number of b if s sent it, else nothing
    causal   reach(b)[s] = stamp(b)[s]

    inversion   q delivers the n-th send a of s after some b with reach(b)[s] >= n
    gap         q never delivers a, and delivers such a b where it owes a

Inversions are found by the scan that stamps the messages. Gaps: what the last clock of q does not
reach is no gap, which settles nearly all; the rest is compared delivery by delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from ordercast.judge.kernels.causality import (
    CAUSAL,
    FIFO,
    Logs,
    Scan,
    chain,
    directly,
    sent_from,
)
from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.findings import Evidence, TwoForms
from ordercast.judge.kernels.membership import Span
from ordercast.judge.kernels.missing_deliveries import MissingInSpan
from ordercast.judge.kernels.run import NONE, Ints, Run

Gap = tuple[int, int]  # the missing a, and a delivered b that it precedes


def check(
    run: Run, scan: Scan, missing: Sequence[Sequence[MissingInSpan]], limit: int
) -> dict[str, TwoForms]:
    """fifo and causal, over all groups or inside each, as the logs of the scan are."""
    found = {"fifo": TwoForms.empty(limit), "causal": TwoForms.empty(limit)}
    lacking = _by_log(scan.logs, missing)
    for name, bit in (("fifo", FIFO), ("causal", CAUSAL)):
        for log in sorted(scan.inverted_logs(bit) | lacking.keys()):
            process = int(scan.logs.process[log])
            observer = _Observer(run, scan, log, process, bit)
            forms = found[name].binding(run.crashed[process])
            inversions = observer.inversions()
            gaps = observer.gaps(lacking.get(log, ()))
            for findings in forms:
                findings.violated_many(observer.inversion, inversions)
                if run.lost[process]:
                    findings.doubt_many(observer.lost_gap, gaps)
                else:
                    findings.violated_many(observer.gap, gaps)
    return found


def _by_log(
    logs: Logs, missing: Sequence[Sequence[MissingInSpan]]
) -> dict[int, list[MissingInSpan]]:
    """What the process of a log owes and never delivers, of the group of the log if it has one."""
    found: dict[int, list[MissingInSpan]] = {}
    for process, blocks in enumerate(missing):
        for block in blocks:
            log = logs.of(process, block.group)
            if log is not None:
                found.setdefault(log, []).append(block)
    return found


class _Observer:
    """One log, judged for one order."""

    def __init__(self, run: Run, scan: Scan, log: int, process: int, bit: int) -> None:
        self._run = run
        self._scan = scan
        self._log = log
        self._process = process
        self._bit = bit
        self._causality = scan.causality

    @property
    def _name(self) -> str:
        return self._run.processes[self._process]

    @cached_property
    def _deliveries(self) -> tuple[Ints, Ints]:
        return self._scan.logs.deliveries(self._log)

    def inversions(self) -> Ints:
        """The steps that come too late."""
        bounds = self._scan.logs.bounds
        first, last = int(bounds[self._log]), int(bounds[self._log + 1])
        return np.flatnonzero(self._scan.inverted[first:last] & self._bit) + first

    def gaps(self, missing: Sequence[MissingInSpan]) -> list[Gap]:
        """The messages that are missing before one that was delivered, each with such a one."""
        by_span: dict[Span, list[Ints]] = {}
        for block in missing:
            by_span.setdefault(block.span, []).append(block.messages)
        found: dict[int, int] = {}
        for span, parts in by_span.items():
            for a, b in self._gaps_in(span, np.concatenate(parts)):
                found.setdefault(a, b)
        return list(found.items())

    def _gaps_in(self, span: Span, messages: Ints) -> list[Gap]:
        """Of these messages, that are owed within the span."""
        run, column = self._run, self._causality.column
        messages = messages[run.sender[messages] != NONE]
        kept = column[run.sender[messages]]
        messages, kept = messages[kept != NONE], kept[kept != NONE]
        reach = self._scan.reach(self._bit)[self._log]
        messages = messages[run.number[messages] <= reach[kept]]
        if not len(messages):
            return []
        kept, numbers = column[run.sender[messages]], run.number[messages]
        order = np.lexsort((numbers, kept))
        messages = messages[order]
        delivered, rows = self._deliveries
        first, last = np.searchsorted(rows, [span.first, span.last])
        delivered = delivered[first:last]
        width = reach.shape[0]
        before = np.full(len(messages), NONE, np.int32)
        _first_reaching(
            delivered, self._causality.stamps, column[run.sender[delivered]], run.number,
             self._bit == CAUSAL, run.number[messages],
            np.searchsorted(kept[order], np.arange(width + 1)), before,
        )  # fmt: skip
        missing = before != NONE
        return list(zip(messages[missing].tolist(), before[missing].tolist(), strict=True))

    # Evidence.

    def inversion(self, step: int) -> Evidence:
        logs = self._scan.logs
        a = ~int(logs.steps[step])
        earlier = logs.steps[int(logs.bounds[self._log]) : step]
        b = self._reaching(~earlier[earlier < 0], a)
        run = self._run
        return (
            f"{self._name} delivers {run.name(b)} before {run.name(a)}, but {self._why(a, b)}",
            self._witness(a, b),
        )

    def _reaching(self, messages: Ints, a: int) -> int:
        """The last of these that a precedes; one whose sender knew a itself if there is one."""
        run, sender = self._run, int(self._run.sender[a])
        if self._bit == FIFO:
            reaching = (run.sender[messages] == sender) & (run.number[messages] >= run.number[a])
            return int(messages[reaching][-1])
        messages = messages[self._causality.known(sender, messages, int(run.number[a]))]
        direct = messages[directly(run, a, messages)]
        return int(direct[-1] if len(direct) else messages[-1])

    def gap(self, gap: Gap) -> Evidence:
        a, b = gap
        witness = self._witness(a, b)
        witness["missing"] = {"process": self._name, "message": self._run.name(a)}
        return self._gap_sentence(a, b), witness

    def lost_gap(self, gap: Gap) -> str:
        return f"{self._gap_sentence(*gap)}; records of {self._name} are lost"

    def _gap_sentence(self, a: int, b: int) -> str:
        run = self._run
        return f"{self._name} delivers {run.name(b)} and never {run.name(a)}, but {self._why(a, b)}"

    def _why(self, a: int, b: int) -> str:
        run = self._run
        if sent_from(run, a, b):
            return f"{run.processes[run.sender[a]]} sent {run.name(a)} before {run.name(b)}"
        return f"the send of {run.name(a)} happened before that of {run.name(b)}"

    def _witness(self, a: int, b: int) -> dict[str, object]:
        run = self._run
        path = chain(run, self._causality, a, b)
        events = [event for m in path for event in run.send_event(m)]
        for m, following in pairwise(path):  # how the sender of one knew of the one before
            if not sent_from(run, m, following):
                events += run.delivery_event(int(run.sender[following]), m)
        for m in (b, a):
            events += run.delivery_event(self._process, m)
        return {
            "process": self._name,
            "messages": [run.name(a), run.name(b)],
            "chain": [run.name(m) for m in path],
            "events": events,
        }


@kernel
def _first_reaching(
    delivered: Ints, stamps: Ints, columns: Ints, number: Ints, causal: bool,
    wanted: Ints, bounds: Ints, before: Ints,
) -> None:  # fmt: skip
    """`wanted`: numbers, ascending in each column's part; `before`: the first that reaches it."""
    place = bounds[:-1].copy()
    for k in range(len(delivered)):
        b = delivered[k]
        if causal:
            for c in range(len(place)):
                while place[c] < bounds[c + 1] and wanted[place[c]] <= stamps[b, c]:
                    before[place[c]] = b
                    place[c] += 1
        else:
            c = columns[k]
            if c >= 0:
                while place[c] < bounds[c + 1] and wanted[place[c]] <= number[b]:
                    before[place[c]] = b
                    place[c] += 1
