"""The sequencing service: contexts, and where it departs from its source."""

from __future__ import annotations

import pytest

from ordercast.core.events import Change, Receive
from ordercast.core.protocol import Options
from ordercast.core.waiting import NOBODY, Awaited
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Delivered, Fetch
from ordercast.protocols.sequencing.headers import AcceptedIn, AcceptIn, AskHeld, DoMulticast, Held
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import S, Served, T

causal = pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])
exact = pytest.mark.parametrize("protocol", [Sequencing, SequencingCausal, SequencingGlobal])
TOGETHER = {1: ((1, 2, 3), S), 2: ((1, 2, 4), S)}
APART = {1: ((1, 2, 3), S), 2: ((1, 4), T)}


@pytest.mark.parametrize("protocol", [Sequencing, SequencingHybrid])
def test_a_sequencer_sends_a_long_line_of_own_frames_after_a_pause(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), 1)})
    b.services[1].pause()
    for k in range(2000):
        b.tell(1, 1, str(k))
    b.services[1].out.clear()
    b.services[1].resume()
    assert len(b.services[1].out.deliveries) == 2000


@causal
def test_a_long_line_of_frames_that_waited_for_one_of_their_sender_is_numbered(
    protocol: type[SequencingService],
) -> None:
    groups = {1: ((1, 2), S), 2: ((1, 3), S), 3: ((1, 4), S)}
    b = Served(protocol, groups, options=Options(resilience=0))
    texts = [str(k) for k in range(600)]
    b.tell(1, 3, "first")
    for k, text in enumerate(texts):
        b.tell(1, 1 + k % 2, text)
    for text in (*texts, "first"):
        b.bring(1, S, text=text)
    assert [b.part(S, g).book.N for g in groups] == [300, 300, 1]


# -- contexts -----------------------------------------------------------------------------------


@exact
def test_two_groups_that_share_members_come_in_one_order(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, TOGETHER)
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(4, 2, "b")
    b.bring(4, S)
    assert b.context("b") == {1: 1}
    b.bring(S, 1, text="b")
    assert b.texts(1) == []
    assert [waiting.awaits for waiting in b.services[1].held_back()] == [
        (Awaited("number", 1, S, 1),)
    ]
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


@exact
def test_a_context_names_no_number_that_all_have_delivered(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, TOGETHER)
    b.tell(3, 1, "a")
    b.settle()
    b.tell(4, 2, "b")
    b.bring(4, S)
    assert b.context("b") == {}


@causal
def test_what_a_sender_saw_is_not_named_if_its_sequencer_knows_that_all_have_it(
    protocol: type[SequencingService],
) -> None:
    """4 is in group 2 alone: it does not hear what is stable in group 1."""
    b = Served(protocol, {1: ((1, 3), S), 2: ((1, 4), S)})
    b.tell(3, 1, "a")
    b.carry()
    b.tell(1, 2, "b")
    b.bring(1, S)
    assert b.context("b") == {1: 1}
    b.settle()
    assert dict(b.services[4].seen) == {1: 1, 2: 1}
    b.tell(4, 2, "c")
    b.bring(4, S)
    assert b.context("c") == {}


@exact
def test_a_group_that_shares_no_member_is_not_named(protocol: type[SequencingService]) -> None:
    b = Served(protocol, {1: ((1, 3), S), 2: ((2, 4), S)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(4, 2, "b")
    b.bring(4, S)
    assert b.context("b") == {}


@causal
def test_an_answer_in_another_group_waits_for_what_it_answers(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2, 4), T)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.bring(S, 2)
    b.tell(2, 2, "b")
    b.bring(2, T)
    b.bring(T, 1, text="b")
    assert b.texts(1) == []
    b.settle()
    assert b.texts(1) == ["a", "b"]


@causal
def test_what_was_heard_of_a_foreign_group_is_passed_on(
    protocol: type[SequencingService],
) -> None:
    """A ring: 2 tells 3 in a group that 1 is not in; 3 tells 1."""
    b = Served(protocol, {1: ((1, 2), S), 2: ((2, 3), T), 3: ((3, 1), T)})
    b.tell(2, 1, "a")
    b.bring(2, S)
    b.bring(S, 2)
    b.tell(2, 2, "b")
    b.bring(2, T)
    b.bring(T, 3, text="b")
    b.tell(3, 3, "c")
    b.bring(3, T, text="c")
    assert b.context("c")[1] == 1
    b.bring(T, 1, text="c")
    assert b.texts(1) == []
    b.settle()
    assert b.texts(1) == ["a", "c"]


@causal
def test_a_sender_forgets_numbers_that_all_have_delivered(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, APART)
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.bring(S, 1)
    b.tell(1, 2, "b")
    assert b.find(1, T, DoMulticast(1, ((1, 1),)))
    b.settle()
    b.tell(1, 2, "c")
    assert b.find(1, T, DoMulticast(2))
    b.settle()
    assert b.texts(4) == ["b", "c"]


@causal
def test_who_closed_a_group_still_speaks_after_what_it_saw_there(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.change(S, Change(1, left=(1,)))
    b.bring(S, 1)
    b.services[1].forget_group(1)
    b.tell(1, 2, "b")
    b.bring(1, T)
    b.bring(T, 2)
    assert b.texts(2) == []
    b.lose(1, S)
    b.go_on()
    assert b.texts(2) == ["a", "b"]


@causal
def test_a_guest_that_follows_a_view_does_not_take_numbers_before_it_for_delivered(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 5), T)}, guests={1: (5,)})
    b.tell(5, 1, "a")
    b.bring(5, S)
    b.bring(S, 2, text="a")
    b.ring(2, "ack", 1)
    b.bring(2, S)
    b.bring(S, 5)
    b.change(S, Change(1, left=(3,)))
    b.bring(S, 5, ViewEntry)
    b.tell(5, 2, "b")
    b.bring(5, T)
    b.bring(T, 1)
    assert b.texts(1) == []
    b.settle()
    assert b.texts(1) == ["a", "b"]


