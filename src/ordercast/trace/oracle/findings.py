"""What a judge writes down while it looks at one property."""

from __future__ import annotations

from ordercast.trace.schema import Judgement, Violation


class Findings:
    """The violations and the doubts found so far for one property."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.violations: list[Violation] = []
        self.doubts: list[str] = []

    def violated(self, sentence: str, **witness: object) -> None:
        self.violations.append(Violation(self.name, sentence, witness))

    def doubtful(self, sentence: str) -> None:
        self.doubts.append(sentence)

    def missing(self, certain: bool, sentence: str, **witness: object) -> None:
        """Something is not in a log: a violation if the log is to be believed, else a doubt."""
        if certain:
            self.violated(sentence, **witness)
        else:
            self.doubtful(sentence)

    def judgement(self) -> Judgement:
        """violated > inconclusive > ok."""
        if self.violations:
            return Judgement("violated", tuple(self.violations), tuple(self.doubts))
        if self.doubts:
            return Judgement("inconclusive", doubts=tuple(self.doubts))
        return Judgement("ok")
