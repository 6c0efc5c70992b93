"""A node whose own machine fails comes back with another one, a few times, and says so loudly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

import ordercast as oc
from ordercast.membership.node_view import NodeEntry
from ordercast.process.process import Process
from ordercast.runtime import lifetime
from ordercast.runtime.cluster_membership import ClusterMembership
from ordercast.runtime.control import Control, Goodbye, NodeUp, encode
from ordercast.runtime.group_requests import GroupRequests
from ordercast.wire.frame import Frame, Splitter

Patch = pytest.MonkeyPatch
Records = list[logging.LogRecord]


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def fails_in_tick(patch: Patch, fails: Callable[[Process], bool]) -> None:
    """Whatever made it so: the tick of this node fails from now on."""
    tick = Process._tick

    def fragile(stack: Process) -> None:
        if fails(stack):
            raise ZeroDivisionError("in the tick")
        tick(stack)

    patch.setattr(Process, "_tick", fragile)


async def next_message(node: oc.Node) -> oc.Message:
    async for event in node:
        if isinstance(event, oc.Message):
            return event
    raise AssertionError("the stream ended")


async def test_a_node_whose_machine_fails_comes_back_into_its_groups(
    ordercast_cluster, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False) as cluster:
        one, two, _ = cluster.nodes
        poisoned = [two._presence.engine.stack]
        fails_in_tick(monkeypatch, lambda stack: stack in poisoned)
        with pytest.raises(oc.MachineFailed, match="ZeroDivisionError: in the tick") as failed:
            await next_message(two)
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        await until(lambda: two.incarnation == 2 and not two.stats()["out_reason"])
        await until(lambda: len(cluster.groups[1].members) == 3)
        await cluster.groups[0].multicast(b"they go on")
        assert (await next_message(two)).body == b"they go on"
        stats = two.stats()
        assert (stats["machine_failures"], stats["re_entries"]) == (1, 1)
        assert not one.stats()["machine_failures"]
    told = [r for r in caplog.records if "the state machine of p2#1 failed" in r.getMessage()]
    assert [r.levelname for r in told] == ["ERROR"] and told[0].exc_info is not None


async def test_a_node_whose_machines_fail_again_and_again_ends_with_the_error(
    ordercast_cluster, monkeypatch: Patch
) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False) as cluster:
        two = cluster.nodes[1]
        others = [n._presence.engine.stack for n in (cluster.nodes[0], cluster.nodes[2])]
        fails_in_tick(monkeypatch, lambda s: s not in others and bool(s.pids))
        outages = 0
        with pytest.raises(ZeroDivisionError):
            while True:
                try:
                    await next_message(two)
                except oc.NodeOut:
                    outages += 1
        assert two._lifetime.machine_failures == lifetime.MAX_FAILURES + 1
        assert outages <= lifetime.MAX_FAILURES
        assert [node.incarnation for node in (cluster.nodes[0], cluster.nodes[2])] == [1, 1]


async def test_a_node_that_does_not_come_back_ends_with_the_error(monkeypatch: Patch) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address], rejoin=False) as bob,
    ):
        failing = bob._presence.engine.stack
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        fails_in_tick(monkeypatch, lambda stack: stack is failing)
        with pytest.raises(ZeroDivisionError):
            await next_message(bob)


async def test_who_calls_a_machine_that_fails_is_told_that_the_node_comes_back(
    monkeypatch: Patch,
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(Process, "step", fails)
            with pytest.raises(oc.MachineFailed):
                bob._presence.cluster_membership.quit(7)
        await until(lambda: bob.incarnation == 2 and not bob.stats()["out_reason"])


def fails(*_: object, **__: object) -> None:
    raise ZeroDivisionError("a fault")


def test_failures_are_forgotten_after_a_while(monkeypatch: Patch) -> None:
    life, now = lifetime.Lifetime(1, lambda presence: None), [0.0]
    monkeypatch.setattr(lifetime.time, "monotonic", lambda: now[0])
    for _ in range(lifetime.MAX_FAILURES):
        assert life.may_outlive_failure()
    assert not life.may_outlive_failure()
    now[0] = lifetime.FAILURES_S
    assert life.may_outlive_failure()


# -- what follows later from the word of a peer ---------------------------------------------------


async def test_what_the_loss_of_a_connection_brings_out_is_charged_to_that_peer(
    monkeypatch: Patch, packet_errors: Records
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
        oc.Node("evil", seeds=[alice.address], rejoin=False) as evil,
    ):
        group = await alice.join("g", order="total")
        await bob.join("g", order="total")
        stack, me = bob._presence.engine.stack, evil._presence.me.pid
        handle = Process._handle

        def fragile(self: Process, event: object) -> None:
            if self is stack and type(event).__name__ == "Broken" and event.pid == me:  # type: ignore[attr-defined]
                raise KeyError(me)
            handle(self, event)  # type: ignore[arg-type]

        monkeypatch.setattr(Process, "_handle", fragile)
        evil._presence.peers.close("it dies", goodbye=False)
        await until(lambda: bob.stats()["packet_errors"]["count"])
        assert bob.stats()["packet_errors"]["last"] == (
            "KeyError while Broken of evil#1 was handled"
        )
        await until(lambda: "evil#1" not in bob.stats()["node_view"]["members"])
        await group.multicast(b"they go on")
        assert (await next_message(bob)).body == b"they go on"
        assert [n.incarnation for n in (alice, bob, carol)] == [1, 1, 1]
    assert len(packet_errors) == 1


@pytest.mark.parametrize("method", ["bound", "lost", "_gone_in_order"])
async def test_what_a_connection_brings_out_later_is_charged_to_its_peer(
    method: str, monkeypatch: Patch, packet_errors: Records
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address], rejoin=False) as bob,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(ClusterMembership, method, fails)
            presence, pid = alice._presence, bob._presence.me.pid
            if method == "bound":
                presence.on_bound(pid)
            elif method == "lost":
                presence.on_lost(pid, "it broke")
            else:
                presence.peers.on_control(presence.peers.bound[pid], frame(Goodbye()))
            await until(lambda: packet_errors)
        assert "of bob#1" in packet_errors[0].getMessage()
        assert alice.stats()["machine_failures"] == 0


async def test_what_a_node_view_brings_out_later_is_charged_to_who_brought_the_view(
    monkeypatch: Patch, packet_errors: Records
) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        requests = bob._presence.cluster_membership.requests
        put_again = GroupRequests.put_again

        def fragile(self: GroupRequests) -> None:
            if self is requests:
                fails()
            put_again(self)

        monkeypatch.setattr(GroupRequests, "put_again", fragile)
        async with oc.Node("carol", seeds=[alice.address]):
            await until(lambda: packet_errors)
        assert "a node view of alice#1" in packet_errors[0].getMessage()
        assert bob.stats()["machine_failures"] == 0


async def test_a_word_that_waits_for_its_speaker_to_coordinate_is_looked_at_then() -> None:
    """bob says what only a coordinator says, and that is junk; then he coordinates."""
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
    ):
        junk = NodeUp(NodeEntry(9, "", 1, "junk"))
        bob._presence.peers.tell(carol._presence.me.pid, junk)
        await until(lambda: carol._presence.cluster_membership._untimely)
        assert not carol.stats()["peer_faults"]
        succession = carol._presence.cluster_membership.succession
        await alice.aclose()
        await until(lambda: carol.stats()["peer_faults"])
        assert succession.done()  # the rest of what a view asks for was done
        assert carol.stats()["machine_failures"] == 0


def frame(message: Control) -> Frame:
    [found] = Splitter(1 << 20).feed(encode(message))
    return found