@causal
def test_a_late_word_to_a_guest_does_not_tell_that_later_frames_are_delivered(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 5), T)}, guests={1: (5,)})
    b.tell(5, 1, "a")
    b.settle()
    b.step(S, Receive(5, 1, 1, Delivered(0)))  # it asks how far its frames have come
    late = b.find(S, 5, AcceptedIn)
    assert late
    b.tell(5, 1, "b")
    b.bring(5, S)
    b.bring(S, 2, AcceptIn, "b")
    b.ring(2, "ack", 1)
    b.bring(2, S)
    b.arrive(*(packet for packet in b.find(S, 5) if packet not in late))
    b.arrive(*late)
    b.tell(5, 2, "c")
    b.bring(5, T)
    assert b.context("c") == {1: 2}
    b.settle()


@causal
def test_a_guest_that_becomes_a_member_speaks_after_what_it_said_before(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 5), T)}, guests={1: (5,)})
    b.tell(5, 1, "a")
    b.bring(5, S)
    b.change(S, Change(1, joined=(5,)))
    b.bring(S, 5, ViewEntry)
    b.tell(5, 2, "b")
    b.bring(5, T)
    b.bring(T, 1)
    assert b.texts(1) == []
    b.settle()
    assert b.texts(1) == ["a", "b"]


@causal
def test_a_guest_that_becomes_a_member_asks_on_for_frames_that_wait_at_the_sequencer(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 5), S), 2: ((1, 2), S)}, guests={2: (5,)})
    b.tell(5, 1, "a")
    b.tell(5, 2, "b")
    b.bring(5, S, text="b")
    b.change(S, Change(2, joined=(5,)))
    b.bring(S, 5, ViewEntry)
    assert list(b.part(5, 2).requests) == [1]
    b.settle()
    assert b.texts(1) == b.texts(5) == ["a", "b"]


@causal
def test_a_joiner_does_not_take_numbers_before_it_for_delivered(
    protocol: type[SequencingService],
) -> None:
    """5 was told of a by 2, comes into the group of a, and tells 1, which lacks a."""
    b = Served(protocol, {1: ((1, 2), S), 2: ((2, 5), T), 3: ((1, 5), T)})
    b.tell(2, 1, "a")
    b.bring(2, S)
    b.bring(S, 2)
    b.tell(2, 2, "b")
    b.bring(2, T, text="b")
    b.bring(T, 5)
    b.change(S, Change(1, joined=(5,)))
    b.bring(S, 5, ViewEntry)
    b.tell(5, 3, "c")
    b.bring(5, T, text="c")
    b.bring(T, 1)
    assert b.texts(1) == []
    b.settle()
    assert b.texts(1) == ["a", "c"]


# -- departures ---------------------------------------------------------------------------------


