"""The kernels against the slow, obvious oracle, without Spark."""

from __future__ import annotations

from random import Random

import pytest

from ordercast.pipeline.kernels.judge import judge_table
from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.schema import PROPERTIES, Event
from ordercast.trace.tables import event_table
from random_traces import ORDERS, random_trace

TRACES_PER_BLOCK = 300


def kernel_verdicts(events: list[Event], *, quiescent: bool = False) -> dict[str, str]:
    judged = judge_table(event_table(events), quiescent=quiescent)
    return {one.property: one.verdict for one in judged}


@pytest.mark.parametrize("block", range(5))
def test_every_verdict_on_random_traces_equals_the_oracles(block: int) -> None:
    for seed in range(block * TRACES_PER_BLOCK, (block + 1) * TRACES_PER_BLOCK):
        events = random_trace(Random(seed))
        quiescent = seed % 4 == 0
        found = kernel_verdicts(events, quiescent=quiescent)
        wanted = verdicts(events, quiescent=quiescent)
        compared = ("wellformed",) if unspecified(events) else PROPERTIES
        differing = {n: (found[n], wanted[n]) for n in compared if found[n] != wanted[n]}
        assert not differing, f"seed {seed}, quiescent={quiescent}: (kernel, oracle) {differing}"


@pytest.mark.parametrize("order", ORDERS)
def test_a_run_that_keeps_its_promise_is_not_accused(order: str) -> None:
    promise = {
        "none": (),
        "fifo": ("fifo.global",),
        "causal": ("causal.global",),
        "total": ("total.global",),
    }
    for seed in range(100):
        events = random_trace(Random(seed), order=order, mutations=0)
        found = kernel_verdicts(events)
        for name in (*promise[order], "wellformed", "no_duplication", "no_creation", "membership"):
            assert found[name] != "violated", f"seed {seed}: {name}"
