"""A group is handed to the one who alone has delivered something, and has spoken of it."""

from __future__ import annotations

import pytest

from ordercast.core.events import Change, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import AcceptIn, AskHeld, Moved, Safe
from ordercast.protocols.sequencing.orders import Sequencing, SequencingCausal, SequencingHybrid
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import AT_ONCE, S, Served, T

causal = pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])


def spoken(
    protocol: type[SequencingService] = SequencingCausal, options: Options | None = None
) -> Served:
    """3 said a in group 1, which S numbered, and of the members only 3 has it. Then 3 said b in
    group 2."""
    groups = {1: ((1, 3), S), 2: ((2, 3), T)}
    b = Served(protocol, groups, options=options or Options())
    b.tell(3, 1, "a")
    b.bring(3, S)
    b.bring(S, 3, AcceptIn)
    b.lose(S, 1)
    b.tell(3, 2, "b")
    return b


def take_book(b: Served, g: GroupId, source: ProcessId, to: ProcessId) -> bool:
    """All of the book is there; the source has not heard of it. Must it keep copies?"""
    b.succeed(g, to, b.freeze(g, source, to))
    machine = b.services[to]
    machine.out.clear()
    sole = machine.back_up(g, source)
    b.carry_out(to, machine.out)
    return sole


def hear_of_it(b: Served, g: GroupId, source: ProcessId, *, sole: bool) -> None:
    machine = b.services[source]
    machine.out.clear()
    b.part(source, g).tell_moved(g, sole=sole)
    b.carry_out(source, machine.out)


def hand_over(b: Served, g: GroupId, source: ProcessId, to: ProcessId) -> None:
    hear_of_it(b, g, source, sole=take_book(b, g, source, to))


def kept(b: Served, p: ProcessId) -> list[bytes]:
    """What p would report of group 1 at a flush."""
    return [frame.payload for frame in b.services[p].unstable(1)]


@causal
def test_sequencing_D9_the_former_sequencer_keeps_what_the_next_one_alone_has(
    protocol: type[SequencingService],
) -> None:
    """If 3 died now, b would be left, and what it comes after would not."""
    b = spoken(protocol)
    assert b.find(text="b")
    hand_over(b, 1, S, 3)
    assert kept(b, S) == [b"a"]
    assert b.services[S].keeps_for_others(1)


@causal
def test_it_forgets_the_copies_when_another_member_has_them(
    protocol: type[SequencingService],
) -> None:
    b = spoken(protocol)
    hand_over(b, 1, S, 3)
    b.bring(S, 1, Moved)
    b.bring(3, 1, AskHeld)
    b.settle()
    assert (b.texts(1), b.texts(2), b.texts(3)) == (["a"], ["b"], ["a", "b"])
    assert not kept(b, S) and not b.services[S].keeps_for_others(1)
    assert b.services[S].holdings(1).history == 0
    assert b.faults == []


def test_a_word_that_overtakes_the_other_counts() -> None:
    b = spoken()
    sole = take_book(b, 1, S, 3)
    b.step(S, Receive(3, 1, b.services[S].views[1].era, Safe(1)))
    hear_of_it(b, 1, S, sole=sole)
    assert sole and not b.services[S].keeps_for_others(1)


def test_a_late_word_is_not_about_copies_that_are_kept_from_later_on() -> None:
    """3 hands the group back to S, which has it for a while and hands it to 3 once more."""
    b = spoken()
    hand_over(b, 1, S, 3)
    b.lose(3, 1)
    hand_over(b, 1, 3, S)
    (late,) = b.find(3, S, Safe)
    hand_over(b, 1, S, 3)
    b.arrive(late)
    assert kept(b, S) == [b"a"]
    assert b.services[S].keeps_for_others(1)


def test_the_copies_go_when_a_third_has_the_book() -> None:
    """Then T has it, and 3 as a member."""
    b = spoken()
    hand_over(b, 1, S, 3)
    hand_over(b, 1, 3, T)
    b.bring(3, S, Safe)
    assert not b.services[S].keeps_for_others(1)
    assert kept(b, 3) == kept(b, T) == [b"a"]


def test_the_copies_go_when_nobody_else_is_in_the_group() -> None:
    b = spoken()
    hand_over(b, 1, S, 3)
    b.change(3, Change(1, dead=(1,)))
    b.bring(3, S, Safe)
    assert not b.services[S].keeps_for_others(1)


@pytest.mark.parametrize(
    ("protocol", "options"),
    [(Sequencing, Options()), (SequencingCausal, AT_ONCE)],
    ids=["not causal", "resilience 0"],
)
def test_nothing_is_kept_where_no_message_comes_after_others(
    protocol: type[SequencingService], options: Options
) -> None:
    b = spoken(protocol, options)
    assert not take_book(b, 1, S, 3)


def test_nothing_is_kept_of_what_another_member_has() -> None:
    groups = {1: ((1, 3), S)}
    b = Served(SequencingCausal, groups, options=Options())
    b.tell(3, 1, "a")
    b.settle()
    assert not take_book(b, 1, S, 3)
