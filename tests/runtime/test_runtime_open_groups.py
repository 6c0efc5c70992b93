"""`Node.send_to`: messages to a group from a node that is no member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPEN = [name for name, p in PROTOCOLS.items() if not p.declaration.closed]
CLOSED = [name for name, p in PROTOCOLS.items() if p.declaration.closed]

GROUP = "main"  # of a LocalCluster


async def take(node: oc.Node, messages: int) -> list[tuple[str, bytes]]:
    """The next messages of the node's stream: who said what."""
    found: list[tuple[str, bytes]] = []
    async for event in node:
        if isinstance(event, oc.Message):
            found.append((event.sender, event.body))
            if len(found) == messages:
                break
    return found


@asynccontextmanager
async def outsider(cluster: oc.LocalCluster, name: str = "guest", **options) -> AsyncIterator:
    async with oc.Node(name, seeds=[cluster.leader.address], **options) as node:
        yield node


@pytest.mark.parametrize("protocol", OPEN)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("sequencer", [True, False])
async def test_members_get_what_a_guest_sends_in_its_order(
    ordercast_cluster, protocol: str, transport: str, sequencer: bool
) -> None:
    async with (
        ordercast_cluster(
            2, protocol=protocol, transport=transport, sequencer=sequencer
        ) as cluster,
        outsider(cluster, transport=transport) as guest,
    ):
        said = [b"%d" % i for i in range(30)]
        readers = [asyncio.ensure_future(take(node, len(said))) for node in cluster.nodes]
        for body in said:
            receipt = await guest.send_to(GROUP, body)
        await receipt.ordered()
        await receipt.stable()
        for got in await asyncio.gather(*readers):
            assert sorted(got) == sorted(("guest", body) for body in said)
            if PROTOCOLS[protocol].declaration.order != "none":
                assert [body for _, body in got] == said
        assert cluster.groups[0].members == ("p1", "p2")


@pytest.mark.parametrize("protocol", OPEN)
async def test_a_guest_joins_and_leaves_and_keeps_its_order(
    ordercast_cluster, protocol: str
) -> None:
    async with (
        ordercast_cluster(2, protocol=protocol) as cluster,
        outsider(cluster) as guest,
    ):
        readers = [asyncio.ensure_future(take(node, 9)) for node in cluster.nodes]
        for n in (0, 1, 2):
            await guest.send_to(GROUP, b"%d" % n)
        group = await guest.join(GROUP, protocol=protocol)
        own = asyncio.ensure_future(take(guest, 3))
        for n in (3, 4):
            await group.multicast(b"%d" % n)
        await guest.send_to(GROUP, b"5")  # a member's send_to is its multicast
        assert await own == [("guest", b"3"), ("guest", b"4"), ("guest", b"5")]
        await group.leave()
        for n in (6, 7, 8):
            await guest.send_to(GROUP, b"%d" % n)
        for got in await asyncio.gather(*readers):
            assert [body for _, body in got] == [b"%d" % n for n in range(9)]


@pytest.mark.parametrize("protocol", OPEN)
@pytest.mark.parametrize("leads", [True, False])
async def test_the_receipt_of_a_guest_is_good_when_it_has_joined(
    ordercast_cluster, protocol: str, leads: bool
) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster, outsider(cluster) as other:
        guest = cluster.leader if leads else other
        receipt = await guest.send_to(GROUP, b"a")
        await guest.join(GROUP, protocol=protocol)
        await receipt.ordered()
        stable = asyncio.ensure_future(receipt.stable())
        await asyncio.gather(*(take(node, 1) for node in cluster.nodes))
        await asyncio.wait_for(stable, 10)


