"""Causal order, sentence by sentence (001, slides "Causal Ordering (1)" to "(3)")."""

from __future__ import annotations

from machines import Bench, G, bench
from ordercast.core.events import Flush, Kept, Receive, View
from ordercast.core.protocol import Options
from ordercast.protocols.vector import CausalVector, Stamped


def V(b: Bench, p: int) -> list[int]:
    machine = b.machines[p]
    assert isinstance(machine, CausalVector)
    return machine.V


def test_whoever_delivers_m3_delivers_m1_before_if_m1_happened_before_m3() -> None:
    b = bench(CausalVector, 1, 2, 3)
    b.say(1, "m1")
    b.bring(1, 2)
    b.say(2, "m3")  # 2 has delivered m1
    b.bring(2, 3)
    assert b.texts(3) == []
    b.bring(1, 3)
    assert b.texts(3) == ["m1", "m3"]


def test_concurrent_messages_do_not_wait_for_each_other() -> None:
    b = bench(CausalVector, 1, 2, 3)
    b.say(1, "m1")
    b.say(2, "m2")
    b.bring(2, 3)
    b.bring(1, 3)
    assert b.texts(3) == ["m2", "m1"]


def test_initially_V_is_zero_for_every_member() -> None:
    assert V(bench(CausalVector, 1, 2, 3), 2) == [0, 0, 0]


def test_to_multicast_raise_the_own_entry_and_send_the_vector() -> None:
    b = bench(CausalVector, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 2)
    b.say(2, "b")
    assert [packet.header for packet in b.find(2, text="b")] == [Stamped((1, 1, 0), 0)] * 2


def test_wait_until_Vj_of_j_is_the_next_from_j() -> None:
    b = bench(CausalVector, 1, 2)
    b.say(1, "a", "b")
    b.bring(text="b")
    assert b.texts(2) == []
    b.bring(text="a")
    assert b.texts(2) == ["a", "b"]
    assert V(b, 2) == [2, 0]


def test_wait_until_Vj_of_k_is_not_above_V_of_k_for_every_k_other_than_j() -> None:
    b = bench(CausalVector, 1, 2, 3, 4)
    b.say(1, "a")
    b.bring(1, 3)
    b.say(2, "b")
    b.bring(2, 3)
    b.say(3, "c")  # after a and b
    b.bring(3, 4)
    b.bring(1, 4)
    assert b.texts(4) == ["a"]  # one of two is not enough
    b.bring(2, 4)
    assert b.texts(4) == ["a", "b", "c"]


def test_a_chain_through_processes_that_never_met_is_kept() -> None:
    b = bench(CausalVector, 1, 2, 3, 4)
    b.say(1, "a")
    b.bring(1, 2)
    b.say(2, "b")
    b.lose(1, 3)
    b.step(3, *[p.receive for p in b.find(2, 3)])
    assert b.texts(3) == []  # 3 lacks a: it has not delivered b, and c does not depend on it
    b.say(3, "c")
    b.bring(3, 4)
    assert b.texts(4) == ["c"]


def test_vector_D1_a_sender_delivers_its_own_message_at_once_and_gets_no_copy() -> None:
    # E-C6: with the test of the slide on the own copy, V[i] + 1 never equals what was sent.
    b = bench(CausalVector, 1, 2)
    b.say(1, "m")
    assert b.texts(1) == ["m"]
    assert not b.find(dst=1)


def test_vector_D2_a_message_that_is_held_back_has_caused_nothing_yet() -> None:
    # E-C5: 3 *received* b before it sent c. Counting it would make c wait at 4 for b, and b for a.
    b = bench(CausalVector, 1, 2, 3, 4)
    b.say(1, "a")
    b.bring(1, 2)
    b.say(2, "b")
    b.bring(2, 3)
    assert (V(b, 3), b.texts(3)) == ([0, 0, 0, 0], [])
    b.say(3, "c")
    assert b.find(3, 4)[0].header == Stamped((0, 0, 1, 0), 0)
    b.bring(3, 4)
    assert b.texts(4) == ["c"]


def test_vector_D3_a_repeat_is_dropped_delivered_or_held_back() -> None:
    b = bench(CausalVector, 1, 2)
    b.say(1, "a", "b")
    b.repeat(*b.find(text="b"), *b.find(text="b"))
    b.repeat(*b.find(text="a"))
    b.carry()
    assert b.texts(2) == ["a", "b"]
    assert V(b, 2) == [2, 0]


