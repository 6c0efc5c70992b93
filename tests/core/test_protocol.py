"""What every protocol inherits: eras, members, handlers, faults, plain state."""

from __future__ import annotations

import msgspec
import pytest

from machines import G, bench
from ordercast.core.events import Consumed, Kept, Multicast, Receive, Timer, View
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.protocols.basic import Basic, BasicData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.service import SequencingService

VIEW = View(G, 1, (1, 2, 3), 1)


class Word(msgspec.Struct, frozen=True):
    """A header of nobody's."""


def started(me: int = 1, **options: int) -> Basic:
    machine = Basic(me, Options(**options))
    machine.step([VIEW])
    return machine


def data(n: int, *, src: int = 2, era: int = 1, text: bytes = b"m") -> Receive:
    return Receive(src, G, era, BasicData(n, 0), text)


def texts(out: Output) -> list[bytes]:
    return [d[4] for d in out.deliveries if not isinstance(d, View)]


def test_a_negative_resilience_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"resilience=-1 must not be negative.*number of crashes"):
        Options(resilience=-1)


def test_a_resilience_and_uniform_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="resilience=2 and uniform=True: give one"):
        Options(resilience=2, uniform=True)


def test_the_handlers_of_a_page_and_of_what_it_is_built_on_make_its_table() -> None:
    class Page(Basic):
        @on(Word)
        def on_WORD(self, p: int, g: int, word: Word, m: bytes) -> None:
            self.note("word", g, p, 0)

    assert set(Page.handlers) == {*Basic.handlers, Word}
    assert Word not in Basic.handlers
    assert [h.__name__ for h in Page.headers] == sorted(h.__name__ for h in Page.handlers)
    machine = Page(1)
    assert machine.step([VIEW, Receive(2, G, 1, Word())]).notes == [("word", G, 2, 0, "")]


def test_a_page_may_replace_an_inherited_handler() -> None:
    class Deaf(Basic):
        @on(BasicData)
        def on_DATA(self, q: int, g: int, data: BasicData, m: bytes) -> None:
            pass

    machine = Deaf(1)
    assert texts(machine.step([VIEW, data(1)])) == []


def test_a_first_view_is_told_to_the_application_of_a_member() -> None:
    assert Basic(1).step([VIEW]).deliveries == [VIEW]


def test_a_process_that_is_no_member_is_told_no_view() -> None:
    assert Basic(9).step([VIEW]).deliveries == []


def test_a_leaver_gets_its_last_view_and_nothing_after() -> None:
    machine = started()
    last = View(G, 2, (2, 3), 2, era=2)
    out = machine.step([last, data(1, era=2), View(G, 3, (2,), 2, era=3)])
    assert out.deliveries == [last]


def test_a_multicast_by_a_process_that_is_no_member_is_dropped_with_a_note() -> None:
    machine = Basic(9)
    out = machine.step([VIEW, Multicast(G, b"m")])
    assert (out.transmits, out.deliveries) == ([], [])
    assert out.notes == [("drop", G, 9, 0, "not a member")]


def test_a_packet_of_an_older_era_is_dropped() -> None:
    machine = started()
    out = machine.step([View(G, 2, (1, 2), 1, era=2), data(1, era=1)])
    assert texts(out) == []
    assert out.notes == [("drop", G, 2, 0, "older era")]


def test_a_packet_of_a_newer_era_waits_for_its_view() -> None:
    machine = started()
    assert texts(machine.step([data(1, era=2, text=b"new")])) == []
    assert texts(machine.step([data(1, era=1, text=b"old")])) == [b"old"]
    assert texts(machine.step([View(G, 2, (1, 2), 1, era=2)])) == [b"new"]


def test_what_waits_for_a_view_that_is_skipped_is_void_and_what_is_later_waits_on() -> None:
    machine = started()
    machine.step([data(1, era=2, text=b"skipped"), data(1, era=4, text=b"later")])
    assert texts(machine.step([View(G, 2, (1, 2), 1, era=3)])) == []
    assert texts(machine.step([View(G, 3, (1, 2), 1, era=4)])) == [b"later"]


def test_packets_before_the_first_view_wait_too() -> None:
    machine = Basic(1)
    assert texts(machine.step([data(1)])) == []
    assert texts(machine.step([VIEW])) == [b"m"]


def test_no_more_than_max_held_packets_wait_for_a_view() -> None:
    machine = started(max_held=2)
    out = machine.step([data(n, era=2) for n in (1, 2, 3)])
    assert out.faults == [(2, "more than 2 packets of a view not installed here")]
    assert len(texts(machine.step([View(G, 2, (1, 2), 1, era=2)]))) == 2


