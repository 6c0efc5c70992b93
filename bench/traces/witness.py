"""Does the evidence of a verdict show the planted faults, all of them, and nothing else?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.traces.faults import closure
from bench.traces.stage import Fault

Witness = Mapping[str, Any]
Evidence = tuple[str, Witness]  # property, witness

SHARED = "total.global"  # one cycle refutes the one order of a run, whichever it is


@dataclass(frozen=True)
class Review:
    """What is wrong with the verdicts on a run with planted faults; all empty if nothing is."""

    missed: tuple[str, ...]  # "fault: property" without a witness that shows it
    strange: tuple[Evidence, ...]  # evidence that is about no planted fault
    verdicts: tuple[str, ...]  # properties that should be violated and are not, or the reverse

    @property
    def perfect(self) -> bool:
        return not (self.missed or self.strange or self.verdicts)

    def __str__(self) -> str:
        if self.perfect:
            return "all found, nothing else"
        strange = [f"{name} {dict(witness)}" for name, witness in self.strange[:3]]
        return f"missed {self.missed}, strange {strange}, verdicts {self.verdicts}"


def review(
    faults: Iterable[Fault], violated: Iterable[str], evidence: Iterable[Evidence]
) -> Review:
    """Compare what was found with what was planted. The evidence must be complete."""
    faults, evidence = list(faults), list(evidence)
    planted = frozenset().union(*(closure(fault.breaks) for fault in faults))
    strange = [
        (name, witness)
        for name, witness in evidence
        if not any(name in closure(fault.breaks) and concerns(fault, witness) for fault in faults)
    ]
    missed = [f"{fault.name}: {name}" for fault in faults for name in _unseen(fault, evidence)]
    if SHARED in planted and not any(name == SHARED for name, _ in evidence):
        missed.append(SHARED)
    return Review(tuple(missed), tuple(strange), tuple(sorted(planted ^ set(violated))))


def _unseen(fault: Fault, evidence: list[Evidence]) -> list[str]:
    """What the fault breaks without a witness for it; its very own property needs the exact one."""
    own, *others = fault.breaks
    unseen = [] if any(name == own and shows(fault, one) for name, one in evidence) else [own]
    for other in others:
        if other != SHARED and not any(n == other and concerns(fault, one) for n, one in evidence):
            unseen.append(other)
    return unseen


def concerns(fault: Fault, witness: Witness) -> bool:
    """The witness names a message of the fault, and a process where it shows."""
    if fault.group is not None:
        return bool(witness.get("group") == fault.group)
    messages = set(witness.get("messages", ()))
    return bool(messages & fault.messages and _processes(witness) & fault.processes)


def shows(fault: Fault, witness: Witness) -> bool:
    """The witness is exactly this fault: no other message, and the right chain between them."""
    if not concerns(fault, witness):
        return False
    if fault.group is not None:
        return True
    if set(witness["messages"]) != fault.messages:
        return False
    if "processes" in witness and not fault.processes <= _processes(witness):
        return False
    missing = witness.get("missing")
    if missing and (missing["process"], missing["message"]) not in fault.missing:
        return False
    return "chain" not in witness or tuple(witness["chain"]) == fault.chain


def _processes(witness: Witness) -> set[str]:
    return {*witness.get("processes", ()), *([witness["process"]] if "process" in witness else [])}
