"""Control messages that no node of ours would send: their sender is closed, nobody else is."""

from __future__ import annotations

import asyncio

import pytest

import ordercast as oc
from ordercast.core.events import Multicast
from ordercast.membership.agreement_headers import LeaveView
from ordercast.membership.node_view import NodeEntry, ViewId
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import Control, Enter, NodeUp, Welcome, encode
from ordercast.runtime.engine import CLUSTER
from ordercast.transport.tcp import Connection, connect
from ordercast.wire.control import CLUSTER_CHANNEL, Hello
from ordercast.wire.frame import Frame
from ordercast.wire.messages import pack_messages

LEADER = 0


class Stranger:
    """Says Hello, and sends what it likes."""

    def __init__(self) -> None:
        self.conn: Connection
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @classmethod
    async def at(cls, node: oc.Node, name: str = "mallory") -> Stranger:
        stranger = cls()
        host, port = node.address.rsplit(":", 1)
        hello = Hello(cluster="ordercast", name=name, incarnation=0)
        stranger.conn = await connect(host, int(port), hello=hello, handler=stranger)
        return stranger

    def on_hello(self, conn: Connection, hello: Hello) -> None: ...

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None: ...

    def on_congested(self, conn: Connection) -> None: ...

    def on_writable(self, conn: Connection) -> None: ...

    def on_closed(self, conn: Connection, reason: str) -> None:
        self.closed.set_result(reason)


async def read_to_the_end(node: oc.Node) -> None:
    async for _ in node:
        pass


async def check_all_are_in(cluster: oc.LocalCluster) -> None:
    for group in cluster.groups:
        assert group.members == cluster.names
        await (await group.multicast(b"works")).ordered()


@pytest.mark.parametrize(
    "message", [Welcome(), NodeUp(NodeEntry(1, "x", 1)), Enter(1, "g", "total", None)]
)
async def test_a_stranger_who_speaks_as_if_it_were_in_is_closed(
    ordercast_cluster, message: Control
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        stranger = await Stranger.at(cluster.leader)
        stranger.conn.send(encode(message))
        await stranger.closed
        assert cluster.leader.stats()["peer_faults"] == 1
        await check_all_are_in(cluster)


async def test_a_packet_of_the_cluster_from_a_stranger_closes_it(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        stranger = await Stranger.at(cluster.leader)
        packet = CLUSTER.encode(CLUSTER_CHANNEL, 0, LeaveView(ViewId()), b"")
        stranger.conn.send(packet)
        await stranger.closed
        assert cluster.leader.stats()["peer_faults"] == 1
        await check_all_are_in(cluster)


@pytest.mark.parametrize("name", ["", "n" * 256, "a\nb"])
async def test_a_group_name_that_is_none_makes_no_group_at_the_leader(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with ordercast_cluster(1) as cluster:
        monkeypatch.setattr("ordercast.runtime.joining.check_name", lambda what, given: given)
        with pytest.raises(oc.UsageError, match="group name"):
            await cluster.nodes[0].join(name, order="total")
        assert cluster.leader._presence.cluster_membership.requests.names.described() == []
        await cluster.nodes[0].join("fine", order="total")


async def test_a_protocol_that_only_the_leader_has_is_named(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(2) as cluster:
        first, second = cluster.nodes
        await first.join("g", order="total", protocol="sequencer_bb")
        fewer = {name: cls for name, cls in PROTOCOLS.items() if name != "sequencer_bb"}
        monkeypatch.setattr("ordercast.runtime.joining.PROTOCOLS", fewer)
        with pytest.raises(oc.UsageError, match="'sequencer_bb', which is not built"):
            await second.join("g", order="total")
        await second.join("other", order="total")


@pytest.mark.parametrize("first", [2**63, 2**64 - 1])
async def test_numbers_that_no_trace_can_hold_are_their_senders_fault(
    ordercast_cluster, tmp_path, first: int
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        liar, node = cluster.nodes
        liar._presence.engine.multicast(
            cluster.groups[0]._member.group.gid, pack_messages(first, [b"x"])
        )
        reading = asyncio.ensure_future(read_to_the_end(node))
        async with asyncio.timeout(20):
            while node.stats()["peer_faults"] == 0:
                await asyncio.sleep(0.001)
        assert node.stats()["peer_faults"] == 1
        reading.cancel()


async def test_an_error_of_our_own_in_a_step_ends_that_machine_visibly(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        broken, other = cluster.nodes

        def fail(events: object) -> None:
            raise AssertionError("a machine of ours is wrong")

        monkeypatch.setattr(broken._presence.engine.stack, "step", fail)
        with pytest.raises(oc.MachineFailed):
            broken._presence.engine.step([Multicast(1, b"")])
        with pytest.raises(oc.MachineFailed, match="a machine of ours is wrong"):
            async for _ in broken:
                pass
        async for event in other:
            if isinstance(event, oc.View) and event.members == ("p2",):
                break


async def test_strangers_who_only_say_hello_lock_nobody_out() -> None:
    async with oc.Node("alice", bootstrap=True, max_nodes=3, join_timeout=0.3) as alice:
        strangers = [await Stranger.at(alice, f"idle{n}") for n in range(3)]
        await asyncio.gather(*(stranger.closed for stranger in strangers))
        async with oc.Node("bob", seeds=[alice.address]):
            assert alice.stats()["nodes"] == 2


async def test_a_name_that_a_follower_made_up_is_answered_not_punished(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total") as cluster:
        cluster.nodes[0]._presence.peers.tell(LEADER, Enter(99, "a\nb", "total", None))
        await (await cluster.groups[0].multicast(b"works")).ordered()
        assert cluster.leader.stats()["peer_faults"] == 0
