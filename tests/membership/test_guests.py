"""Guests: they send to a group and get nothing delivered, in every protocol that is open."""

from __future__ import annotations

import re

import msgspec
import pytest

from machines import Bench, G, change, with_view
from ordercast.core.events import Multicast, View
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.process.given import GivenGroups
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.simulation import Crash, GroupConfig, SimulationConfig, Workload
from ordercast.simulation.clustered import ClusterConfig, simulate_cluster
from ordercast.trace.oracle import judge

OPEN = {  # guests of the sequencing service are in no view: they are in tests/views
    name: p for name, p in PROTOCOLS.items() if not p.declaration.closed and p.together is None
}
CLOSED = {name: p for name, p in PROTOCOLS.items() if p.declaration.closed}

every_open_protocol = pytest.mark.parametrize("protocol", OPEN.values(), ids=OPEN)
every_sequencer = pytest.mark.parametrize("protocol", [SequencerPB, SequencerBB])

Protocol = type[OrderingProtocol]


class Told:
    """What a driver is told of one guest."""

    def __init__(self, b: Bench, p: int) -> None:
        self.guest: list[bool] = []
        self.ordered = self.stable = 0
        step = b.machines[p].step

        def watched(events):  # type: ignore[no-untyped-def]
            out = step(events)
            self.guest += [now for _, now in out.guest]
            self.ordered = max([self.ordered, *(n for _, n in out.ordered)])
            self.stable = max([self.stable, *(n for _, n in out.stable)])
            return out

        b.machines[p].step = watched  # type: ignore[method-assign]


def with_guest(protocol: Protocol, *, leader: int = 1) -> tuple[Bench, Told]:
    """Members 1 and 2, guest 9, and 3 outside."""
    b = with_view(protocol, 1, 2, leader=leader, others=(9, 3))
    told = Told(b, 9)
    change(b, protocol, guests=(9,))
    b.carry()
    return b, told


def view(b: Bench, p: int) -> View:
    machine = b.machines[p]
    assert isinstance(machine, GivenGroups)
    found = machine.view(G)
    assert found is not None
    return found


@every_open_protocol
@pytest.mark.parametrize("leader", [1, 7])
def test_what_a_guest_sends_reaches_the_members_and_not_itself(
    protocol: Protocol, leader: int
) -> None:
    b, told = with_guest(protocol, leader=leader)
    assert told.guest == [True]
    b.say(9, "a", "b")
    b.say(1, "c")
    b.settle()
    assert sorted(b.texts(1)) == sorted(b.texts(2)) == ["a", "b", "c"]
    assert b.story(9) == []
    assert (told.ordered, told.stable) == (2, 2)
    assert not b.faults


@every_open_protocol
def test_the_application_does_not_see_that_guests_come_and_go(protocol: Protocol) -> None:
    b, told = with_guest(protocol)
    change(b, protocol, left=(9,))
    b.settle()
    assert told.guest == [True, False]
    assert b.story(1) == b.story(2) == ["12"]
    assert view(b, 2).guests == ()


@every_open_protocol
def test_nothing_waits_for_a_guest_that_crashed(protocol: Protocol) -> None:
    b, _ = with_guest(protocol)
    b.say(9, "a")
    b.carry()
    b.crash(9)
    change(b, protocol, dead=(9,))
    b.say(1, "b")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]
    assert b.story(1)[0] == "12"
    assert b.stable[1] == 1


@every_open_protocol
def test_what_a_guest_sent_survives_a_change_of_members(protocol: Protocol) -> None:
    b, told = with_guest(protocol)
    b.say(9, "a")
    change(b, protocol, joined=(3,))
    b.say(9, "b")
    b.settle()
    b.say(9, "c")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b", "c"]
    assert b.texts(3)[-1] == "c"
    assert told.stable == 3


