"""A sender outside the group, with a sequencer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from machines import Bench, G, bench, change, outside
from ordercast.core.events import Receive, View
from ordercast.machinery.sequencer_headers import Accept, Accepted, Fetch
from ordercast.protocols.sequencer_bb import Body, Order, SequencerBB
from ordercast.protocols.sequencer_pb import Request, SequencerPB


def group(protocol: type[SequencerPB | SequencerBB], leader: int = 1) -> Bench:
    """Members 1 and 2, guest 9; the leader may be neither."""
    b = Bench({p: protocol(p) for p in dict.fromkeys((1, 2, 9, leader))})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2), leader, guests=(9,)))
    return b


def test_sequencer_pb_D7_a_guest_is_sent_marks_and_no_bodies() -> None:
    b = group(SequencerPB)
    b.say(2, "of a member")
    b.say(9, "of a guest")
    b.bring(header=Request)
    assert [packet.dst for packet in b.find(header=Accept)] == [2, 2]
    assert [packet.header for packet in b.find(dst=9)] == [Accepted(1, 0)]
    b.settle()
    assert b.texts(1) == b.texts(2) == ["of a member", "of a guest"]
    assert b.stable[9] == 1


def test_sequencer_pb_D7_a_repeat_of_a_guest_gets_the_marks_again() -> None:
    b = group(SequencerPB)
    b.say(9, "a")
    (request,) = b.find(header=Request)
    b.repeat(request, request)
    assert [packet.header for packet in b.find(dst=9)] == [Accepted(1, 0)] * 2
    b.settle()
    assert b.texts(2) == ["a"]


def test_many_frames_of_a_guest_in_one_step_are_answered_with_one_word() -> None:
    b = group(SequencerPB)
    b.say(9, *map(str, range(64)))
    packets = b.find(header=Request)
    b.flight.clear()
    b.step(1, *(packet.receive for packet in packets))
    assert [packet.header for packet in b.find(dst=9)] == [Accepted(64, 0)]
    b.settle()
    assert b.texts(2) == [str(n) for n in range(64)]
    assert b.stable[9] == 64


class Counted(dict[int, bytes]):
    """Counts how many keys were looked at."""

    looks = 0

    def __iter__(self) -> Iterator[int]:
        for key in super().__iter__():
            self.looks += 1
            yield key


def test_a_guest_looks_only_at_the_frames_that_are_settled() -> None:
    b = group(SequencerPB)
    b.say(9, *map(str, range(100)))
    guest = b.machines[9]
    assert isinstance(guest, SequencerPB)
    guest.sent.pending = requests = Counted(guest.sent.pending)
    b.step(9, Receive(1, G, 1, Accepted(100, 3)))
    assert sorted(requests) == list(range(4, 101))
    requests.looks = 0
    guest.step((Receive(1, G, 1, Accepted(100, 5)),))  # without its invariants, which look at all
    assert requests.looks == 3
    assert len(requests) == 95


def test_sequencer_pb_D7_frames_of_a_guest_are_numbered_in_its_order() -> None:
    b = group(SequencerPB)
    b.say(9, "a", "b")
    b.bring(header=Request(2))
    assert not b.find(header=Accept)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


def test_sequencer_bb_D8_a_guest_sends_its_body_to_all_members_and_the_sequencer() -> None:
    b = group(SequencerBB, leader=7)
    b.say(9, "m")
    assert sorted(packet.dst for packet in b.find(9, header=Body)) == [1, 2, 7]
    b.bring(9, 7)
    assert sorted(packet.dst for packet in b.find(7, header=Order)) == [1, 2]
    b.bring(7, 2)
    assert b.texts(2) == []
    b.bring(9, 2)
    assert b.texts(2) == ["m"]
    b.settle()
    assert b.texts(1) == ["m"]
    assert b.stable[9] == 1


def test_sequencer_bb_D8_a_body_from_a_guest_that_a_member_does_not_know_is_fetched() -> None:
    b = Bench({p: SequencerBB(p) for p in (1, 2, 9)})
    b.step(2, View(G, 1, (1, 2), 1))
    for p in (1, 9):
        b.step(p, View(G, 1, (1, 2), 1, guests=(9,)))
    b.say(9, "m")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["m"]


both = pytest.mark.parametrize("protocol", [SequencerPB, SequencerBB])
Protocol = type[SequencerPB | SequencerBB]


@both
def test_a_guest_that_asks_for_messages_gets_none(protocol: Protocol) -> None:
    b = group(protocol)
    b.say(2, "secret")
    b.carry()
    b.step(1, Receive(9, G, 1, Fetch(1, 1)))
    assert not b.find(dst=9)


@both
def test_what_a_guest_sent_becomes_stable_though_it_is_a_member_now_and_silent(
    protocol: Protocol,
) -> None:
    b = group(protocol)
    b.say(9, "a")
    b.bring(9)
    change(b, protocol, joined=(9,))
    b.settle()
    assert b.story(9) == ["129"]
    assert b.stable[9] == 1


@both
def test_one_that_was_a_guest_learns_as_a_member_that_all_have_what_it_sent_then(
    protocol: Protocol,
) -> None:
    b = group(protocol)
    b.say(9, "a")
    b.bring(9)
    change(b, protocol, joined=(9,))
    assert (b.story(9)[-1], b.stable[9]) == ("129", 1)  # the flush gave it to all
    b.say(9, "b")
    b.settle()
    assert (b.texts(1), b.stable[9]) == (["a", "b"], 2)


@both
def test_a_late_frame_of_a_former_visit_gets_no_number(protocol: Protocol) -> None:
    b = bench(protocol, 1, 2)
    outside(b, 9, protocol)
    change(b, protocol, guests=(9,))
    b.carry()
    b.say(9, "late")
    late = list(b.flight)
    b.flight.clear()
    change(b, protocol, left=(9,))
    b.carry()
    outside(b, 9, protocol)
    change(b, protocol, guests=(9,))
    b.carry()
    b.repeat(*late)
    b.say(9, "new")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["new"]


@both
def test_the_next_sequencer_knows_where_a_guest_stands_that_came_back(protocol: Protocol) -> None:
    b = bench(protocol, 1, 2, 3)
    outside(b, 9, protocol)
    change(b, protocol, guests=(9,))
    b.settle()
    b.say(9, "a")
    b.settle()
    change(b, protocol, left=(9,))
    b.settle()
    outside(b, 9, protocol)
    change(b, protocol, guests=(9,))
    b.settle()
    b.crash(1)
    for p in (2, 3, 9):
        b.step(p, View(G, 2, (2, 3), 2, era=5, guests=(9,)))
    b.say(9, "b")
    b.settle()
    assert b.texts(2) == b.texts(3) == ["a", "b"]


def test_a_guest_that_missed_the_word_that_all_have_it_asks_again() -> None:
    b = group(SequencerPB)
    b.say(9, "a")
    b.bring(9)
    b.bring(1, 9, Accepted(1, 0))
    b.bring(1, 2)
    b.ring(1, "ack")
    b.ring(2, "ack")
    b.bring(2, 1)
    b.lose(1, 9, Accepted(1, 1))
    b.settle()
    assert b.stable[9] == 1


@both
def test_what_a_guest_asks_for_again_in_a_new_era_is_repeated_if_it_is_lost(
    protocol: Protocol,
) -> None:
    b = Bench({p: protocol(p) for p in (1, 2, 3, 9)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2, 3), 1, guests=(9,)))
    b.say(9, "a")
    b.bring(9, 1)
    b.bring(1, 9)
    b.ring(9, "retry")  # it has a number
    b.crash(1)
    b.flight.clear()  # which nobody else has heard of
    for p in (2, 3, 9):
        b.step(p, View(G, 2, (2, 3), 2, era=2, guests=(9,)))
    b.lose(9)
    b.settle()
    assert b.texts(2) == b.texts(3) == ["a"]
    assert b.stable[9] == 1
