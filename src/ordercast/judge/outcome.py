"""What is to be said of the runs of a trace, as plain data: for the exit code, JSON and reports."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ordercast.judge.domains import Domain
from ordercast.judge.expectations import exit_code
from ordercast.judge.figures import Figures
from ordercast.trace.schema import PROPERTIES, Verdict, Violation


@dataclass(frozen=True)
class Table:
    """The 32 verdicts on one trace or sub-trace, with their evidence."""

    verdicts: dict[str, Verdict]
    violations: tuple[Violation, ...]  # evidence, for the first few of each property
    counts: dict[str, int]  # how many violations there are of each property
    doubts: dict[str, tuple[str, ...]]  # why a property is inconclusive

    def __post_init__(self) -> None:
        assert tuple(self.verdicts) == PROPERTIES


@dataclass(frozen=True)
class Expectation:
    """A property that the run was to have."""

    property: str
    verdict: Verdict
    because: str  # where the expectation comes from
    domain: Domain | None = None  # judged on this sub-trace, else on the whole run


@dataclass(frozen=True)
class GroupFacts:
    """One group of a run."""

    name: str
    order: str | None
    protocol: str | None
    scope: str | None
    members: tuple[str, ...]
    sends: int
    deliveries: int


@dataclass(frozen=True)
class RunFacts:
    """What happened, in numbers."""

    events: int
    sends: int
    deliveries: int
    views: int
    processes: int
    crashed: tuple[str, ...]
    cut: int  # logs without crash or end
    lossy: int  # logs with lost records


@dataclass(frozen=True)
class RunOutcome:
    """One run."""

    run: str
    table: Table
    domains: tuple[tuple[Domain, Table], ...]  # only where a domain is not the whole run
    expected: tuple[Expectation, ...]
    facts: RunFacts
    groups: tuple[GroupFacts, ...]
    figures: Figures = field(default_factory=Figures)

    @property
    def exit_code(self) -> int:
        return exit_code([one.verdict for one in self.expected])

    def renamed(self, run: str) -> RunOutcome:
        """The same under another name of the run."""
        domains = tuple((replace(domain, run=run), table) for domain, table in self.domains)
        expected = tuple(
            replace(one, domain=one.domain and replace(one.domain, run=run))
            for one in self.expected
        )
        return replace(self, run=run, domains=domains, expected=expected)

    def as_json(self) -> dict[str, object]:
        """The shape that `ordercast verify --json` prints for one run."""
        return {
            "run": self.run,
            "verdicts": self.table.verdicts,
            "violations": [
                *(_violation(one) for one in self.table.violations),
                *(
                    {**_violation(one), "domain": domain.name}
                    for domain, table in self.domains
                    for one in table.violations
                ),
            ],
            "counts": {name: count for name, count in self.table.counts.items() if count},
            "doubts": {name: list(why) for name, why in self.table.doubts.items() if why},
            "expected": [
                {
                    "property": one.property,
                    "verdict": one.verdict,
                    "because": one.because,
                    "domain": None if one.domain is None else one.domain.name,
                }
                for one in self.expected
            ],
            "domains": [
                {"domain": domain.name, "groups": list(domain.groups), "verdicts": table.verdicts}
                for domain, table in self.domains
            ],
            "figures": self.figures.as_json(),
            "exit_code": self.exit_code,
        }


@dataclass(frozen=True)
class Outcome:
    """All runs of a trace."""

    runs: tuple[RunOutcome, ...]

    @property
    def exit_code(self) -> int:
        """0: all that is expected holds. 1: something is violated. 3: something is undecided."""
        return exit_code([one.verdict for run in self.runs for one in run.expected])

    def as_json(self) -> dict[str, object]:
        """The shape that `ordercast verify --json` prints."""
        return {"runs": [run.as_json() for run in self.runs], "exit_code": self.exit_code}


def _violation(one: Violation) -> dict[str, object]:
    return {"property": one.property, "sentence": one.sentence, "witness": one.witness}