@causal
def test_sequencing_D1_a_receiver_that_is_further_than_the_context_says_delivers(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    b.tell(3, 1, "a", "b")
    b.bring(3, S)
    b.bring(S, 1)
    b.bring(S, 2, text="a")
    b.tell(2, 2, "c")
    b.bring(2, T)
    assert b.context("c") == {1: 1}
    b.bring(T, 1)
    assert b.texts(1) == ["a", "b", "c"]


@causal
def test_sequencing_D2_what_a_context_says_of_a_foreign_group_does_not_count_as_delivered(
    protocol: type[SequencingService],
) -> None:
    """3 is let into group 2 with number 1; a message that comes after number 2 of it comes first.
    With that number in its delivery context it would take number 2 for delivered."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    b.change(T, Change(2, joined=(3,)))
    b.bring(T, 1, ViewEntry)
    b.tell(2, 2, "a")
    b.bring(2, T)
    b.bring(T, 1)
    b.tell(1, 1, "b")
    b.bring(1, S)
    assert b.context("b") == {2: 2}
    b.bring(S, 3)
    assert b.texts(3) == []
    b.bring(T, 3, ViewEntry)
    assert b.texts(3) == []
    b.settle()
    assert b.texts(3) == ["a", "b"]


@causal
def test_sequencing_D3_a_frame_waits_at_the_sequencer_for_the_senders_frame_before_it(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, TOGETHER)
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    assert b.find(1, S, DoMulticast(1, (), ((1, 1),)), "b")
    b.bring(1, S, text="b")
    assert not b.find(header=AcceptIn)
    (waiting,) = b.services[S].held_back()
    assert waiting.awaits == (Awaited("frame", 1, 1, 1),)
    b.bring(1, S, text="a")
    assert b.context("b") == {1: 1}
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


@causal
def test_sequencing_D3_a_frame_waits_at_the_sender_if_another_numbers_the_one_before(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, APART)
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    assert not b.find(text="b")
    (waiting,) = b.services[1].held_up()
    assert waiting.awaits == (Awaited("order", 1, S, 1),)
    b.bring(1, S)
    b.bring(S, 1)
    assert b.find(1, T, DoMulticast(1, ((1, 1),)), "b")


@pytest.mark.parametrize("protocol", [Sequencing, SequencingHybrid])
def test_a_blocking_sender_waits_for_the_number_of_each_frame_in_any_group(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, TOGETHER, options=Options(resilience=0, blocking=True))
    b.tell(1, 1, "a", "b")
    b.tell(1, 2, "c")
    assert b.find(text="a") and not b.find(text="b") and not b.find(text="c")
    b.bring(1, S)
    b.bring(S, 1)
    assert b.find(text="b") and not b.find(text="c")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b", "c"]


def test_sequencing_D3_what_crosses_is_delivered() -> None:
    """Directed case C4: with SEQ(id) in contexts, members wait for each other for ever."""
    b = Served(SequencingHybrid, {1: ((1, 2), S), 2: ((1, 2), T)})
    b.tell(1, 1, "m1")
    b.tell(1, 2, "m2")
    b.tell(2, 2, "m3")
    b.tell(2, 1, "m4")
    b.settle()
    assert sorted(b.texts(1)) == sorted(b.texts(2)) == ["m1", "m2", "m3", "m4"]


def test_sequencing_D4_a_hybrid_context_names_what_the_sender_saw_and_nothing_else() -> None:
    b = Served(SequencingHybrid, TOGETHER)
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(4, 2, "b")
    b.bring(4, S)
    assert b.context("b") == {}
    b.bring(S, 1, text="b")
    assert b.texts(1) == ["b"]


@exact
def test_sequencing_D5_who_left_a_group_still_has_its_messages_in_one_order_with_others(
    protocol: type[SequencingService],
) -> None:
    """1 and 2 were in both groups. Then nobody is, but number 1 is still on its way to 2."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.bring(S, 1)
    b.change(S, Change(1, left=(1,)))
    b.change(S, Change(1, left=(2,)))
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    assert b.context("b") == {1: 3}
    b.bring(S, 2, text="b")
    assert b.texts(2) == []
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


@exact
def test_sequencing_D5_when_all_have_delivered_the_view_without_a_leaver_it_counts_no_more(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.change(S, Change(1, left=(1,)))
    b.change(S, Change(1, left=(2,)))
    b.settle()
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    assert b.context("b").get(1, 0) < 3, "a is number 3"


def test_sequencing_D6_a_body_that_no_member_has_comes_from_the_next_sequencer() -> None:
    b = Served(Sequencing, {1: ((1, 2), S)}, others=(T,))
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.lose(S, 1)
    b.lose(S, 2)
    b.move(1, S, T)
    b.bring(S)
    b.crash(S)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    assert not b.faults


@causal
def test_sequencing_D7_a_sequencer_speaks_of_its_numbers_when_another_member_has_them(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), 1), 2: ((1, 3), 1)}, options=Options())
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    assert not b.find(text="b")
    (waiting,) = b.services[1].held_up()
    assert waiting.awaits == (Awaited("copies", 1, NOBODY, 1),)
    b.bring(1, 2, AskHeld)
    assert not b.find(2, 1, Held)  # it has nothing yet
    b.bring(1, 2, AcceptIn)
    b.bring(2, 1, Held)
    assert b.context("b") == {1: 1}
    b.settle()


