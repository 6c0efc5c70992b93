"""Why is it held back? What a process adds to the answers of its protocols."""

from __future__ import annotations

from machines import Bench, G, stacks
from ordercast.core.events import Receive, View
from ordercast.core.waiting import NOBODY, Awaited, Waiting
from ordercast.process.given import GivenGroups
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.reliable import Reliable, ReliableData
from ordercast.reliability.link import Linked


def held(b: Bench, p: int) -> list[Waiting]:
    machine = b.machines[p]
    assert isinstance(machine, GivenGroups)
    return machine.held_back()


def linked(*members: int) -> Bench:
    b = stacks(Fifo, *members, network="N0")
    b.view(*members)
    return b


def view(number: int) -> Awaited:
    return Awaited("view", G, NOBODY, number)


def test_a_packet_that_overtook_its_view_waits_for_the_view() -> None:
    b = stacks(Fifo, 1, 2, network="N2")
    b.view(1, 2)
    b.step(1, Receive(2, G, 2, FifoData(1, 0), b"m"))
    assert held(b, 1) == [Waiting(G, 2, 0, (view(2),), b"m")]
    b.step(1, View(G, 2, (1, 2), 1, 2))
    assert held(b, 1) == []
    assert b.texts(1) == ["m"]


def test_before_the_first_view_a_packet_waits_for_view_1() -> None:
    b = stacks(Fifo, 1, 2, network="N2")
    b.step(1, Receive(2, G, 1, FifoData(1, 0), b"m"))
    assert held(b, 1) == [Waiting(G, 2, 0, (view(1),), b"m")]


def test_a_relayed_packet_that_overtook_its_view_is_that_of_its_origin() -> None:
    b = stacks(Reliable, 1, 2, 3, network="N2")
    b.view(1, 2, 3)
    b.step(1, Receive(2, G, 2, ReliableData(3, 1, 0), b"m"))
    assert held(b, 1) == [Waiting(G, 3, 0, (view(2),), b"m")]


def test_a_packet_behind_a_gap_of_its_link_waits_for_every_packet_that_is_missing() -> None:
    b = linked(1, 2)
    b.say(1, "a", "b", "c", "d")
    b.bring(text="b")
    b.bring(text="d")
    first, third = Awaited("packet", G, 1, 1), Awaited("packet", G, 1, 3)
    assert held(b, 2) == [
        Waiting(G, 1, 0, (first,), b"b"),
        Waiting(G, 1, 0, (first, third), b"d"),
    ]
    b.bring(text="a")
    assert held(b, 2) == [Waiting(G, 1, 0, (third,), b"d")]


def test_a_packet_of_a_former_era_behind_a_gap_waits_for_nothing() -> None:
    b = linked(1, 2)
    b.say(1, "a", "b")
    b.bring(text="b")
    b.step(2, View(G, 2, (1, 2), 1, 2))
    assert held(b, 2) == []


def test_a_copy_behind_a_gap_is_not_held_back_if_another_was_delivered() -> None:
    b = stacks(Reliable, 1, 2, 3, network="N0")
    b.view(1, 2, 3)
    b.say(3, "x")
    b.bring(3, 2)
    b.bring(3, 1)
    b.lose(1, 2, text="x")  # the next packet waits for it at the link
    b.bring(2, 1)
    b.say(3, "y")
    b.bring(3, 1, text="y")
    b.bring(3, 2, text="y")
    assert b.texts(2) == ["x", "y"]
    assert all(isinstance(packet.header, Linked) for packet in b.find(1, 2, text="y"))
    b.bring(1, 2, text="y")
    assert held(b, 2) == []