@every_open_protocol
def test_a_guest_becomes_a_member_and_keeps_the_order_of_what_it_sent(protocol: Protocol) -> None:
    b, told = with_guest(protocol)
    b.say(9, "a")
    change(b, protocol, joined=(9,))
    b.say(9, "b")
    b.settle()
    b.say(9, "c")
    b.settle()
    assert [t for t in b.texts(1) if t in "abc"] == ["a", "b", "c"]
    assert b.texts(1) == b.texts(2)
    assert b.story(9)[0] == "129"
    assert b.texts(9)[-1] == "c"
    assert told.guest == [True, False]
    assert told.stable == 3


@every_open_protocol
def test_a_member_that_leaves_may_stay_as_a_guest(protocol: Protocol) -> None:
    b = with_view(protocol, 1, 2, 9, leader=1)
    told = Told(b, 9)
    b.say(9, "a")
    b.settle()
    change(b, protocol, left=(9,), guests=(9,))
    b.settle()
    b.say(9, "b")
    b.say(1, "c")
    b.settle()
    assert b.story(9) == ["129", "a", "12"]
    assert sorted(b.texts(2)) == ["a", "b", "c"]
    assert told.guest == [True]


@every_open_protocol
def test_a_guest_that_left_and_was_closed_comes_back_in_the_same_view(protocol: Protocol) -> None:
    b, told = with_guest(protocol)
    b.say(9, "a")
    b.settle()
    machine = b.machines[9]
    assert isinstance(machine, GivenGroups)
    late = list(b.flight)
    change(b, protocol, left=(9,))
    b.settle()
    machine.close(G)
    machine.open(G, protocol)
    b.repeat(*late)
    change(b, protocol, guests=(9,))
    b.settle()
    b.say(9, "b")
    b.settle()
    assert told.guest == [True, False, True]
    assert b.texts(1) == b.texts(2) == ["a", "b"]
    assert told.stable == 1  # a stay counts its own frames


@every_open_protocol
def test_a_message_to_a_group_without_members_is_nobodys_and_gives_its_credit_back(
    protocol: Protocol,
) -> None:
    b = with_view(protocol, leader=7, others=(9, 1))
    told = Told(b, 9)
    change(b, protocol, guests=(9,))
    b.settle()
    b.say(9, "lost")
    b.settle()
    assert (told.ordered, told.stable) == (1, 1)
    change(b, protocol, joined=(1,))
    b.settle()
    b.say(9, "heard")
    b.settle()
    assert b.texts(1) == ["heard"]
    assert told.stable == 2


@every_open_protocol
def test_a_leader_may_be_a_guest_of_the_group_it_leads(protocol: Protocol) -> None:
    b = with_view(protocol, 1, 2, leader=7)
    told = Told(b, 7)
    change(b, protocol, guests=(7,))
    b.settle()
    b.say(7, "a", "b")
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]
    assert b.story(7) == []
    assert (told.guest, told.stable) == ([True], 2)
    change(b, protocol, joined=(7,))
    b.settle()
    b.say(7, "c")
    b.settle()
    assert b.story(7) == ["127", "c"]
    assert b.texts(1) == ["a", "b", "c"]


def test_a_guest_passes_on_what_it_heard_in_another_group() -> None:
    h = 2
    b = Bench({p: GivenGroups(p) for p in (1, 2, 9)})
    for p, groups in ((1, (G, h)), (2, (G, h)), (9, (G, h))):
        for g in groups:
            b.machines[p].open(g, Cbcast)  # type: ignore[attr-defined]
    for p in (1, 2, 9):
        b.step(p, View(G, 1, (1, 2), 1, guests=(9,)), View(h, 1, (1, 2, 9), 1))
    b.step(1, Multicast(h, b"cause"))
    b.bring(1, 9)
    b.step(9, Multicast(G, b"effect"))
    b.bring(9, 2, text="effect")
    assert b.texts(2) == []
    b.carry()
    assert b.texts(2) == ["cause", "effect"]


