"""Who may say what, and lies of single packets. Lies in all states of whole nodes: `make fuzz`."""

from __future__ import annotations

import pytest

from ordercast.core.changing import NextEra, NumbersEnd
from ordercast.core.events import Receive, View
from ordercast.protocols.sequencing import headers
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.sequencing.table import TABLE as PACKETS
from ordercast.views.headers import CHANGE_HEADERS
from ordercast.views.table import TABLE


def test_every_word_of_a_change_and_every_packet_has_a_rule():
    assert set(TABLE) == set(CHANGE_HEADERS)
    assert set(PACKETS) == set(SequencingHybrid(0).takes)


def member(me=0):
    """A member of group 1 = {0, 1}, which 2 numbers."""
    machine = SequencingHybrid(me)
    view = View(1, 1, (0, 1), 2)
    machine.change(1, (NextEra(view, NumbersEnd(0, 2)),))
    machine.out.clear()
    return machine


@pytest.mark.parametrize(
    "header",
    [
        headers.Accept(1, 1, 1, 0, 0),
        headers.Number(1, 1, 1, 0, 0),
        headers.Marks(1, 1, 0),
        headers.Answer(1, 1, 0),
    ],
)
def test_only_the_sequencer_gives_numbers(header):
    machine = member()
    machine.handle(Receive(1, 1, 1, header, b"m"))
    assert machine.out.faults and not machine.out.deliveries
    assert machine.member.seats[1].known == 0


def test_a_number_far_above_those_that_are_here_is_not_kept_for_later():
    machine = member()
    machine.handle(Receive(2, 1, 1, headers.Number(2**40, 0, 1, 0, 0)))
    assert machine.out.faults and not machine.member.seats[1].bodyless


def test_a_request_that_names_an_era_which_has_not_begun_holds_up_its_sender_alone():
    machine = member(me=2)
    liar = headers.Request(1, 1, ((1, 9, 1),))
    machine.handle(Receive(0, 1, 1, liar, b"lie"))
    machine.handle(Receive(1, 1, 1, headers.Request(1, 1), b"m"))
    assert machine.sequencer.books[1].N == 1 and machine.sequencer.books[1].last == {1: 1}
    assert set(machine.sequencer.waiting) == {0}


def test_what_one_peer_sends_too_early_takes_no_room_of_others():
    machine = member()
    machine.options = type(machine.options)(max_held=2)
    for n in range(4):
        machine.handle(Receive(2, 5, 1, headers.Marks(n, 0, 0)))
    assert len(machine.out.faults) == 2
    machine.handle(Receive(1, 5, 1, headers.Marks(0, 0, 0)))
    assert len(machine.out.faults) == 2
