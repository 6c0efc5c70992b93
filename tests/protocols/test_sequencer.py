"""Total order by a sequencer, both ways of the body (001, slides "Total Ordering (1)" to "(4)").

Process 1 is the sequencer.
"""

from __future__ import annotations

import msgspec
import pytest

from machines import Bench, G, bench, change, outside
from ordercast.core.events import Consumed, Flush, Receive, View
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import Numbering
from ordercast.machinery.sequenced import SequencedProtocol
from ordercast.machinery.sequencer_headers import Accept, Delivered, Fetch, Status
from ordercast.protocols.sequencer_bb import Body, Order, SequencerBB
from ordercast.protocols.sequencer_pb import Request, SequencerPB

PROMPT = Options(ack_every=1)


class Way(msgspec.Struct, frozen=True):
    """How the body travels."""

    protocol: type[SequencedProtocol]
    ask: type[msgspec.Struct]  # brings a frame to the sequencer
    tell: type[msgspec.Struct]  # brings its number to the members


@pytest.fixture(
    params=[Way(SequencerPB, Request, Accept), Way(SequencerBB, Body, Order)], ids=["pb", "bb"]
)
def way(request: pytest.FixtureRequest) -> Way:
    chosen: Way = request.param
    return chosen


def machine(b: Bench, p: int) -> SequencedProtocol:
    found = b.machines[p]
    assert isinstance(found, SequencedProtocol)
    return found


def book(b: Bench, p: int) -> Numbering:
    sequencer = machine(b, p).sequencer
    assert sequencer is not None
    return sequencer.book


def survivors(b: Bench, *members: int, number: int = 2, era: int = 2) -> None:
    """The others are gone: flush, and a new era under the first survivor."""
    union = {kept for p in members for kept in machine(b, p).unstable(G)}
    b.crash(*(p for p in b.machines if p not in members))
    b.flight.clear()
    for p in members:
        b.step(p, Flush(G, tuple(union)), View(G, number, members, members[0], era))


# -- the slides ---------------------------------------------------------------------------------


