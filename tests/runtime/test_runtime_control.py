"""Control messages that no node of ours would send: their sender is closed, nobody else is."""

from __future__ import annotations

import asyncio

import pytest

import ordercast as oc
from ordercast.runtime.control import Control, Lost, Recall, encode
from ordercast.transport.tcp import Connection, connect
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame

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


async def check_all_are_in(cluster: oc.LocalCluster) -> None:
    for group in cluster.groups:
        assert group.members == cluster.names
        await (await group.multicast(b"works")).ordered()


def pid_of(node: oc.Node) -> int:
    return node._site.me.pid


@pytest.mark.parametrize(
    ("whom", "name", "incarnation"),
    [
        ("leader", "mallory", 1),
        ("leader", "sequencer", 1),
        ("member", "mallory", 1),
        ("member", "p1", 2),
    ],
)
async def test_whoever_asks_about_another_node_is_closed_and_excludes_nobody(
    ordercast_cluster, whom: str, name: str, incarnation: int
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        pid = LEADER if whom == "leader" else pid_of(cluster.nodes[0])
        stranger = await Stranger.at(cluster.leader, name)
        stranger.conn.send(encode(Recall(pid, incarnation)))
        await stranger.closed
        assert cluster.leader.stats()["peer_faults"] == 1
        await check_all_are_in(cluster)


@pytest.mark.parametrize("whom", ["leader", "itself"])
async def test_a_member_that_reports_the_leader_or_itself_as_lost_is_out(
    ordercast_cluster, whom: str
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        liar, other = cluster.nodes
        report: Control = Lost(LEADER if whom == "leader" else pid_of(liar), "nonsense")
        liar._site.peers.tell(LEADER, report)
        with pytest.raises(oc.Excluded, match="connection broke"):
            async for _ in liar:
                pass
        assert cluster.leader.stats()["peer_faults"] == 1
        async for event in other:
            if isinstance(event, oc.View) and event.members == ("p2",):
                break
        await (await cluster.groups[1].multicast(b"works")).ordered()
