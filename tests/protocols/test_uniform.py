"""Uniform reliable multicast: nobody delivers before a majority holds the message."""

from __future__ import annotations

import pytest

from machines import Bench, G, bench
from ordercast.core.events import Flush, Kept, Receive, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.waiting import NOBODY, Awaited, Waiting
from ordercast.machinery.stability import Ack
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.uniform import Uniform, UniformData
from ordercast.simulation import Crash, SimulationConfig, Workload, simulate
from ordercast.trace.oracle import verdicts


def machine(b: Bench, p: int) -> Uniform:
    found = b.machines[p]
    assert isinstance(found, Uniform)
    return found


def test_the_first_copy_is_relayed_to_all_others_and_a_later_one_is_not() -> None:
    b = bench(Uniform, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    assert sorted(packet.dst for packet in b.find(2, text="m")) == [1, 3]
    b.bring(1, 3)
    b.bring(3, 2, text="m")
    assert len(b.find(2, text="m")) == 2


def test_the_sender_delivers_its_own_message_when_a_majority_holds_it() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5)
    b.say(1, "m")
    assert b.texts(1) == []
    for q in (2, 3):
        b.bring(1, q)
        assert b.texts(1) == []
        b.bring(q, 1, text="m")
    assert b.texts(1) == ["m"]


@pytest.mark.parametrize(("n", "copies"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)])
def test_a_majority_is_more_than_half_of_the_view(n: int, copies: int) -> None:
    b = bench(Uniform, *range(1, n + 1))
    b.say(1, "m")
    for q in range(2, 2 + copies):
        assert b.texts(1) == []
        b.step(1, Receive(q, G, 1, UniformData(1, 1, 0), b"m"))
    assert b.texts(1) == ["m"]


def test_two_copies_from_one_process_count_once() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5)
    b.say(1, "m")
    b.bring(1, 2)
    b.repeat(*b.find(2, 1), *b.find(2, 1), *b.find(2, 1))
    assert b.texts(1) == []


def test_each_message_is_sent_n_times_n_minus_1() -> None:
    b = bench(Uniform, 1, 2, 3, 4, options=Options(ack_every=100))
    b.say(1, "m")
    copies = 0
    while b.find(text="m"):
        copies += 1
        b.arrive(b.find(text="m")[0])
    assert copies == 4 * 3
    assert [b.texts(p) for p in (1, 2, 3, 4)] == [["m"]] * 4


def test_a_message_that_waits_says_how_many_copies_it_waits_for() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5)
    b.say(1, "m")
    assert machine(b, 1).held_back() == [Waiting(G, 1, 1, (Awaited("copies", G, NOBODY, 2),), b"m")]
    b.bring(1, 2)
    assert machine(b, 2).held_back() == [Waiting(G, 1, 1, (Awaited("copies", G, NOBODY, 1),), b"m")]
    b.settle()
    assert all(machine(b, p).held_back() == [] for p in b.machines)


# -- departures ---------------------------------------------------------------------------------


def test_uniform_D1_a_sender_whose_packets_die_with_it_has_delivered_nothing() -> None:
    # E-C1, second half: relay-then-deliver is not enough if a crash destroys packets in flight.
    for protocol, seen in ((Reliable, ["m"]), (Uniform, [])):
        b = bench(protocol, 1, 2, 3)
        b.say(1, "m")
        b.lose(src=1)
        b.crash(1)
        b.settle()
        assert (b.texts(1), b.texts(2), b.texts(3)) == (seen, [], [])


def test_uniform_D1_what_two_of_five_delivered_before_they_died_the_others_deliver() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5)
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(1, 3)
    b.bring(3, 1, text="m")
    b.bring(2, 1, text="m")
    b.bring(3, 2, text="m")
    assert b.texts(1) == b.texts(2) == ["m"]
    b.lose(src=1)
    b.lose(src=2)  # with their packets
    b.crash(1, 2)
    b.carry()
    assert [b.texts(p) for p in (3, 4, 5)] == [["m"]] * 3


def uniformity(protocol: type[OrderingProtocol], seed: int) -> str:
    config = SimulationConfig(
        protocol=protocol,
        members=5,
        messages=8,
        workload=Workload(reply=0.5, depth=2),
        faults=(Crash(1, at_ms=3.2, lose=1.0), Crash(3, at_ms=4.1, lose=1.0)),
        seed=seed,
    )
    return verdicts(simulate(config).events())["agreement.uniform"]


def test_uniform_D1_uniform_agreement_holds_where_reliable_multicast_loses_it() -> None:
    seeds = range(60)
    assert {uniformity(Uniform, seed) for seed in seeds} == {"ok"}
    assert "violated" in {uniformity(Reliable, seed) for seed in seeds}


