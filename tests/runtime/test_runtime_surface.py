"""The public surface: small, typed, cheap to import, silent unless asked."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys

import pytest

import ordercast as oc
from ordercast.core.events import Multicast
from ordercast.errors import OrdercastError
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import StatusReply, StatusRequest
from ordercast.runtime.query_client import QueryClient
from ordercast.runtime.receipt import Mark
from ordercast.transport.tcp import connect
from ordercast.views.attempt import Attempt
from ordercast.views.states import Lead
from ordercast.wire.control import Hello


def test_every_public_name_is_there_and_every_error_is_in_one_tree() -> None:
    for name in oc.__all__:
        value = getattr(oc, name)
        assert value.__doc__, name
        if isinstance(value, type) and issubclass(value, BaseException):
            assert issubclass(value, OrdercastError)
    try:
        oc.Nodes  # noqa: B018
    except AttributeError as error:
        assert "has no attribute 'Nodes'" in str(error)
    else:
        raise AssertionError("a name that is not there was found")


def test_importing_the_package_imports_no_sockets() -> None:
    code = (
        "import sys, ordercast; "
        "sys.exit(any(m.startswith('ordercast.') or m in ('asyncio', 'msgspec') "
        "for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_no_log_handler_is_installed() -> None:
    assert logging.getLogger("ordercast").handlers == []
    assert logging.getLogger("ordercast.runtime").handlers == []


async def test_stats_are_plain_data_with_every_limit_beside_what_it_limits() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        await node.join("g", order="total")
        stats = node.stats()
        group = stats["groups"]["g"]
        for limit, used in (
            ("window_bytes", "window_used"),
            ("reply_reserve", "reply_reserve_used"),
            ("inbox_limit", "inbox_bytes"),
            ("max_held", "frames_held"),
        ):
            assert 0 <= group[used] <= group[limit]
        assert 1 == stats["nodes"] <= stats["max_nodes"]
        assert 0 == stats["strangers"] < stats["max_strangers"]
        assert 0 == stats["node_window_used"] < stats["node_window_bytes"]
        assert 0 == stats["buffered_bytes"] < stats["max_buffered"]
        leads = stats["leads"]
        assert leads["starts"] == leads["groups"] == 1
        assert leads["starts"] > 0 and leads["groups"] <= leads["max_groups"]
        assert stats["connections"]["open"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_stats_show_what_the_machines_keep(ordercast_cluster, protocol: str) -> None:
    options = {"protocol": protocol, "max_held": 500, "fetch_batch": 7, "frame_bytes": 1}
    async with ordercast_cluster(2, **options) as cluster:
        receipt = await cluster.groups[0].multicast_many([b"x"] * 5)
        while cluster.nodes[1].stats()["groups"]["main"]["inbox_frames"] < 5:
            await asyncio.sleep(0.001)
        await receipt.ordered()
        group = cluster.nodes[1].stats()["groups"]["main"]
        assert group["max_held"] == 500 and group["frames_kept"] >= 5
        histories = [node.stats()["groups"]["main"]["history"] for node in cluster.nodes]
        history = max(cluster.leader.stats()["leads"]["history"], *histories)
        numbers = PROTOCOLS[protocol].declaration.sequenced or protocol == "javagroups"
        assert (history >= 5) == numbers
        stack = cluster.leader._presence.engine.stack
        assert stack.options.fetch_batch == 7


async def test_a_limit_of_frames_held_back_shows_how_near_it_is(ordercast_cluster) -> None:
    async with ordercast_cluster(2, protocol="fifo", frame_bytes=1) as cluster:
        sender, receiver = cluster.nodes
        engine = receiver._presence.engine
        take, lost = engine.receive, []

        def lose_the_first(src: int, frames: list, on_control: object) -> None:
            lost.extend(frames[: 1 - len(lost)])
            take(src, [frame for frame in frames if frame not in lost], on_control)

        engine.receive = lose_the_first
        assert sender.stats()["groups"]["main"]["frames_held"] == 0
        for _ in range(4):
            await cluster.groups[0].multicast(b"x")
        while receiver.stats()["groups"]["main"]["frames_held"] < 3:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("resilience", [0, 1])
async def test_stats_count_what_waits_for_a_holder_of_the_frames_before(
    ordercast_cluster, resilience: int
) -> None:
    async with ordercast_cluster(2, protocol="cbcast", resilience=resilience) as cluster:
        others = [await node.join("other", order="causal") for node in cluster.nodes]
        engine = cluster.nodes[1]._presence.engine
        engine.receive = lambda src, frames, on_control: None  # it holds nothing
        await cluster.groups[0].multicast(b"first")
        await others[0].multicast(b"second")
        await asyncio.sleep(0)
        groups = cluster.nodes[0].stats()["groups"]
        assert groups["main"]["frames_unsent"] == 0
        assert groups["main"]["frames_held"] == resilience  # delivered, and not handed over
        assert groups["other"]["frames_unsent"] == resilience
        assert groups["other"]["frames_held"] == 0


async def test_stats_count_what_is_said_while_a_view_changes(ordercast_cluster) -> None:
    async with ordercast_cluster(2, protocol="fifo") as cluster:
        member = cluster.nodes[1]
        [(g, flush)] = member._presence.engine.stack.groups.flushes.items()
        flush.queued.append(Multicast(g, b"said meanwhile"))
        assert member.stats()["groups"]["main"]["frames_unsent"] == 1


async def test_a_node_that_has_forgotten_the_machine_of_a_group_still_tells_its_stats() -> None:
    """When it closes, the machine goes before the membership; metrics may be asked in between."""
    async with oc.Node("a", bootstrap=True) as node:
        group = await node.join("g", order="causal")
        stack, gid = node._presence.engine.stack, group._member.group.gid
        machine = stack.groups.machines.pop(gid)
        assert node.stats()["groups"] == {}
        stack.groups.machines[gid] = machine
        assert list(node.stats()["groups"]) == ["g"]


async def test_receipts_that_nobody_waits_for_any_more_leave_nothing() -> None:
    mark = Mark()
    kept = asyncio.ensure_future(mark.wait_for(500))
    for number in range(1000):
        given_up = asyncio.ensure_future(mark.wait_for(number + 1))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
    assert len(mark._waiters) <= 3
    mark.reach(500)
    await kept


async def test_a_status_question_that_was_given_up_leaves_no_error_behind() -> None:
    complaints: list[dict] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
    async with oc.Node("alice", bootstrap=True) as alice:
        host, port = alice.address.rsplit(":", 1)
        client = QueryClient()
        hello = Hello(cluster="ordercast", name="asker", incarnation=0)
        conn = await connect(host, int(port), hello=hello, handler=client)
        asking = asyncio.ensure_future(client.ask(conn, StatusRequest(), StatusReply, 10.0))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait((asking,))
    await conn.closed()
    del client, conn, asking
    gc.collect()
    assert complaints == []


async def test_nodes_and_groups_say_what_they_are() -> None:
    node = oc.Node("alice", bootstrap=True)
    assert repr(node) == "<Node 'alice', new>"
    async with node:
        group = await node.join("g", order="causal")
        assert repr(group) == "<Group 'g', order 'causal' by 'cbcast'>"
        assert (group.name, group.order, group.protocol) == ("g", "causal", "cbcast")
        assert group.members == ("alice",) and node.leads and node.incarnation == 1
    assert repr(node) == "<Node 'alice', closed>"


async def test_a_leader_shows_whose_report_a_view_lacks():
    async with oc.Node("alice", bootstrap=True) as alice:
        await alice.join("chat", order="causal")
        assert alice.stats()["leads"]["views_wait_for"] == {}
        changes, gid = alice._presence.engine.stack.changes, 1
        alice._presence.directory.identities[9] = "silent#1"
        changes.lead = Lead.ASKING
        changes.now = Attempt(1, {gid: changes.directory.rows[gid]}, {9})
        assert alice.stats()["leads"]["views_wait_for"] == {"chat": ["silent#1"]}
        changes.lead = Lead.IDLE
