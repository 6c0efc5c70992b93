"""TOTAL of JavaGroups (003). Process 1 is the first of the view, and so the sequencer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from machines import Bench, G, bench
from ordercast.core.events import Consumed, Cut, Flush, Kept, Receive, View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited
from ordercast.machinery.sequencer_headers import Accepted, Status
from ordercast.machinery.total_headers import (
    Bcast,
    CumSeqAck,
    NewView,
    NewViewAck,
    Request,
    Resend,
)
from ordercast.protocols.javagroups import JavaGroupsTotal

PROMPT = Options(ack_every=1)


def group(*members: int, options: Options | None = None) -> Bench:
    """A group in its first view; all know where the numbers begin."""
    b = bench(JavaGroupsTotal, *members, options=options)
    b.carry()
    return b


def machine(b: Bench, p: int) -> JavaGroupsTotal:
    found = b.machines[p]
    assert isinstance(found, JavaGroupsTotal)
    return found


def union(b: Bench, survivors: Iterable[int]) -> tuple[Kept, ...]:
    """What the survivors hold together, as the leader of a flush makes it."""
    frames: dict[tuple[int, int], Kept] = {}
    for kept in (kept for p in survivors for kept in machine(b, p).unstable(G)):
        key = (kept.origin, kept.n)
        frames[key] = JavaGroupsTotal.better(frames.get(key, kept), kept)
    return tuple(frames.values())


def next_view(b: Bench, *members: int, guests: tuple[int, ...] = ()) -> None:
    """A flush over all who live, and the next view; what is under way is of the old one."""
    survivors = [p for p in b.machines if G in machine(b, p).views]
    frames = union(b, survivors)
    view = View(G, 2, members, members[0], 2, guests=guests)
    for p in b.machines:
        flush = (Flush(G, frames),) if p in survivors and machine(b, p).role == "member" else ()
        b.step(p, Cut(flush, (view,)))


# -- the source -----------------------------------------------------------------------------------


def test_the_sequencer_is_the_first_listed_member_whoever_leads_the_view() -> None:
    b = bench(JavaGroupsTotal, 2, 3, leader=1)
    b.say(3, "m")
    assert [packet.dst for packet in b.find(3, header=Request)] == [2]
    b.settle()
    assert b.texts(2) == b.texts(3) == ["m"]
    assert b.log[1] == []


def test_messages_are_passed_up_in_the_order_of_their_sequence_ids() -> None:
    b = group(1, 2, 3)
    b.say(2, "m1")
    b.say(3, "m2")
    b.bring(3, 1, Request)
    b.bring(2, 1, Request)
    b.arrive(*reversed(b.find(1, 2, Bcast)))
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m2", "m1"]] * 3


def test_a_sender_delivers_its_own_message_only_in_its_place_of_the_order() -> None:
    b = group(1, 2)
    b.say(2, "m")
    assert b.texts(2) == []
    b.say(1, "first")
    b.settle()
    assert b.texts(2) == ["first", "m"]


def test_a_sequence_id_that_was_passed_up_or_is_in_the_queue_is_discarded() -> None:
    b = group(1, 2)
    b.say(1, "a", "b")
    first, second = b.find(1, 2, Bcast)
    b.repeat(second, second)
    b.arrive(first)
    b.repeat(first, second)
    assert b.texts(2) == ["a", "b"]
    b.settle()
    assert b.texts(2) == ["a", "b"]


def test_a_missing_sequence_id_is_asked_for_by_itself() -> None:
    b = group(1, 2)
    b.say(1, "a", "b", "c")
    b.lose(1, 2, text="b")
    b.bring(1, 2, Bcast)
    b.ring(2, "resend")
    assert [packet.header for packet in b.find(2, 1, Resend)] == [Resend(2)]
    b.settle()
    assert b.texts(2) == ["a", "b", "c"]


def test_a_group_of_one_needs_nobody() -> None:
    b = group(1)
    b.say(1, "a")
    assert b.texts(1) == ["a"]
    b.settle()
    assert b.stable[1] == 1


# -- departures -----------------------------------------------------------------------------------


def test_javagroups_D1_a_lost_request_is_repeated_with_the_same_n() -> None:
    b = group(1, 2)
    b.say(2, "m")
    b.lose(2, 1)
    b.ring(2, "retry")  # the first look
    b.ring(2, "retry")  # nothing moved in a whole period
    assert b.find(2, 1, Request(1, 1))
    b.settle()
    assert b.texts(1) == b.texts(2) == ["m"]


def test_javagroups_D2_a_repeat_is_answered_with_the_number_it_has_and_gets_no_second_one() -> None:
    b = group(1, 2, 3)
    b.say(2, "m")
    request = b.find(2, 1)[0]
    b.arrive(request)
    b.lose(1, 2)
    b.repeat(request)
    assert [(packet.dst, packet.header) for packet in b.find(1, 2)] == [(2, Bcast(1, 2, 1, 0))]
    b.settle()
    assert [b.texts(p) for p in (1, 2, 3)] == [["m"]] * 3


def test_javagroups_D3_requests_that_overtake_each_other_are_numbered_in_the_order_of_n() -> None:
    b = group(1, 2)
    b.say(2, "m1", "m2")
    b.bring(2, 1, text="m2")
    assert not b.find(1, header=Bcast)
    [waiting] = machine(b, 1).held_back()
    assert waiting.awaits == (Awaited("frame", G, 2, 1),)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["m1", "m2"]


def test_javagroups_D3_a_sequencer_that_has_just_come_needs_no_history_of_the_senders() -> None:
    b = group(1, 2)
    b.say(2, "m1", "m2")
    b.settle()
    b.machines[3] = JavaGroupsTotal(3)
    b.log[3], b.timers[3] = [], {}
    b.crash(1)
    next_view(b, 3, 2)  # as after a merge: the first member is new to 2
    b.say(2, "m3")
    assert b.find(2, 3, Request(3, 3))
    b.settle()
    assert (b.texts(2), b.texts(3)) == (["m1", "m2", "m3"], ["m3"])


def test_javagroups_D4_a_lost_suffix_is_noticed_by_the_status_of_an_idle_sequencer() -> None:
    b = group(1, 2)
    b.say(1, "a")
    b.lose(1, 2)
    b.ring(1, "behind")
    assert b.find(1, 2, Status(1, 0, 0))
    b.settle()
    assert b.texts(2) == ["a"]


def test_javagroups_D5_a_broadcast_before_NEW_VIEW_is_queued_and_NEW_VIEW_keeps_it() -> None:
    b = bench(JavaGroupsTotal, 1, 2)
    b.say(1, "a")
    b.bring(1, 2, Bcast)
    assert b.texts(2) == []
    assert machine(b, 2).held_back()[0].awaits == (Awaited("first", G, 1, 0),)
    b.bring(1, 2, NewView)
    assert b.texts(2) == ["a"]


def test_javagroups_D5_a_lost_NEW_VIEW_is_repeated_until_it_is_acknowledged() -> None:
    b = bench(JavaGroupsTotal, 1, 2, 3)
    b.lose(1, 2, NewView)
    b.carry()
    b.ring(1, "status")
    b.lose(1, 2, NewView)
    b.ring(1, "status")
    b.bring(1, 2, NewView)
    b.lose(2, 1, NewViewAck)
    b.ring(1, "status")
    assert [(packet.dst, packet.header) for packet in b.flight] == [(2, NewView(1))]
    b.settle()
    b.say(1, "a")
    b.settle()
    assert b.texts(2) == ["a"]


def test_javagroups_D5_a_second_copy_of_NEW_VIEW_changes_nothing() -> None:
    b = bench(JavaGroupsTotal, 1, 2)
    copy = b.find(1, 2, NewView)[0]
    b.carry()
    b.say(1, "a")
    b.carry()
    b.repeat(copy)
    b.say(1, "b")
    b.settle()
    assert b.texts(2) == ["a", "b"]


def test_javagroups_D6_a_packet_of_an_older_view_is_void() -> None:
    b = group(1, 2)
    b.say(2, "m")
    copy = b.find(2, 1)[0]
    b.settle()
    next_view(b, 1, 2)
    b.repeat(copy)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["m"]


def test_javagroups_D6_a_packet_of_a_view_to_come_waits_for_it() -> None:
    b = group(1, 2)
    b.step(1, Cut((Flush(G, ()),), (View(G, 2, (1, 2), 1, 2),)))
    b.say(1, "new")
    b.carry()
    assert b.texts(2) == []
    b.step(2, Cut((Flush(G, ()),), (View(G, 2, (1, 2), 1, 2),)))
    b.settle()
    assert b.story(2) == ["12", "12", "new"]


def test_javagroups_D7_what_one_survivor_has_all_deliver_before_the_next_view() -> None:
    b = group(1, 2, 3)
    b.say(1, "a", "b")
    b.bring(1, 2, text="a")
    b.bring(1, 3, text="b")
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)
    b.settle()
    assert b.story(2) == b.story(3) == ["123", "a", "b", "23"]


def test_javagroups_D7_what_lies_behind_a_gap_is_discarded() -> None:
    b = group(1, 2, 3)
    b.say(1, "a", "b")
    b.bring(1, 3, text="b")
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)
    b.settle()
    assert b.story(2) == b.story(3) == ["123", "23"]


def test_javagroups_D7_a_message_without_a_number_is_requested_again_under_the_same_n() -> None:
    b = group(1, 2, 3)
    b.say(3, "m1", "m2")
    b.bring(3, 1, text="m1")
    b.bring(1, 2, text="m1")  # 3 does not get it: its sender learns of the number by the flush
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)
    assert [packet.header for packet in b.find(3, 2, Request)] == [Request(2, 2)]
    b.settle()
    assert b.story(2) == b.story(3) == ["123", "m1", "23", "m2"]


def test_javagroups_D7_a_survivor_that_missed_NEW_VIEW_learns_the_first_number_by_the_flush() -> (
    None
):
    b = bench(JavaGroupsTotal, 1, 2, 3)
    b.lose(1, 3, NewView)
    b.say(1, "a")
    b.bring(1, 2)
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)
    b.settle()
    assert b.story(2) == b.story(3) == ["123", "a", "23"]


def test_javagroups_D7_where_no_report_tells_the_first_number_nobody_delivers() -> None:
    # 2 knows it and has nothing; 3 has "a" and cannot know that nothing is missing before it.
    b = bench(JavaGroupsTotal, 1, 2, 3)
    b.bring(1, 2, NewView)
    b.say(1, "a")
    b.bring(1, 3, text="a")
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)
    b.settle()
    assert b.story(2) == b.story(3) == ["123", "23"]


def test_javagroups_D7_of_two_reports_of_a_frame_the_one_that_tells_more_counts() -> None:
    bare, vague, exact = (Kept(3, 1, stamp, b"m") for stamp in ((), (4, 0), (4, 2)))
    for less, more in ((bare, vague), (vague, exact), (bare, exact)):
        assert JavaGroupsTotal.better(less, more) == JavaGroupsTotal.better(more, less) == more


def test_javagroups_D7_nothing_is_said_in_a_view_of_what_was_consumed_before_it() -> None:
    b = group(1, 2, 3)
    b.say(1, "a", "b")
    b.bring(1, 2, Bcast)
    b.bring(1, 3, text="a")  # the timer of its acknowledgement runs
    b.crash(1)
    b.flight.clear()
    next_view(b, 2, 3)  # the flush delivers "b" at 3
    b.lose(2, 3, NewView)
    b.ring(3, "ack")
    assert b.flight == []
    b.settle()
    assert b.texts(3) == ["a", "b"]


def test_javagroups_D7_what_an_application_takes_late_counts_for_no_number_of_the_new_view() -> (
    None
):
    b = Bench({p: JavaGroupsTotal(p, Options(ack_every=1, driver_consumes=True)) for p in (1, 2)})
    b.step(1, View(G, 1, (1,), 1))
    b.step(2, View(G, 1, (2,), 2))
    b.say(2, "x", "y")
    for p in (1, 2):
        b.step(p, Cut((Flush(G, machine(b, p).unstable(G)),), (View(G, 2, (1, 2), 1, 2),)))
    b.say(1, "a")
    b.carry()
    b.step(1, Consumed(G, 1))
    b.step(2, Consumed(G, 2))  # "x" and "y", which had the numbers 1 and 2
    b.carry()
    assert b.stable == {1: 0, 2: 2}
    b.step(2, Consumed(G, 1))
    b.settle()
    assert b.stable == {1: 1, 2: 2}


def test_a_stay_counts_anew() -> None:
    b = group(1, 2)
    b.say(2, "a")
    b.settle()
    next_view(b, 1)
    b.step(2, View(G, 3, (1, 2), 1, 3))
    b.step(1, Cut((Flush(G, ()),), (View(G, 3, (1, 2), 1, 3),)))
    b.say(2, "b")
    assert b.find(2, 1, Request(1, 1))
    b.settle()
    assert (b.texts(1), b.stable[2]) == (["a", "b"], 1)


def test_javagroups_D8_a_long_gap_is_asked_for_a_window_at_a_time() -> None:
    b = group(1, 2, options=Options(resend_window=2))
    b.say(1, "a", "b", "c", "d", "e")
    *lost, _ = b.find(1, 2, Bcast)
    for packet in lost:
        b.flight.remove(packet)
    b.bring(1, 2, Bcast)
    b.ring(2, "resend")
    assert [packet.header for packet in b.find(2, 1)] == [Resend(1), Resend(2)]
    b.bring(2, 1, Resend(1))
    b.bring(1, 2)
    assert [packet.header for packet in b.find(2, 1, Resend)] == [Resend(2), Resend(3)]
    b.settle()
    assert b.texts(2) == ["a", "b", "c", "d", "e"]


def test_javagroups_D9_after_a_merge_the_numbers_begin_where_the_new_sequencer_says() -> None:
    b = Bench({p: JavaGroupsTotal(p) for p in (1, 2)})
    b.step(1, View(G, 1, (1,), 1, 3))
    b.step(2, View(G, 1, (2,), 2, 8))
    b.say(2, "x", "y")
    for p in (1, 2):
        frames = machine(b, p).unstable(G)
        b.step(p, Cut((Flush(G, frames),), (View(G, 9, (1, 2), 1, 9),)))
    b.say(1, "a")
    b.say(2, "b")
    b.settle()
    assert (b.story(1), b.story(2)) == (["1", "12", "a", "b"], ["2", "x", "y", "12", "a", "b"])
    assert machine(b, 1).queue.R == machine(b, 2).queue.R == 2


def test_javagroups_D10_the_history_goes_when_the_applications_of_all_have_taken_it() -> None:
    options = Options(ack_every=1, driver_consumes=True)
    b = group(1, 2, options=options)
    b.say(1, "a")
    b.carry()
    b.step(1, Consumed(G, 1))
    assert machine(b, 1).holdings(G).history == 1
    b.step(2, Consumed(G, 1))
    b.settle()
    assert b.stable[1] == 1
    assert [machine(b, p).holdings(G).kept for p in (1, 2)] == [0, 0]
    assert machine(b, 1).holdings(G).history == 0


def test_javagroups_D10_a_lost_acknowledgement_is_repeated_by_who_sent_it() -> None:
    b = group(1, 2, options=PROMPT)
    b.say(1, "a")
    b.bring(1, 2, Bcast)
    b.lose(2, 1, CumSeqAck(1))
    b.ring(2, "repeat")
    b.bring(2, 1, CumSeqAck(1))
    assert machine(b, 1).holdings(G).history == 0


def test_javagroups_D10_an_acknowledgement_that_is_under_way_is_not_sent_again_for_a_STATUS() -> (
    None
):
    b = group(1, 2, options=PROMPT)
    b.say(1, "a")
    b.bring(1, 2, Bcast)
    b.ring(1, "behind")
    b.bring(1, 2, Status(1, 0, 0))  # it crossed with the acknowledgement
    assert len(b.find(2, 1, CumSeqAck(1))) == 1


def test_javagroups_D10_the_sequencer_waits_longer_for_acknowledgements_that_come_late() -> None:
    b = group(1, 2, options=PROMPT)
    b.say(1, "a")
    b.bring(1, 2, Bcast)
    first = b.timers[1][G, "behind"]
    b.ring(1, "behind")
    assert b.timers[1][G, "behind"] == 2 * first
    b.carry()  # the acknowledgement was not lost, the line is slow
    b.ring(1, "behind")
    b.say(1, "b")
    assert b.timers[1][G, "behind"] == 2 * first


def test_javagroups_D10_a_lost_last_word_on_what_is_stable_is_asked_for() -> None:
    b = group(1, 2, options=PROMPT)
    b.say(2, "a")
    b.carry()
    b.ring(1, "status")
    b.lose(1, 2, Status)
    assert b.stable[2] == 0
    b.settle()
    assert b.stable[2] == 1


def with_guest() -> Bench:
    """Members 1 and 2, guest 3."""
    b = Bench({p: JavaGroupsTotal(p) for p in (1, 2, 3)})
    for p in (1, 2, 3):
        b.step(p, View(G, 1, (1, 2), 1, guests=(3,)))
    b.carry()
    return b


def test_javagroups_D11_a_guest_is_told_how_far_its_frames_have_come() -> None:
    b = with_guest()
    b.say(3, "a")
    b.bring(3, 1)
    assert [packet.header for packet in b.find(1, 3)] == [Accepted(1, 0)]
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    assert b.log[3] == []
    assert b.stable[3] == 1


def test_javagroups_D11_what_a_guest_said_is_delivered_by_the_flush_once() -> None:
    b = with_guest()
    b.say(3, "a", "b")
    b.bring(3, 1, text="a")
    b.bring(1, 2, text="a")
    b.flight.clear()  # the guest does not know that "a" has a number, and "b" has none
    next_view(b, 1, 2, guests=(3,))
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]
    assert b.stable[3] == 2
    b.say(3, "c")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b", "c"]


def test_javagroups_D11_a_guest_that_becomes_a_member_goes_on_counting() -> None:
    b = with_guest()
    b.say(3, "a")
    b.flight.clear()
    next_view(b, 1, 2, 3)
    b.say(3, "b")
    b.settle()
    assert (b.story(1), b.story(3)) == (["12", "a", "123", "b"], ["123", "b"])


# -- what no honest peer says ---------------------------------------------------------------------


SEQUENCER, MEMBER = 1, 2


@pytest.mark.parametrize(
    ("at", "src", "header", "reason"),
    [
        (MEMBER, 3, Bcast(1, 1, 1, 0), "speaks as the sequencer"),
        (MEMBER, SEQUENCER, Bcast(1, MEMBER, 1, 0), "which was not sent yet"),
        (MEMBER, 1, Bcast(1, 9, 1, 0), "not in the view"),
        (MEMBER, 1, Bcast(99, 1, 1, 0), "max_held"),
        (MEMBER, 1, Bcast(0, 1, 1, 5), "called stable"),
        (MEMBER, 1, NewView(7), "begin with 1"),
        (MEMBER, 1, NewView(0), "begin with 1"),
        (MEMBER, 3, Request(1, 1), "came to 2"),
        (MEMBER, 1, Accepted(0, 0), "to a guest"),
        (SEQUENCER, 2, Request(1, 2), "begins with 2"),
        (SEQUENCER, 2, Request(99, 1), "max_held"),
        (SEQUENCER, 2, CumSeqAck(5), "only 0 were given"),
        (SEQUENCER, 2, Resend(5), "only 0 were given"),
    ],
)
def test_what_cannot_be_is_a_fault(at: int, src: int, header: msgspec.Struct, reason: str) -> None:
    b = group(1, 2, 3, options=Options(max_held=10))
    before = machine(b, at).fingerprint()
    out = b.step(at, Receive(src, G, 1, header, b"m"))
    assert [(peer, reason in said) for peer, said in out.faults] == [(src, True)]
    assert out.deliveries == []
    if not isinstance(header, Request):
        assert machine(b, at).fingerprint() == before


def test_frames_of_a_flush_that_cannot_be_are_refused() -> None:
    b = group(1, 2, options=Options(max_held=10))
    good = Kept(1, 1, (1, 1), b"m")
    assert machine(b, 1).plausible(G, (1, 2), good)
    for field, value in (
        ("origin", 9), ("n", 0), ("stamp", (1,)), ("stamp", (0, 0)), ("stamp", (1, 2)),
        ("stamp", (5, 3)), ("stamp", (99, 1)),
    ):  # fmt: skip
        bad = msgspec.structs.replace(good, **{field: value})
        assert not machine(b, 1).plausible(G, (1, 2), bad), bad