def test_uniform_D2_survivors_deliver_at_the_view_change_what_any_of_them_holds() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5)
    b.say(1, "m")
    b.bring(1, 2)  # held at 2, without a majority
    b.crash(1)
    b.flight.clear()
    union = machine(b, 2).unstable(G)
    assert union == (Kept(1, 1, (), b"m"),)
    for p in (2, 3, 4, 5):
        b.step(p, Flush(G, union), View(G, 2, (2, 3, 4, 5), 2, era=2))
        assert b.story(p) == ["12345", "m", "2345"]


def test_uniform_D2_what_was_delivered_is_not_delivered_again_at_the_view_change() -> None:
    b = bench(Uniform, 1, 2, 3)
    b.say(1, "m")
    b.carry()
    union = machine(b, 2).unstable(G)
    b.step(2, Flush(G, union), View(G, 2, (2, 3), 2, era=2))
    assert b.story(2) == ["123", "m", "23"]


def test_uniform_D2_a_guest_sends_and_does_not_count_among_the_holders() -> None:
    b = Bench({p: Uniform(p) for p in (1, 2, 3, 4)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2, 3), 1, guests=(4,)))
    b.say(4, "m")
    b.bring(4, 1)
    assert b.texts(1) == []  # 1 and the guest are not two of three
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3, 4)] == [["m"], ["m"], ["m"], []]
    assert (b.stable[4], b.faults) == (1, [])


def test_uniform_D3_what_is_in_order_takes_no_memory_and_is_kept_until_it_is_stable() -> None:
    b = bench(Uniform, 1, 2, 3, options=Options(ack_every=1))
    b.say(1, *(str(i) for i in range(20)))
    b.bring(1, 2)
    assert len(machine(b, 2).unstable(G)) == 20
    b.settle()
    for p in (1, 2, 3):
        assert machine(b, p).unstable(G) == ()
        assert (machine(b, p).received[1].mark, machine(b, p).received[1].early) == (20, set())
        assert machine(b, p).holders == {}


def test_uniform_D4_the_first_copy_counts_only_if_the_origin_brings_it() -> None:
    b = bench(Uniform, 1, 2, 3)
    b.step(2, Receive(3, G, 1, UniformData(1, 1, 0), b"forged"))
    assert (b.texts(2), b.flight) == ([], [])
    b.say(1, "m")
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_uniform_D4_once_the_origin_has_crashed_a_relay_is_enough() -> None:
    b = bench(Uniform, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    b.lose(1, 3)
    b.bring(2, 3, text="m")
    assert b.texts(3) == []
    b.crash(1)
    assert b.texts(3) == ["m"]


# -- acknowledgements, faults and limits ---------------------------------------------------------


def test_a_frame_without_a_majority_is_not_acknowledged() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(1, 2)
    assert not b.find(2, 1, Ack)
    b.bring(1, 3)
    b.bring(3, 2, text="m")
    assert [packet.dst for packet in b.find(2, header=Ack)] == [1]


def test_a_relay_that_names_a_process_outside_the_view_is_a_fault() -> None:
    b = bench(Uniform, 1, 2)
    before = machine(b, 2).fingerprint()
    b.step(2, Receive(1, G, 1, UniformData(9, 1, 0), b"m"))
    assert b.faults == [(2, 1, "a relay names process 9, which is not in the view")]
    assert machine(b, 2).fingerprint() == before


def test_a_relay_of_a_frame_that_was_never_sent_is_a_fault() -> None:
    b = bench(Uniform, 1, 2)
    b.step(2, Receive(1, G, 1, UniformData(2, 1, 0), b"m"))
    assert b.faults == [(2, 1, "a relay of frame 1, which was not sent")]
    assert b.texts(2) == []


def test_too_many_frames_without_a_majority_are_a_fault() -> None:
    b = bench(Uniform, 1, 2, 3, 4, 5, options=Options(max_held=3))
    for n in (1, 2, 3, 4):
        b.step(2, Receive(1, G, 1, UniformData(1, n, 0), b"m"))
    assert b.faults == [(2, 1, "more than 3 frames without a majority")]
    b.step(2, Receive(3, G, 1, UniformData(1, 1, 0), b"m"))  # one more copy of the first
    assert b.texts(2) == ["m"]
    b.step(2, Receive(1, G, 1, UniformData(1, 4, 0), b"m"))
    assert len(b.faults) == 1


def test_a_number_far_ahead_is_a_fault_and_harms_nothing() -> None:
    b = bench(Uniform, 1, 2, 3, options=Options(max_held=5))
    before = machine(b, 2).fingerprint()
    b.step(2, Receive(1, G, 1, UniformData(1, 6, 0), b"m"))
    assert len(b.faults) == 1
    assert machine(b, 2).fingerprint() == before


def test_the_stable_mark_of_a_relay_is_not_believed() -> None:
    b = bench(Uniform, 1, 2, 3)
    b.step(2, Receive(1, G, 1, UniformData(1, 1, 0), b"m"))
    b.step(2, Receive(3, G, 1, UniformData(1, 1, 1), b"m"))
    assert (b.texts(2), b.faults) == (["m"], [])
    assert len(machine(b, 2).unstable(G)) == 1
