"""No word of a peer ends a node: what a packet brings out ends the connection it came on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import Any

import pytest

import ordercast as oc
from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.membership.agreement_headers import Heartbeat
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.membership.options import ClusterOptions
from ordercast.process.commands import Broken, Connected
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.protocols.fifo import FifoData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime import coordination
from ordercast.runtime.engine import Engine
from ordercast.runtime.packet_errors import PacketErrors

Records = list[logging.LogRecord]
GROUP: GroupId = 5
PEER: ProcessId = 2


def node_view(number: int, nodes: tuple[NodeEntry, ...]) -> NodeView:
    return NodeView(ViewId(0, 0, number), nodes, tuple(node.pid for node in nodes), number)


def packet(body: bytes) -> Event:
    return Receive(PEER, GROUP, 1, FifoData(1, 0), body)


class Fragile(Process):
    """A stack with a fault: a packet with this payload, or this timer, brings it out."""

    def __init__(self, me: ProcessId) -> None:
        nodes = tuple(NodeEntry(pid, f"p{pid}", 1) for pid in (1, PEER, 3))
        super().__init__(
            nodes[0], PROTOCOLS, cluster_options=ClusterOptions(), cluster_network="N2"
        )
        self.agreement.view = node_view(1, nodes)
        self.fails_at_the_end = False
        self.refuses_multicasts = True
        self.fragile_for: ProcessId = -1
        self.heard: list[ProcessId] = []  # connected or broken

    def _receive(self, packet: Receive) -> None:
        self.out.deliveries.append((GROUP, packet.src, 1, 0, packet.payload))
        if packet.payload == b"bad":
            raise KeyError("no such thing")
        if packet.payload == b"arms":
            self.out.timers.append((GROUP, "late", 0))
        if packet.payload == b"arms a tick":
            self.out.timers.append((CLUSTER_GROUP, "late", 0))
        if packet.payload == b"unsendable":
            self.out.transmits.append(((PEER,), CLUSTER_GROUP, -1, Heartbeat(ViewId()), b""))
            self.out.transmits.append(((3,), CLUSTER_GROUP, 0, Heartbeat(ViewId()), b""))

    def _handle(self, event: Any) -> None:
        if isinstance(event, Timer):
            raise ZeroDivisionError("in a timer")
        if isinstance(event, Broken | Connected):
            self.heard.append(event.pid)
            if event.pid == self.fragile_for:
                raise LookupError("a node that is none")
        assert not (isinstance(event, Multicast) and self.refuses_multicasts), "a bug of ours"

    def _conclude(self, out: Output) -> None:
        assert not self.fails_at_the_end, "at the end of a step"


class Driver:
    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.sent: list[tuple[ProcessId, ...]] = []
        self.blamed: list[tuple[ProcessId, str, str]] = []
        self.failed: list[Exception] = []
        self.stack = Fragile(1)
        self.engine = Engine(self.stack, self)  # type: ignore[arg-type]

    def bring(self, *payloads: bytes) -> None:
        self.engine._took(PEER, [packet(body) for body in payloads])

    def transmit_for_cluster(self, to: tuple[ProcessId, ...], packet: bytes) -> None:
        self.sent.append(to)

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        """Nothing is sent in groups."""

    def deliver(self, delivery: Delivery) -> None:
        self.seen.append(delivery[4])
        if delivery[4] == b"undeliverable":
            raise LookupError("at the driver")
        if delivery[4] == b"breaks":  # what carries out an effect calls for other steps
            self.engine.step([Broken(3)], 3)
            self.engine.step([Broken(4)])
            self.engine.step([Multicast(GROUP, b"")])
            self.engine.step([Broken(5)])

    def install(self, view: View) -> None:
        """There is none."""

    def blame(self, peer: ProcessId, kind: str, error: Exception) -> None:
        self.blamed.append((peer, kind, type(error).__name__))

    def broken(self, error: Exception) -> BaseException:
        self.failed.append(error)
        return error


async def test_what_came_before_a_bad_packet_takes_effect_and_what_comes_after_is_dropped() -> None:
    driver = Driver()
    driver.bring(b"one", b"bad", b"two")
    assert driver.seen == [b"one", b"bad"]  # the machine has taken these steps
    assert driver.blamed == [(PEER, "FifoData", "KeyError")]
    assert not driver.failed
    driver.bring(b"three")
    assert driver.seen == [b"one", b"bad", b"three"]


async def test_an_effect_that_cannot_be_carried_out_does_not_stop_the_others() -> None:
    driver = Driver()
    driver.bring(b"unsendable", b"undeliverable", b"fine")
    assert driver.sent == [(3,)]
    assert driver.seen == [b"unsendable", b"undeliverable", b"fine"]
    assert [blamed[2] for blamed in driver.blamed] == ["error", "LookupError"]  # struct.error
    assert not driver.failed


async def test_a_conclusion_that_fails_is_the_fault_of_the_packets_before_it() -> None:
    driver = Driver()
    driver.stack.fails_at_the_end = True
    driver.bring(b"one")
    assert driver.seen == [b"one"]
    assert {blamed[0] for blamed in driver.blamed} == {PEER} and not driver.failed


async def test_a_timer_that_a_packet_armed_is_its_senders() -> None:
    driver = Driver()
    driver.bring(b"arms")
    await until(lambda: bool(driver.blamed))
    assert driver.blamed == [(PEER, "timer 'late'", "ZeroDivisionError")]
    assert not driver.failed


@pytest.mark.parametrize(
    "gone", [False, True], ids=["a tick of the cluster", "of one that is gone"]
)
async def test_a_timer_that_nobody_can_answer_for_is_our_own(gone: bool) -> None:
    driver = Driver()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    driver.bring(b"arms" if gone else b"arms a tick")
    if gone:
        nodes = (NodeEntry(1, "p1", 1), NodeEntry(3, "p3", 1))
        driver.stack.agreement.view = node_view(2, nodes)
    await until(lambda: bool(driver.failed))
    assert not driver.blamed and isinstance(driver.failed[0], ZeroDivisionError)


@pytest.mark.parametrize("event", [Broken(PEER), Connected(PEER, "p2")], ids=["broken", "bound"])
async def test_what_the_end_or_begin_of_a_connection_brings_out_is_the_fault_of_that_peer(
    event: Broken | Connected,
) -> None:
    driver = Driver()
    driver.stack.fragile_for = PEER
    driver.engine.step([event], PEER)
    assert driver.blamed == [(PEER, type(event).__name__, "LookupError")] and not driver.failed


@pytest.mark.parametrize("fragile_for", [3, 4])
async def test_a_step_that_follows_from_a_packet_is_its_senders_unless_it_is_anothers(
    fragile_for: ProcessId,
) -> None:
    driver = Driver()
    driver.stack.fragile_for = fragile_for
    driver.bring(b"breaks", b"and more")
    assert driver.stack.heard == [3, 4, 5]  # one that raises takes no other with it
    at_fault = 3 if fragile_for == 3 else PEER
    lost = (at_fault, "Broken", "LookupError")
    own = (PEER, "Multicast", "AssertionError")
    assert driver.blamed == ([lost, own]) and not driver.failed
    assert driver.seen == [b"breaks", b"and more"]


async def test_one_that_is_blamed_meanwhile_does_not_silence_another() -> None:
    driver = Driver()
    driver.stack.fragile_for = 3
    driver.stack.refuses_multicasts = False
    assert driver.engine._took(PEER, [packet(b"breaks")])


async def test_all_that_happens_on_behalf_of_a_peer_is_charged_to_it() -> None:
    driver = Driver()
    with driver.engine.on_behalf_of(PEER):
        driver.engine.step([Multicast(GROUP, b"")])
        assert driver.engine.cause == PEER
    assert driver.engine.cause is None
    assert driver.blamed == [(PEER, "Multicast", "AssertionError")] and not driver.failed


async def test_what_the_application_asks_for_fails_loudly() -> None:
    driver = Driver()
    with pytest.raises(AssertionError, match="a bug of ours"):
        driver.engine.multicast(GROUP, b"")
    assert len(driver.failed) == 1 and not driver.blamed


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


# -- live -----------------------------------------------------------------------------------------


async def test_a_packet_that_brings_out_a_fault_costs_its_sender_the_membership_and_no_other(
    monkeypatch: pytest.MonkeyPatch, packet_errors: Records
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
        oc.Node("evil", seeds=[alice.address], rejoin=False) as evil,
    ):
        groups = [await node.join("g", order="total") for node in (alice, bob, carol)]
        me = evil._presence.me.pid
        receive = Process._receive

        def fragile(stack: Process, packet: Receive) -> None:
            if packet.src == me and stack.me == bob._presence.me.pid:
                raise KeyError("AskHolding")
            receive(stack, packet)

        monkeypatch.setattr(Process, "_receive", fragile)
        await until(lambda: bob.stats()["packet_errors"]["count"] > 0)  # a heartbeat is enough
        await until(lambda: "evil#1" not in bob.stats()["node_view"]["members"])
        assert bob.stats()["node_view"]["members"] == ["alice#1", "bob#1", "carol#1"]
        assert bob.stats()["packet_errors"]["last"] == (
            "KeyError while Heartbeat of evil#1 was handled"
        )
        assert bob.stats()["peer_faults"] >= 1
        assert len(packet_errors) == 1 and packet_errors[0].exc_info is not None
        assert "Heartbeat of evil#1" in packet_errors[0].getMessage()
        await groups[0].multicast(b"they go on")
        async for event in bob:
            if isinstance(event, oc.Message):
                break
        assert event.body == b"they go on"


async def test_a_control_message_that_brings_out_a_fault_ends_its_connection_only(
    monkeypatch: pytest.MonkeyPatch, packet_errors: Records
) -> None:
    def fragile(*_: object) -> None:
        raise ZeroDivisionError("a fault in the admission")

    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(coordination.Coordination, "consider", fragile)
            with pytest.raises(oc.JoinTimeout, match=r"closed by the peer|broke"):
                async with oc.Node("carol", seeds=[alice.address], join_timeout=0.3):
                    pass
        stats = alice.stats()
        assert stats["node_view"]["members"] == ["alice#1", "bob#1"]
        assert (
            stats["packet_errors"]["last"] == "ZeroDivisionError while Apply of carol#0 was handled"
        )
        assert stats["peer_faults"] == stats["packet_errors"]["count"] >= 1
        assert len(packet_errors) == 1  # and the others are only counted
        async with oc.Node("carol", seeds=[alice.address]) as carol:
            assert carol.stats()["nodes"] == 3


async def test_a_fault_in_what_this_node_does_by_itself_still_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fragile(*_: object) -> None:
        raise ZeroDivisionError("a fault in the tick")

    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    async with oc.Node("alice", bootstrap=True) as alice:
        monkeypatch.setattr(Process, "_tick", fragile)
        with pytest.raises(ZeroDivisionError):
            async for _ in alice:
                pass


def test_an_error_is_logged_once_for_each_peer_packet_and_kind_of_error(
    packet_errors: Records,
) -> None:
    errors = PacketErrors()
    for who in ("x#1", "y#1"):
        for kind in ("Want", "Want", "Fetch"):
            for error in (KeyError("1"), KeyError("2"), ValueError("3")):
                assert type(error).__name__ in errors.reason_for(who, kind, error)
    assert len(packet_errors) == 8 and errors.count == 18
    assert errors.reason_for("x#1", "Want", oc.PeerError("said plainly")) == "said plainly"
    assert errors.count == 18


def test_a_test_is_not_blind_for_such_errors(packet_errors: Records) -> None:
    PacketErrors().reason_for("x#1", "Want", KeyError("1"))
    assert len(packet_errors) == 1  # without this fixture the test would fail
