"""Links and ordering put together."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines import FLUSHED, Bench, G, change, stacks, with_view
from ordercast.core.declaration import STRENGTH, Network
from ordercast.core.events import Consumed, Event, Multicast, Receive, Timer, View
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.machinery.sequenced import SequencedProtocol
from ordercast.process.given import GivenGroups
from ordercast.process.headers import headers_of
from ordercast.process.links import MAX_REPEATS
from ordercast.protocols.basic import Basic
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.protocols.sequencing.headers import Answer, Request
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.vector import CausalVector
from ordercast.reliability.gate import GATE_HEADERS
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.views.flush import FLUSH_HEADERS

every_protocol = pytest.mark.parametrize("protocol", FLUSHED.values(), ids=FLUSHED)


def stack(b: Bench, p: int) -> GivenGroups:
    found = b.machines[p]
    assert isinstance(found, GivenGroups)
    return found


def static(
    protocol: type[OrderingProtocol],
    *members: int,
    network: Network = "N1",
    options: Options | None = None,
) -> Bench:
    b = stacks(protocol, *members, network=network, options=options)
    b.view(*members)
    return b


# -- links ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("network", "linked"), [("N0", True), ("N1", False)])
def test_what_a_guest_of_the_sequencing_service_hears_once_is_not_lost(
    network: Network, linked: bool
) -> None:
    """It does not ask again for a frame that has its place. All else is repeated by its page."""
    b = stacks(SequencingHybrid, 1, 2, 9, network=network, options=Options())
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2), 1))
    b.say(9, "a")
    assert type(b.find(9, 1)[0].header) is Request
    b.bring(9, 1)
    b.bring(1, 2)
    b.bring(2, 1)
    (answer,) = [packet for packet in b.find(1, 9) if packet.receive.group == G]
    assert type(answer.header) is (Linked if linked else Answer)
    b.arrive(answer)
    assert not stack(b, 9).groups.domains["sequencing_hybrid"].sender.outbox.own
    assert not b.faults


@every_protocol
@pytest.mark.parametrize("network", ["N0", "N1", "N2"])
def test_links_are_put_in_only_where_the_network_is_weaker_than_the_protocol_needs(
    protocol: type[OrderingProtocol], network: Network
) -> None:
    b = static(protocol, 1, 2, network=network)
    b.say(2, "m")
    linked = [isinstance(packet.header, Linked) for packet in b.flight]
    assert linked
    assert set(linked) == {STRENGTH[protocol.declaration.network] > STRENGTH[network]}


@every_protocol
@given(st.integers(0, 2**32))
@settings(max_examples=15)
def test_every_protocol_works_on_a_network_that_loses_repeats_and_reorders(
    protocol: type[OrderingProtocol], seed: int
) -> None:
    rng = random.Random(seed)
    b = static(protocol, 1, 2, 3, network="N0", options=Options(ack_every=3))
    for i in range(12):
        b.say(rng.choice([1, 2, 3]), str(i))
        for _ in range(rng.randrange(6)):
            if b.flight:
                packet = rng.choice(b.flight)
                if rng.random() < 0.3:
                    b.flight.remove(packet)
                elif rng.random() < 0.2:
                    b.repeat(packet)
                else:
                    b.arrive(packet)
    b.settle()
    assert [sorted(b.texts(p), key=int) for p in (1, 2, 3)] == [[str(i) for i in range(12)]] * 3
    if protocol.declaration.order == "total":
        assert b.texts(1) == b.texts(2) == b.texts(3)
    assert not b.faults


def test_a_link_acknowledges_alone_after_a_while_or_after_so_many_packets() -> None:
    b = static(Basic, 1, 2, network="N0", options=Options(ack_every=2))
    b.say(1, "a")
    b.carry()
    assert not b.find(header=LinkAck)
    b.ring(2, "ack", LINK_GROUP)
    b.bring(2, 1, LinkAck(1))
    assert stack(b, 1).links.links[2].unacked == {}


def test_what_a_link_lost_is_transmitted_again() -> None:
    b = static(Basic, 1, 2, network="N0")
    b.say(1, "m")
    b.lose()
    b.ring(1, "retransmit", LINK_GROUP)
    assert not b.flight  # the first look
    b.ring(1, "retransmit", LINK_GROUP)
    b.carry()
    assert b.texts(2) == ["m"]


def test_one_link_carries_all_groups_two_processes_share_in_one_order() -> None:
    b = static(Basic, 1, 2, network="N0")
    for p in (1, 2):
        stack(b, p).open(2, Basic)
        b.step(p, View(2, 1, (1, 2), 1))
    b.step(1, Multicast(1, b"first"))
    b.step(1, Multicast(2, b"second"))
    b.arrive(*reversed(b.flight))
    assert b.texts(2) == ["first", "second"]


def test_a_packet_beyond_the_window_of_a_link_is_a_fault() -> None:
    b = static(Basic, 1, 2, network="N0", options=Options(max_held=5))
    b.step(2, Receive(1, G, 1, Linked(6, 0, FifoData(1, 0))))
    b.step(2, Receive(1, LINK_GROUP, 0, LinkAck(9)))
    assert [fault[:2] for fault in b.faults] == [(2, 1), (2, 1)]


def test_a_link_to_a_process_in_no_view_rests_after_so_many_repeats() -> None:
    b = with_view(Basic, 1, 2, leader=1, network="N0")
    b.settle()
    b.say(1, "m")
    b.crash(2)
    change(b, Basic, dead=(2,))
    b.settle(rounds=MAX_REPEATS + 20)
    assert stack(b, 1).links.links[2].repeats == MAX_REPEATS
    stack(b, 1).gone_for_good(2)
    assert stack(b, 1).links.links == {}


def test_one_that_left_does_not_for_ever_repeat_to_a_former_peer_that_does_not_answer() -> None:
    b = with_view(Basic, 1, 2, 3, leader=1, network="N0")
    b.say(2, "m")
    b.settle()
    change(b, Basic, left=(2,))
    b.settle()
    assert b.story(2)[-1] == "13"
    b.crash(3)
    stack(b, 2).links.links[3].wrap(G, 1, FifoData(1, 0), b"the last word")
    b.timers[2][LINK_GROUP, "retransmit"] = 0
    change(b, Basic, dead=(3,))
    b.settle(rounds=MAX_REPEATS + 20)
    assert stack(b, 2).links.links[3].repeats == MAX_REPEATS


def silence(b: Bench, p: int, *, alarms: int) -> None:
    """Nothing from or to p arrives for so many alarms of the links; the rest does."""
    for _ in range(alarms):
        while b.flight:
            packet = b.flight[0]
            if p in (packet.src, packet.dst):
                b.flight.remove(packet)
            else:
                b.arrive(packet)
        for q in b.machines:
            if (LINK_GROUP, "retransmit") in b.timers[q]:
                b.ring(q, "retransmit", LINK_GROUP)


@pytest.mark.parametrize("protocol", [Basic, Reliable, Fifo, CausalVector])
def test_one_excluded_in_silence_that_comes_back_under_its_id_is_heard_and_hears(
    protocol: type[OrderingProtocol],
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, network="N0")
    b.settle()
    for p in (1, 2, 3):
        b.say(p, f"before {p}")
    b.settle()
    b.say(1, "unheard")
    b.say(3, "lost")
    change(b, protocol, dead=(3,))
    silence(b, 3, alarms=MAX_REPEATS + 20)
    stack(b, 3).close(G)
    silence(b, 3, alarms=MAX_REPEATS + 20)
    stack(b, 3).open(G, protocol)
    change(b, protocol, joined=(3,))
    b.settle()
    for p in (1, 2, 3):
        b.say(p, f"after {p}")
    b.settle()
    said = sorted(f"after {p}" for p in (1, 2, 3))
    assert [sorted(b.texts(p)[-3:]) for p in (1, 2, 3)] == [said] * 3
    assert not b.faults


# -- views ----------------------------------------------------------------------------------------


@every_protocol
def test_a_change_gives_every_protocol_its_next_view(protocol: type[OrderingProtocol]) -> None:
    b = with_view(protocol, 1, 2, leader=1, others=(3,))
    b.say(2, "old")
    b.settle()
    change(b, protocol, joined=(3,))
    b.settle()
    b.say(3, "new")
    b.settle()
    assert b.story(1) == b.story(2) == ["12", "old", "123", "new"]
    assert b.story(3) == ["123", "new"]


@every_protocol
@pytest.mark.parametrize("network", ["N0", "N1"])
def test_leave_and_rejoin_with_packets_of_the_former_stay_still_under_way(
    protocol: type[OrderingProtocol], network: Network
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, network=network)
    b.settle()
    b.say(3, "a")
    old = list(b.flight)  # each of these comes a second time, late
    b.settle()
    change(b, protocol, left=(3,))
    old += b.flight
    b.settle()
    stack(b, 3).close(G)
    stack(b, 3).open(G, protocol)
    b.repeat(*old)
    change(b, protocol, joined=(3,))
    b.repeat(*old)
    b.settle()
    b.repeat(*old)
    b.say(3, "b")
    b.settle()
    assert b.story(3) == ["123", "a", "12", "123", "b"]
    assert b.story(1) == b.story(2) == ["123", "a", "12", "123", "b"]
    assert not b.faults
    assert b.stable[3] == 1  # of this stay


@every_protocol
def test_what_is_taken_after_the_last_view_and_before_the_group_is_closed_does_no_harm(
    protocol: type[OrderingProtocol],
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, options=Options(driver_consumes=True))
    b.say(1, "a", "b")
    b.go_on(rounds=5)
    change(b, protocol, left=(2,))
    b.go_on(rounds=5)
    assert b.story(2) == ["123", "a", "b", "13"]
    b.step(2, Consumed(G, 1), Consumed(G, 1))
    assert not b.faults


# -- the door -------------------------------------------------------------------------------------


def test_the_headers_of_a_channel_are_those_of_changes_then_the_protocols() -> None:
    for protocol in PROTOCOLS.values():
        headers = headers_of(protocol)
        first = (*FLUSH_HEADERS, *GATE_HEADERS) if protocol.together is None else ()
        assert headers == (*first, *protocol.headers)
        assert len(set(headers)) == len(headers)


def inner(header: msgspec.Struct) -> msgspec.Struct:
    """What a link carries."""
    return header.header if isinstance(header, Linked) else header


@every_protocol
def test_whatever_leaves_a_group_has_a_header_of_its_channel(
    protocol: type[OrderingProtocol],
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, others=(4,))
    for p in (1, 2, 3):
        b.say(p, "m")
    change(b, protocol, joined=(4,), left=(3,))
    seen = set()
    for _ in range(500):
        seen |= {type(inner(packet.header)) for packet in b.flight}
        if b.flight:
            b.arrive(b.flight[0])
            continue
        for p, timers in b.timers.items():
            for g, name in list(timers):
                b.ring(p, name, g)
    assert not b.flight
    assert seen - {LinkAck} <= set(headers_of(protocol))


def test_group_0_belongs_to_the_links_and_a_group_is_opened_once() -> None:
    b = static(Basic, 1)
    with pytest.raises(AssertionError):
        stack(b, 1).open(LINK_GROUP, Basic)
    with pytest.raises(AssertionError):
        stack(b, 1).open(G, Basic)


def test_events_for_a_group_that_was_closed_are_ignored() -> None:
    b = static(Fifo, 1, 2)
    b.say(1, "m")
    stack(b, 2).close(G)
    b.carry()
    out = b.step(2, Multicast(G, b"m"), Timer(G, "ack"))
    assert b.texts(2) == []
    assert (out.transmits, out.deliveries, out.faults) == ([], [], [])
    stack(b, 2).close(G)  # closing twice is no harm


def test_the_output_of_a_step_is_of_that_step_alone() -> None:
    b = static(Basic, 1, 2)
    machine = stack(b, 1)
    first = machine.step([Multicast(G, b"a")])
    kept = first.deliveries
    second = machine.step([])
    assert not any(getattr(second, column) for column in Output.__slots__)
    assert len(kept) == 1  # a driver may still hold the columns of the step before


@every_protocol
@pytest.mark.parametrize("network", ["N0", "N1"])
def test_a_copy_of_a_process_steps_as_the_original_and_does_not_touch_it(
    protocol: type[OrderingProtocol], network: Network
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, others=(4,), network=network)
    for p in (1, 2, 3):
        b.say(p, "m")
    change(b, protocol, joined=(4,))
    b.arrive(*b.flight[::2])
    for p in (1, 2, 3):
        machine = stack(b, p)
        before = machine.fingerprint()
        twin = machine.copy()
        assert twin.fingerprint() == before
        events: list[Event] = [packet.receive for packet in b.flight if packet.dst == p]
        events += [Timer(g, name) for g, name in b.timers[p]]
        events.append(Multicast(G, b"next"))
        out = twin.step(events)
        columns = {name: getattr(out, name).copy() for name in Output.__slots__}
        assert machine.fingerprint() == before
        again = machine.step(events)
        assert columns == {name: getattr(again, name) for name in Output.__slots__}
        assert twin.fingerprint() == machine.fingerprint() != before


def test_different_protocols_in_different_groups_do_not_disturb_each_other() -> None:
    b = stacks(Fifo, 1, 2, network="N1")
    protocols = (Reliable, CausalVector, SequencerPB)
    for g, protocol in enumerate(protocols, start=2):
        for p in (1, 2):
            stack(b, p).open(g, protocol)
    for g in range(1, 5):
        for p in (1, 2):
            b.step(p, View(g, 1, (1, 2), 1))
    for g in range(1, 5):
        b.step(2, Multicast(g, str(g).encode()))
    b.settle()
    assert sorted(b.texts(1)) == sorted(b.texts(2)) == ["1", "2", "3", "4"]


# -- one that is gone for good --------------------------------------------------------------------


@every_protocol
@pytest.mark.parametrize("leader", [1, 0])
def test_the_view_in_force_is_known_to_its_members(
    protocol: type[OrderingProtocol], leader: int
) -> None:
    b = with_view(protocol, 1, 2, leader=leader)
    b.settle()
    views = [stack(b, p).view(G) for p in (1, 2)]
    assert [view and (view.members, view.leader) for view in views] == [((1, 2), leader)] * 2
    assert stack(b, 1).view(9) is None


@every_protocol
@pytest.mark.parametrize("network", ["N0", "N1"])
def test_nothing_is_kept_of_one_that_is_gone_for_good(
    protocol: type[OrderingProtocol], network: Network
) -> None:
    b = with_view(protocol, 1, 2, 3, leader=1, network=network)
    b.settle()
    b.say(3, "m")
    b.settle()
    change(b, protocol, left=(3,))
    b.settle()
    for p in (1, 2):
        stack(b, p).gone_for_good(3)
        machine = stack(b, p).groups.machines[G]
        assert 3 not in stack(b, p).links.links
        if isinstance(machine, SequencedProtocol):
            assert 3 not in machine.done
            assert machine.sequencer is None or 3 not in machine.sequencer.book.last
    b.say(2, "after")
    b.settle()
    assert b.story(1) == b.story(2) == ["123", "m", "12", "after"]


def test_what_one_that_is_gone_for_good_had_not_consumed_is_dropped() -> None:
    b = with_view(SequencerPB, 1, 2, 3, leader=1, network="N1")
    b.settle()
    b.say(1, "m")
    b.crash(3)
    b.carry()
    b.ring(1, "ack")
    b.ring(2, "ack")
    b.carry()
    assert b.stable[1] == 0
    stack(b, 1).gone_for_good(3)
    b.settle()
    assert b.stable[1] == 1
    machine = stack(b, 1).groups.machines[G]
    assert isinstance(machine, SequencerPB)
    assert machine.sequencer is not None
    assert machine.sequencer.book.history == {}
