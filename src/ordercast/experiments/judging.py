"""The verdict on a simulated run, in the task that ran it: the kernels of `ordercast verify`.

Its rows never leave the task. That spares Spark their conversion and the shuffle, which cost more
than the checks.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import pyarrow as pa

from ordercast.judge.expectations import ALWAYS
from ordercast.judge.kernels.judge import Judged, judge_table
from ordercast.judge.kernels.run import KERNEL_COLUMNS
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.log import declared_events, logged_events
from ordercast.simulation.outcome import Outcome
from ordercast.trace.tables import TABLE_SCHEMA

WITNESSES = 1  # kept per property
KINDS = {name: TABLE_SCHEMA.field(name).type for name in KERNEL_COLUMNS}


class Verdict(msgspec.Struct, frozen=True):
    """Whether a run kept what its protocol promises."""

    verdict: str  # "kept", "violated", "undecided"
    broken: tuple[str, ...] = ()
    witness: str | None = None
    unpromised: tuple[str, ...] = ()  # violated as well, but nobody promised them


def verdict_on(outcome: Outcome, protocol: str, *, not_expected: Collection[str] = ()) -> Verdict:
    """Of what every run must keep, and of what this protocol promises, without some of it.

    A run that did not come to rest is undecided at best, and nobody may blame a peer.
    """
    expected = {*ALWAYS, *PROTOCOLS[protocol].declaration.promises}.difference(not_expected)
    judged = judge_table(_meaningful(outcome), witnesses=WITNESSES)
    found = [one for one in judged if one.property in expected]
    violated = [one for one in found if one.verdict == "violated"]
    doubtful = [one for one in found if one.verdict == "inconclusive"]
    broken = tuple(one.property for one in (*violated, *doubtful))
    unpromised = tuple(
        one.property for one in judged if one.verdict == "violated" and one.property not in expected
    )
    verdict, witness = _verdict(outcome, violated, doubtful)
    return Verdict(verdict, broken, witness, unpromised)


def _verdict(
    outcome: Outcome, violated: list[Judged], doubtful: list[Judged]
) -> tuple[str, str | None]:
    """With its first witness."""
    if violated:
        return "violated", _witness(violated[0])
    for process, peer, reason in outcome.first_faults[:1]:
        return "violated", f"process {process} blames {peer}: {reason}"
    if doubtful:
        return "undecided", _witness(doubtful[0])
    if not outcome.quiescent:
        return "undecided", f"the run did not come to rest: {outcome.ended}"
    return "kept", None


def _meaningful(outcome: Outcome) -> pa.Table:
    """The trace as the kernels take it, without rows for statistics: no property looks at them."""
    logged = logged_events(outcome.run, outcome.log, observed=False)
    events = [*declared_events(outcome.run, outcome.groups), *logged]
    return pa.table(
        [pa.array([getattr(event, name) for event in events], KINDS[name]) for name in KINDS],
        names=list(KINDS),
    )


def _witness(judged: Judged) -> str:
    findings = judged.findings
    sentences = [*(sentence for sentence, _ in findings.evidence), *findings.reasons]
    return f"{judged.property}: {sentences[0] if sentences else judged.verdict}"
