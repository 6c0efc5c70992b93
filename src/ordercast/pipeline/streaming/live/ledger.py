"""The book of findings: each is told once, and taken back in public if a later row undoes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ordercast.pipeline.streaming.live.notices import (
    EXCUSED,
    LIMIT,
    VIOLATED,
    WITHDRAWN,
    Finding,
    Gap,
    Notice,
)
from ordercast.pipeline.streaming.live.state import Limits, RunState
from ordercast.trace.schema import HYBRIDS

ORDERS = ("fifo.", "causal.", "total.")  # plain and `.uniform` forms differ for these


def tell(
    run: RunState,
    limits: Limits,
    name: str,
    about: tuple[str, ...],
    sentence: str,
    witness: dict[str, object],
    observers: Iterable[Iterable[int]] = (),
    *,
    gap: Gap | None = None,
    by_end_of: int = -1,
) -> None:
    """Violated. A second finding about the same thing only makes the first one firmer."""
    key = "|".join((name, *about))
    known = run.findings.get(key)
    if known is not None:
        _firmer(known, sentence, witness, [list(one) for one in observers], gap)
        _say(run, known)
        return
    if run.told.get(name, 0) >= limits.findings:
        if run.doubt(f"violations of {name} that were not told"):
            text = f"{limits.findings} violations of {name} were told; further ones are not"
            run.notices.append(Notice(LIMIT, name, f"findings|{name}", text))
        return
    run.told[name] = run.told.get(name, 0) + 1
    run.findings[key] = Finding(
        name, key, sentence, witness, [list(one) for one in observers], gap, by_end_of
    )
    _say(run, run.findings[key])


def _firmer(
    known: Finding,
    sentence: str,
    witness: dict[str, object],
    observers: list[list[int]],
    gap: Gap | None,
) -> None:
    came = gap is None and known.gap is not None  # what was missing: out of order, for good
    if came or known.told != VIOLATED:
        known.gap, known.withdrawn = gap, ""
        known.sentence, known.witness, known.observers = sentence, witness, observers
    elif gap is not None and known.gap is not None:  # somebody else shows the same gap
        for old, new in zip(known.observers, observers, strict=True):
            old += [process for process in new if process not in old]


def withdraw(run: RunState, where: Callable[[Finding], bool], why: str) -> None:
    """Take back every finding that fits."""
    for finding in run.findings.values():
        if not finding.withdrawn and where(finding):
            finding.withdrawn = why
            _say(run, finding)


def recheck(run: RunState) -> None:
    """Somebody crashed, or did not crash after all: findings may change their standing."""
    for finding in run.findings.values():
        _say(run, finding)


def standing(run: RunState, finding: Finding) -> str:
    """violated, excused (counts for the `.uniform` form only) or withdrawn."""
    if finding.withdrawn:
        return WITHDRAWN
    crashed = any(
        all(run.processes[process].is_crashed() for process in one) for one in finding.observers
    )
    return EXCUSED if crashed and finding.property.startswith(ORDERS) else VIOLATED


def _say(run: RunState, finding: Finding) -> None:
    now = standing(run, finding)
    if now == finding.told:
        return
    finding.told = now
    text = finding.sentence
    if now == EXCUSED:
        text = f"{text} The process has crashed: only {finding.property}.uniform is broken."
    elif now == WITHDRAWN:
        text = f"Taken back, {finding.withdrawn}: {text}"
    run.notices.append(Notice(now, finding.property, finding.about, text, finding.witness))


def is_violated(run: RunState, name: str) -> bool:
    """Does a finding stand against this property, hybrids and `.uniform` forms included?"""
    base = name.removesuffix(".uniform")
    names = HYBRIDS.get(base, (base,))
    counting = (VIOLATED,) if base == name else (VIOLATED, EXCUSED)
    return any(f.property in names and f.told in counting for f in run.findings.values())
