"""How many concurrent messages a two-layered group orders by accident (002, Theorem 4)."""

from __future__ import annotations

from pathlib import Path

from bench.two_layered import simulated
from machines import Bench, G, bench
from ordercast.core.events import Receive
from ordercast.experiments.arrange import arranged
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.false_order import Vectors, causes, concurrent, false_order, layers
from ordercast.experiments.trial import Trial, run_trial
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.trace.schema import Event


def event(process: str, kind: str, message: str) -> Event:
    return Event(process, 1, kind, message=message, group="g1")


def test_what_happened_before_comes_through_deliveries_and_the_own_past() -> None:
    found = causes(
        [
            event("p", "send", "a"),
            event("q", "deliver", "a"),
            event("q", "send", "b"),
            event("r", "send", "c"),
            event("r", "deliver", "b"),
            event("r", "send", "d"),
        ]
    )
    assert found == {"a": set(), "b": {"a"}, "c": set(), "d": {"a", "b", "c"}}
    assert list(concurrent(found)) == [("a", "c"), ("b", "c")]


def played(*said: tuple[int, str]) -> tuple[Bench, Vectors]:
    """Each says its message before any packet arrives, so all are concurrent; 1 and 4 forward."""
    b = bench(TwoLayered, 1, 2, 3, 4, 5, 6)
    vectors = Vectors({p: (p - 1) // 3 for p in b.machines})
    for p, text in said:
        b.say(p, text)
    while b.flight:
        packet = b.flight[0]
        vectors.look(packet.receive)
        b.arrive(packet)
    return b, vectors


def sends(*messages: tuple[int, int]) -> list[Event]:
    return [event(f"p{p}#1", "send", f"p{p}#1/g{G}/{n}") for p, n in messages]


def test_theorem_4_two_concurrent_messages_of_one_subgroup_are_ordered_by_its_gateway() -> None:
    _, vectors = played((2, "c"), (3, "d"))
    found = false_order(sends((2, 1), (3, 1)), vectors)
    assert (found.concurrent_pairs, found.same_subgroup_pairs, found.gateways_same) == (1, 1, 1)
    assert (found.seen_pairs, found.waiting_pairs, found.rule_1_pairs) == (
        2,
        1,
        1,
    )  # in the other subgroup


def test_two_concurrent_messages_of_two_subgroups_are_not_ordered_by_the_gateways() -> None:
    _, vectors = played((2, "a"), (5, "b"))
    found = false_order(sends((2, 1), (5, 1)), vectors)
    assert (found.concurrent_pairs, found.same_subgroup_pairs, found.gateways_other) == (1, 0, 0)
    assert (found.seen_pairs, found.waiting_pairs, found.rule_1_pairs) == (
        2,
        2,
        0,
    )  # both wait, and rule 1 tells


def test_a_copy_that_made_a_loss_good_carries_the_same_vectors() -> None:
    b, vectors = played((2, "a"))
    copied = Vectors(vectors.layer_of)
    machine = b.machines[4]
    assert isinstance(machine, TwoLayered) and machine.main is not None
    (message,) = (stored[1] for stored in machine.main.store[0].values())
    copied.look(Receive(4, G, 1, message))
    assert copied.RSQ == vectors.RSQ


TALK = Coordinates(protocol="two_layered", members=9, group_size=9, messages=30, every_us=500)


def test_a_run_tells_how_many_pairs_were_ordered_and_counts_none_twice(tmp_path: Path) -> None:
    trial = Trial(
        run="r", at=TALK, costs=None, trace="application", needless=False, false_order=True,
        keep="none",
    )  # fmt: skip
    row = run_trial(trial, tmp_path)
    assert row["verdict"] == "kept"
    assert 0 < row["rule_1_pairs"] <= row["waiting_pairs"] <= row["seen_pairs"]
    assert row["seen_pairs"] == 3 * row["concurrent_pairs"]
    assert 0 < row["gateways_same"] <= row["same_subgroup_pairs"] < row["concurrent_pairs"]
    assert row["concurrent_pairs"] <= 30 * 29 / 2
    assert row["gateways_other"] == 0


def test_the_subgroups_are_those_of_the_run() -> None:
    assert layers(arranged(TALK)) == {p: p // 3 for p in range(9)}
    in_two = Coordinates(protocol="two_layered", members=8, group_size=8, subgroups=2)
    assert layers(arranged(in_two)) == {p: p // 4 for p in range(8)}


def test_a_large_group_comes_to_rest_with_all_that_was_said_everywhere() -> None:
    told = simulated(messages=3, loss=0.02, members=225)
    assert told["deliveries"] == 225 * told["messages"]