@causal
def test_sequencing_D7_a_sender_goes_on_elsewhere_when_it_has_its_own_frame_back(
    protocol: type[SequencingService],
) -> None:
    """The sequencer of both groups could die when only b had reached anybody: a would get another
    number, and come after b."""
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 3), S)}, options=Options())
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S, text="a")
    assert not b.find(text="b")
    (waiting,) = b.services[1].held_up()
    assert waiting.awaits == (Awaited("order", 1, S, 1),)
    b.bring(S, 1, AcceptIn)
    b.bring(1, S, text="b")
    assert b.context("b") == {1: 1}
    b.settle()


def test_sequencing_D7_a_guest_goes_on_elsewhere_when_a_member_has_its_frame() -> None:
    b = Served(
        SequencingHybrid, {1: ((1, 2), 1), 2: ((9, 3), 3)}, guests={1: (9,)}, options=Options()
    )
    b.tell(9, 1, "a")
    b.tell(9, 2, "b")
    b.bring(9, 1)
    b.bring(1, 9)
    assert not b.find(9, text="b")
    (waiting,) = b.services[9].held_up()
    assert waiting.awaits == (Awaited("copies", 1, NOBODY, 1),)
    b.bring(1, 2, AcceptIn)
    b.ring(2, "ack", 1)
    b.bring(2, 1)
    b.bring(1, 9)
    (packet,) = b.find(9, 3, text="b")
    assert packet.header == DoMulticast(1, ((1, 1),))
    b.settle()


# -- joining ------------------------------------------------------------------------------------


@exact
def test_a_joiner_holds_what_comes_after_numbers_of_the_group_it_joins(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.change(S, Change(2, joined=(3,)))
    b.tell(2, 2, "a")
    b.bring(2, S)
    b.tell(1, 1, "b")
    b.bring(1, S, text="b")
    b.bring(S, 3, AcceptIn, "b")
    assert b.texts(3) == []
    b.settle()
    assert b.texts(1) == b.texts(2) == b.texts(3) == ["a", "b"]


@exact
def test_a_joiner_that_is_not_let_in_goes_on(protocol: type[SequencingService]) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.tell(2, 2, "a")
    b.bring(2, S)
    b.open(3, 2)
    b.tell(1, 1, "b")
    b.bring(1, S, text="b")
    b.bring(S, 3, AcceptIn)
    assert b.texts(3) == []
    b.services[3].left_in.pop(2)
    b.services[3].forget_group(2)
    b.settle()
    assert b.texts(3) == ["b"]


@causal
def test_the_view_of_a_joiner_comes_after_all_that_its_group_came_after(
    protocol: type[SequencingService],
) -> None:
    """4 joins group 2, where it is told of group 1, in which it is, too."""
    b = Served(protocol, {1: ((1, 2, 4), S), 2: ((1, 2), T)})
    b.tell(2, 1, "a")
    b.bring(2, S)
    b.bring(S, 2)
    b.tell(2, 2, "b")
    b.bring(2, T)
    b.change(T, Change(2, joined=(4,)))
    (view, *_) = b.find(T, 1, ViewEntry)
    assert isinstance(view.header, ViewEntry)
    assert dict(view.header.context) == {1: 1}
    b.settle()
    assert b.texts(1) == ["a", "b"]
    assert b.texts(4) == ["a"]


# -- loss ---------------------------------------------------------------------------------------


def test_a_lost_number_that_only_a_context_tells_of_is_fetched() -> None:
    b = Served(Sequencing, TOGETHER)
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.lose(S, 1, text="a")
    b.tell(4, 2, "b")
    b.bring(4, S)
    b.bring(S, 1, text="b")
    b.ring(1, "gap", 1)
    assert b.find(1, S, Fetch(1, 1))
    b.settle()
    assert b.texts(1) == ["a", "b"]


def test_a_sequencer_counts_what_was_ordered_and_not_who_departed() -> None:
    """The coordinator counts its orders: if the counts differ, a leaver goes on to count there."""
    b = Served(Sequencing, TOGETHER, others=(5,))
    b.step(S, Change(1, joined=(5,)))
    b.step(S, Change(1, dead=(9,)))
    assert b.part(S, 1).changes == 1
    b.step(S, Change(1, left=(5,)))
    assert b.part(S, 1).changes == 2
