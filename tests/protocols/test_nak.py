"""R-multicast over unreliable multicast (001, slide "Total Ordering (4)", which describes it)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import Bench, G, bench, change, with_view
from ordercast.core.events import Consumed, Crashed, Flush, Kept, Multicast, Receive, Timer, View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Waiting
from ordercast.machinery.ack_vectors import Answer, Status
from ordercast.protocols.nak import Nak, NakData, NakMulticast, Retx
from ordercast.simulation import Crash, SimulationConfig, Uniform, Workload, simulate
from ordercast.trace.oracle import verdicts

SLOW = Options(driver_consumes=True)


def machine(b: Bench, p: int) -> NakMulticast:
    found = b.machines[p]
    assert isinstance(found, NakMulticast)
    return found


def lose_all_but(b: Bench, dst: int, text: str) -> None:
    """Of this multicast only the copy to `dst` arrives."""
    b.bring(dst=dst, text=text)
    b.lose(text=text)


# -- the slide ----------------------------------------------------------------------------------


def test_a_message_is_one_multicast_to_all_others() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    out = b.step(1, Multicast(G, b"m"))
    assert [(to, header) for to, _, _, header, _ in out.transmits] == [
        ((2, 3), NakData(1, (1, 0, 0)))
    ]
    assert b.texts(1) == ["m"]


def test_acknowledgements_ride_on_the_messages_of_the_receiver() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a", "b")
    b.bring(1, 2)
    b.say(2, "c")
    assert b.find(2, 1)[0].header == NakData(1, (2, 1))
    b.carry()
    assert b.stable[1] == 2
    b.step(2, Timer(G, "ack"))  # nothing is left to say
    assert not b.find(2, 1, Status)


def test_a_receiver_with_nothing_to_say_acknowledges_after_a_few_frames_or_soon() -> None:
    b = bench(NakMulticast, 1, 2, options=Options(ack_every=3))
    b.say(1, "a", "b", "c")
    b.bring(1, 2)
    assert [p.header for p in b.find(2, 1)] == [Status(0, (3, 0))]
    b.say(1, "d")
    b.bring(1, 2)
    assert len(b.find(2, 1)) == 1
    b.ring(2, "ack")
    assert b.find(2, 1, Status(0, (4, 0)))


def test_a_gap_is_asked_for_after_a_while_and_filled_with_a_copy() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.lose(dst=2, text="a")
    b.lose(dst=2, text="b")
    b.bring(dst=2)
    assert (b.texts(2), b.find(2, header=Nak)) == ([], [])
    b.ring(2, "gap 1")
    assert [(p.dst, p.header) for p in b.find(2, header=Nak)] == [(1, Nak(1, (1, 2)))]
    b.bring(2, 1, Nak)
    assert [p.header for p in b.find(1, 2)] == [Retx(1, 1), Retx(1, 2)]
    b.bring(1, 2, Retx)
    assert b.texts(2) == ["a", "b", "c"]


@given(st.permutations(range(8)), st.sets(st.integers(0, 7)))
def test_whatever_is_lost_or_reordered_all_deliver_each_senders_messages_in_order(
    order: list[int], lost: set[int]
) -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, *"abcd")
    b.say(2, *"wxyz")
    packets = b.find(dst=3, header=NakData)
    for i in order:
        if i in lost:
            b.flight.remove(packets[i])
        else:
            b.arrive(packets[i])
    b.settle()
    for p in (1, 2, 3):
        assert [t for t in b.texts(p) if t in "abcd"] == list("abcd")
        assert [t for t in b.texts(p) if t in "wxyz"] == list("wxyz")
    assert not b.faults


def test_a_repeat_is_dropped_delivered_or_held_back() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a", "b")
    b.repeat(*b.find(text="b"), *b.find(text="b"))
    b.repeat(*b.find(text="a"))
    b.settle()
    assert b.texts(2) == ["a", "b"]


def test_a_held_back_frame_names_every_frame_it_waits_for() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a", "b", "c", "d")
    b.bring(text="c")
    b.bring(text="d")
    missing = (Awaited("frame", G, 1, 1), Awaited("frame", G, 1, 2))
    assert machine(b, 2).held_back() == [
        Waiting(G, 1, 3, missing, b"c"),
        Waiting(G, 1, 4, missing, b"d"),
    ]
    b.settle()
    assert machine(b, 2).held_back() == []


# -- departures ---------------------------------------------------------------------------------


def test_nak_D1_the_next_message_is_no_loss() -> None:
    # E-C2: "S > R means missed". S = R + 1 is what comes next.
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a")
    b.bring(1, 2)
    assert b.texts(2) == ["a"]
    assert (G, "gap 1") not in b.timers[2]


def test_nak_D1_a_number_that_another_acknowledged_is_a_loss() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a")
    lose_all_but(b, 2, "a")
    b.say(2, "b")
    b.bring(2, 3, text="b")  # with 2's acknowledgement of a
    assert b.texts(3) == ["b"]
    b.ring(3, "gap 1")
    assert b.find(3, 1, Nak(1, (1,)))


def test_nak_D2_a_lost_last_message_is_noticed_by_the_status_of_its_sender() -> None:
    # E-C3: no later message will ever show the gap.
    b = bench(NakMulticast, 1, 2)
    b.say(1, "last")
    b.lose(text="last")
    b.ring(1, "status")
    b.bring(1, 2, Status(1, (1, 0)))
    b.ring(2, "gap 1")
    b.carry()
    assert b.texts(2) == ["last"]


def test_nak_D2_status_goes_on_until_all_have_all_and_then_no_more() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "m")
    b.lose(text="m")
    for _ in range(3):  # each is lost
        b.ring(1, "status")
        b.lose(1, 2, Status)
    b.settle()
    assert b.texts(2) == ["m"]
    assert not any(b.timers.values())


def test_nak_D2_status_slows_down_while_nothing_is_new_and_no_further_than_the_limit() -> None:
    b = bench(NakMulticast, 1, 2, options=Options(status_ms=10))
    b.say(1, "m")
    delays = []
    for _ in range(9):
        delays.append(b.timers[1][G, "status"])
        b.ring(1, "status")
    assert delays == [10, 20, 40, 80, 160, 320, 640, 1280, 1600]  # 8 * retry_ms


def test_nak_D2_who_was_answered_late_gives_the_next_answer_as_long() -> None:
    b = bench(NakMulticast, 1, 2, options=Options(status_ms=10))
    b.say(1, "m")
    b.bring(1, 2)
    b.ring(2, "ack")
    for _ in range(3):
        b.ring(1, "status")  # the marks of 2 are on their way
    b.carry()
    b.ring(1, "status")
    b.say(1, "n")
    assert b.timers[1][G, "status"] == 80


def test_nak_D2_a_status_with_news_is_no_question() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "m")
    b.bring(1, 2)
    b.ring(2, "ack")
    b.bring(2, 1, Status(0, (1, 0)))  # 1 is at rest; what it has taken came to 2 with its message
    assert not b.find(header=Answer)


def test_nak_D2_one_at_rest_answers_a_status_and_nobody_answers_an_answer() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "m")
    b.bring(1, 2)
    b.ring(2, "ack")
    b.lose(2, 1)  # 2 knows that both have m; 1 does not
    b.ring(2, "status")
    assert not b.timers[2] and not b.flight
    b.ring(1, "status")
    b.bring(1, 2, Status)
    assert [p.header for p in b.flight] == [Answer(0, (1, 0))]
    b.bring(2, 1, Answer)
    b.ring(1, "status")
    assert not b.flight and not b.timers[1]
    assert b.stable[1] == 1


def test_nak_D3_survivors_get_the_message_of_a_dead_sender_from_the_only_one_who_has_it() -> None:
    # E-C4, without a view change: 1 crashes after a multicast that reached 4 alone.
    b = bench(NakMulticast, 1, 2, 3, 4)
    b.say(1, "m")
    lose_all_but(b, 4, "m")
    b.crash(1)
    b.ring(4, "ack")
    b.bring(4, 2, Status)  # m exists, and 4 has it
    b.ring(2, "gap 1")  # the first NAK went to the dead
    assert not b.find(2, header=Nak)
    b.ring(2, "gap 1")
    assert [(p.dst, p.header) for p in b.find(2, header=Nak)] == [(4, Nak(1, (1,)))]
    for _ in range(4):
        b.carry()
        for p in (3, 4):
            for g, name in list(b.timers[p]):
                b.ring(p, name, g)
    b.carry()
    assert [b.texts(p) for p in (2, 3, 4)] == [["m"]] * 3


def test_nak_D3_holders_are_asked_in_turn_each_time_later_and_no_later_than_the_limit() -> None:
    b = bench(NakMulticast, 1, 2, 3, 4, options=Options(gap_ms=100))
    b.say(1, "m")
    b.bring(dst=3)
    b.bring(dst=4)
    b.lose(dst=2, text="m")
    for p in (3, 4):
        b.ring(p, "ack")
        b.bring(p, 2, Status)
    b.step(2, Crashed(G, 1))
    asked, delays = [], []
    for _ in range(7):
        delays.append(b.timers[2][G, "gap 1"])
        b.ring(2, "gap 1")
        asked.append(b.find(2, header=Nak)[-1].dst)
    assert asked == [1, 3, 4, 1, 3, 4, 1]
    own_share = 12  # the second of four members
    assert [d - own_share for d in delays] == [100, 200, 400, 800, 1600, 3200, 3200]


def test_nak_D3_a_holder_is_asked_only_for_what_it_is_known_to_have() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 3, text="a")
    b.ring(3, "ack")
    b.bring(3, 2, Status)  # 3 has a
    b.bring(1, 2, text="c")  # so there is also b
    b.step(2, Crashed(G, 1))
    b.ring(2, "gap 1")
    assert b.find(2, 1, Nak(1, (1, 2)))
    b.ring(2, "gap 1")
    assert b.find(2, 3, Nak(1, (1,)))


def test_nak_D3_while_the_sender_lives_it_alone_is_asked_and_believed() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 3)
    b.ring(3, "ack")
    b.bring(3, 2, Status)  # 3 has it
    for _ in range(4):
        b.ring(2, "gap 1")
    assert {packet.dst for packet in b.find(2, header=Nak)} == {1}
    b.step(2, Receive(3, G, 1, Retx(1, 1), b"forged"))
    assert b.faults == [(2, 3, "it retransmits frame 1 of process 1, which lives")]
    assert b.texts(2) == []
    b.lose(text="a")
    b.settle()
    assert b.texts(2) == ["a"]


def test_nak_D3_of_a_dead_sender_others_are_believed() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.step(2, Crashed(G, 1), Receive(3, G, 1, Retx(1, 1), b"m"))
    assert (b.texts(2), b.faults) == (["m"], [])


def test_nak_D4_a_message_is_stored_until_all_have_acknowledged_it() -> None:
    b = bench(NakMulticast, 1, 2, 3, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(2, 1, Status)
    assert machine(b, 1).unstable(G) == (Kept(1, 1, (), b"m"),)
    assert b.stable[1] == 0
    b.settle()
    assert b.stable[1] == 1
    assert all(machine(b, p).unstable(G) == () for p in (1, 2, 3))


def test_nak_D4_acknowledged_is_what_the_application_took() -> None:
    b = bench(NakMulticast, 1, 2, options=SLOW)
    b.say(1, "a", "b")
    b.step(1, Consumed(G, 2))
    b.carry()
    assert (b.texts(2), b.stable[1]) == (["a", "b"], 0)
    b.step(2, Consumed(G, 1))
    b.ring(2, "ack")
    b.carry()
    assert b.stable[1] == 1
    b.step(2, Consumed(G, 1))
    b.settle()
    assert b.stable[1] == 2
    assert machine(b, 2).unstable(G) == ()


def test_nak_D5_a_flush_delivers_the_contiguous_part_of_the_union_and_discards_the_rest() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a", "b", "c", "d")
    b.bring(dst=2, text="a")
    b.bring(dst=2, text="d")  # held back at 2
    b.bring(dst=3, text="b")  # held back at 3; nobody alive has c
    union = (*machine(b, 3).unstable(G), *machine(b, 2).unstable(G))
    assert len(union) == 3
    for p in (2, 3):
        b.step(p, Flush(G, union), View(G, 2, (2, 3), 2, era=2))
    assert b.story(2) == b.story(3) == ["123", "a", "b", "23"]
    b.say(2, "e")
    assert b.find(2, 3, text="e")[0].header == NakData(1, (1, 0))
    b.bring(2, 3, text="e")
    assert b.texts(3) == ["a", "b", "e"]  # nothing is left of the old view


def test_nak_D5_own_messages_of_the_old_view_are_stable_and_the_count_goes_on() -> None:
    b = bench(NakMulticast, 1, 2, 3)
    b.say(1, "a")
    for p in (1, 2):
        union = machine(b, 1).unstable(G) if p == 1 else (Kept(1, 1, (), b"a"),)
        b.step(p, Flush(G, union), View(G, 2, (1, 2), 1, era=2))
    b.flight.clear()
    assert b.stable[1] == 1
    b.say(1, "b")
    b.settle()
    assert b.stable[1] == 2


def test_nak_D5_a_frame_of_the_old_view_that_is_taken_in_the_new_one_counts_for_nobody() -> None:
    b = bench(NakMulticast, 1, 2, options=SLOW)
    b.say(1, "a")
    b.carry()
    for p in (1, 2):
        b.step(p, Flush(G, machine(b, p).unstable(G)), View(G, 2, (1, 2), 1, era=2))
        b.step(p, Consumed(G, 1))
    assert machine(b, 2).C == {1: 0, 2: 0}
    b.say(1, "b")
    b.carry()
    b.step(2, Consumed(G, 1))
    assert machine(b, 2).C == {1: 1, 2: 0}


def test_a_leaver_says_no_more() -> None:
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a")
    b.bring(1, 2)
    b.step(2, Flush(G, ()), View(G, 2, (1,), 1, era=2))
    b.flight.clear()
    for name in ("ack", "status", "gap 1", "copies"):
        b.step(2, Timer(G, name))
    b.step(2, Multicast(G, b"late"))
    assert (b.flight, b.story(2)) == ([], ["12", "a", "1"])


# -- a guest ------------------------------------------------------------------------------------


def guest_bench() -> Bench:
    b = Bench({p: NakMulticast(p) for p in (1, 2, 3)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2), 1, guests=(3,)))
    return b


def test_a_guest_sends_recovers_its_losses_and_learns_that_all_have_its_frames() -> None:
    b = guest_bench()
    b.say(3, "a", "b")
    b.lose(dst=2)
    b.say(1, "c")
    assert not b.find(dst=3, text="c")
    b.settle()
    assert sorted(b.texts(1)) == sorted(b.texts(2)) == ["a", "b", "c"]
    assert (b.texts(3), b.stable[3], b.faults) == ([], 2, [])
    assert all(machine(b, p).unstable(G) == () for p in (1, 2, 3))


def test_a_frame_for_a_guest_is_a_fault() -> None:
    b = guest_bench()
    b.step(3, Receive(1, G, 1, NakData(1, (1, 0, 0)), b"m"))
    assert b.faults == [(3, 1, "a frame of process 1, which is not heard here")]


# -- a peer's mistakes, and limits ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (NakData(1, (0,)), "1 marks in a view of 2 senders"),
        (NakData(1, (0, 0, 0)), "3 marks in a view of 2 senders"),
        (Status(0, ()), "0 marks in a view of 2 senders"),
        (Answer(0, (0,)), "1 marks in a view of 2 senders"),
        (NakData(0, (0, 0)), "process 1 cannot have a frame 0: the last one here is 0"),
        (NakData(6, (0, 0)), "frame 6 of process 1 lies more than max_held above 0"),
        (Status(6, (0, 0)), "frame 6 of process 1 lies more than max_held above 0"),
        (Status(0, (6, 0)), "frame 6 of process 1 lies more than max_held above 0"),
        (NakData(1, (0, 1)), "frame 1 is acknowledged, but only 0 were sent"),
        (Status(0, (0, 1)), "frame 1 is acknowledged, but only 0 were sent"),
        (Retx(1, 6), "process 1 cannot have a frame 6: the last one here is 0"),
        (Retx(2, 1), "process 2 cannot have a frame 1: the last one here is 0"),
        (Retx(9, 1), "a frame of process 9, which is not heard here"),
        (Nak(9, (1,)), "it asks for frames of process 9, which is not heard here"),
    ],
)
def test_what_cannot_be_is_a_fault_and_harms_nothing(header: msgspec.Struct, words: str) -> None:
    b = bench(NakMulticast, 1, 2, options=Options(max_held=5))
    before = machine(b, 2).fingerprint()
    b.step(2, Receive(1, G, 1, header, b"m"))
    assert b.faults == [(2, 1, words)]
    assert machine(b, 2).fingerprint() == before
    assert b.texts(2) == []


@pytest.mark.parametrize(
    "header",
    [NakData(1, (0, 0)), Status(0, (0, 0)), Answer(0, (0, 0)), Nak(1, (1,)), Retx(2, 1)],
)
def test_a_leader_that_is_no_member_may_not_speak(header: msgspec.Struct) -> None:
    b = bench(NakMulticast, 1, 2, leader=0)
    b.step(1, Receive(0, G, 1, header, b"m"))
    assert b.faults == [(1, 0, "process 0 is not a member of the view")]


def test_a_nak_asks_for_at_most_a_batch() -> None:
    b = bench(NakMulticast, 1, 2, options=Options(fetch_batch=2))
    b.say(1, "a", "b", "c", "d")
    b.bring(text="d")
    b.ring(2, "gap 1")
    assert b.find(2, 1, Nak(1, (1, 2)))


def test_copies_are_limited_per_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.protocols.nak.MAX_COPIES", 3)
    b = bench(NakMulticast, 1, 2)
    b.say(1, "a", "b")
    b.flight.clear()
    for _ in range(3):
        b.step(1, Receive(2, G, 1, Nak(1, (1, 2))))
    assert len(b.find(1, 2, Retx)) == 3
    b.ring(1, "copies")
    b.step(1, Receive(2, G, 1, Nak(1, (1, 2))))
    assert len(b.find(1, 2, Retx)) == 5


@pytest.mark.parametrize("wrong", [Kept(9, 1, (), b"m"), Kept(1, 0, (), b"m"),
                                   Kept(1, 1, (4,), b"m"), Kept(2, 1, (), b"m"),
                                   Kept(1, 6, (), b"m")])  # fmt: skip
def test_a_flush_skips_what_some_member_made_up(wrong: Kept) -> None:
    b = bench(NakMulticast, 1, 2, options=Options(max_held=5))
    assert not machine(b, 2).plausible(G, (1, 2), wrong)
    b.step(2, Flush(G, (wrong,)), View(G, 2, (1, 2), 1, era=2))
    assert b.story(2) == ["12", "12"]


# -- on a network -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_survivors_agree_without_a_view_change_when_a_sender_crashes(seed: int) -> None:
    config = SimulationConfig(
        protocol=NakMulticast,
        members=4,
        messages=8,
        workload=Workload(reply=0.5, depth=2),
        loss=0.2,
        duplicate=0.1,
        delay=Uniform(500, 3000),
        faults=(Crash(1, at_ms=4, lose=0.7),),
        seed=seed,
        quiet_ms=60_000,  # four NAKs in a row may be lost, and are repeated ever more seldom
    )
    outcome = simulate(config)  # STATUS to the dead member never ends
    found = verdicts(outcome.events())
    assert outcome.first_faults == ()
    assert {found[name] for name in ("no_duplication", "no_creation", "fifo.group")} == {"ok"}
    logs: dict[str, set[str]] = {}
    for event in outcome.events():
        if event.kind == "deliver" and event.process is not None and event.message is not None:
            logs.setdefault(event.process, set()).add(event.message)
    (dead,) = {e.process for e in outcome.events() if e.kind == "crash"}
    assert len({frozenset(log) for p, log in logs.items() if p != dead}) == 1


def test_a_view_change_on_a_lossy_network_keeps_survivors_together() -> None:
    b = with_view(NakMulticast, 1, 2, 3, leader=1, network="N0")
    b.say(3, "m")
    lose_all_but(b, 2, "m")
    b.crash(3)
    change(b, NakMulticast, dead=(3,))
    assert b.story(1) == b.story(2) == ["123", "m", "12"]
