"""Basic multicast, sentence by sentence (001, slide "Basic Multicast")."""

from __future__ import annotations

from machines import G, bench
from ordercast.core.events import Flush, Kept, Multicast, Receive, View
from ordercast.core.protocol import Options
from ordercast.machinery.stability import Ack, Stable
from ordercast.protocols.basic import Basic, BasicData


def test_to_b_multicast_send_m_to_each_process_of_the_group() -> None:
    b = bench(Basic, 1, 2, 3)
    b.say(1, "m")
    assert sorted(packet.dst for packet in b.find(1, text="m")) == [2, 3]


def test_on_receive_of_m_at_p_b_deliver_m_to_p() -> None:
    b = bench(Basic, 1, 2, 3)
    b.say(1, "m")
    b.bring(dst=2)
    assert b.texts(2) == ["m"]
    assert b.texts(3) == []


def test_there_is_no_order() -> None:
    b = bench(Basic, 1, 2)
    b.say(1, "first", "second")
    b.bring(text="second")
    b.bring(text="first")
    assert b.texts(2) == ["second", "first"]


def test_a_sender_that_crashes_half_way_is_heard_by_some_only() -> None:
    b = bench(Basic, 1, 2, 3)
    b.say(1, "m")
    b.lose(dst=3, text="m")
    b.bring(dst=2)
    assert (b.texts(2), b.texts(3)) == (["m"], [])
    assert not b.find(2, 3, BasicData)  # nobody relays


def test_basic_D1_the_sender_delivers_at_once_and_sends_itself_no_packet() -> None:
    b = bench(Basic, 1, 2)
    out = b.step(1, Multicast(G, b"m"))
    assert b.texts(1) == ["m"]
    assert [to for to, *_ in out.transmits] == [(2,)]


def test_basic_D2_a_repeated_packet_is_recognised_by_its_number() -> None:
    b = bench(Basic, 1, 2)
    b.say(1, "same", "same")  # two messages with the same text are two messages
    b.repeat(*b.flight)
    b.carry()
    assert b.texts(2) == ["same", "same"]


def test_basic_D3_one_acknowledgement_answers_many_frames() -> None:
    b = bench(Basic, 1, 2, options=Options(ack_every=4))
    b.say(1, *"abcdefgh")
    b.bring(1, 2, BasicData)
    assert [packet.header for packet in b.find(2, 1)] == [Ack(4), Ack(8)]


def test_basic_D3_fewer_frames_are_acknowledged_after_a_while() -> None:
    b = bench(Basic, 1, 2, options=Options(ack_every=4))
    b.say(1, "a")
    b.carry()
    assert b.stable[1] == 0
    b.ring(2, "ack")
    b.bring(2, 1, Ack(1))
    assert b.stable[1] == 1


def test_an_acknowledgement_speaks_for_all_frames_up_to_a_number_without_a_gap() -> None:
    b = bench(Basic, 1, 2, options=Options(ack_every=1))
    b.say(1, "a", "b")
    b.bring(text="b")
    assert [packet.header for packet in b.find(2, 1)] == [Ack(0)]
    b.bring(text="a")
    assert b.find(2, 1, Ack(2))


def test_the_stable_mark_travels_with_the_next_frame() -> None:
    b = bench(Basic, 1, 2, options=Options(ack_every=1))
    b.say(1, "a")
    b.carry()
    b.say(1, "b")
    assert b.find(1, 2, BasicData(2, 1))


def test_an_idle_sender_tells_the_stable_mark_once() -> None:
    b = bench(Basic, 1, 2, options=Options(ack_every=1))
    b.say(1, "a")
    b.carry()
    b.ring(1, "stable")
    b.bring(1, 2, Stable(1))
    assert not any(b.timers.values())
    assert b.machines[2].unstable(G) == ()  # type: ignore[attr-defined]


def test_all_survivors_deliver_the_union_of_a_flush() -> None:
    b = bench(Basic, 1, 2, 3)
    b.say(1, "to 2 only", "to 3 only")
    b.lose(dst=3, text="to 2 only")
    b.lose(dst=2, text="to 3 only")
    b.carry()
    union = {*b.machines[2].unstable(G), *b.machines[3].unstable(G)}  # type: ignore[attr-defined]
    for p in (2, 3):
        b.step(p, Flush(G, tuple(union)), View(G, 2, (2, 3), 2, era=2))
    assert set(b.story(2)) == set(b.story(3)) == {"123", "to 2 only", "to 3 only", "23"}
    assert b.story(2)[-1] == b.story(3)[-1] == "23"


def test_own_frames_of_a_view_that_ended_are_reported_stable_and_counted_on() -> None:
    b = bench(Basic, 1, 2)
    b.say(1, "a", "b")
    b.step(1, Flush(G, ()), View(G, 2, (1,), 1, era=2))
    assert b.stable[1] == 2
    b.say(1, "c")
    assert b.stable[1] == 3


def test_a_later_stay_counts_its_own_frames_anew() -> None:
    b = bench(Basic, 1, 2)
    b.say(1, "a", "b")
    b.step(1, Flush(G, ()), View(G, 2, (2,), 1, era=2))
    assert b.stable[1] == 2
    b.step(1, View(G, 3, (1,), 1, era=3))
    b.say(1, "c")
    assert b.stable[1] == 1


def test_acknowledging_what_was_not_sent_is_a_fault_and_harms_nothing() -> None:
    b = bench(Basic, 1, 2)
    before = b.machines[1].fingerprint()  # type: ignore[attr-defined]
    b.step(1, Receive(2, G, 1, Ack(1)))
    assert b.faults == [(1, 2, "frame 1 is acknowledged, but only 0 were sent")]
    assert b.machines[1].fingerprint() == before  # type: ignore[attr-defined]


def test_calling_stable_what_was_not_acknowledged_is_a_fault_and_harms_nothing() -> None:
    b = bench(Basic, 1, 2)
    before = b.machines[2].fingerprint()  # type: ignore[attr-defined]
    b.step(2, Receive(1, G, 1, Stable(1)))
    b.step(2, Receive(1, G, 1, BasicData(1, 5), b"m"))
    assert [fault[:2] for fault in b.faults] == [(2, 1), (2, 1)]
    assert b.machines[2].fingerprint() == before  # type: ignore[attr-defined]


def test_a_number_far_ahead_is_a_fault_and_harms_nothing() -> None:
    b = bench(Basic, 1, 2, options=Options(max_held=10))
    before = b.machines[2].fingerprint()  # type: ignore[attr-defined]
    b.step(2, Receive(1, G, 1, BasicData(11, 0), b"m"))
    assert len(b.faults) == 1
    assert b.machines[2].fingerprint() == before  # type: ignore[attr-defined]


def test_a_flush_brings_nothing_twice() -> None:
    b = bench(Basic, 1, 2)
    b.say(1, "a")
    b.carry()
    b.step(2, Flush(G, (Kept(1, 1, (), b"a"),)))
    assert b.texts(2) == ["a"]
