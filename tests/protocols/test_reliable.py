"""Reliable multicast, sentence by sentence (001, slides "Reliable Multicast (1)" and "(2)")."""

from __future__ import annotations

from machines import Bench, G, bench
from ordercast.core.events import Flush, Receive, View
from ordercast.core.protocol import Options
from ordercast.machinery.stability import Ack
from ordercast.protocols.reliable import Reliable, ReliableData


def machine(b: Bench, p: int) -> Reliable:
    found = b.machines[p]
    assert isinstance(found, Reliable)
    return found


def test_integrity_a_process_delivers_m_at_most_once() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.repeat(*b.flight)
    b.carry()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_validity_a_process_that_multicasts_m_delivers_m() -> None:
    b = bench(Reliable, 1, 2)
    b.say(1, "m")
    assert b.texts(1) == ["m"]


def test_agreement_what_one_correct_process_delivers_all_deliver() -> None:
    b = bench(Reliable, 1, 2, 3, 4)
    b.say(1, "m")
    b.lose(dst=3, text="m")
    b.lose(dst=4, text="m")
    b.crash(1)  # half-way
    b.carry()
    assert [b.texts(p) for p in (2, 3, 4)] == [["m"]] * 3


def test_if_q_is_not_p_then_it_multicasts_m_to_the_group() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    assert sorted(packet.dst for packet in b.find(2, text="m")) == [1, 3]


def test_the_sender_does_not_relay_its_own_message() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(2, 1, text="m")
    assert not b.find(1, 3, text="m")[1:]  # the first copy only


def test_a_message_that_was_received_before_is_not_relayed_again() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(1, 3)
    relays = len(b.find(text="m"))
    b.bring(2, 3, text="m")
    assert len(b.find(text="m")) == relays - 1


def test_each_message_is_sent_group_size_times_to_each_process_but_never_to_oneself() -> None:
    b = bench(Reliable, 1, 2, 3, 4, options=Options(ack_every=100))
    b.say(1, "m")
    copies = 0
    while b.find(text="m"):
        copies += 1
        b.arrive(b.find(text="m")[0])
    assert copies == 4 * 3  # n(n - 1)


def test_reliable_D1_relays_leave_in_the_step_that_delivers_and_leave_first() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    packet = b.find(1, 2)[0]
    out = b.step(2, packet.receive)
    # An Output's transmits are handed to the channel before its deliveries: see `Output`.
    assert isinstance(out.transmits[0][3], ReliableData)
    assert len(out.deliveries) == 1


def test_reliable_D2_what_is_in_order_takes_no_memory() -> None:
    b = bench(Reliable, 1, 2, options=Options(ack_every=1))
    b.say(1, *(str(i) for i in range(50)))
    b.settle()
    machine = b.machines[2]
    assert isinstance(machine, Reliable)
    assert machine.msgReceived[1].mark == 50
    assert machine.msgReceived[1].early == set()


def test_reliable_D2_a_frame_is_kept_for_a_flush_only_until_it_is_stable() -> None:
    b = bench(Reliable, 1, 2, 3, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(2, 1)
    assert [kept.payload for kept in b.machines[2].unstable(G)] == [b"m"]  # type: ignore[attr-defined]
    b.settle()
    assert all(b.machines[p].unstable(G) == () for p in (1, 2, 3))  # type: ignore[attr-defined]


def test_the_stable_mark_of_a_relay_is_not_believed() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.step(2, Receive(1, G, 1, ReliableData(1, 1, 0), b"m"))
    b.step(2, Receive(3, G, 1, ReliableData(1, 1, 1), b"m"))
    assert (b.texts(2), b.faults) == (["m"], [])
    assert len(b.machines[2].unstable(G)) == 1  # type: ignore[attr-defined]


def test_a_relay_that_names_a_process_outside_the_view_is_a_fault() -> None:
    b = bench(Reliable, 1, 2)
    before = b.machines[2].fingerprint()  # type: ignore[attr-defined]
    b.step(2, Receive(1, G, 1, ReliableData(9, 1, 0), b"m"))
    assert b.faults == [(2, 1, "a relay names process 9, which is not in the view")]
    assert b.machines[2].fingerprint() == before  # type: ignore[attr-defined]


def test_reliable_D3_the_first_copy_is_delivered_only_if_the_origin_brings_it() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.step(2, Receive(3, G, 1, ReliableData(1, 1, 0), b"forged"))
    assert (b.texts(2), b.flight) == ([], [])
    b.say(1, "m")
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_reliable_D3_once_the_origin_has_crashed_a_relay_is_enough() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.bring(1, 2)
    b.lose(1, 3)
    b.bring(2, 3, text="m")
    assert b.texts(3) == []
    b.crash(1)
    assert b.texts(3) == ["m"]


def test_acknowledgements_go_to_the_origin_not_to_the_relay() -> None:
    b = bench(Reliable, 1, 2, 3, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(2, 3, text="m")
    assert b.find(3, header=Ack) == []
    b.bring(1, 3, text="m")
    assert [packet.dst for packet in b.find(3, header=Ack)] == [1]


def test_survivors_of_a_flush_have_delivered_the_same_set() -> None:
    b = bench(Reliable, 1, 2, 3)
    b.say(1, "m")
    b.lose(dst=3)
    b.bring(dst=2)
    union = (*b.machines[2].unstable(G), *b.machines[3].unstable(G))  # type: ignore[attr-defined]
    for p in (2, 3):
        b.step(p, Flush(G, union), View(G, 2, (2, 3), 2, era=2))
    assert b.story(2) == b.story(3) == ["123", "m", "23"]
    b.carry()  # 2's relay is of the old era
    assert b.texts(3) == ["m"]


def test_a_relay_of_a_frame_that_this_process_never_sent_is_a_fault_of_its_sender() -> None:
    b = bench(Reliable, 1, 2)
    b.step(1, Receive(2, G, 1, ReliableData(1, 1, 0), b"forged"))
    assert b.texts(1) == []
    assert b.faults == [(1, 2, "a relay of our frame 1, which was never sent")]
