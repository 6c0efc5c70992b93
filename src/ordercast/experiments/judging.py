"""The verdict on a simulated run, in the task that ran it: the kernels of `ordercast verify`.

Its rows never leave the task. That spares Spark their conversion and the shuffle, which cost more
than the checks.
"""

from __future__ import annotations

import msgspec

from ordercast.pipeline.expectations import ALWAYS
from ordercast.pipeline.kernels.judge import Judged, judge_table
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.log import TraceLog, declared_events, logged_events
from ordercast.simulation.outcome import Outcome
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from ordercast.trace.watch import Observed

WITNESSES = 1  # kept per property


class Verdict(msgspec.Struct, frozen=True):
    """Whether a run kept what its protocol promises."""

    verdict: str  # "kept", "violated", "undecided"
    broken: tuple[str, ...] = ()
    witness: str | None = None


def verdict_on(outcome: Outcome, protocol: str) -> Verdict:
    """Of what every run must keep, and of what this protocol promises.

    A run that did not come to rest is undecided at best, and nobody may blame a peer.
    """
    expected = {*ALWAYS, *PROTOCOLS[protocol].declaration.promises}
    judged = judge_table(event_table(_meaningful(outcome)), witnesses=WITNESSES)
    found = [one for one in judged if one.property in expected]
    violated = [one for one in found if one.verdict == "violated"]
    doubtful = [one for one in found if one.verdict == "inconclusive"]
    broken = tuple(one.property for one in (*violated, *doubtful))
    if violated:
        return Verdict("violated", broken, _witness(violated[0]))
    for process, peer, reason in outcome.first_faults[:1]:
        return Verdict("violated", broken, f"process {process} blames {peer}: {reason}")
    if doubtful:
        return Verdict("undecided", broken, _witness(doubtful[0]))
    if not outcome.quiescent:
        return Verdict("undecided", (), f"the run did not come to rest: {outcome.ended}")
    return Verdict("kept")


def _meaningful(outcome: Outcome) -> list[Event]:
    """The trace without its rows for statistics, which no property looks at."""
    log = TraceLog()
    for p, tick, *rows in outcome.log.records:
        kept = [row for row in rows if not isinstance(row, Observed)]
        if kept:
            log.records.append((p, tick, *kept))
    return [*declared_events(outcome.run, outcome.groups), *logged_events(outcome.run, log)]


def _witness(judged: Judged) -> str:
    findings = judged.findings
    sentences = [*(sentence for sentence, _ in findings.evidence), *findings.reasons]
    return f"{judged.property}: {sentences[0] if sentences else judged.verdict}"