def test_vector_D4_vectors_restart_at_0_in_each_view() -> None:
    b = bench(CausalVector, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 2)
    for p in (1, 2):
        b.step(p, Flush(G, ()), View(G, 2, (1, 2), 1, era=2))
    assert V(b, 1) == V(b, 2) == [0, 0]
    b.say(1, "b")
    assert b.find(1, 2, text="b")[0].header == Stamped((1, 0), 0)


def test_vector_D4_a_packet_of_another_view_never_meets_the_vectors_of_this_one() -> None:
    b = bench(CausalVector, 1, 2, 3)
    b.say(3, "old")
    b.step(1, Flush(G, ()), View(G, 2, (1, 2), 1, era=2))
    b.say(1, "new")
    b.bring(1, 2, text="new")  # overtakes the view
    b.bring(3, 1)
    assert b.texts(1) == ["new"]
    assert b.texts(2) == []
    b.step(2, Flush(G, ()), View(G, 2, (1, 2), 1, era=2))
    assert b.story(2) == ["123", "12", "new"]
    assert not b.faults


def test_a_flush_discards_what_depends_on_a_message_that_nobody_alive_has() -> None:
    b = bench(CausalVector, 1, 2, 3, 4)
    b.say(1, "a")  # reaches 2 only; 1 and 2 crash
    b.bring(1, 2)
    b.say(2, "b")  # depends on a; reaches 3
    b.bring(2, 3)
    b.say(2, "c")  # depends on both; reaches 4
    b.bring(2, 4, text="c")
    b.say(3, "d")  # depends on nothing
    union = (*b.machines[4].unstable(G), *b.machines[3].unstable(G))  # type: ignore[attr-defined]
    assert len(union) == 3
    for p in (3, 4):
        b.step(p, Flush(G, union), View(G, 2, (3, 4), 3, era=2))
    assert b.story(3) == b.story(4) == ["1234", "d", "34"]


def test_a_flush_delivers_in_causal_order_what_only_the_union_completes() -> None:
    b = bench(CausalVector, 4, 3, 2, 1)  # ids against the order of causes
    b.say(4, "a")
    b.bring(4, 3)
    b.say(3, "b")
    b.bring(3, 2)
    b.bring(4, 1)
    union = (*b.machines[2].unstable(G), *b.machines[1].unstable(G))  # type: ignore[attr-defined]
    for p in (1, 2):
        b.step(p, Flush(G, union), View(G, 2, (2, 1), 2, era=2))
    assert b.story(1) == b.story(2) == ["4321", "a", "b", "21"]


def test_a_vector_of_the_wrong_length_is_a_fault_and_harms_nothing() -> None:
    b = bench(CausalVector, 1, 2)
    before = b.machines[2].fingerprint()  # type: ignore[attr-defined]
    b.step(2, Receive(1, G, 1, Stamped((1,), 0), b"m"))
    b.step(2, Receive(1, G, 1, Stamped((1, 0, 0), 0), b"m"))
    assert [fault[2] for fault in b.faults] == [
        "a vector of 1 entries in a view of 2",
        "a vector of 3 entries in a view of 2",
    ]
    assert b.machines[2].fingerprint() == before  # type: ignore[attr-defined]


def test_a_number_far_ahead_is_a_fault_and_harms_nothing() -> None:
    b = bench(CausalVector, 1, 2, options=Options(max_held=5))
    before = b.machines[2].fingerprint()  # type: ignore[attr-defined]
    b.step(2, Receive(1, G, 1, Stamped((6, 0), 0), b"m"))
    assert len(b.faults) == 1
    assert b.machines[2].fingerprint() == before  # type: ignore[attr-defined]


def test_a_flush_discards_a_frame_whose_vector_has_the_wrong_length() -> None:
    b = bench(CausalVector, 1, 2)
    wrong = (Kept(1, 1, (), b"m"), Kept(1, 1, (1,), b"m"), Kept(1, 1, (1, 0, 0), b"m"))
    b.step(2, Flush(G, wrong), View(G, 2, (1, 2), 1, era=2))
    assert b.story(2) == ["12", "12"]
