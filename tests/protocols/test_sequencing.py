"""The sequencing service: contexts, and where it departs from its source."""

from __future__ import annotations

import pytest

from ordercast.core.events import View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.headers import Accept, Ack, Answer, Fetch, Request
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


@causal
def test_a_long_line_of_frames_that_waited_for_one_of_their_sender_is_numbered(
    protocol: type[SequencingService],
) -> None:
    groups = {1: ((1, 2), S), 2: ((1, 3), S), 3: ((1, 4), S)}
    b = Served(protocol, groups)
    texts = [str(k) for k in range(600)]
    b.tell(1, 3, "first")
    for k, text in enumerate(texts):
        b.tell(1, 1 + k % 2, text)
    for text in (*texts, "first"):
        b.bring(1, S, text=text)
    assert [b.services[S].sequencer.books[g].N for g in groups] == [300, 300, 1]


# -- contexts -------------------------------------------------------------------------------------


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
    (waiting,) = b.services[1].held_back()
    assert Awaited("number", 1, S, 1) in waiting.awaits
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
    assert b.services[4].sender.context == {1: (1, 1), 2: (1, 1)}
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
def test_who_left_a_group_still_speaks_after_what_it_saw_there(
    protocol: type[SequencingService],
) -> None:
    """3 has not had a when 1 leaves, has it by the change, and 1 speaks of it elsewhere."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.bring(S, 1)
    coming = b.end({1: ((2, 3), S)})
    b.prepare(coming)
    b.fetch(coming)
    b.install(coming, S, 1, 3, T)
    b.services[1].forget_group(1)
    b.tell(1, 2, "b")
    b.bring(1, T)
    b.bring(T, 2, text="b")
    assert b.texts(2) == ["a", "b"]


@causal
def test_sequencing_D11_a_late_word_to_a_guest_does_not_lower_what_it_has_seen(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 5), T)}, guests={1: (5,)})
    b.tell(5, 1, "a", "b")
    b.bring(5, S)
    late = Answer(1, 1, 0)
    b.go_on()
    assert b.services[5].sender.context[1] == (1, 2)
    b.services[5].sender.placed(1, late.n, (1, late.N))
    assert b.services[5].sender.context[1] == (1, 2)


@causal
def test_a_guest_that_becomes_a_member_speaks_after_what_it_said_before(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 5), T)}, guests={1: (5,)})
    b.tell(5, 1, "a")
    b.bring(5, S)
    coming = b.end({1: ((1, 2, 5), S)})
    b.prepare(coming)
    b.fetch(coming)
    b.install(coming, S, T, 5)
    b.tell(5, 2, "b")
    b.bring(5, T)
    b.bring(T, 1)
    assert b.texts(1) == ["a", "b"]


# -- departures -----------------------------------------------------------------------------------


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
def test_sequencing_D2_what_a_context_says_of_a_group_that_is_joined_does_not_count_as_delivered(
    protocol: type[SequencingService],
) -> None:
    """3 is let into group 2; b, which comes after a of its first era, comes before the word."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), T)})
    coming = b.end({2: ((1, 2, 3), T)})
    b.prepare(coming)
    b.install(coming, S, T, 1, 2)
    b.tell(2, 2, "a")
    b.bring(2, T)
    b.bring(T, 1)
    b.tell(1, 1, "b")
    b.bring(1, S)
    assert b.context("b") == {2: 1}
    b.bring(S, 3)
    assert b.texts(3) == []
    b.install(coming, 3)
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
    assert b.find(1, S, Request(1, 1, (), ((1, 1),)), "b")
    b.bring(1, S, text="b")
    assert not b.find(header=Accept)
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
    assert b.find(1, T, Request(1, 1, ((1, 1, 1),)), "b")


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
    """1 and 2 were in both groups. Then nobody is, but 2 has not begun the era without it."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.bring(S, 1)
    coming = b.end({1: ((3,), S)})
    b.prepare(coming)
    b.fetch(coming)
    b.install(coming, S, 1, 3)
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    assert b.context("b") == {1: 1}, "the place where the era after a begins"
    b.bring(S, 2, text="b")
    b.install(coming, 2)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


@exact
def test_sequencing_D5_when_all_have_begun_the_view_without_a_leaver_it_counts_no_more(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    b.change({1: ((3,), S)})
    b.tell(1, 2, "x")
    b.settle()
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    assert b.context("b") == {}


def test_sequencing_D6_a_body_that_no_member_has_is_fetched_before_the_group_moves() -> None:
    b = Served(Sequencing, {1: ((1, 2), S)}, others=(T,))
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.lose(S, 1)
    b.lose(S, 2)
    b.change({1: ((1, 2), T)})
    b.crash(S)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    assert not b.faults


@causal
def test_sequencing_D7_a_frame_that_needs_one_which_a_crash_could_take_away_is_not_delivered(
    protocol: type[SequencingService],
) -> None:
    """S could die when only b had reached anybody: a would be repeated, and come after b."""
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 3), S)}, options=Options())
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S)
    b.bring(S, 3, Accept, "b")
    assert b.texts(3) == []
    (waiting,) = b.services[3].held_back()
    assert waiting.awaits
    b.bring(S, 1, Accept, "a")
    b.bring(1, S, Ack)
    b.go_on()
    assert b.texts(3) == ["b"]


@causal
@pytest.mark.parametrize(("settled", "safe"), [(True, False), (False, True)])
def test_sequencing_D7_a_number_that_comes_after_an_unsafe_one_is_unsafe(
    protocol: type[SequencingService], monkeypatch: pytest.MonkeyPatch, settled: bool, safe: bool
) -> None:
    """b needs a, which nobody holds. c comes after b, and 3 holds both. If S dies, a is lost, so b
    is, and c with it: what its author sends elsewhere must wait for c. A sequencer that counts
    holders alone takes c for safe."""
    if not settled:
        monkeypatch.setattr(Book, "settled", property(lambda book: book.safe))
    b = Served(protocol, {1: ((1, 4), S), 2: ((1, 2, 3), S), 3: ((2, 4), S)}, options=Options())
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S)
    b.tell(2, 2, "c")
    b.bring(2, S, text="c")
    b.bring(S, 3)
    b.ring(3, "ack", 2)
    b.bring(3, S)
    b.tell(2, 3, "d")
    b.bring(2, S, text="d")
    assert (b.find(S, 4, Accept, "d")[0].header.needs == ()) == safe
    b.bring(S, 4, Accept, "d")
    assert (b.texts(4) == ["d"]) == safe
    b.settle()
    assert b.texts(4) == ["a", "d"] if not safe else ["d", "a"]


def test_sequencing_D8_a_guest_goes_on_elsewhere_when_a_member_has_its_frame() -> None:
    b = Served(
        SequencingHybrid, {1: ((1, 2), 1), 2: ((9, 3), 3)}, guests={1: (9,)}, options=Options()
    )
    b.tell(9, 1, "a")
    b.tell(9, 2, "b")
    b.bring(9, 1)
    assert not b.find(1, 9), "nobody but the sequencer has it"
    assert not b.find(9, text="b")
    b.bring(1, 2, Accept)
    b.bring(2, 1, Ack)
    b.bring(1, 9, Answer)
    (packet,) = b.find(9, 3, text="b")
    assert packet.header == Request(1, 1, ((1, 1, 1),))
    b.settle()


@pytest.mark.parametrize("protocol", [Sequencing, SequencingHybrid])
def test_sequencing_D8_a_guest_keeps_its_frame_until_a_member_has_it_whatever_was_asked_for(
    protocol: type[SequencingService],
) -> None:
    """With `resilience=0` a number is enough for members: who sent the frame has it still. A guest
    would forget it, and then S dies with it."""
    b = Served(protocol, {1: ((1, 2), S)}, guests={1: (9,)}, others=(T,), lossy=False)
    b.tell(9, 1, "a")
    b.bring(9, S)
    assert not b.find(S, 9)
    b.crash(S)
    b.flight.clear()
    b.change({1: ((1, 2), T)})
    b.tell(9, 1, "b")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


@pytest.mark.parametrize("answered", [True, False], ids=["before", "after"])
def test_sequencing_D8_a_guest_hears_that_all_of_an_era_that_ended_is_consumed(
    answered: bool,
) -> None:
    """Members go on when they hold all of the era. Who numbers the next one counts anew, so nobody
    else would tell the guest that there is room for more. Its frame may have been answered."""
    b = Served(SequencingHybrid, {1: ((1, 2), S)}, guests={1: (9,)}, others=(T,), options=Options())
    b.tell(9, 1, "a")
    b.bring(9, S)
    b.bring(S, 1)
    b.bring(1, S, Ack)
    if answered:
        b.bring(S, 9, Answer)
    else:
        b.lose(S, 9, Answer)
    assert b.stable[9] == 0
    b.change({1: ((1, 2), T)})
    assert b.stable[9] == 1
    b.settle()
    assert b.stable[9] == 1 and b.texts(2) == ["a"]


@exact
def test_sequencing_D9_a_number_that_died_with_its_sequencer_holds_nothing_up(
    protocol: type[SequencingService],
) -> None:
    """b comes after number 1 of group 1, which reached nobody: that era ends without it."""
    b = Served(protocol, TOGETHER, others=(T,))
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.tell(4, 2, "b")
    b.bring(4, S)
    assert b.context("b") == {1: 1}
    b.lose(S, text="a")
    for p in (1, 2, 4):
        b.bring(S, p, text="b")
    assert b.texts(1) == b.texts(2) == []
    b.crash(S)
    b.change({1: ((1, 2, 3), T), 2: ((1, 2, 4), T)})
    assert b.texts(1) == b.texts(2) == ["b"]
    b.settle()
    assert b.texts(1) == b.texts(2) == ["b", "a"], "3 has repeated a"


def test_sequencing_D10_a_request_to_a_former_sequencer_is_void_and_its_author_repeats_it() -> None:
    b = Served(Sequencing, {1: ((1, 2), S)}, others=(T,))
    b.tell(1, 1, "a")
    b.change({1: ((1, 2), T)})
    b.bring(1, S, text="a")
    assert not b.find(S), "it is neither numbered nor forwarded"
    assert b.find(1, T, Request, "a")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    assert not b.faults


@causal
def test_sequencing_D13_a_view_waits_for_the_end_of_all_groups_that_change_with_it(
    protocol: type[SequencingService],
) -> None:
    """At 1, c of group 2 waits for x; the view of group 1, where nothing waits, comes after c."""
    b = Served(
        protocol, {1: ((1, 2), S), 2: ((1, 2), S), 3: ((1, 2, 3), S if protocol.exact else T)},
        others=(4,),
    )  # fmt: skip
    b.tell(3, 3, "x")
    b.bring(3, text="x")
    (late,) = b.find(dst=1, text="x")
    b.bring(dst=2, text="x")
    b.tell(2, 2, "c")
    b.bring(2, S, text="c")
    b.bring(S, 1, text="c")
    b.bring(S, 2, text="c")
    b.change({1: ((1, 2, 4), S), 2: ((1, 2, 4), S)})
    assert _views_of(b, 1) == [], "what c waits for has not come"
    b.arrive(late)
    assert b.texts(1) == ["x", "c"]
    assert sorted(_views_of(b, 1)) == [1, 2]


def _views_of(b: Served, p: int) -> list[int]:
    """Groups whose second view p has shown, in order."""
    return [v.group for v in b.log[p] if isinstance(v, View) and v.number == 2]


# -- joining --------------------------------------------------------------------------------------


@exact
def test_a_joiner_that_is_not_let_in_goes_on(protocol: type[SequencingService]) -> None:
    """The change that was to let 3 in comes to nothing; what waited for its era goes on."""
    b = Served(protocol, {1: ((1, 2, 3), S), 2: ((1, 2), S)})
    coming = b.end({2: ((1, 2, 3), S)})
    b.prepare(coming)
    b.install(coming, S, 1, 2)
    b.tell(2, 2, "a")
    b.bring(2, S)
    b.tell(1, 1, "b")
    b.bring(1, S, text="b")
    b.bring(S, 3, Accept, "b")
    assert b.texts(3) == []
    b._do(3, lambda service: service.unprepare())
    assert b.texts(3) == ["b"]


# -- loss -----------------------------------------------------------------------------------------


def test_a_lost_number_is_fetched_and_what_comes_after_it_waits() -> None:
    b = Served(Sequencing, TOGETHER)
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.lose(S, 1, text="a")
    b.tell(4, 2, "b")
    b.bring(4, S)
    b.bring(S, 1, text="b")
    assert b.texts(1) == []
    for _ in range(8):  # the sequencer tells how far it is, and 1 asks for what it lacks
        b.carry()
        for p in (S, 1):
            for g, name in tuple(b.timers[p]):
                b.ring(p, name, g)
        if b.find(1, S, Fetch(1, 1)):
            break
    else:
        raise AssertionError("nobody fetches the number")
    b.settle()
    assert b.texts(1) == ["a", "b"]


def test_sequencing_D12_a_lost_request_is_repeated_and_numbered_once() -> None:
    b = Served(Sequencing, {1: ((1, 2), S)})
    b.tell(1, 1, "a", "b")
    b.lose(1, S, text="a")
    b.bring(1, S, text="b")
    assert not b.find(header=Accept), "b waits for a"
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


# -- several sequencers ---------------------------------------------------------------------------


@causal
def test_a_sequencer_numbers_what_comes_after_messages_of_a_group_that_it_does_not_know(
    protocol: type[SequencingService],
) -> None:
    b = Served(protocol, {1: ((1, 2), S), 2: ((1, 3), T)})
    b.tell(2, 1, "a")
    b.carry()
    assert 1 not in b.services[T].views
    b.tell(1, 2, "b")
    b.settle()
    assert b.texts(3) == ["b"]
