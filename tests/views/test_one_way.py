"""A group has one way to change: the flush of the cluster. No member tells another a view."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from types import GenericAlias
from typing import get_args, get_type_hints

import msgspec
import pytest

from ordercast.core.events import Receive, View
from ordercast.core.ids import ProcessId
from ordercast.core.output import Delivery
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import FrameError
from ordercast.membership.node_view import NodeEntry
from ordercast.membership.options import ClusterOptions
from ordercast.process.headers import headers_of
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.engine import Engine
from ordercast.views.groups import GroupEntry
from ordercast.wire.frame import Frame, Splitter

G, ERA = 7, 3  # as the recorded frames have them
ME, LEADER = 1, 2
MEMBERS = (ME, LEADER, 3)
RECORDED = Path(__file__).parents[1] / "wire" / "recorded" / "v9" / "headers.json"
OF_A_VIEW = {"members", "guests", "joined", "left", "leader", "sequencer", "peers", "view", "views"}

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
with_one_sequencer = pytest.mark.parametrize("name", ["sequencer_pb", "sequencer_bb"])

Protocol = type[OrderingProtocol]


# -- (A) what the headers can say -----------------------------------------------------------------


def parts(kind: object) -> Iterator[type[msgspec.Struct]]:
    """A header, and the structs in it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        for inner in get_type_hints(kind).values():
            yield from parts(inner)
    for inner in get_args(kind):
        yield from parts(inner)


@every_protocol
def test_no_header_has_a_field_for_the_members_of_a_view(protocol: Protocol) -> None:
    for header in headers_of(protocol):
        for part in parts(header):
            assert OF_A_VIEW.isdisjoint(part.__struct_fields__), header


def filled(kind: object, first: int, step: int) -> tuple[object, int]:
    """A value of this type, with the integers first, first + step, ...; and the one after them."""
    if kind is int:
        return first, first + step
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        values = []
        for inner in get_type_hints(kind).values():
            value, first = filled(inner, first, step)
            values.append(value)
        return kind(*values), first
    assert isinstance(kind, GenericAlias), kind
    inners = [inner for inner in get_args(kind) if inner is not Ellipsis]
    values = []
    for inner in inners if len(inners) > 1 else inners * 2:
        value, first = filled(inner, first, step)
        values.append(value)
    return tuple(values), first


def lies(protocol: Protocol, era: int) -> Iterator[Receive]:
    """Every header with small numbers, from every other member."""
    for header in headers_of(protocol):
        for first in range(5):
            for step in (0, 1):
                said, _ = filled(header, first, step)
                assert isinstance(said, msgspec.Struct)
                for src in MEMBERS[1:]:
                    yield Receive(src, G, era, said, b"m")


@every_protocol
@pytest.mark.parametrize("leader", [ME, LEADER])
def test_no_packet_changes_the_view_of_a_member(protocol: Protocol, leader: ProcessId) -> None:
    view = View(G, 1, MEMBERS, leader, ERA)
    for lie in lies(protocol, ERA):
        machine = protocol(ME)
        machine.step([view])
        out = machine.step([lie])
        assert (machine.views, machine.member_of) == ({G: view}, {G}), lie
        assert machine.others == {G: (LEADER, 3)}, lie
        assert not [item for item in out.deliveries if isinstance(item, View)], lie
        assert not out.guest, lie


@every_protocol
def test_no_packet_lets_a_process_in(protocol: Protocol) -> None:
    for lie in lies(protocol, 1):
        machine = protocol(ME)
        out = machine.step([lie])
        assert (machine.views, machine.member_of) == ({}, set()), lie
        assert not (out.transmits or out.deliveries or out.guest), lie


# -- (B) a view entry of the headers before -------------------------------------------------------


class Driver:
    """What an engine has done."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        self.said.append(packet)

    def deliver(self, delivery: Delivery) -> None:
        self.said.append(delivery)

    def install(self, view: View) -> None:
        self.said.append(view)

    def fault(self, peer: ProcessId, reason: str) -> None:
        self.said.append(reason)


def member(name: str) -> tuple[Engine, Driver]:
    """A node in a group of three that another numbers."""
    protocol = PROTOCOLS[name]
    node = NodeEntry(ME, "p1", 1)
    process = Process(node, PROTOCOLS, cluster_options=ClusterOptions())
    process.listens = frozenset(MEMBERS)
    driver = Driver()
    engine = Engine(process, driver)  # type: ignore[arg-type]
    engine.open(GroupEntry(G, "g", "total", name, protocol.header_version))
    process.groups.machines[G].step([View(G, 1, MEMBERS, LEADER, ERA)])
    process.out.clear()
    return engine, driver


def forged(name: str) -> Frame:
    """Number 1 goes to a view in which this process is no member, as the sequencer would say it."""
    [entry] = [e for e in json.loads(RECORDED.read_text())[name] if "ViewEntry" in e["header"]]
    [frame] = Splitter(1 << 20).feed(bytes.fromhex(entry["hex"]))
    assert (frame[0], frame[2]) == (G, ERA)
    return frame


@with_one_sequencer
async def test_a_forged_view_entry_is_the_fault_of_who_sent_it(name: str) -> None:
    engine, driver = member(name)
    machine = engine.stack.groups.machines[G]
    before = machine.fingerprint()
    with pytest.raises(FrameError, match=r"no header has the tag 1[01] on this channel"):
        engine.receive(LEADER, [forged(name)], lambda _: None)
    assert not driver.said
    assert machine.fingerprint() == before


@with_one_sequencer
async def test_a_datagram_with_one_is_dropped_and_its_sender_blamed(name: str) -> None:
    engine, driver = member(name)
    machine = engine.stack.groups.machines[G]
    before, faults = machine.fingerprint(), []
    engine.receive_datagrams(LEADER, [forged(name)], faults.append)
    [fault] = faults
    assert fault.startswith("no header has the tag")
    assert not driver.said
    assert machine.fingerprint() == before


@with_one_sequencer
def test_the_version_is_another_one_and_the_other_headers_keep_their_tags(name: str) -> None:
    headers = [header.__name__ for header in headers_of(PROTOCOLS[name])]
    before = [e["header"].partition("(")[0] for e in json.loads(RECORDED.read_text())[name]]
    assert [*headers, "ViewEntry"] == before
    assert PROTOCOLS[name].header_version > 5  # by which joins tell the two apart
