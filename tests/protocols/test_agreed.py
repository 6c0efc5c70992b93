"""Total order by agreement (001, slides "Total Ordering (5)" and "(6)", whose figure is lost)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import Bench, G, bench
from ordercast.core.events import Flush, Kept, Receive, View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Waiting
from ordercast.machinery.placing import Id
from ordercast.machinery.stability import Ack
from ordercast.protocols.agreed import (
    DELIVERED,
    UNDECIDED,
    Agreed,
    AgreedOrder,
    Msg,
    Proposed,
)


def machine(b: Bench, p: int) -> AgreedOrder:
    found = b.machines[p]
    assert isinstance(found, AgreedOrder)
    return found


def survivors(b: Bench, *members: int) -> None:
    """The others crash with all that is under way; the survivors settle what is left."""
    b.crash(*(p for p in list(b.machines) if p not in members))
    b.flight.clear()
    union: dict[Id, Kept] = {}
    for kept in (kept for p in members for kept in machine(b, p).unstable(G)):
        id = (kept.origin, kept.n)
        union[id] = AgreedOrder.better(union[id], kept) if id in union else kept
    for p in members:
        view = View(G, 2, members, members[0], era=2)
        b.step(p, Flush(G, tuple(union.values())), view)


# -- the protocol -------------------------------------------------------------------------------


def test_a_message_is_delivered_when_all_have_proposed_and_the_sender_has_told_the_result() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "m")
    assert [p.header for p in b.find(1, 2)] == [Msg(1, 1, 0)]
    b.bring(1, 2)
    b.bring(2, 1, Proposed(1, 1))
    assert (b.texts(1), b.find(1, header=Agreed)) == ([], [])  # 3 has not proposed
    b.bring(1, 3)
    b.bring(3, 1, Proposed(1, 1))
    assert b.texts(1) == ["m"]
    assert b.texts(2) == b.texts(3) == []
    b.bring(1, 2, Agreed(1, 1, 3))
    b.bring(1, 3, Agreed(1, 1, 3))
    assert b.texts(2) == b.texts(3) == ["m"]


def test_a_lone_member_agrees_with_itself() -> None:
    b = bench(AgreedOrder, 1)
    b.say(1, "a", "b")
    assert b.texts(1) == ["a", "b"]


def test_a_proposal_is_higher_than_all_numbers_proposed_here() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 2)
    assert [p.header for p in b.find(2, 1)] == [Proposed(n, n) for n in (1, 2, 3)]
    b.say(2, "d")
    assert b.find(2, header=Msg)[0].header == Msg(1, 4, 0)


def test_a_proposal_is_higher_than_all_numbers_agreed_here() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(2, "x", "y")  # only 2 has them; its next proposal is 3
    b.say(1, "m")
    for p in (2, 3):
        b.bring(1, p, Msg)
        b.bring(p, 1, Proposed)
    b.bring(1, 3, Agreed(1, 3, 2))  # 3 itself proposed 1
    b.say(1, "next")
    b.bring(1, 3, Msg)
    assert b.find(3, 1, Proposed(2, 4))
    b.say(3, "own")
    assert b.find(3, 2, Msg(1, 5, 0))


def test_the_highest_proposal_wins() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(3, "x", "y")
    b.bring(3, 2)  # 2 has proposed 1 and 2
    b.say(1, "m")
    b.bring(1, 2, Msg)
    b.bring(1, 3, Msg)
    b.bring(2, 1, Proposed(1, 3))
    b.bring(3, 1, Proposed(1, 3))
    assert b.find(1, 2, Agreed(1, 3, 3))


def test_a_decided_message_waits_for_an_undecided_one_with_a_lower_key() -> None:
    b = bench(AgreedOrder, 1, 2)
    b.say(1, "first")
    b.bring(1, 2, Msg)  # 2 proposed 1 for it, and is told nothing yet
    b.say(2, "second")
    b.bring(2, 1, Msg)
    b.bring(1, 2, Proposed)  # so "second" is decided at 2
    assert b.texts(2) == []
    b.settle()
    assert b.texts(1) == b.texts(2) == ["first", "second"]


class Choices(msgspec.Struct, frozen=True):
    """Which packet arrives next: always the oldest of some pair."""

    picks: tuple[int, ...]

    def carry(self, b: Bench) -> None:
        for pick in self.picks:
            pairs = sorted({(p.src, p.dst) for p in b.flight})
            if pairs:
                b.arrive(b.find(*pairs[pick % len(pairs)])[0])


@settings(max_examples=60)
@given(st.lists(st.integers(0, 5), min_size=5, max_size=60).map(lambda p: Choices(tuple(p))))
def test_whatever_the_delays_everybody_delivers_in_one_order_and_each_senders_in_turn(
    choices: Choices,
) -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    for text in ("a1", "b1", "c1", "a2", "b2", "c2"):
        b.say("abc".index(text[0]) + 1, text)
        choices.carry(b)
    b.settle()
    assert b.texts(1) == b.texts(2) == b.texts(3)
    assert sorted(b.texts(1)) == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert all(b.texts(1).index(f"{s}1") < b.texts(1).index(f"{s}2") for s in "abc")
    assert not b.faults


def test_what_was_delivered_before_sending_comes_before_at_everybody() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "question")
    b.bring(1, 2)
    b.bring(1, 3)
    b.bring(dst=1)
    b.bring(1, 2, Agreed)
    b.say(2, "answer")
    b.bring(2, 3, Msg)
    b.bring(3, 2, Proposed)
    b.bring(2, 1, Msg)
    b.bring(1, 2, Proposed)
    b.bring(2, 3, Agreed)
    assert b.texts(3) == []
    b.bring(1, 3, Agreed)
    assert b.texts(3) == ["question", "answer"]


def test_where_packets_of_a_pair_overtake_each_other_fifo_is_lost_so_it_says_that_it_needs_N2() -> (
    None
):
    b = bench(AgreedOrder, 1, 2)
    b.say(1, "m1", "m2")
    b.bring(1, 2, text="m2")
    b.bring(1, 2, text="m1")
    b.settle()
    assert b.texts(2) == ["m2", "m1"]
    assert AgreedOrder.declaration.network == "N2"


# -- departures ---------------------------------------------------------------------------------


def test_agreed_D1_messages_with_the_same_number_are_ordered_by_the_proposer() -> None:
    # E-C8: both get the number 2.
    b = bench(AgreedOrder, 1, 2)
    b.say(1, "a")
    b.say(2, "b")
    b.bring(header=Msg)
    b.bring(header=Proposed)
    assert b.find(1, 2, Agreed(1, 2, 2)) and b.find(2, 1, Agreed(1, 2, 1))
    b.carry()
    assert b.texts(1) == b.texts(2) == ["b", "a"]


class ByProposalsAlone(AgreedOrder):
    """Wrong: the highest known proposal decides, also against what was delivered."""

    def settled_order(self, frames: dict[Id, Kept]) -> list[Kept]:
        return sorted(frames.values(), key=lambda frame: frame.stamp)


class UndecidedLast(AgreedOrder):
    """Wrong: every agreed key stays; all that is undecided gets (Amax + 1, sender, n)."""

    def settled_order(self, frames: dict[Id, Kept]) -> list[Kept]:
        def key(frame: Kept) -> tuple[bool, tuple[int, ...]]:
            decided = frame.stamp[2] != UNDECIDED
            return not decided, frame.stamp[:2] if decided else (frame.origin, frame.n)

        return sorted(frames.values(), key=key)


def one_never_proposed(protocol: type[AgreedOrder]) -> Bench:
    """4 delivered d; 3 holds x, which 4 never saw, under a lower key, so 3 has not."""
    b = bench(protocol, 1, 2, 3, 4)
    b.say(1, "x")
    b.bring(1, 3)
    b.say(2, "d")
    for p in (1, 3, 4):
        b.bring(2, p, Msg)
        b.bring(p, 2, Proposed)
    b.bring(2, 4, Agreed(1, 2, 3))
    assert (b.texts(3), b.texts(4)) == ([], ["d"])
    survivors(b, 3, 4)
    return b


def test_agreed_D2_what_a_survivor_delivered_comes_first() -> None:
    b = one_never_proposed(AgreedOrder)
    assert b.story(3) == b.story(4) == ["1234", "d", "x", "34"]


def test_agreed_D2_with_proposals_alone_the_survivors_diverge() -> None:
    b = one_never_proposed(ByProposalsAlone)
    assert (b.texts(3), b.texts(4)) == (["x", "d"], ["d", "x"])


def agreement_lost(protocol: type[AgreedOrder]) -> Bench:
    """1 says k1, k2 and dies; the agreement on k1 is lost, that on k2 reaches 2."""
    b = bench(protocol, 1, 2, 3)
    b.say(1, "k1", "k2")
    b.bring(1, 2)
    b.bring(1, 3)
    b.bring(dst=1)
    b.bring(1, 2, Agreed(2, 2, 3))
    assert b.texts(2) == []
    survivors(b, 2, 3)
    return b


def test_agreed_D2_an_agreed_message_does_not_pass_an_earlier_one_of_its_sender() -> None:
    b = agreement_lost(AgreedOrder)
    assert b.story(2) == b.story(3) == ["123", "k1", "k2", "23"]
    assert agreement_lost(UndecidedLast).texts(2) == ["k2", "k1"]


def test_agreed_D2_nor_does_an_undecided_one_that_fewer_have_proposed_for() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(3, "x", "y", "z")  # only 3 has them; its next proposal is 4
    b.say(1, "k1", "k2")
    b.bring(1, 2)
    b.bring(1, 3, text="k1")
    survivors(b, 2, 3)
    assert b.texts(2) == b.texts(3) == ["x", "y", "z", "k1", "k2"]


def test_agreed_D2_what_lies_behind_a_gap_that_nobody_alive_can_fill_is_discarded() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "a", "b", "c")
    b.bring(1, 2, text="a")
    b.bring(1, 3, text="c")
    survivors(b, 2, 3)
    assert b.story(2) == b.story(3) == ["123", "a", "23"]


def test_agreed_D2_an_own_message_that_was_not_decided_is_settled_and_stable() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(2, "m")
    survivors(b, 2, 3)
    assert b.story(2) == b.story(3) == ["123", "m", "23"]
    assert b.stable[2] == 1
    b.say(2, "next")
    b.settle()
    assert b.texts(2) == b.texts(3) == ["m", "next"]
    assert b.stable[2] == 2


def cause_undecided(protocol: type[AgreedOrder]) -> Bench:
    """2 delivered k and said z. 1 and 2 die; of the agreement on k nobody alive has heard."""
    b = bench(protocol, 1, 2, 3, 4)
    b.say(1, "k")
    for p in (2, 3, 4):
        b.bring(1, p, Msg)
        b.bring(p, 1, Proposed)
    b.bring(1, 2, Agreed(1, 1, 4))
    b.say(2, "z")
    for p in (1, 3, 4):
        b.bring(2, p, Msg)
        b.bring(p, 2, Proposed)
    b.bring(2, 3, Agreed(1, 2, 4))
    survivors(b, 3, 4)
    return b


def test_agreed_D3_an_agreed_message_does_not_pass_its_undecided_cause() -> None:
    b = cause_undecided(AgreedOrder)
    assert b.story(3) == b.story(4) == ["1234", "k", "z", "34"]


def test_agreed_D3_with_all_that_is_undecided_at_the_end_it_does() -> None:
    assert cause_undecided(UndecidedLast).texts(3) == ["z", "k"]


def test_agreed_D3_nor_does_an_undecided_one_for_which_only_low_proposals_survive() -> None:
    b = bench(AgreedOrder, 1, 2, 3, 4)
    b.say(4, "x", "y")  # only 4 has them; its next proposal is 3
    b.say(1, "k")
    for p in (2, 3, 4):
        b.bring(1, p, Msg)
        b.bring(p, 1, Proposed)
    b.bring(1, 2, Agreed(1, 3, 4))
    assert b.texts(2) == ["k"]
    b.say(2, "z")
    b.bring(2, 3, Msg(1, 4, 0))  # 3 proposes 2; 2's own proposal is 4
    assert b.find(3, 2, Proposed(1, 2))
    survivors(b, 3, 4)
    assert b.texts(3) == b.texts(4) == ["x", "y", "k", "z"]


# -- stability, guests, explanations --------------------------------------------------------------


def test_a_delivered_message_keeps_its_key_until_it_is_stable() -> None:
    b = bench(AgreedOrder, 1, 2, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(1, 2)
    b.bring(2, 1, Proposed)
    assert machine(b, 1).unstable(G) == (Kept(1, 1, (1, 2, DELIVERED), b"m"),)
    assert not b.find(header=Ack)
    b.settle()
    assert b.stable[1] == 1
    assert machine(b, 1).unstable(G) == machine(b, 2).unstable(G) == ()


def test_a_guest_sends_proposes_nothing_and_learns_that_all_have_its_frames() -> None:
    b = Bench({p: AgreedOrder(p) for p in (1, 2, 3)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2), 1, guests=(3,)))
    b.say(3, "a", "b")
    b.say(1, "c")
    b.settle()
    assert b.texts(1) == b.texts(2)
    assert [t for t in b.texts(1) if t in "ab"] == ["a", "b"]
    assert (len(b.texts(1)), b.texts(3), b.stable[3], b.faults) == (3, [], 2, [])


def test_a_guest_that_proposes_is_a_fault() -> None:
    b = Bench({1: AgreedOrder(1)})
    b.step(1, View(G, 1, (1, 2), 1, guests=(3,)))
    b.step(1, Receive(3, G, 1, Msg(1, 1, 0), b"m"))
    assert b.faults == [(1, 3, "a guest proposes the number 1")]
    assert machine(b, 1).held_back() == []


def test_a_guests_message_survives_the_view_change() -> None:
    b = Bench({p: AgreedOrder(p) for p in (1, 2, 3)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2), 1, guests=(3,)))
    b.say(3, "a")
    b.flight.clear()
    union = machine(b, 3).unstable(G)
    for p in (1, 3):
        b.step(p, Flush(G, union), View(G, 2, (1,), 1, era=2, guests=(3,)))
    assert (b.story(1), b.texts(3), b.stable[3]) == (["12", "a", "1"], [], 1)


def test_a_message_that_waits_names_the_proposals_and_agreements_it_waits_for() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "a")
    b.bring(1, 2, Msg)
    b.say(2, "b")
    b.bring(2, 1, Msg)
    b.bring(1, 2, Proposed)
    awaits_a = Awaited("agreement", G, 1, 1)
    awaits_b = Awaited("proposal", G, 3, 1)
    assert machine(b, 2).held_back() == [
        Waiting(G, 1, 1, (awaits_a,), b"a"),
        Waiting(G, 2, 1, (awaits_a, awaits_b), b"b"),
    ]
    b.settle()
    assert machine(b, 2).held_back() == []


# -- a peer's mistakes, and limits ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (Proposed(2, 1), "a number for frame 2, which was not sent"),
        (Proposed(0, 1), "a number for frame 0, which was not sent"),
        (Proposed(1, 0), "the number 0 cannot have been proposed"),
        (Proposed(1, 17), "the number 17 cannot have been proposed"),
        (Msg(1, 0, 0), "the number 0 cannot have been proposed"),
        (Msg(1, 17, 0), "the number 17 cannot have been proposed"),
        (Msg(6, 1, 0), "more than 5 frames without an agreed number"),
        (Msg(1, 1, 1), "frame 1 is called stable, but was not acknowledged here"),
        (Agreed(1, 0, 1), "the number 0 cannot have been proposed"),
        (Agreed(1, 17, 1), "the number 17 cannot have been proposed"),
        (Agreed(1, 1, 9), "process 9 proposed, which is not in the view"),
        (Agreed(1, 1, 1), "frame 1 is agreed on, but did not come here"),
    ],
)
def test_what_cannot_be_is_a_fault_and_harms_nothing(header: msgspec.Struct, words: str) -> None:
    b = bench(AgreedOrder, 1, 2, 3, options=Options(max_held=5))
    b.say(2, "m")
    before = machine(b, 2).fingerprint()
    b.step(2, Receive(1, G, 1, header, b"m"))
    assert b.faults == [(2, 1, words)]
    assert machine(b, 2).fingerprint() == before


def test_a_second_and_different_proposal_is_a_fault_and_a_repeat_is_not() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, "m")
    for P in (1, 1, 2):
        b.step(1, Receive(2, G, 1, Proposed(1, P)))
    assert b.faults == [(1, 2, "a second number for frame 1")]
    b.step(1, Receive(3, G, 1, Proposed(1, 1)))
    assert b.texts(1) == ["m"]
    b.step(1, Receive(2, G, 1, Proposed(1, 1)))  # late, and a repeat
    assert len(b.faults) == 1


def test_an_agreement_below_a_proposal_is_a_fault() -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(3, "x")
    b.bring(3, 2)
    b.say(1, "m")
    b.bring(1, 2)  # 2 proposes 2
    b.step(2, Receive(1, G, 1, Agreed(1, 1, 3)))
    assert b.faults == [(2, 1, "frame 1 is agreed to be at (1, 3), below a proposal")]


@pytest.mark.parametrize("header", [Msg(1, 1, 0), Proposed(1, 1), Agreed(1, 1, 1)])
def test_a_leader_that_is_no_member_may_not_speak(header: msgspec.Struct) -> None:
    b = bench(AgreedOrder, 1, 2, leader=0)
    b.say(1, "m")
    b.step(1, Receive(0, G, 1, header, b"m"))
    assert b.faults == [(1, 0, "process 0 is not a member of the view")]


@pytest.mark.parametrize(
    "stamp", [(), (1, 1), (1, 1, 0, 1), (-1, 1, 0), (1, 9, 0), (1, 1, 3), (1, 1, -1)]
)
def test_a_flush_skips_a_frame_whose_stamp_cannot_be(stamp: tuple[int, ...]) -> None:
    b = bench(AgreedOrder, 1, 2)
    b.step(2, Flush(G, (Kept(1, 1, stamp, b"m"),)), View(G, 2, (1, 2), 1, era=2))
    assert b.story(2) == ["12", "12"]
