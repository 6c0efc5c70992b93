"""Outcomes for tests of the report: judged without Spark, with figures made up to be drawn."""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.judge.expectations import ALWAYS
from ordercast.judge.figures import (
    Bucket,
    ClockSkew,
    Figures,
    GroupFigures,
    LossyLog,
    Spread,
    Throughput,
    TraceHealth,
)
from ordercast.judge.kernels.judge import judge_table
from ordercast.judge.outcome import (
    Expectation,
    GroupFacts,
    Outcome,
    RunFacts,
    RunOutcome,
    Table,
)
from ordercast.trace.schema import Event, Violation
from ordercast.trace.tables import event_table

SWAPPED = "p: send a g; send b g; end\nq: deliver b g; deliver a g; end"
CLEAN = "p: send a g; deliver a g; end\nq: deliver a g; end"
SKIPPED = "group g: p,q\np: deliver a g; deliver b g; end\nq: deliver b g; end"
OPPOSITE = (
    "s: send a g; end\nt: send b g; end\n"
    "p: deliver a g; deliver b g; end\nq: deliver b g; deliver a g; end"
)
CUT = "group g: p,q\np: send a g; deliver a g; end\nq: receive a g"
NASTY = "<script>alert('x')</script>&\"'"
TURNED = "\u202eevil\u0000"  # a sign that turns the text round, and one that cannot be seen
LONG = "orders-eu-west-1/checkout-service-7f9c/" + "0123456789" * 12


def table_of(events: Sequence[Event]) -> Table:
    """All verdicts with their evidence."""
    judged = judge_table(event_table(events))
    return Table(
        verdicts={one.property: one.verdict for one in judged},
        violations=tuple(
            Violation(one.property, sentence, witness)
            for one in judged
            for sentence, witness in one.findings.evidence
        ),
        counts={one.property: one.findings.violations for one in judged},
        doubts={one.property: tuple(one.findings.reasons) for one in judged},
    )


def run_of(
    events: Sequence[Event], *names: str, run: str = "", figures: Figures | None = None
) -> RunOutcome:
    """A run of which `names` are expected, or what always is."""
    table = table_of(events)
    return RunOutcome(
        run=run,
        table=table,
        domains=(),
        expected=tuple(Expectation(n, table.verdicts[n], "asked for") for n in names or ALWAYS),
        facts=facts_of(events),
        groups=tuple(
            GroupFacts(name, "fifo", "basic", "group", ("p", "q"), 2, 2)
            for name in sorted({event.group for event in events if event.group})
        ),
        figures=figures or Figures(),
    )


def outcome_of(events: Sequence[Event], *names: str, run: str = "") -> Outcome:
    """One run alone, with all figures."""
    return Outcome((run_of(events, *names, run=run, figures=figures()),))


def facts_of(events: Sequence[Event]) -> RunFacts:
    kinds = [event.kind for event in events]
    logs = {event.process for event in events if event.process is not None}

    def having(*wanted: str) -> set[str]:
        return {event.process for event in events if event.process and event.kind in wanted}

    return RunFacts(
        events=len(events),
        sends=kinds.count("send"),
        deliveries=kinds.count("deliver"),
        views=kinds.count("view"),
        processes=len(logs),
        crashed=tuple(sorted(having("crash"))),
        cut=len(logs - having("crash", "end")),
        lossy=len(having("lost")),
    )


def spread(low: int, high: int, count: int = 1000) -> Spread:
    """Evenly from `low` to `high`."""
    percents = (*range(0, 100, 2), 99, 100)
    values = tuple((percent, low + (high - low) * percent // 100) for percent in percents)
    return Spread(count, (low + high) / 2, values)


def figures(groups: int = 2, *, health: TraceHealth | None = None, before: str = "") -> Figures:
    """Every figure is told; `before` comes before the name of each group."""
    return Figures(
        groups=tuple(
            GroupFigures(
                f"{before}g{k}", "basic", 500, 1000, 3,
                latency=spread(200_000, 2_000_000 * (k + 1)),
                hold_back=spread(0, 300_000 * (k + 1)),
                waited=200,
                headers=spread(8, 24 + 8 * k),
                payload=spread(10, 100),
                packets_received=1500, retransmissions=12, nacks=4, nulls=20,
            )
            for k in range(groups)
        ),
        throughput=Throughput(
            10_000_000_000, 50.0, 100.0, 500_000_000,
            tuple(Bucket(k * 500_000_000, 20 + k % 5, 45 + 3 * (k % 7)) for k in range(20)),
        ),
        health=health or TraceHealth(),
    )  # fmt: skip


def ill(before: str = "") -> TraceHealth:
    """A trace with everything that can be wrong with one; `before` comes before each name."""
    p, q, r, s, t = (before + name for name in "pqrst")
    return TraceHealth(
        cut=(q,),
        lossy=(LossyLog(p, 2, 17), LossyLog(r, 1, None)),
        silent=(t,),
        untimed=(s,),
        no_send=4,
        early=9,
        skews=(
            ClockSkew(p, q, -4_000_000, 9_000_000, 7),
            ClockSkew(p, r, -2_000_000, None, 2),
            ClockSkew(q, r, -2_000_000, 1_000_000, 1),
            ClockSkew(q, s, 2_000_000, 1_000_000, 0),
        ),
        skewed_pairs=3,
        pairs=6,
    )
