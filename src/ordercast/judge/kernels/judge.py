"""All 32 verdicts of one run, or a part of the work for them.

The parts of a run: the facts (what each row and view says by itself, what is missing), the total
orders, and what precedes what, this one in as many shares of the clock as are wanted. Each part
can be done by another task. Whatever the parts, their findings together are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.judge.kernels import integrity, liveness, precedence, views
from ordercast.judge.kernels.causality import Causality, Scan, logs_by_group, scan, whole_logs
from ordercast.judge.kernels.findings import Findings, TwoForms
from ordercast.judge.kernels.load import build_run
from ordercast.judge.kernels.membership import Membership, joiners
from ordercast.judge.kernels.missing_deliveries import MissingDeliveries, MissingInSpan
from ordercast.judge.kernels.run import NONE, Run
from ordercast.judge.kernels.total import Orders, check_total
from ordercast.judge.kernels.total_gapless import check_gapless
from ordercast.judge.kernels.vsync import check_vsync
from ordercast.trace.schema import HYBRIDS, PROPERTIES, Verdict

DEFAULT_WITNESSES = 20  # kept per property and run; all violations are counted
CLOCK_BYTES = 1 << 30  # a clock that needs more is kept a share at a time


_FAMILIES = ("all", "facts", "total", "precedence")


class Part(NamedTuple):
    """A part of the work on one run."""

    family: str  # one of _FAMILIES
    share: int = 0  # of the clock ...
    shares: int = 1  # ... this one of so many

    @property
    def place(self) -> int:
        """Among the parts of a run: where what it found is told."""
        return _FAMILIES.index(self.family) + self.share


WHOLE = Part("all")


def parts(shares: int) -> tuple[Part, ...]:
    """Parts that together judge a run."""
    clock = (Part("precedence", share, shares) for share in range(shares))
    return (Part("facts"), Part("total"), *clock)


@dataclass(frozen=True)
class Judged:
    """One property of one run, or what one part of the work has to say of it."""

    property: str
    verdict: Verdict
    findings: Findings


def judge_table(
    table: pa.Table, *, quiescent: bool = False, witnesses: int = DEFAULT_WITNESSES
) -> list[Judged]:
    """The verdicts on the run whose rows are `table`, in the order of PROPERTIES."""
    return judge_run(build_run(table, quiescent=quiescent), witnesses=witnesses)


def judge_run(run: Run, part: Part = WHOLE, *, witnesses: int = DEFAULT_WITNESSES) -> list[Judged]:
    """What this part of the work finds on each property, in the order of PROPERTIES.

    A property on which the part has no say comes with nothing found.
    """
    found = _Judge(run, part, witnesses).findings()
    for hybrid, halves in HYBRIDS.items():
        for form in ("", ".uniform"):
            found[hybrid + form] = merged(
                (found[half + form] for half in halves if half + form in found), witnesses
            )
    return [_judged(name, run, found.get(name) or Findings(witnesses)) for name in PROPERTIES]


def _judged(name: str, run: Run, findings: Findings) -> Judged:
    return Judged(name, findings.verdict if _applies(name, run.kinds) else "n/a", findings)


def merged(findings: Iterable[Findings], limit: int) -> Findings:
    """All of them as one."""
    whole = Findings(limit)
    for one in findings:
        whole.add(one)
    return whole


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


class _Judge:
    """One run, and what several checks of it share."""

    def __init__(self, run: Run, part: Part, limit: int) -> None:
        self._run = run
        self._part = part
        self._limit = limit
        self._logs = whole_logs(run)

    def findings(self) -> dict[str, Findings]:
        """The total orders are looked at beside the rest: they share only what is missing."""
        found: dict[str, Findings] = {}
        with ThreadPoolExecutor(1) as aside:
            total = self._total(aside) if self._part.family in ("all", "total") else None
            if self._part.family in ("all", "facts"):
                found |= self._facts()
            if self._part.family in ("all", "precedence"):
                found |= self._precedence()
            if total is not None:
                found |= total.result()
        return found

    # What the checks share.

    @cached_property
    def _senders(self) -> list[int]:
        """The senders whose components this part keeps."""
        everyone = np.unique(self._run.sender)
        senders: list[int] = everyone[everyone != NONE].tolist()
        return senders[self._part.share :: self._part.shares]

    @cached_property
    def _clock_shares(self) -> list[list[int]]:
        """The same, so many at a time that their clock has room."""
        width = max(1, len(self._senders))
        most = max(1, CLOCK_BYTES // (4 * (self._run.message_count + 1)))
        shares = -(-width // most)
        return [self._senders[share::shares] for share in range(shares)]

    @cached_property
    def _full_scan(self) -> Scan | None:
        """The scan that serves everything, if one can."""
        precedes = self._part.family in ("all", "precedence") and self._part.shares == 1
        if not precedes or len(self._clock_shares) > 1:
            return None
        return scan(self._run, self._logs)

    @cached_property
    def _causality(self) -> Causality:
        """What membership asks: the components of those who joined on the way."""
        if self._full_scan is not None:
            return self._full_scan.causality
        return scan(self._run, self._logs, joiners(self._run)).causality

    @cached_property
    def _members(self) -> Membership:
        return Membership(self._run, self._causality)

    @cached_property
    def _missing_deliveries(self) -> MissingDeliveries:
        return MissingDeliveries(self._run, self._members)

    # The families.

    def _facts(self) -> dict[str, Findings]:
        run, members, limit = self._run, self._members, self._limit
        agreement, uniform_agreement = liveness.agreement(
            run, members, self._missing_deliveries, limit
        )
        return {
            "wellformed": integrity.wellformed(run, self._causality, limit),
            "no_duplication": integrity.no_duplication(run, limit),
            "no_creation": integrity.no_creation(run, self._causality, limit),
            "membership": integrity.membership(run, members, limit),
            "validity": liveness.validity(run, members, self._missing_deliveries, limit),
            "agreement": agreement,
            "agreement.uniform": uniform_agreement,
            "views": views.check_views(run, members, limit),
            "vsync": check_vsync(run, members, limit),
            "sending_view": views.check_sending_view(run, members, limit),
        }

    def _total(self, aside: Executor) -> Future[dict[str, Findings]]:
        orders = aside.submit(check_total, self._run, self._limit)
        return aside.submit(self._with_gapless, orders, self._missing_deliveries.owed)

    def _with_gapless(
        self, total: Future[Orders], owed: Sequence[Sequence[MissingInSpan]]
    ) -> dict[str, Findings]:
        orders = total.result()
        gapless = check_gapless(
            self._run, owed, orders.disordered, orders.disordered_uniform, self._limit
        )
        return _both_forms({**orders.findings, "total.gapless": gapless})

    def _precedence(self) -> dict[str, Findings]:
        """fifo.* and causal.*, share by share of the clock."""
        found: dict[str, TwoForms] = {}
        for senders in self._clock_shares:
            for name, forms in self._precedence_of(senders).items():
                found.setdefault(name, TwoForms.empty(self._limit)).add(forms)
        return _both_forms(found)

    def _precedence_of(self, senders: Sequence[int]) -> dict[str, TwoForms]:
        run, limit = self._run, self._limit
        missing = self._missing_deliveries.owed
        overall = self._full_scan or scan(run, self._logs, senders)
        everywhere = precedence.check(run, overall, missing, limit)
        inside = everywhere
        # What precedes inside a group precedes: where nothing is found overall, nothing is there.
        if _anything(everywhere["causal"].uniform) and len(run.groups) > 1:
            del overall
            by_group = scan(run, logs_by_group(run, self._logs), senders)
            inside = precedence.check(run, by_group, missing, limit)
        return {
            **{f"{name}.global": forms for name, forms in everywhere.items()},
            **{f"{name}.group": forms for name, forms in inside.items()},
        }


def _both_forms(found: dict[str, TwoForms]) -> dict[str, Findings]:
    plain = {name: forms.plain for name, forms in found.items()}
    return plain | {f"{name}.uniform": forms.uniform for name, forms in found.items()}


def _anything(findings: Findings) -> bool:
    return bool(findings.violations or findings.doubts)