# -- sequencers -----------------------------------------------------------------------------------


@every_sequencer
def test_a_guest_gets_marks_and_no_bodies(protocol: Protocol) -> None:
    b, _ = with_guest(protocol)
    b.say(2, "big")
    b.carry()
    b.say(9, "a")
    b.arrive(*b.find(9))
    assert {(type(p.header).__name__, p.receive.payload) for p in b.find(dst=9)} == {
        ("Accepted", b"")
    }


@every_sequencer
def test_a_guest_repeats_what_got_no_number_and_asks_what_became_of_the_rest(
    protocol: Protocol,
) -> None:
    b, told = with_guest(protocol)
    b.say(9, "a")
    b.lose(9)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    b.say(9, "b")
    b.bring(9)
    b.lose(1, 9)  # the answer
    b.settle()
    assert b.texts(2) == ["a", "b"]
    assert (told.ordered, told.stable) == (2, 2)


@every_sequencer
def test_a_mark_above_what_a_guest_sent_is_a_fault_of_the_sequencer(protocol: Protocol) -> None:
    b, _ = with_guest(protocol)
    b.say(9, "a")
    b.bring(9)
    packet = b.find(1, 9)[0]
    wrong = msgspec.structs.replace(
        packet.receive, header=msgspec.structs.replace(packet.header, n=7)
    )
    b.repeat(packet._replace(receive=wrong))
    assert b.faults == [(9, 1, "Accepted(n=7, stable=0) came to a process that has sent 1 frames")]


@every_sequencer
def test_what_died_with_the_sequencer_is_asked_for_again(protocol: Protocol) -> None:
    """Numbered, told so to the guest, and nobody else heard of it."""
    b = Bench({p: GivenGroups(p) for p in range(4)})
    for p in range(4):
        b.machines[p].open(G, protocol)  # type: ignore[attr-defined]
        b.step(p, View(G, 1, (0, 1, 2), 0, guests=(3,)))
    told = Told(b, 3)
    b.say(3, "a")
    b.bring(3, 0)
    b.bring(0, 3)
    assert told.ordered == 1
    b.flight.clear()
    b.crash(0)
    for p in (1, 2, 3):
        b.step(p, View(G, 2, (1, 2), 1, era=2, guests=(3,)))
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a"]
    assert told.stable == 1


# -- closed groups, and configs -------------------------------------------------------------------


@pytest.mark.parametrize("protocol", CLOSED)
def test_a_closed_protocol_refuses_guests_and_says_why(protocol: str) -> None:
    guests = GroupConfig(members=(0, 1), guests=(2,))
    why = re.escape(PROTOCOLS[protocol].declaration.closed)
    with pytest.raises(ConfigError, match=why):
        SimulationConfig(protocol=protocol, members=3, groups=(guests,))


@pytest.mark.parametrize("guests", [(1,), (2, 2)])
def test_a_guest_is_named_once_and_is_no_member(guests: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="twice, or as a member"):
        SimulationConfig(
            protocol=Fifo, members=3, groups=(GroupConfig(members=(0, 1), guests=guests),)
        )


def test_a_simulated_guest_speaks_and_delivers_nothing() -> None:
    outcome = simulate_cluster(
        ClusterConfig(
            protocol=Fifo,
            hosts=4,
            groups=(GroupConfig(members=(0, 1), guests=(2, 3)),),
            messages=12,
            workload=Workload(senders=(2, 3), start_ms=300, reply=0.0),
            faults=(Crash(2, at_ms=308.0),),
        )
    )
    events = outcome.events()
    assert {e.process for e in events if e.kind == "send"} == {"p2#1", "p3#1"}
    assert {e.process for e in events if e.kind == "deliver"} == {"p0#1", "p1#1"}
    judged = judge(events, only=("validity", "agreement", "fifo.group", "membership", "views"))
    assert {name: j.verdict for name, j in judged.items()} == dict.fromkeys(judged, "ok")
