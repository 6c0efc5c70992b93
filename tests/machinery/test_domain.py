"""What all protocols across groups share: the send rule, and guests of one of their groups."""

from __future__ import annotations

import pytest

from domains import AT_ONCE, Groups, Overlap
from ordercast.core.events import Multicast, Receive, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.machinery.acknowledged import AcknowledgedProtocol
from ordercast.machinery.domain import AskHeld, DomainProtocol, Held
from ordercast.machinery.stability import Ack
from ordercast.protocols.registry import PROTOCOLS

TWO: Groups = {1: (1, 2, 3), 2: (2, 3, 4)}

ACROSS = {name: p for name, p in PROTOCOLS.items() if issubclass(p, DomainProtocol)}
OPEN = {name: p for name, p in ACROSS.items() if not p.declaration.closed}

across_groups = pytest.mark.parametrize("protocol", ACROSS.values(), ids=ACROSS)


def test_every_protocol_of_scope_domain_is_one() -> None:
    declared = {name: p.declaration for name, p in PROTOCOLS.items()}
    unsequenced = {n for n, d in declared.items() if d.scope == "domain" and not d.sequenced}
    assert unsequenced == set(ACROSS)


def test_a_page_without_a_sequencer_has_one_base_class_and_the_rest_as_parts() -> None:
    bases = (AcknowledgedProtocol, DomainProtocol)
    pages = [p for p in PROTOCOLS.values() if issubclass(p, bases)]
    assert {page.__bases__ for page in pages} == {(base,) for base in bases}
    assert {base.__bases__ for base in bases} == {(OrderingProtocol,)}


@across_groups
def test_a_frame_leaves_for_another_group_once_somebody_holds_the_last(
    protocol: type[DomainProtocol],
) -> None:
    o = Overlap(protocol, TWO, options=Options())
    o.tell(2, 1, "a")
    o.tell(2, 2, "b")
    assert not o.find(text="b")
    o.bring(2, 1, header=AskHeld)  # the question overtakes a
    assert not o.find(1, 2, header=Held)
    o.bring(2, 1, text="a")
    o.bring(1, 2)
    assert o.find(2, 4, text="b")


@across_groups
def test_frames_for_one_group_wait_for_nobody_and_what_is_said_later_does_not_overtake(
    protocol: type[DomainProtocol],
) -> None:
    o = Overlap(protocol, TWO, options=Options())
    o.tell(2, 1, "a", "b")
    assert o.find(text="a") and o.find(text="b") and not o.find(header=AskHeld)
    o.tell(2, 2, "c")
    o.tell(2, 1, "d")
    assert not o.find(text="c") and not o.find(text="d")


@across_groups
def test_without_resilience_a_frame_leaves_at_once(protocol: type[DomainProtocol]) -> None:
    o = Overlap(protocol, TWO, options=AT_ONCE)
    o.tell(2, 1, "a")
    o.tell(2, 2, "b")
    assert o.find(2, 4, text="b")
    assert not o.find(header=AskHeld)


@across_groups
def test_only_a_member_can_hold_a_frame_and_an_acknowledgement_proves_that_it_does(
    protocol: type[DomainProtocol],
) -> None:
    machine = protocol(1)
    machine.step([View(1, 1, (1, 2), 7), View(2, 1, (1, 2), 7)])
    machine.step([Multicast(1, b"a")])
    machine.step([Multicast(2, b"b")])
    out = machine.step([Receive(7, 1, 1, Held(1))])
    assert out.faults == [(7, "process 7 is no member, and holds nothing")]
    assert [multicast.payload for multicast in machine.send_rule.deferred] == [b"b"]
    out = machine.step([Receive(2, 1, 1, Held(2))])
    assert out.faults == [(2, "it holds frame 2, but only 1 were sent")]
    out = machine.step([Receive(2, 1, 1, Ack(1))])
    assert [payload for _, _, _, _, payload in out.transmits] == [b"b"]


@pytest.mark.parametrize("protocol", OPEN.values(), ids=OPEN)
def test_a_guest_is_ordered_like_a_member_and_gets_nothing(protocol: type[DomainProtocol]) -> None:
    o = Overlap(protocol, {1: (1, 2, 3), 2: (3, 4)}, guests={1: (4,)})
    o.tell(4, 1, "a")
    o.tell(4, 2, "b")
    o.bring(4, 3, text="b")
    assert o.texts(3) == []
    o.bring(4, 3)
    assert o.texts(3) == ["a", "b"]
    assert o.texts(4) == ["b"]
