"""The kernels against the slow, obvious oracle, without Spark."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from random import Random

import numba
import pytest

from bench.oracle import features_of
from ordercast.judge.kernels.compiled import Kernel
from ordercast.judge.kernels.judge import Judged, judge_table
from ordercast.trace.oracle import judge, unspecified
from ordercast.trace.schema import PROPERTIES, Event, Judgement
from ordercast.trace.tables import event_table
from random_traces import ORDERS, random_trace

TRACES_PER_BLOCK = 200


def kernel_verdicts(events: list[Event], *, quiescent: bool = False) -> dict[str, str]:
    judged = judge_table(event_table(events), quiescent=quiescent)
    return {one.property: one.verdict for one in judged}


def compare(seeds: Iterable[int]) -> None:
    """All verdicts on the traces of these seeds with the oracle's, and how many faults of total
    order there are; each fourth is quiescent."""
    for seed in seeds:
        events = random_trace(Random(seed))
        quiescent = seed % 4 == 0
        judged = judge_table(event_table(events), quiescent=quiescent)
        found = {one.property: (one.verdict, *counted(one)) for one in judged}
        oracle = judge(events, quiescent=quiescent)
        wanted = {
            name: (one.verdict, *counted_by_oracle(name, one)) for name, one in oracle.items()
        }
        compared = ("wellformed",) if unspecified(events) else PROPERTIES
        differing = {n: (found[n], wanted[n]) for n in compared if found[n] != wanted[n]}
        assert not differing, f"seed {seed}, quiescent={quiescent}: (kernel, oracle) {differing}"


def counted(one: Judged) -> tuple[int, ...]:
    """Violations and doubts of an order that both judges count in one way."""
    is_total = one.property.startswith("total.")
    return (one.findings.violations, one.findings.doubts) if is_total else ()


def counted_by_oracle(name: str, one: Judgement) -> tuple[int, ...]:
    return (len(one.violations), len(one.doubts)) if name.startswith("total.") else ()


@pytest.mark.parametrize("block", range(5))
def test_every_verdict_on_random_traces_equals_the_oracles(block: int) -> None:
    compare(range(block * TRACES_PER_BLOCK, (block + 1) * TRACES_PER_BLOCK))


def test_witnesses_of_the_total_orders_do_not_depend_on_the_order_of_rows() -> None:
    """Messages are numbered as they are met, and traces are read in more than one way."""
    for seed in range(60):
        events = random_trace(Random(seed), mutations=3)
        if unspecified(events):
            continue
        shuffled = [Random(k).sample(events, len(events)) for k in range(3)]
        first, *others = (
            {one.property: sorted(map(str, one.findings.evidence)) for one in judge_table(rows)}
            for rows in map(event_table, (events, *shuffled))
        )
        for name in (name for name in first if name.startswith("total.")):
            for other in others:
                assert first[name] == other[name], f"seed {seed}: {name}"


def test_so_it_is_with_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small traces are judged by the same functions as plain Python; here they are compiled."""
    kernels = {
        id(kernel): kernel
        for name, module in list(sys.modules.items())
        if name.startswith("ordercast.judge.kernels.")
        for kernel in vars(module).values()
        if isinstance(kernel, Kernel)
    }
    assert len(kernels) > 10
    for kernel in kernels.values():
        compiled = numba.njit(cache=True, nogil=True)(kernel.plain)
        monkeypatch.setattr(kernel, "_compiled", compiled)
    compare(range(10_000, 10_000 + TRACES_PER_BLOCK))


def test_random_traces_have_everything_that_is_hard() -> None:
    seen = Counter(
        feature for seed in range(500) for feature in features_of(random_trace(Random(seed)))
    )
    assert seen.keys() == {
        "a crash", "a cut log", "duplicates", "joins", "leaves", "lost records", "open senders",
        "overlapping groups", "views",
    }  # fmt: skip
    assert min(seen.values()) > 500 * 0.05, seen


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
