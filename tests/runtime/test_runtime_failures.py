"""Members and leaders that break away: those who stay go on, those who are out are told."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

import ordercast as oc
from ordercast.membership.node_view import NodeEntry
from ordercast.process.commands import Broken, Leave
from ordercast.protocols.registry import PROTOCOLS
from ordercast.wire.frame import pack


async def next_view(stream: oc.Node | oc.Group) -> oc.View:
    async for event in stream:
        if isinstance(event, oc.View):
            return event
    raise AssertionError("the stream ended")


async def view_of(node: oc.Node, members: tuple[str, ...]) -> oc.View:
    while (view := await next_view(node)).members != members:
        pass
    return view


def main(node: oc.Node) -> dict:
    """How the node is in the group of its cluster."""
    return node.stats()["groups"]["main"]


async def read_to_the_end(node: oc.Node) -> list[bytes]:
    """All messages until the stream raises; the error is the last item."""
    seen: list = []
    try:
        async for event in node:
            if isinstance(event, oc.Message):
                seen.append(event.body)
    except oc.NodeEnded as error:
        seen.append(error)
    return seen


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_survivors_get_a_view_without_the_dead_and_go_on(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol) as cluster:
        await cluster.kill(1)
        left = await asyncio.gather(
            *(view_of(cluster.nodes[i], ("p1", "p3")) for i in (0, 2)),
        )
        assert [view.left for view in left] == [("p2",), ("p2",)]
        for group in (cluster.groups[0], cluster.groups[2]):
            await group.multicast(b"on we go")
        for node in (cluster.nodes[0], cluster.nodes[2]):
            assert (await anext(aiter(node))).body == b"on we go"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_excluded_node_is_told_the_view_that_the_others_went_on_with(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol) as cluster:
        cluster.leader._presence.engine.step([Broken(cluster.nodes[2]._presence.me.pid)])
        with pytest.raises(oc.Excluded) as told:
            async for _ in cluster.nodes[2]:
                pass
        while not (await next_view(cluster.nodes[0])).left:
            pass
        assert told.value.view == cluster.leader.stats()["node_view"]["number"]


async def test_a_leaver_that_dies_before_its_last_word_changes_no_view_again(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        leaver, stayer = cluster.nodes
        leaver._presence.groups.close = lambda member: None  # it never says Left
        await cluster.groups[0].leave()
        view = await view_of(stayer, ("p2",))
        await cluster.kill(0)
        while cluster.leader.stats()["nodes"] > 2:
            await asyncio.sleep(0.001)
        receipt = await cluster.groups[1].multicast(b"works")
        await receipt.ordered()
        assert stayer.stats()["groups"]["main"]["view"] == view.number
        assert (await anext(aiter(stayer))).body == b"works"


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("protocol", ["sequencer_pb", "sequencer_bb"])
async def test_nothing_is_kept_of_nodes_that_came_and_went(
    ordercast_cluster, protocol: str, closed: bool
) -> None:
    async with ordercast_cluster(1, protocol=protocol) as cluster:
        reading = asyncio.ensure_future(read_to_the_end(cluster.nodes[0]))
        visitor = oc.Node("visitor", seeds=[cluster.leader.address], rejoin=False)
        await visitor.start()
        pid = visitor._presence.me.pid
        group = await visitor.join("main", protocol=protocol)
        await (await group.multicast(b"x")).ordered()
        if closed:
            await visitor.aclose()
        else:
            visitor._presence.peers.bound[0].abort("cut")
        [machine] = cluster.nodes[0]._presence.engine.stack.groups.every()
        while pid in machine.done or (machine.sequencer and pid in machine.sequencer.book.last):
            await asyncio.sleep(0.001)
        for node in (cluster.leader, cluster.nodes[0]):
            assert node.stats()["nodes"] == 2
        await visitor.aclose()
    await reading


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_dead_member_closes_nobodys_window(ordercast_cluster, protocol: str) -> None:
    limits = {"max_message": 1000, "window_bytes": 5000}
    async with ordercast_cluster(3, protocol=protocol, **limits) as cluster:

        async def read(node: oc.Node, count: int) -> None:
            async for event in node:
                count -= isinstance(event, oc.Message)
                if not count:
                    break

        async def send() -> None:
            for _ in range(60):
                await cluster.groups[0].multicast(bytes(1000))

        reading = [asyncio.ensure_future(read(cluster.nodes[i], 60)) for i in (0, 2)]
        sending = asyncio.ensure_future(send())  # p2 reads nothing: the window closes
        while not main(cluster.nodes[0])["multicasts_waiting"]:
            await asyncio.sleep(0.001)
        assert not sending.done()
        await cluster.kill(1)
        await asyncio.gather(sending, *reading)


async def test_a_lost_coordinator_ends_no_stream(ordercast_cluster) -> None:
    async with ordercast_cluster(3, order="total") as cluster:
        receipt = await cluster.groups[0].multicast_many([b"1", b"2", b"3"])
        await receipt.ordered()
        while not all(main(node)["inbox_frames"] for node in cluster.nodes):
            await asyncio.sleep(0.001)
        await cluster.kill_leader()
        for node, group in zip(cluster.nodes, cluster.groups, strict=True):
            await (await group.multicast(node.name.encode())).ordered()
            await node.join("another", order="fifo")
        await asyncio.gather(*(node.aclose() for node in cluster.nodes))
        logs = [await read_to_the_end(node) for node in cluster.nodes]
        for log in logs:
            assert log[:3] == [b"1", b"2", b"3"]
            assert log == logs[0][: len(log)]  # those who left first have a prefix


async def test_a_coordinator_that_is_closed_is_succeeded_too(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="causal") as cluster:
        await cluster.leader.aclose()
        for node, group in zip(cluster.nodes, cluster.groups, strict=True):
            await (await group.multicast(b"x")).ordered()
            assert node.stats()["coordinator"] == "p1#1"


async def test_a_join_under_way_survives_the_coordinator(ordercast_cluster) -> None:
    async with ordercast_cluster(3) as cluster:
        cluster.leader._presence.engine.stop()
        joining = asyncio.ensure_future(cluster.nodes[0].join("g", order="total"))
        while not cluster.nodes[0].stats()["groups"]:  # it answered; its view never comes
            await asyncio.sleep(0.001)
        await cluster.kill_leader()
        assert (await joining).members == ("p1",)


async def test_a_member_whose_connection_to_the_leader_broke_is_told_it_is_excluded(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3, order="total", rejoin=False) as cluster:
        await (await cluster.groups[1].multicast(b"before")).ordered()
        await view_of(cluster.nodes[1], ("p1", "p2", "p3"))
        leader = cluster.leader._presence
        pid = cluster.nodes[1]._presence.me.pid
        leader.peers.bound[pid].abort("the cable was cut")
        *seen, error = await read_to_the_end(cluster.nodes[1])
        assert seen == [b"before"]
        assert isinstance(error, oc.Excluded)
        await view_of(cluster.nodes[0], ("p1", "p3"))
        assert error.view == cluster.leader.stats()["node_view"]["number"]
        with pytest.raises(oc.Excluded):
            await cluster.groups[1].multicast(b"x")


@pytest.mark.parametrize("protocol", ["sequencer_pb", "vector"])
async def test_of_two_members_that_lost_each_other_one_is_excluded_and_told(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol, rejoin=False) as cluster:
        one, other = cluster.nodes[0]._presence, cluster.nodes[1]._presence
        one.peers.bound[other.me.pid].abort("the cable was cut")
        ends = [asyncio.ensure_future(read_to_the_end(node)) for node in cluster.nodes[:2]]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        (out,) = done
        error = out.result()[-1]
        assert isinstance(error, oc.Excluded)
        stays = 1 - ends.index(out)
        survivors = (cluster.names[stays], "p3")
        assert (await view_of(cluster.nodes[2], survivors)).members == survivors
        await cluster.groups[stays].multicast(b"on we go")
        assert (await anext(aiter(cluster.nodes[2]))).body == b"on we go"
        ends[stays].cancel()


async def test_the_name_of_an_excluded_node_is_free_for_a_new_one(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", rejoin=False) as cluster:
        pid = cluster.nodes[1]._presence.me.pid
        cluster.leader._presence.peers.bound[pid].abort("the cable was cut")
        assert isinstance((await read_to_the_end(cluster.nodes[1]))[-1], oc.Excluded)
        async with oc.Node("p2", seeds=[cluster.leader.address]) as again:
            assert again.incarnation == 2
            group = await again.join("main", order="total")
            assert group.members == ("p1", "p2")


async def test_a_member_that_breaks_the_protocol_is_excluded_and_logged_once(
    ordercast_cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with ordercast_cluster(3, order="total", rejoin=False) as cluster:
        bad = cluster.nodes[1]._presence
        gid = cluster.groups[1]._member.group.gid
        with caplog.at_level(logging.WARNING, "ordercast.runtime.peers"):
            bad.engine.multicast(gid, b"\xc1 this is no list of messages")
            bad.engine.multicast(gid, b"\xc1 nor is this")
            view = await view_of(cluster.nodes[0], ("p1", "p3"))
            assert view.left == ("p2",)
        assert isinstance((await read_to_the_end(cluster.nodes[1]))[-1], oc.Excluded)
        assert len([r for r in caplog.records if "broke the protocol" in r.message]) == 1
        await cluster.groups[0].multicast(b"on we go")
        assert (await anext(aiter(cluster.nodes[0]))).body == b"on we go"


async def test_a_packet_of_a_group_that_nobody_opened_is_a_fault(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", rejoin=False) as cluster:
        bad = cluster.nodes[1]._presence
        bad.peers.transmit((0,), pack(77, 0, 0, b"\x90", b""))
        assert isinstance((await read_to_the_end(cluster.nodes[1]))[-1], oc.NodeOut)
        assert cluster.leader.stats()["peer_faults"] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_members_come_and_go_while_messages_flow(ordercast_cluster, protocol: str) -> None:
    async with ordercast_cluster(2, protocol=protocol) as cluster:
        stop = False

        async def send(group: oc.Group) -> int:
            sent = 0
            while not stop:
                await group.multicast(b"%d" % sent)
                sent += 1
                await asyncio.sleep(0.001)
            return sent

        async def read(node: oc.Node) -> list[oc.Message]:
            seen = []
            async for event in node:
                if isinstance(event, oc.Message):
                    seen.append(event)
            return seen

        reading = [asyncio.ensure_future(read(node)) for node in cluster.nodes]
        sending = [asyncio.ensure_future(send(group)) for group in cluster.groups]
        for visit in range(3):
            visitor = oc.Node(f"visitor{visit}", seeds=[cluster.leader.address])
            await visitor.start()
            group = await visitor.join("main", protocol=protocol)
            receipt = await group.multicast(b"hello")
            await receipt.ordered()
            if visit == 1:
                visitor._presence.fail(oc.GroupClosed("crashed"))
            await visitor.aclose()
        stop = True
        sent = await asyncio.gather(*sending)
        for node in cluster.nodes:
            while main(node)["frames_stable"] < main(node)["frames_sent"]:
                await asyncio.sleep(0.001)
        await asyncio.gather(*(node.aclose() for node in cluster.nodes))
        logs = await asyncio.gather(*reading)
        for log in logs:
            for name, count in zip(cluster.names, sent, strict=True):
                own = [int(m.body) for m in log if m.sender == name]
                assert sorted(own) == list(range(count))
        if PROTOCOLS[protocol].declaration.sequenced:
            assert logs[0] == logs[1]


@pytest.mark.parametrize("protocol", ["sequencer_pb", "vector"])
async def test_a_node_that_dies_after_it_left_changes_no_view_any_more(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol) as cluster:
        await cluster.groups[1].leave()
        left = await view_of(cluster.nodes[0], ("p1", "p3"))
        await cluster.kill(1)
        while cluster.leader.stats()["nodes"] == 4:
            await asyncio.sleep(0.001)
        await cluster.groups[0].multicast(b"x")
        assert (await anext(aiter(cluster.nodes[0]))).body == b"x"
        assert cluster.nodes[0].stats()["groups"]["main"]["view"] == left.number


async def test_a_node_that_dies_while_it_leaves_holds_nobody_up(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", max_message=10, window_bytes=300) as cluster:
        stays, leaves = cluster.nodes
        leaves._presence.engine.step([Leave(cluster.groups[1]._member.group.gid)])
        leaves._presence.engine.stop()  # it will not see its last view, nor acknowledge anything
        await view_of(stays, ("p1",))
        await cluster.kill(1)
        reading = asyncio.ensure_future(read_to_the_end(stays))
        for number in range(20):
            await cluster.groups[0].multicast(b"%d" % number)
        await stays.aclose()
        assert await reading == [b"%d" % number for number in range(20)]


async def test_a_leave_under_way_survives_the_coordinator(ordercast_cluster) -> None:
    async with ordercast_cluster(3, order="total") as cluster:
        cluster.leader._presence.engine.stop()
        leaving = asyncio.ensure_future(cluster.groups[0].leave())
        while not cluster.nodes[0]._presence.engine.stack.changes.unmet:
            await asyncio.sleep(0.001)
        assert not leaving.done()
        await cluster.kill_leader()
        await leaving


async def test_a_node_given_up_while_it_is_dialled_leaves_no_complaint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complaints: list[dict] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
    async with oc.Node("a", bootstrap=True) as node:
        peers = node._presence.peers

        async def refused_meanwhile(*_: object, **__: object) -> None:
            peers.part(7, "it is back under another number")
            raise ConnectionRefusedError

        monkeypatch.setattr(peers, "dial", refused_meanwhile)
        with pytest.raises(ConnectionRefusedError):
            await peers.dial_node(NodeEntry(7, "b", 1, "127.0.0.1:1"), 1.0)
    gc.collect()
    assert complaints == []
