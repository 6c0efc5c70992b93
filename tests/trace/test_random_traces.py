"""The random traces keep their promises when unspoiled and reach every verdict when spoiled."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest

from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.schema import KINDS, ORDER_PROPERTIES, PROPERTIES, Event
from random_mutations import MUTATIONS, Mutation
from random_traces import ORDERS, random_draft, random_trace, random_traces

SEED = 20
NEVER_INCONCLUSIVE = {
    name + form
    for name in (
        "wellformed", "no_duplication", "membership", "total.group", "total.global",
        "total.pairwise", "views", "sending_view",
    )
    for form in ("", ".uniform")
}  # fmt: skip


@cache
def judged() -> list[tuple[list[Event], dict[str, str]]]:
    traces = [events for events in random_traces(Random(SEED), 2000) if not unspecified(events)]
    return [(events, verdicts(events)) for events in traces]


@cache
def counted() -> Counter[tuple[str, str]]:
    return Counter(item for _, found in judged() for item in found.items())


def test_the_same_seed_gives_the_same_traces() -> None:
    assert list(random_traces(Random(3), 20)) == list(random_traces(Random(3), 20))
    assert list(random_traces(Random(3), 20)) != list(random_traces(Random(4), 20))


def test_the_runs_are_named_apart() -> None:
    runs = [{event.run for event in events} for events in random_traces(Random(SEED), 50)]
    assert runs == [{f"t{number}"} for number in range(50)]


def test_the_traces_are_small_and_of_known_kinds() -> None:
    sizes = sorted(len(events) for events, _ in judged())
    assert sizes[len(sizes) * 9 // 10] < 120  # one in twenty is larger
    assert sizes[-1] < 400
    for events, _ in judged():
        assert {event.kind for event in events} <= set(KINDS)


def test_most_traces_have_specified_verdicts() -> None:
    assert len(judged()) > 1500


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("verdict", ["ok", "violated", "inconclusive", "n/a"])
def test_every_property_shows_every_verdict_that_it_can_have(name: str, verdict: str) -> None:
    impossible = (verdict == "inconclusive" and name in NEVER_INCONCLUSIVE) or (
        verdict == "n/a" and name == "wellformed"
    )
    seen = counted()[name, verdict]
    assert seen == 0 if impossible else seen >= 5, f"seed {SEED}: {name} was {verdict} {seen} times"


@pytest.mark.parametrize(
    ("holds", "broken"),
    [
        ("fifo.group", "fifo.global"),
        ("fifo.global", "causal.group"),
        ("causal.group", "causal.global"),
        ("total.group", "total.pairwise"),
        ("total.pairwise", "total.group"),
        ("total.pairwise", "total.global"),
        ("total.group", "total.gapless"),
        ("total.gapless", "total.gapless.uniform"),
        ("fifo.group", "fifo.group.uniform"),
        ("agreement", "agreement.uniform"),
        ("agreement", "vsync"),
        ("vsync", "sending_view"),
    ],
)
def test_properties_that_differ_are_told_apart(holds: str, broken: str) -> None:
    assert any(found[holds] == "ok" and found[broken] == "violated" for _, found in judged())


@pytest.mark.parametrize("order", ORDERS)
def test_an_unspoiled_run_keeps_its_promise_in_every_form(order: str) -> None:
    kept = {
        "none": (),
        "fifo": ("fifo",),
        "causal": ("fifo", "causal"),
        "total": ("fifo", "causal", "total", "hybrid"),
    }[order]
    promised = [n for n in PROPERTIES if n.removesuffix(".uniform") not in ORDER_PROPERTIES]
    promised += [n for n in PROPERTIES if n.startswith(kept) and kept]
    rng = Random(SEED)
    for number in range(150):
        found = verdicts(random_trace(rng, order=order, mutations=0))
        bad = {name: found[name] for name in promised if found[name] not in ("ok", "n/a")}
        assert not bad, f"seed {SEED}, trace {number}"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_does_something(mutation: Mutation) -> None:
    changed = 0
    for seed in range(40):
        rng = Random(seed)
        draft = random_draft(rng, "total")
        before = (repr(draft.logs), repr(draft.declarations))
        mutation(draft, rng)
        changed += before != (repr(draft.logs), repr(draft.declarations))
    assert changed >= 3


# What must hold between verdicts of any trace.


def test_where_nobody_crashed_the_uniform_order_properties_equal_the_plain_ones() -> None:
    for events, found in judged():
        if not any(event.kind == "crash" for event in events):
            for name in ORDER_PROPERTIES:
                assert found[name] == found[name + ".uniform"], events


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("fifo.global", "fifo.group"),
        ("causal.global", "causal.group"),
        ("causal.global", "fifo.global"),
        ("causal.group", "fifo.group"),
        ("total.global", "total.group"),
        ("total.global", "total.pairwise"),
        *((name + ".uniform", name) for name in ORDER_PROPERTIES),
    ],
)
def test_a_stronger_order_holds_only_where_the_weaker_one_does(stronger: str, weaker: str) -> None:
    for events, found in judged():
        if found[stronger] == "ok":
            assert found[weaker] == "ok", events


def test_quiescence_changes_only_verdicts_about_missing_deliveries_and_sends() -> None:
    settled = {"validity", "agreement", "agreement.uniform", "no_creation"}
    for events, found in judged()[:500]:
        then = verdicts(events, quiescent=True)
        for name in PROPERTIES:
            if found[name] != then[name]:
                assert name in settled, events
