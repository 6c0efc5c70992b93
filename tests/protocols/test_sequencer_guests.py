"""A sender outside the group, with a sequencer."""

from __future__ import annotations

from machines import Bench, G
from ordercast.core.events import View
from ordercast.core.sequenced import Accept, Accepted
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
