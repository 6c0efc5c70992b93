"""How many concurrent messages a two-layered group orders by accident (002, Theorem 4)."""

from __future__ import annotations

from bench.false_order import Rates, Vectors, causes, concurrent, false_order, measured
from bench.two_layered import simulated
from machines import Bench, G, bench
from ordercast.core.events import Receive
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
    vectors = Vectors()
    vectors.layer_of = {p: (p - 1) // 3 for p in b.machines}
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
    rates = false_order(sends((2, 1), (3, 1)), vectors)
    assert (rates.concurrent, rates.same_subgroup, rates.gateways_same) == (1, 1, 1)
    assert (rates.seen, rates.waits, rates.rule_1) == (2, 1, 1)  # in the other subgroup


def test_two_concurrent_messages_of_two_subgroups_are_not_ordered_by_the_gateways() -> None:
    _, vectors = played((2, "a"), (5, "b"))
    rates = false_order(sends((2, 1), (5, 1)), vectors)
    assert (rates.concurrent, rates.same_subgroup, rates.gateways_other) == (1, 0, 0)
    assert (rates.seen, rates.waits, rates.rule_1) == (2, 2, 0)  # both wait, and rule 1 tells


def test_a_copy_that_made_a_loss_good_carries_the_same_vectors() -> None:
    b, vectors = played((2, "a"))
    copied = Vectors()
    copied.layer_of = vectors.layer_of
    machine = b.machines[4]
    assert isinstance(machine, TwoLayered) and machine.main is not None
    (message,) = (stored[1] for stored in machine.main.store[0].values())
    copied.look(Receive(4, G, 1, message))
    assert copied.RSQ == vectors.RSQ


def test_rates_add_up_over_runs_and_no_pair_is_counted_twice() -> None:
    one = measured(9, 5_000.0, 0)
    assert 0 < one.rule_1 <= one.waits <= one.seen <= 3 * one.concurrent
    assert 0 < one.gateways_same <= one.same_subgroup < one.concurrent
    assert one + Rates(concurrent=2) == Rates(
        *(v + 2 * (i == 0) for i, v in enumerate(values(one)))
    )


def values(rates: Rates) -> list[int]:
    return [getattr(rates, name) for name in rates.__struct_fields__]


def test_a_large_group_comes_to_rest_with_all_that_was_said_everywhere() -> None:
    told = simulated(messages=3, loss=0.02, members=225)
    assert told["deliveries"] == 225 * told["messages"]
