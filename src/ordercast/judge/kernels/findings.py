"""What a check has found: broken promises with their evidence, and doubts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt

from ordercast.trace.schema import Verdict

P = ParamSpec("P")
Items = Sequence[Any] | npt.NDArray[Any]
Evidence = tuple[str, dict[str, object]]  # a sentence for people, the witness as data


@dataclass
class Findings:
    """Everything is counted; evidence is kept for the first `limit` only."""

    limit: int
    violations: int = 0
    doubts: int = 0
    evidence: list[Evidence] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def violated(self, evidence: Callable[P, Evidence], *args: P.args, **kw: P.kwargs) -> None:
        """Count a violation; `evidence` is only called while there is room for its answer."""
        self.violations += 1
        if len(self.evidence) < self.limit:
            self.evidence.append(evidence(*args, **kw))

    def doubt(self, reason: Callable[P, str], *args: P.args, **kw: P.kwargs) -> None:
        """Count a thing that the trace cannot decide; `reason` says why, in words."""
        self.doubts += 1
        if len(self.reasons) < self.limit:
            self.reasons.append(reason(*args, **kw))

    def violated_many(self, evidence: Callable[[Any], Evidence], items: Items) -> None:
        """Count a violation per item; `evidence(item)` is asked for the first that fit."""
        self.violations += len(items)
        for item in _first(items, self.limit - len(self.evidence)):
            self.evidence.append(evidence(item))

    def violated_times(self, count: int, evidence: Iterator[Evidence]) -> None:
        """Count so many violations; of their evidence as much is taken as fits."""
        self.violations += count
        self.evidence += islice(evidence, max(0, self.limit - len(self.evidence)))

    def doubt_many(self, reason: Callable[[Any], str], items: Items) -> None:
        """Count a doubt per item; `reason(item)` is asked for the first that fit."""
        self.doubts += len(items)
        for item in _first(items, self.limit - len(self.reasons)):
            self.reasons.append(reason(item))

    def add(self, other: Findings) -> None:
        """Take over what another check has found."""
        self.violations += other.violations
        self.doubts += other.doubts
        self.evidence += other.evidence[: self.limit - len(self.evidence)]
        self.reasons += other.reasons[: self.limit - len(self.reasons)]

    @property
    def verdict(self) -> Verdict:
        if self.violations:
            return "violated"
        return "inconclusive" if self.doubts else "ok"


def _first(items: Items, count: int) -> Sequence[Any]:
    """The first `count` items; those of an array as plain numbers."""
    few = items[:count]
    return few.tolist() if isinstance(few, np.ndarray) else few


@dataclass
class TwoForms:
    """An order property binds the processes that did not crash; its uniform form binds all."""

    plain: Findings
    uniform: Findings

    @classmethod
    def empty(cls, limit: int) -> TwoForms:
        return cls(Findings(limit), Findings(limit))

    def binding(self, crashed: bool) -> tuple[Findings, ...]:
        """The forms that bind an observer."""
        return (self.uniform,) if crashed else (self.plain, self.uniform)

    def add(self, other: TwoForms) -> None:
        self.plain.add(other.plain)
        self.uniform.add(other.uniform)
