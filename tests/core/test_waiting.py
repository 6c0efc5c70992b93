"""What waits, and why: no page says more of one frame than anybody reads."""

from __future__ import annotations

import pytest

from machines import Bench, G, bench, stacks
from ordercast.core.events import Receive
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.waiting import MAX_NAMED, Awaited, Waiting, first_missing, first_named
from ordercast.machinery.placing import PlacingQueue
from ordercast.machinery.sequencer_headers import Accept
from ordercast.process.given import GivenGroups
from ordercast.protocols.agreed import AgreedOrder
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.nak import NakData, NakMulticast
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencer_bb import Order, SequencerBB
from ordercast.protocols.sequencer_pb import Request, SequencerPB

MANY = 100


def held(b: Bench, p: int) -> list[Waiting]:
    machine = b.machines[p]
    assert isinstance(machine, OrderingProtocol | GivenGroups)
    found = machine.held_back()
    assert sorted(machine.waiting_frames()) == sorted(waiting.frame for waiting in found)
    return found


def every_second(b: Bench, p: int, packet) -> list[Waiting]:
    """Frames 2, 4, 6, ... came to p, and nothing else."""
    for n in range(2, 2 * MANY + 1, 2):
        b.step(p, packet(n))
    return held(b, p)


def test_of_many_things_the_first_are_named() -> None:
    things = [Awaited("frame", G, 1, n) for n in range(MANY)]
    assert first_named(iter(things)) == tuple(things[:MAX_NAMED])
    assert first_named(things[:2]) == tuple(things[:2])


def test_missing_is_what_lies_between_the_mark_and_the_last_that_is_here() -> None:
    assert first_missing(3, {}) == []
    assert first_missing(3, {1: b"", 4: b""}) == []
    assert first_missing(3, {5: b"", 8: b""}) == [4, 6, 7]
    assert first_missing(0, {2**60: b""}) == list(range(1, MAX_NAMED + 1))


def numbers(waiting: Waiting) -> list[int]:
    return [thing.number for thing in waiting.awaits]


ODD = list(range(1, 2 * MANY, 2))


@pytest.mark.parametrize(
    ("protocol", "p", "packet"),
    [
        (NakMulticast, 1, lambda n: Receive(2, G, 1, NakData(n, (0, 0, 0)), b"%d" % n)),
        (SequencerPB, 2, lambda n: Receive(1, G, 1, Accept(n, 1, n, 0), b"%d" % n)),
        (SequencerPB, 1, lambda n: Receive(2, G, 1, Request(n), b"%d" % n)),
    ],
    ids=["nak", "member", "sequencer"],
)
def test_a_frame_behind_many_gaps_names_the_first(protocol, p, packet) -> None:
    found = every_second(bench(protocol, 1, 2, 3), p, packet)
    assert [waiting.n for waiting in found] == list(range(2, 2 * MANY + 1, 2))
    assert numbers(found[1]) == [1, 3]
    assert numbers(found[-1]) == ODD[:MAX_NAMED]


def test_an_order_without_its_body_names_the_first_gaps() -> None:
    b = bench(SequencerBB, 1, 2, 3)
    found = every_second(b, 3, lambda n: Receive(1, G, 1, Order(n, 2, n, 0)))
    assert len(found) == MANY
    assert numbers(found[0]) == [1, 2]
    assert numbers(found[-1]) == list(range(1, MAX_NAMED + 1))


def test_a_packet_behind_many_gaps_of_its_link_names_the_first() -> None:
    b = stacks(Fifo, 1, 2, network="N0")
    b.view(1, 2)
    b.say(1, *map(str, range(1, 2 * MANY + 1)))
    for packet in b.find(1, 2)[1::2]:
        b.arrive(packet)
    found = held(b, 2)
    assert len(found) == MANY
    assert numbers(found[-1]) == ODD[:MAX_NAMED]


def test_agreed_many_frames_without_a_place_are_walked_through_once(monkeypatch) -> None:
    b = bench(AgreedOrder, 1, 2, 3)
    b.say(1, *map(str, range(MANY)))
    walks, in_order = [], PlacingQueue.in_order
    monkeypatch.setattr(PlacingQueue, "in_order", lambda q: walks.append(q) or in_order(q))
    found = held(b, 1)
    assert len(walks) == 1
    assert len(found) == MANY
    assert found[0].awaits == (Awaited("proposal", G, 2, 1), Awaited("proposal", G, 3, 1))
    assert found[-1].awaits == tuple(
        Awaited("proposal", G, q, n) for n in range(1, MAX_NAMED // 2 + 1) for q in (2, 3)
    )


def test_only_pages_with_one_short_reason_make_it_up_at_every_look() -> None:
    lazy = {
        name
        for name, page in PROTOCOLS.items()
        if page.waiting_frames is OrderingProtocol.waiting_frames
    }
    assert lazy == {"basic", "reliable", "uniform"}