def test_who_fills_the_room_for_packets_of_a_view_to_come_is_blamed_and_not_who_comes_last() -> (
    None
):
    machine = Basic(1, Options(max_held=3))
    machine.step([View(G, 1, (1, 2, 3), 1)])
    machine.step([data(n, era=9, src=2) for n in (1, 2)])
    machine.step([data(1, era=2, src=3, text=b"honest")])
    out = machine.step([data(2, era=2, src=3, text=b"too")])
    assert out.faults == [(2, "more than 3 packets of a view not installed here")]
    assert texts(machine.step([View(G, 2, (1, 3), 1, era=2)])) == [b"honest", b"too"]


def test_an_unknown_header_is_a_fault_of_its_sender_and_harms_nothing() -> None:
    machine = started()
    before = machine.fingerprint()
    out = machine.step([Receive(2, G, 1, Word())])
    assert out.faults == [(2, "Word is no header of this protocol")]
    assert machine.fingerprint() == before


def test_a_packet_of_a_process_outside_the_view_is_dropped() -> None:
    machine = started()
    before = machine.fingerprint()
    out = machine.step([data(1, src=9)])
    assert (texts(out), out.faults) == ([], [])
    assert out.notes == [("drop", G, 9, 0, "sender not in the view")]
    assert machine.fingerprint() == before


def test_nobody_sends_to_itself_and_a_group_of_one_sends_nothing() -> None:
    for protocol in PROTOCOLS.values():
        b = bench(protocol, 1, 2, 3)
        b.say(1, "m")
        b.say(2, "m")
        assert b.flight
        assert all(packet.src != packet.dst for packet in b.flight)
        alone = bench(protocol, 1)
        out = alone.step(1, Multicast(G, b"m"))
        assert out.transmits == []
        assert alone.texts(1) == ["m"]
        alone.settle()
        assert alone.stable[1] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_copy_steps_as_the_original_does_and_does_not_touch_it(
    protocol: type[OrderingProtocol],
) -> None:
    b = bench(protocol, 1, 2, 3, options=Options(ack_every=2))
    for i in range(3):
        b.say(1, f"a{i}")
        b.say(2, f"b{i}")
    b.arrive(*b.flight[::-2])  # some, in a wrong order
    assert b.flight
    for p, machine in b.machines.items():
        assert isinstance(machine, OrderingProtocol)
        twin = machine.copy()
        assert twin.fingerprint() == machine.fingerprint()
        before = machine.fingerprint()
        events = [packet.receive for packet in b.flight if packet.dst == p]
        events += [Timer(G, name) for _, name in b.timers[p]]
        events.append(Multicast(G, b"next"))
        out = twin.step(events)
        assert machine.fingerprint() == before
        again = machine.step(events)
        for column in Output.__slots__:
            assert getattr(out, column) == getattr(again, column), column
        assert twin.fingerprint() == machine.fingerprint() != before


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_stability_follows_consumption_where_the_driver_consumes(
    protocol: type[OrderingProtocol],
) -> None:
    b = bench(protocol, 1, 2, options=Options(ack_every=1, driver_consumes=True))
    b.say(1, "x", "y")
    b.go_on(rounds=3)  # some deliver only when all have spoken
    assert b.texts(1) == b.texts(2) == ["x", "y"]
    b.step(1, Consumed(G, 2))
    b.carry()
    assert b.stable[1] == 0  # 2 has delivered, but its application has taken nothing
    b.step(2, Consumed(G, 1))
    b.carry()
    assert b.stable[1] <= 1
    b.step(2, Consumed(G, 1))
    b.settle()
    assert b.stable[1] == 2


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_kept_frame_is_forgotten_only_when_all_have_delivered_it(
    protocol: type[OrderingProtocol],
) -> None:
    b = bench(protocol, 1, 2, 3, options=Options(ack_every=1))
    b.say(1, "m")
    b.bring(dst=2)
    while b.find(dst=2) or b.find(src=2, dst=1):  # 3 hears nothing yet
        b.arrive((b.find(dst=2) or b.find(src=2, dst=1))[0])
    machine = b.machines[1]
    assert isinstance(machine, OrderingProtocol)
    assert b.stable[1] == 0
    assert payloads_kept(machine) == [b"m"]
    b.settle()
    assert b.stable[1] == 1
    for p in (1, 2, 3):
        machine = b.machines[p]
        assert isinstance(machine, OrderingProtocol)
        assert payloads_kept(machine) == []


def payloads_kept(machine: OrderingProtocol) -> list[bytes]:
    """What a change would supply to others."""
    if isinstance(machine, SequencingService):
        book, seat = machine.sequencer.books.get(G), machine.member.seats.get(G)
        frames = {**({} if seat is None else seat.kept), **({} if book is None else book.frames)}
        return [entry.payload for entry in frames.values()]
    return [kept.payload for kept in machine.unstable(G)]


def test_a_kept_frame_sorts_by_sender_then_number() -> None:
    frames = [Kept(2, 1, (), b""), Kept(1, 2, (), b""), Kept(1, 1, (9,), b"")]
    assert [(k.origin, k.n) for k in sorted(frames)] == [(1, 1), (1, 2), (2, 1)]
