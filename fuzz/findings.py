"""What was done in a campaign, and what did not hold, grouped by where it failed."""

from __future__ import annotations

from collections import Counter

import msgspec

from fuzz.lies import Liar
from fuzz.moments import Moment, Run
from fuzz.trial import Failure, Step, Tally, header_of, shortest

SHOWN = 1000  # characters of one event of a witness
HONEST = "an honest event"

Key = tuple[str, str, str, str]
"""(state, kind of header, kind of failure, place)"""


class Finding(msgspec.Struct):
    """One place that fails, in one kind of state, by one kind of packet."""

    state: str
    header: str
    kind: str
    place: str
    function: str
    says: str
    protocol: str
    arena: str
    run: int  # replays it
    liar: str  # what it is to the node
    witness: list[str]
    times: int = 1


class Book(msgspec.Struct):
    """Everything of a campaign."""

    frames: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)  # protocol, state
    octets: Counter[str] = msgspec.field(default_factory=Counter)  # byte strings, by decoder
    moments: int = 0
    runs: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    findings: dict[Key, Finding] = msgspec.field(default_factory=dict)

    @property
    def total(self) -> int:
        """Lies that nodes were told."""
        return sum(self.frames.values())

    def note(self, moment: Moment, steps: list[Step], liar: Liar, failure: Failure) -> None:
        """Something did not hold. Of the first of its kind the shortest witness is kept."""
        told = [step for step in steps if step.is_lie]
        header = header_of(told[-1]) if told else HONEST
        rough = (moment.state, header, failure.kind, failure.place)
        if rough in self.findings:
            self.findings[rough].times += 1
            return
        few = shortest(moment, steps, liar, failure)
        lies = [step for step in few if step.is_lie]
        header = header_of(lies[-1]) if lies else HONEST
        key = (moment.state, header, failure.kind, failure.place)
        if key in self.findings:
            self.findings[key].times += 1
        else:
            self.findings[key] = _finding(moment.run, moment.state, header, failure, liar, few)

    def note_octets(self, reader: str, run: Run, failure: Failure) -> None:
        """A decoder raised something else than its own error."""
        key = ("bytes", reader, failure.kind, failure.place)
        if key in self.findings:
            self.findings[key].times += 1
        else:
            self.findings[key] = Finding(
                *key, failure.function, failure.says, run.protocol, run.arena, run.number, "-", []
            )


def _finding(
    run: Run, state: str, header: str, failure: Failure, liar: Liar, steps: list[Step]
) -> Finding:
    witness = [f"{'lie' if s.is_lie else 'ok '} {e!r}"[:SHOWN] for s in steps for e in s.events]
    return Finding(
        state, header, failure.kind, failure.place, failure.function, failure.says, run.protocol,
        run.arena, run.number, liar.kind, witness,
    )  # fmt: skip
