"""Every witness is true: what it names exists, and is in the order that it claims."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from notation import trace
from ordercast.judge.kernels.judge import judge_table
from ordercast.trace.oracle import unspecified
from ordercast.trace.schema import PROPERTIES, Event
from ordercast.trace.tables import event_table
from random_traces import random_trace
from witnesses import Lies, Witness


def witnesses_of(events: list[Event], *, quiescent: bool = False) -> list[tuple[str, str, Witness]]:
    """(property, sentence, witness) of every violation that is shown."""
    return [
        (judged.property, sentence, witness)
        for judged in judge_table(event_table(events), quiescent=quiescent)
        for sentence, witness in judged.findings.evidence
    ]


def one_witness(name: str, text: str) -> tuple[str, Witness]:
    events = trace(text)
    lies = Lies(events)
    found = [told[1:] for told in witnesses_of(events) if told[0] == name]
    assert found
    for _, witness in found:
        assert lies.told(name, witness) == []
    return found[0]


def test_every_witness_on_random_traces_is_true() -> None:
    checked: Counter[str] = Counter()
    for seed in range(300):
        events, quiescent = random_trace(Random(seed)), seed % 3 == 0
        if unspecified(events):
            continue
        lies = Lies(events, quiescent=quiescent)
        for name, sentence, witness in witnesses_of(events, quiescent=quiescent):
            assert lies.told(name, witness) == [], f"seed {seed}: {name}: {sentence}"
            checked[name] += 1
    assert checked.keys() == set(PROPERTIES)


def test_a_lie_is_noticed() -> None:
    text = "p: send a g; send b g; end\nq: deliver b g; deliver a g; end"
    _, witness = one_witness("fifo.group", text)
    lies = Lies(trace(text))
    for key, lie in (
        ("messages", ["b", "a"]),
        ("chain", ["b", "a"]),
        ("process", "p"),
        ("missing", {"process": "q", "message": "a"}),
        ("events", [{**witness["events"][0], "index": 99}]),
    ):
        assert lies.told("fifo.group", {**witness, key: lie}), key


def test_an_event_has_the_group_that_its_row_names() -> None:
    text = "p: send a g; deliver a h; end\nq: send b h; deliver a g; end"
    _, witness = one_witness("no_creation", text)
    assert [event["group"] for event in witness["events"]] == ["g", "h"]


def test_in_a_causal_cycle_nobody_is_said_to_have_sent_in_the_wrong_order() -> None:
    """r delivers a before p has sent it, and p hears of that before it sends b."""
    sentence, witness = one_witness(
        "causal.global",
        "group g: q\np: deliver c g; send b g; send a g; end\nr: deliver a g; send c g; end\n"
        "q: deliver b g; deliver a g; end",
    )
    assert sentence == "q delivers b before a, but the send of a happened before that of b"
    assert witness["chain"] == ["a", "c", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_chains_lead_through_causal_cycles(seed: int) -> None:
    """Everybody delivers anything at any time, sent or not."""
    rng = Random(seed)
    logs: list[list[str]] = [[] for _ in range(4)]
    for m in range(10):
        for q, log in enumerate(logs):
            word = "send" if q == m % 4 else "deliver"
            log.insert(rng.randint(0, len(log)), f"{word} m{m} {'gh'[m % 2]}")
    events = trace("\n".join(f"p{q}: {'; '.join(log)}; end" for q, log in enumerate(logs)))
    lies = Lies(events)
    for name, sentence, witness in witnesses_of(events):
        assert lies.told(name, witness) == [], f"{name}: {sentence}"


def test_agreement_shows_a_delivery_that_proves_it() -> None:
    """Crashed processes bind nobody to the plain form: they are shown last."""
    crashed = "\n".join(f"c{k}: deliver a g; crash" for k in range(5))
    sentence, witness = one_witness(
        "agreement", f"group g: p,q,z\np: send a g; end\nz: deliver a g; end\nq: end\n{crashed}"
    )
    assert sentence == "p never delivers a of p, which z delivers"
    assert witness["events"][1]["process"] == "z"