@pytest.mark.parametrize("protocol", ["sequencer_pb", "sequencer_bb"])
async def test_what_a_guest_sent_is_not_stable_before_all_have_taken_it(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster, outsider(cluster) as guest:
        receipt = await guest.send_to(GROUP, b"a")
        await take(cluster.nodes[0], 1)
        stable = asyncio.ensure_future(receipt.stable())
        await asyncio.wait((stable,), timeout=0.2)
        assert not stable.done()  # the other member has not read
        await take(cluster.nodes[1], 1)
        await asyncio.wait_for(stable, 20)


async def test_a_guest_whose_join_is_refused_is_still_a_guest(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total") as cluster, outsider(cluster) as guest:
        receipt = await guest.send_to(GROUP, b"a")
        with pytest.raises(oc.OrderMismatch):
            await guest.join(GROUP, order="fifo")
        assert list(guest.stats()["guest_of"]) == [GROUP]
        await take(cluster.nodes[0], 1)
        await receipt.stable()


@pytest.mark.parametrize("protocol", OPEN)
async def test_the_node_that_leads_may_be_a_guest(ordercast_cluster, protocol: str) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster:
        readers = [asyncio.ensure_future(take(node, 2)) for node in cluster.nodes]
        await cluster.leader.send_to(GROUP, b"a")
        receipt = await cluster.leader.send_to(GROUP, b"b")
        await receipt.stable()
        for got in await asyncio.gather(*readers):
            assert got == [("sequencer", b"a"), ("sequencer", b"b")]
        await cluster.leader.stop_sending_to(GROUP)
        await cluster.leader.send_to(GROUP, b"c")
        assert await take(cluster.nodes[0], 1) == [("sequencer", b"c")]


async def test_views_do_not_tell_of_guests(ordercast_cluster) -> None:
    async with ordercast_cluster(1, protocol="fifo") as cluster, outsider(cluster) as guest:
        await guest.send_to(GROUP, b"a")
        await guest.stop_sending_to(GROUP)
        await guest.send_to(GROUP, b"b")
        stream = aiter(cluster.nodes[0])
        events = [await anext(stream) for _ in range(3)]
        assert [type(event) for event in events] == [oc.View, oc.Message, oc.Message]


async def test_what_a_guest_forwards_comes_after_what_it_heard(ordercast_cluster) -> None:
    """Causal order across groups, through a node that is in one and a guest of the other."""
    async with (
        ordercast_cluster(1, order="causal") as cluster,
        outsider(cluster, "forwarder") as forwarder,
        outsider(cluster, "source") as source,
    ):
        member = cluster.nodes[0]
        await member.join("news", order="causal")
        await forwarder.join("news", order="causal")
        news = await source.join("news", order="causal")
        reader = asyncio.ensure_future(take(member, 40))

        async def forward() -> None:
            count = 0
            async for event in forwarder:
                if isinstance(event, oc.Message):
                    await forwarder.send_to(GROUP, b"re " + event.body)
                    count += 1
                    if count == 20:
                        return

        forwarding = asyncio.ensure_future(forward())
        for n in range(20):
            await news.multicast(b"%d" % n)
        await forwarding
        bodies = [body for _, body in await reader]
        for n in range(20):
            assert bodies.index(b"%d" % n) < bodies.index(b"re %d" % n)


@pytest.mark.parametrize("protocol", ["fifo", "sequencer_pb", "sequencer_bb"])
async def test_a_guest_waits_for_room_like_a_member(ordercast_cluster, protocol: str) -> None:
    limits = {"window_bytes": 4096, "frame_bytes": 1024, "reply_reserve": 2048, "max_message": 512}
    async with (
        ordercast_cluster(1, protocol=protocol, **limits) as cluster,
        outsider(cluster, **limits) as guest,
    ):
        sending = asyncio.ensure_future(_send_many(guest, 64))
        done, _ = await asyncio.wait((sending,), timeout=0.2)
        assert not done  # nobody reads
        assert len(await take(cluster.nodes[0], 64)) == 64
        await sending


async def _send_many(node: oc.Node, count: int) -> None:
    for _ in range(count):
        await node.send_to(GROUP, bytes(500))


async def test_many_first_messages_at_once_enter_the_group_once(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total") as cluster, outsider(cluster) as guest:
        await asyncio.gather(*(guest.send_to(GROUP, b"%d" % n) for n in range(5)))
        assert len(await take(cluster.nodes[0], 5)) == 5


@pytest.mark.parametrize("protocol", ["fifo", "sequencer_pb"])
async def test_a_guest_that_dies_holds_nobody_up(ordercast_cluster, protocol: str) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster:
        guest = oc.Node("guest", seeds=[cluster.leader.address])
        await guest.start()
        await guest.send_to(GROUP, b"a")
        assert await take(cluster.nodes[0], 1) == [("guest", b"a")]
        guest._presence.fail(oc.GroupClosed("killed"))
        late = await cluster.nodes[1].join("late", order="total", scope="group")
        assert late.members == ("p2",)
        receipt = await cluster.groups[0].multicast(b"b")
        others = [take(cluster.nodes[0], 1), take(cluster.nodes[1], 2)]
        assert (await asyncio.gather(*others))[0] == [("p1", b"b")]
        await receipt.stable()
        await guest.aclose()


async def test_stats_tell_of_guests_on_both_sides(ordercast_cluster) -> None:
    async with ordercast_cluster(1, protocol="fifo") as cluster, outsider(cluster) as guest:
        receipt = await guest.send_to(GROUP, b"a")
        await take(cluster.nodes[0], 1)
        await receipt.stable()
        own = guest.stats()["guest_of"][GROUP]
        assert (own["frames_sent"], own["frames_stable"], own["window_used"]) == (1, 1, 0)
        there = cluster.nodes[0].stats()["groups"][GROUP]
        assert (there["members"], there["guests"]) == (["p1"], ["guest"])
        assert there["inbox_limit"] == 2 * (there["window_bytes"] + there["reply_reserve"])
        await guest.stop_sending_to(GROUP)
        assert guest.stats()["guest_of"] == {}


async def test_a_first_message_that_is_cancelled_leaves_nothing_behind(ordercast_cluster) -> None:
    async with ordercast_cluster(1, protocol="fifo") as cluster, outsider(cluster) as guest:
        sending = asyncio.ensure_future(guest.send_to(GROUP, b"never"))
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await guest.send_to(GROUP, b"a")
        assert await take(cluster.nodes[0], 1) == [("guest", b"a")]


async def test_a_node_that_is_closed_while_it_enters_a_group_leaves_in_order(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, protocol="fifo") as cluster:
        async with outsider(cluster) as guest:
            sending = asyncio.ensure_future(guest.send_to(GROUP, b"a"))
            await asyncio.sleep(0)
        await asyncio.wait((sending,))
        if sending.exception() is None:
            assert await take(cluster.nodes[0], 1) == [("guest", b"a")]
        else:
            assert isinstance(sending.exception(), oc.GroupClosed)
        late = await cluster.nodes[0].join("late", protocol="fifo", scope="group")
        assert late.members == ("p1",)


@pytest.mark.parametrize("protocol", ["fifo", "sequencer_pb"])
async def test_a_guest_sends_on_when_the_coordinator_dies(ordercast_cluster, protocol: str) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster, outsider(cluster) as guest:
        await guest.send_to(GROUP, b"a")
        await cluster.kill_leader()
        await (await guest.send_to(GROUP, b"b")).ordered()
        for node in cluster.nodes:
            assert await take(node, 2) == [("guest", b"a"), ("guest", b"b")]


async def test_a_guest_that_is_not_let_in_in_time_is_told_and_may_try_again(
    ordercast_cluster,
) -> None:
    """A member that does not answer holds the view change up."""
    async with (
        ordercast_cluster(2, protocol="fifo") as cluster,
        outsider(cluster, join_timeout=0.3) as guest,
    ):
        stuck = cluster.nodes[1]._presence.engine
        step, stuck.step = stuck.step, lambda events, cause=None: None
        for _ in range(2):
            with pytest.raises(oc.JoinTimeout, match="not let in as a guest"):
                await guest.send_to(GROUP, b"x")
        stuck.step = step
        await cluster.kill(1)
        deadline = asyncio.get_running_loop().time() + 10
        while True:
            try:
                await guest.send_to(GROUP, b"a")
                break
            except oc.JoinTimeout:
                assert asyncio.get_running_loop().time() < deadline
        assert await take(cluster.nodes[0], 1) == [("guest", b"a")]


# -- refusals -------------------------------------------------------------------------------------


async def test_an_unknown_group_is_an_error_that_names_those_there_are() -> None:
    async with oc.Node("a", bootstrap=True) as a, oc.Node("b", seeds=[a.address]) as b:
        with pytest.raises(oc.UsageError, match="no group 'prices' to send to: there is none yet"):
            await b.send_to("prices", b"x")
        await a.join("orders", order="total")
        for node in (a, b):
            with pytest.raises(oc.UsageError, match="'prices' to send to: there is 'orders'"):
                await node.send_to("prices", b"x")
        assert "prices" not in {
            group["name"] for group in a._presence.cluster_membership.requests.names.described()
        }


@pytest.mark.parametrize("protocol", CLOSED)
async def test_a_closed_group_says_why_and_what_is_open(ordercast_cluster, protocol: str) -> None:
    async with ordercast_cluster(1, protocol=protocol) as cluster, outsider(cluster) as guest:
        with pytest.raises(oc.UsageError) as caught:
            await guest.send_to(GROUP, b"x")
        declared = PROTOCOLS[protocol].declaration
        assert declared.closed in str(caught.value)
        order = cluster.groups[0].order
        fitting = [n for n in OPEN if order in PROTOCOLS[n].declaration.orders]
        assert str(caught.value).endswith(", ".join(fitting))


@pytest.mark.parametrize("name", ["", "a\n"])
async def test_a_name_that_is_none_is_refused_here(name: str) -> None:
    async with oc.Node("a", bootstrap=True) as a:
        with pytest.raises(ValueError, match="group"):
            await a.send_to(name, b"x")


async def test_bodies_are_checked_as_in_a_multicast(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="fifo") as cluster, outsider(cluster) as guest:
        with pytest.raises(TypeError):
            await guest.send_to(GROUP, "text")
        with pytest.raises(oc.MessageTooLarge):
            await guest.send_to(GROUP, bytes(1 << 26))


async def test_a_node_that_is_about_to_join_or_was_closed_cannot_send(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="fifo") as cluster:
        async with outsider(cluster) as guest:
            joining = asyncio.ensure_future(guest.join(GROUP, order="fifo"))
            await asyncio.sleep(0)
            with pytest.raises(oc.UsageError, match="about to join"):
                await guest.send_to(GROUP, b"x")
            await joining
        with pytest.raises(oc.UsageError, match="is closed"):
            await guest.send_to(GROUP, b"x")


async def test_to_stop_what_never_began_names_what_did(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="fifo") as cluster, outsider(cluster) as guest:
        with pytest.raises(
            oc.UsageError, match="no guest of group 'nope'; it is a guest of no group"
        ):
            await guest.stop_sending_to("nope")
        await guest.send_to(GROUP, b"a")
        with pytest.raises(
            oc.UsageError, match="no guest of group 'nope'; it is a guest of 'main'"
        ):
            await guest.stop_sending_to("nope")


# -- traces ---------------------------------------------------------------------------------------


async def recorded_run(folder: Path, protocol: str) -> None:
    """Two members and two guests talk; one guest joins, one member leaves."""
    options = {"trace": folder, "run": f"open-{protocol}"}
    async with (
        oc.LocalCluster(2, protocol=protocol, in_process=True, **options) as cluster,
        outsider(cluster, "one", **options) as one,
        outsider(cluster, "two", **options) as two,
    ):
        nodes = (*cluster.nodes, one, two)
        readers = [asyncio.ensure_future(_drain(node)) for node in nodes]
        for n in range(4):
            for node in nodes:
                await node.send_to(GROUP, b"%d" % n)
        await one.join(GROUP, protocol=protocol)
        await asyncio.gather(*(node.send_to(GROUP, b"more") for node in nodes))
        await cluster.groups[1].leave()
        await asyncio.gather(*(node.send_to(GROUP, b"last") for node in nodes))
    await asyncio.gather(*readers)


async def _drain(node: oc.Node) -> None:
    async for _ in node:
        pass


def wanted(protocol: str) -> tuple[str, ...]:
    promises = PROTOCOLS[protocol].declaration.promises
    return (*promises, "wellformed", "views", "vsync", "agreement", "validity")


@pytest.mark.parametrize("protocol", OPEN)
async def test_a_trace_with_guests_keeps_the_promises(tmp_path: Path, protocol: str) -> None:
    await recorded_run(tmp_path, protocol)
    events = read_events(tmp_path)
    judged = judge(events, only=wanted(protocol))
    assert {name: judged[name].verdict for name in judged} == dict.fromkeys(judged, "ok")
    sent = [e for e in events if e.kind == "send" and e.process == "two#1"]
    assert len(sent) == 6
    assert len({e.message for e in sent}) == 6
    assert not [e for e in events if e.kind in ("deliver", "view") and e.process == "two#1"]


@pytest.mark.xdist_group("spark")
async def test_spark_judges_traces_with_guests_alike(tmp_path: Path, spark: SparkSession) -> None:
    from ordercast.pipeline import read_traces, verify

    for protocol in OPEN:
        await recorded_run(tmp_path / protocol, protocol)
    found = {
        (row["run"], row["property"]): row["verdict"]
        for row in verify(read_traces(spark, [tmp_path])).collect()
    }
    for protocol in OPEN:
        verdicts = {name: found[f"open-{protocol}", name] for name in wanted(protocol)}
        assert verdicts == dict.fromkeys(verdicts, "ok"), protocol