def test_if_one_delivers_m2_before_m1_everybody_delivers_m2_before_m1(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m1")
    b.say(3, "m2")
    b.bring(3, 1, way.ask)
    b.bring(2, 1, way.ask)
    b.arrive(*reversed(b.find(1, 2)))
    b.carry()
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m2", "m1"]] * 3


def test_the_sequencer_numbers_its_own_messages_too(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "own")
    assert b.texts(1) == ["own"]
    b.carry()
    assert b.texts(2) == ["own"]


def test_a_sender_delivers_its_own_message_only_in_its_place_of_the_order(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m")
    assert b.texts(2) == []
    b.say(1, "first")
    b.carry()
    assert b.texts(2) == ["first", "m"]


def test_wait_until_S_is_the_next_number(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "a", "b")
    late = b.find(1, 2, text="a") + [p for p in b.find(1, 2) if getattr(p.header, "N", 0) == 1]
    b.arrive(*[p for p in b.find(1, 2) if p not in late])
    assert b.texts(2) == []
    b.arrive(*dict.fromkeys(late))
    assert b.texts(2) == ["a", "b"]


def test_the_group_may_have_its_sequencer_outside(way: Way) -> None:
    b = bench(way.protocol, 2, 3, leader=1)
    b.say(2, "a")
    b.say(3, "b")
    b.settle()
    assert b.texts(2) == b.texts(3)
    assert sorted(b.texts(2)) == ["a", "b"]
    assert b.log[1] == []
    assert book(b, 1).history == {}


def test_what_was_delivered_before_sending_comes_before_at_everybody(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "question")
    b.bring(2, 1)
    b.arrive(*b.find(1, 3))
    if way.protocol is SequencerBB:
        b.bring(2, 3, Body)
    assert b.texts(3) == ["question"]
    b.say(3, "answer")
    b.bring(3, 1, way.ask)
    b.arrive(*reversed(b.find(dst=2)))
    b.settle()
    assert b.texts(2) == ["question", "answer"]


# -- departures ---------------------------------------------------------------------------------


def test_sequencer_D1_a_senders_frames_are_numbered_in_the_order_of_sending(way: Way) -> None:
    # E-C7: the second request overtakes the first. Numbering in order of arrival breaks FIFO.
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m1", "m2")
    b.bring(2, 1, text="m2")
    assert not b.find(1, header=way.tell)
    b.bring(2, 1, text="m1")
    b.carry()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m1", "m2"]] * 3


def test_sequencer_D2_a_lost_request_is_repeated_with_the_same_n(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m")
    b.lose()
    b.ring(2, "retry")  # the first look
    b.ring(2, "retry")  # nothing moved in a whole period
    assert b.find(2, 1, way.ask(1))
    b.carry()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_sequencer_D2_a_repeat_gets_its_old_number_again_and_no_second_one(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m")
    request = b.find(2, 1)[0]
    b.repeat(request)
    b.lose(1, 2)  # the answer
    b.repeat(request)
    assert [p.header for p in b.find(1, 2)] == [Accept(1, 2, 1, 0)]
    b.carry()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_sequencer_D2_a_request_is_not_repeated_while_others_of_the_sender_get_through(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(2, "a")
    b.ring(2, "retry")
    b.carry()
    b.say(2, "b")
    b.lose()
    b.ring(2, "retry")
    assert not b.find(2, 1, way.ask)
    b.ring(2, "retry")
    assert b.find(2, 1, way.ask(2))


def test_sequencer_D3_a_gap_is_fetched_from_the_sequencer(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "a", "b", "c")
    for N in (1, 2):
        b.flight = [p for p in b.flight if getattr(p.header, "N", None) != N]
    b.carry()
    assert b.texts(2) == []
    b.ring(2, "gap")
    assert [p.header for p in b.find(2, 1, Fetch)] == [Fetch(1, 2)]
    b.carry()
    assert b.texts(2) == ["a", "b", "c"]


def test_sequencer_D3_a_lost_last_message_is_noticed_by_the_status_of_an_idle_sequencer(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "last")
    b.lose()
    b.ring(1, "behind")
    b.bring(1, 2, Status(1, 0, 0))
    b.ring(2, "gap")
    b.carry()
    assert b.texts(2) == ["last"]


def test_sequencer_D3_a_status_is_repeated_until_nobody_is_behind_and_then_no_more(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "m")
    for _ in range(3):
        b.lose()
        b.ring(1, "behind")
    b.settle()
    assert b.texts(2) == ["m"]
    assert not any(b.timers.values())


def test_sequencer_D3_a_fetch_asks_for_no_more_than_the_batch(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=Options(fetch_batch=2))
    b.say(1, *"abcde")
    b.lose()
    b.ring(1, "behind")
    b.carry()
    b.ring(2, "gap")
    assert [p.header for p in b.find(2, 1, Fetch)] == [Fetch(1, 2)]
    b.settle()
    assert b.texts(2) == list("abcde")


def test_sequencer_D4_an_entry_is_forgotten_when_every_member_has_reported_its_delivery(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, 3, options=PROMPT)
    b.say(1, "m")
    b.bring(dst=2)
    b.bring(2, 1, Delivered(1))
    assert list(book(b, 1).history) == [1]  # 3 has not
    b.carry()
    assert book(b, 1).history == {}
    assert book(b, 1).number_of == {}


def test_sequencer_D4_a_number_that_was_received_but_not_delivered_is_not_reported(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "a", "b")
    late = [p for p in b.flight if getattr(p.header, "N", None) == 1]
    b.arrive(*[p for p in b.flight if p not in late])
    assert not b.find(2, 1, Delivered)


def test_sequencer_D4_a_number_that_was_delivered_but_not_consumed_is_not_reported(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, options=Options(ack_every=1, driver_consumes=True))
    b.say(1, "a", "b")
    b.carry()
    assert b.texts(2) == ["a", "b"]
    assert machine(b, 2).queue.acked == 0
    b.step(2, Consumed(G, 1))
    assert b.find(2, 1, Delivered(1))


def test_sequencer_D4_a_lost_report_is_repeated_by_who_sent_it(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "m")
    b.bring(1, 2)
    b.lose(2, 1, Delivered)
    b.ring(2, "repeat")
    b.bring(2, 1, Delivered(1))
    assert book(b, 1).history == {}


def test_sequencer_D4_a_report_that_is_under_way_is_not_sent_again_for_a_status(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "m")
    b.bring(1, 2)
    b.ring(1, "behind")
    b.bring(1, 2, Status(1, 0, 0))  # it crossed with the report
    assert len(b.find(2, 1, Delivered)) == 1


def test_sequencer_D4_the_sequencer_waits_longer_for_reports_that_come_late(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "m")
    b.bring(1, 2)
    first = b.timers[1][G, "behind"]
    b.ring(1, "behind")
    assert b.timers[1][G, "behind"] == 2 * first
    b.carry()  # the report was not lost, the line is slow
    b.ring(1, "behind")
    b.say(1, "n")
    assert b.timers[1][G, "behind"] == 2 * first


def test_sequencer_D4_a_member_that_waits_for_a_slow_one_asks_ever_more_seldom(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3, options=Options(ack_every=1, driver_consumes=True))
    b.say(1, "m")
    b.carry()
    b.step(2, Consumed(G, 1))  # 1 and 3 take their time
    waits = []
    for _ in range(4):
        waits.append(b.timers[2][G, "repeat"])
        b.ring(2, "repeat")
        b.carry()
    assert waits == [200, 400, 400, 800]  # the first answer was news: it knows of the report


def test_sequencer_D3_a_number_that_is_known_only_for_a_moment_is_not_fetched(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "a", "b")
    first = [p for p in b.flight if getattr(p.header, "N", 0) == 1 or p.header == Body(1)]
    b.arrive(*[p for p in b.flight if p not in first])
    b.arrive(*first)
    b.say(1, "c", "d")
    b.arrive(*[p for p in b.flight if getattr(p.header, "N", 0) == 4 or p.header == Body(4)])
    assert machine(b, 2).queue.R == 2
    b.ring(2, "gap")  # started for number 1, which has come; 3 may be on its way
    assert not b.find(2, 1, Fetch)
    b.ring(2, "gap")
    assert [p.header for p in b.find(2, 1, Fetch)] == [Fetch(3, 3)]


def test_sequencer_D3_a_fetch_without_an_answer_is_repeated_ever_more_seldom(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=PROMPT)
    b.say(1, "a")
    b.lose()
    b.ring(1, "behind")
    b.bring(1, 2, Status)
    waits = []
    for _ in range(4):
        waits.append(b.timers[2][G, "gap"])
        b.ring(2, "gap")
    assert waits == [200, 200, 400, 800]
    b.settle()
    assert b.texts(2) == ["a"]


def test_sequencer_D2_a_request_without_an_answer_is_repeated_ever_more_seldom(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(2, "a")
    waits = []
    for _ in range(5):
        b.lose()
        waits.append(b.timers[2][G, "retry"])
        b.ring(2, "retry")
        if not b.flight:
            b.say(1, "keeps the bench busy")
    assert waits == [200, 200, 400, 800, 1600]


def test_sequencer_D5_the_first_number_is_1_and_R_is_the_last_one_delivered(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    assert machine(b, 2).queue.R == 0
    b.say(1, "m")
    assert b.find(1, 2, way.tell)[0].header.N == 1  # type: ignore[attr-defined]
    b.carry()
    assert machine(b, 2).queue.R == 1


def test_sequencer_D6_a_flush_ends_the_view_and_all_see_the_next_at_the_same_place(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "before")
    b.bring(2, 1)
    b.crash(3)
    change(b, way.protocol, dead=(3,))
    b.say(2, "after")
    b.bring(2, 1, text="after")
    b.arrive(*reversed(b.find(1, 2)))
    b.settle()
    assert b.story(1) == b.story(2) == ["123", "before", "12", "after"]


def test_sequencer_D6_a_joiner_knows_which_frames_were_numbered_before_it(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "old")
    b.carry()
    outside(b, 3, way.protocol)
    change(b, way.protocol, joined=(3,))
    b.carry()
    if way.protocol is SequencerBB:
        b.step(3, Receive(1, G, 2, Body(1), b"old"))  # a late body
        assert machine(b, 3).apart.bodies == {}  # type: ignore[attr-defined]
    assert machine(b, 3).done == {1: 1}


def test_sequencer_D6_a_leaver_gets_its_last_view_and_nothing_after(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    change(b, way.protocol, left=(3,))
    b.say(1, "after")
    b.settle()
    assert b.story(3) == ["123", "12"]
    assert b.story(2) == ["123", "12", "after"]
    assert not b.faults


def test_sequencer_D6_the_dead_are_not_waited_for(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3, options=PROMPT)
    b.say(1, "m")
    b.lose(dst=3)
    b.carry()
    assert b.stable[1] == 0
    b.crash(3)
    change(b, way.protocol, dead=(3,))
    b.settle()
    assert b.stable[1] == 1
    assert book(b, 1).history == {}


def test_sequencer_D6_the_sequencer_may_leave_the_group_and_come_back(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    b.say(1, "mine")
    b.settle()
    change(b, way.protocol, left=(1,))
    b.say(2, "alone")
    b.settle()
    change(b, way.protocol, joined=(1,))
    b.say(1, "back")
    b.say(2, "again")
    b.settle()
    assert b.story(1) == ["12", "mine", "2", "21", "back", "again"]
    assert b.story(2) == ["12", "mine", "2", "alone", "21", "back", "again"]
    assert b.stable[1] == 1  # of this stay


def test_sequencer_D6_a_frame_of_a_former_stay_that_comes_late_takes_no_number(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(3, "late")
    late = b.find(3, 1)
    b.flight.clear()
    change(b, way.protocol, left=(3,))
    b.carry()
    outside(b, 3, way.protocol)  # left, and starts afresh
    change(b, way.protocol, joined=(3,))
    b.carry()
    b.repeat(*late)
    b.say(3, "new")
    b.settle()
    assert b.texts(1) == b.texts(2) == b.texts(3) == ["new"]


# -- stability ----------------------------------------------------------------------------------


def test_a_sender_learns_that_all_have_delivered_its_frames(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "a", "b")
    b.carry()
    assert b.stable[2] == 0
    b.settle()
    assert b.stable[2] == 2
    assert machine(b, 2).unstable(G) == ()


def test_what_a_former_stay_left_untaken_holds_up_no_acknowledgement_of_the_next(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=Options(ack_every=1, driver_consumes=True))
    b.say(1, "a", "b")
    b.carry()
    change(b, way.protocol, left=(1,))
    b.carry()
    change(b, way.protocol, joined=(1,))
    b.carry()
    b.say(1, "c")
    b.carry()
    assert machine(b, 1).queue.taken < machine(b, 1).queue.R
    b.step(1, Consumed(G, 1))  # "c": of "a" and "b" nothing is ever reported
    assert machine(b, 1).queue.taken == machine(b, 1).queue.R
    b.step(2, Consumed(G, 3))
    b.settle()
    assert b.stable[1] == 1
    assert not b.faults


# -- the sequencer is gone: a flush ---------------------------------------------------------------


def test_survivors_of_the_sequencer_deliver_the_contiguous_part_of_what_they_hold_together(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(1, *"abcd")
    packets = {(p.dst, getattr(p.header, "N", None)): p for p in b.flight if p.header}
    if way.protocol is SequencerBB:
        b.bring(header=Body)
    b.arrive(packets[2, 1], packets[2, 4], packets[3, 2])  # nobody alive has number 3
    survivors(b, 2, 3)
    assert b.story(2) == b.story(3) == ["123", "a", "b", "23"]


def test_unnumbered_frames_are_asked_for_again_and_delivered_once(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "numbered")
    b.bring(2, 1)
    if way.protocol is SequencerBB:
        b.bring(2, 3)
    b.bring(1, 3)  # 2 does not know that its frame was delivered at 3
    b.say(2, "lost")
    b.say(3, "lost too")
    survivors(b, 2, 3)
    b.settle()
    assert b.texts(2) == b.texts(3)
    assert sorted(b.texts(2)) == ["lost", "lost too", "numbered"]
    assert b.texts(2)[0] == "numbered"


def test_a_request_of_the_old_era_is_void(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(3, "m")
    old = b.find(3)
    survivors(b, 2, 3)
    for packet in old:
        b.step(2, packet.receive)
    b.settle()
    assert b.texts(2) == b.texts(3) == ["m"]


def test_a_rejoiner_that_has_not_spoken_yet_is_heard_in_the_next_era(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(3, "first stay")
    b.settle()
    change(b, way.protocol, left=(3,))
    b.settle()
    outside(b, 3, way.protocol)
    change(b, way.protocol, joined=(3,))
    b.settle()
    survivors(b, 2, 3, number=4, era=4)
    b.say(3, "second stay")
    b.settle()
    assert b.texts(2) == ["first stay", "second stay"]


def test_who_leads_a_later_era_and_was_no_member_is_told_which_frames_are_old(way: Way) -> None:
    b = bench(way.protocol, 1, 2, leader=0)
    b.say(1, "old")
    b.settle()
    for p in (0, 1, 2):
        b.step(p, Flush(G, ()), View(G, 2, (1, 2), 0, era=2, last=((1, 1),)))
    b.say(1, "new")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["old", "new"]


def test_own_frames_delivered_in_the_old_era_are_reported_stable(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    b.say(2, "m")
    b.carry()
    assert b.stable[2] == 0
    survivors(b, 2, 3)
    assert b.stable[2] == 1


# -- peers that break the rules -----------------------------------------------------------------


def test_a_number_for_a_frame_that_its_origin_has_not_sent_is_refused_there(way: Way) -> None:
    """It would be delivered, and be the number of another frame later: its request would wait."""
    b = bench(way.protocol, 1, 2)
    number = Order(1, 2, 1, 0) if way.protocol is SequencerBB else Accept(1, 2, 1, 0)
    b.step(2, Receive(1, G, 1, number, b"m"))
    assert [fault[2] for fault in b.faults] == [
        "frame 1 of this process has number 1, and was not sent yet"
    ]
    assert b.texts(2) == []


def test_only_the_sequencer_may_speak_as_the_sequencer(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    before = machine(b, 2).fingerprint()
    forged = [
        Accept(1, 3, 1, 0),
        Status(1, 0, 0),
        *([Order(1, 3, 1, 0)] if way.protocol is SequencerBB else []),
    ]
    for header in forged:
        b.step(2, Receive(3, G, 1, header, b"m"))
    assert {fault[2] for fault in b.faults} == {"process 3 speaks as the sequencer, which is 1"}
    assert len(b.faults) == len(forged)
    assert machine(b, 2).fingerprint() == before


def test_only_the_sequencer_is_spoken_to_as_the_sequencer(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3)
    before = machine(b, 2).fingerprint()
    headers = [Fetch(1, 2), Delivered(0), *([Request(1)] if way.protocol is SequencerPB else [])]
    for header in headers:
        b.step(2, Receive(3, G, 1, header, b"m"))
    assert len(b.faults) == len(headers)
    assert machine(b, 2).fingerprint() == before


def test_reporting_the_delivery_of_what_was_not_numbered_is_a_fault(way: Way) -> None:
    b = bench(way.protocol, 1, 2)
    before = machine(b, 1).fingerprint()
    b.step(1, Receive(2, G, 1, Delivered(1)))
    assert b.faults == [(1, 2, "number 1 is acknowledged, but only 0 were given")]
    assert machine(b, 1).fingerprint() == before


def test_calling_stable_what_was_not_reported_is_a_fault_and_nothing_is_forgotten(
    way: Way,
) -> None:
    b = bench(way.protocol, 1, 2, options=Options(driver_consumes=True))
    b.say(1, "m")
    b.carry()
    b.step(2, Receive(1, G, 1, Status(1, 1, 0)))
    assert len(b.faults) == 1
    assert len(machine(b, 2).unstable(G)) == 1


def test_a_number_far_ahead_is_a_fault_and_harms_nothing(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=Options(max_held=5))
    before = machine(b, 2).fingerprint()
    b.step(2, Receive(1, G, 1, Accept(6, 1, 1, 0), b"m"))
    assert b.faults == [(2, 1, "number 6 lies more than max_held above 0")]
    assert machine(b, 2).fingerprint() == before


def test_a_status_far_ahead_is_a_fault_and_what_is_missing_is_asked_for(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=Options(max_held=5, fetch_batch=100))
    b.step(2, Receive(1, G, 1, Status(2**60, 0, 0)))
    assert b.faults == [(2, 1, f"number {2**60} lies more than max_held above 0")]
    assert machine(b, 2).queue.top == 5
    b.ring(2, "gap")
    assert [packet.header for packet in b.find(2, 1)] == [Fetch(1, 5)]


def test_a_fetch_of_anything_is_answered_with_what_there_is(way: Way) -> None:
    b = bench(way.protocol, 1, 2, 3, options=PROMPT)
    b.say(1, "a", "b")
    b.carry()
    b.say(1, "c")
    b.flight.clear()
    for first, last in ((-5, 99), (1, 2), (4, 9), (3, 1), (0, 0)):
        b.step(1, Receive(2, G, 1, Fetch(first, last)))
    assert [p.receive.payload for p in b.find(1, 2)] == [b"c"]
    assert not b.faults


def test_a_frame_far_ahead_of_its_predecessors_is_the_senders_fault(way: Way) -> None:
    b = bench(way.protocol, 1, 2, options=Options(max_held=2))
    for n in (2, 3, 2**60):
        b.step(1, Receive(2, G, 1, way.ask(n), b"m"))
    far = [(1, 2, f"frame {n} lies more than max_held above 0") for n in (3, 2**60)]
    assert b.faults == far
    assert [waiting.n for waiting in machine(b, 1).held_back()] == [2]


def test_a_member_is_small_enough_for_thousands_of_them() -> None:
    # From 30 attributes on, Python gives every object a table of names of its own: five times the
    # memory, and simulations of a thousand members lose a tenth of their speed.
    assert len(vars(SequencerPB(1))) < 30
