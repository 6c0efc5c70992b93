"""The parts of a diagnosis, as plain data."""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.runtime.diagnosis.catalogue import CATALOGUE, COMMAND, LEVELS, Level
from ordercast.runtime.foreign_text import printable

RANK = {code: place for place, code in enumerate(CATALOGUE)}


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong, what was seen of it, and what to do."""

    level: Level
    code: str
    where: str  # an address, or "here"
    seen: str
    cure: str


class Passed(msgspec.Struct, frozen=True):
    """A check that found nothing."""

    check: str
    where: str
    seen: str


class Skipped(msgspec.Struct, frozen=True):
    """A check that could not be made."""

    check: str
    why: str


class Diagnosis:
    """Everything that was found, checked, and left out. What nodes said is made printable here."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.passed: list[Passed] = []
        self.skipped: list[Skipped] = []
        self.answered = 0  # nodes that told how they are

    def find(
        self, code: str, where: str, seen: str, *, level: Level | None = None, command: str = ""
    ) -> None:
        """Note a finding of the catalogue; a level given here is milder, for a reason. `command`
        is what to run, where the catalogue leaves a place for it."""
        usual, cure = CATALOGUE[code]
        cure = cure.replace(COMMAND, command)
        finding = Finding(level or usual, code, printable(where), printable(seen), cure)
        if finding not in self.findings:
            self.findings.append(finding)

    def passes(self, check: str, where: str, seen: str) -> None:
        """Note that a check found nothing."""
        self.passed.append(Passed(check, printable(where), printable(seen)))

    def skip(self, check: str, why: str) -> None:
        """Note that a check was not made."""
        skipped = Skipped(check, printable(why))
        if skipped not in self.skipped:
            self.skipped.append(skipped)

    def worst_first(self) -> list[Finding]:
        """The findings in the order in which to mend them."""
        return sorted(self.findings, key=lambda f: (LEVELS.index(f.level), RANK[f.code]))

    @property
    def healthy(self) -> bool:
        """Nothing but notes was found."""
        return all(finding.level == "note" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """The whole diagnosis as plain data, for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(
            {
                "healthy": self.healthy,
                "answered": self.answered,
                "findings": self.worst_first(),
                "passed": self.passed,
                "skipped": self.skipped,
            }
        )
        return data
