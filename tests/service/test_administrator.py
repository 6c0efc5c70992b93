"""Tables and wishes of a cluster from outside: any node is asked, the coordinator answers."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import ordercast as oc
from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError, UsageError
from ordercast.runtime import administration
from ordercast.runtime.control import MigrateRequest, Redirect, TableReply, TableRequest, encode
from ordercast.runtime.placement import GroupRow, Placement, SequencerRow
from ordercast.service.administrator import Administrator
from ordercast.transport.security import Security
from ordercast.transport.tcp import Connection, listen
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame

KEY = "a key that is long enough for everybody"


class Impostor:
    """A node that answers every question with the same frame."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    async def __aenter__(self) -> str:
        hello = Hello(cluster="ordercast", name="impostor", incarnation=1)
        self._listener = await listen("127.0.0.1", 0, hello=hello, handler=self)
        return f"127.0.0.1:{self._listener.address[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()

    def on_hello(self, conn: Connection, hello: Hello) -> None: ...

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        conn.send(self._answer)

    def on_congested(self, conn: Connection) -> None: ...

    def on_writable(self, conn: Connection) -> None: ...

    def on_closed(self, conn: Connection, reason: str) -> None: ...


async def test_any_node_leads_to_the_tables_of_the_coordinator(ordercast_cluster) -> None:
    async with ordercast_cluster(3, sequencer=False) as cluster:
        await cluster.nodes[1].join("prices", order="total", protocol="sequencer_pb")
        await cluster.nodes[2].join("news", order="causal")
        told = [await Administrator([node.address]).groups() for node in cluster.nodes]
        assert told[0] == told[1] == told[2]
        assert told[0] == [
            GroupRow("news", "causal", "cbcast", ("p3",), (), ""),
            GroupRow("prices", "total", "sequencer_pb", ("p2",), (), "p2"),
        ]


async def test_dedicated_sequencers_stand_in_the_table_with_what_they_have() -> None:
    async with (
        oc.Node("s1", bootstrap=True, sequencer=True) as first,
        oc.Node("s2", seeds=[first.address], sequencer=True) as second,
        oc.Node("bob", seeds=[first.address]) as bob,
    ):
        rows = await Administrator([bob.address]).sequencers()
        assert [(r.name, r.address, r.dedicated, r.groups) for r in rows] == [
            ("s1", first.address, True, 0),
            ("s2", second.address, True, 0),
        ]


async def test_without_dedicated_sequencers_every_node_is_one(ordercast_cluster) -> None:
    async with ordercast_cluster(2, sequencer=False) as cluster:
        rows = await Administrator([cluster.nodes[1].address]).sequencers()
        assert [(row.name, row.dedicated) for row in rows] == [("p1", False), ("p2", False)]


async def test_a_long_table_comes_in_pages(ordercast_cluster, monkeypatch) -> None:
    monkeypatch.setattr(administration, "PAGE_BYTES", 100)
    async with ordercast_cluster(1, sequencer=False) as cluster:
        names = [f"g{number}" for number in range(5)]
        for name in names:
            await cluster.nodes[0].join(name, order="total", scope="group")
        rows = await Administrator([cluster.nodes[0].address]).groups()
        assert [row.name for row in rows] == names


@pytest.mark.parametrize(
    ("group", "to", "said"),
    [
        ("pries", "p1", "no group 'pries': there is 'prices'"),
        ("prices", "p7", "no sequencer 'p7': there is 'p1', 'p2'"),
        ("prices", "p2", "protocol 'sequencer_pb', whose sequencer stays where it is"),
    ],
)
async def test_a_migration_that_cannot_be_is_refused_in_words(
    ordercast_cluster, group: str, to: str, said: str
) -> None:
    async with ordercast_cluster(2, sequencer=False) as cluster:
        await cluster.nodes[0].join("prices", order="total", protocol="sequencer_pb")
        with pytest.raises(UsageError, match=said):
            await Administrator([cluster.nodes[1].address]).migrate(group, to)


async def test_the_only_sequencer_is_not_drained() -> None:
    async with oc.Node("s1", bootstrap=True, sequencer=True) as node:
        with pytest.raises(UsageError, match="'s1' is the only sequencer: start another one"):
            await Administrator([node.address]).drain("s1")


class SlowPlacement:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()

    async def migrate(self, group: str, to: str) -> bool:
        self.begun += 1
        return await self.may_end.wait()

    async def drain(self, node: str) -> bool:
        return await self.migrate("", node)


async def test_a_wish_that_takes_long_is_begun_once_and_waited_for(
    ordercast_cluster, monkeypatch
) -> None:
    monkeypatch.setattr(administration, "HOLD_SECONDS", 0.01)
    async with ordercast_cluster(2, sequencer=False) as cluster:
        slow = SlowPlacement()
        answering = cluster.leader._presence.administration
        answering.placement = slow
        asked = Administrator([cluster.nodes[1].address], timeout=30)
        moving = asyncio.ensure_future(asked.migrate("g", "p2"))
        again = asyncio.ensure_future(asked.migrate("g", "p2"))
        while not slow.begun:
            await asyncio.sleep(0.01)
        short = Administrator([cluster.nodes[1].address], timeout=0.2)
        with pytest.raises(TimeoutError, match=r"'g' is still on its way to 'p2' after 0\.2 s"):
            await short.migrate("g", "p2")
        assert answering.stats()["under_way"] == slow.begun == 1
        slow.may_end.set()
        await asyncio.gather(moving, again)


async def test_a_wish_goes_on_under_the_next_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    sequencer = {"g": 0}
    begun: set[tuple[ProcessId, ProcessId]] = set()  # (who coordinates, to whom)
    monkeypatch.setattr(Placement, "sequencer_of", lambda self, entry: sequencer[entry.name])
    monkeypatch.setattr(Placement, "_check_movable", lambda self, entry: None)
    monkeypatch.setattr(
        Placement, "_say", lambda self, command: begun.add((self._presence.me.pid, command.to))
    )
    async with (
        oc.Node("s1", bootstrap=True) as first,
        oc.Node("s2", seeds=[first.address]) as second,
        oc.Node("s3", seeds=[first.address]) as third,
    ):
        await second.join("g", order="total", protocol="sequencer_pb")
        moving = asyncio.ensure_future(
            Administrator([third.address], timeout=60).migrate("g", "s3")
        )
        while not begun:
            await asyncio.sleep(0.01)
        await first.aclose()
        while len(begun) < 2:
            await asyncio.sleep(0.01)
        assert begun == {(0, 2), (1, 2)} and not moving.done()
        sequencer["g"] = 2
        await moving


async def test_a_move_is_counted_where_the_group_was_and_where_it_is() -> None:
    async with (
        oc.Node("s1", bootstrap=True, balance=False) as first,
        oc.Node("s2", seeds=[first.address], balance=False) as second,
    ):
        group = await first.join("g", order="total")
        await (await group.multicast(b"before")).ordered()
        await Administrator([second.address]).migrate("g", "s2")
        await (await group.multicast(b"after")).ordered()
        gave, got = (node.stats()["sequencing"] for node in (first, second))
        assert (gave["numbered"], gave["transfers_out"], gave["transfers_in"]) == (1, 1, 0)
        assert (got["numbered"], got["transfers_out"], got["transfers_in"]) == (1, 0, 1)


async def test_a_migration_to_a_node_that_leaves_is_not_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()
    monkeypatch.setattr(Placement, "_check_movable", lambda self, entry: None)
    monkeypatch.setattr(Placement, "_say", lambda self, command: begun.set())
    async with oc.Node("s1", bootstrap=True) as first:
        await first.join("g", order="total", protocol="sequencer_pb")
        second = oc.Node("s2", seeds=[first.address])
        await second.start()
        asked = Administrator([first.address], timeout=60)
        moving = asyncio.ensure_future(asked.migrate("g", "s2"))
        await begun.wait()
        await second.aclose()
        with pytest.raises(UsageError, match=r"'s2' has left the cluster|no sequencer 's2'"):
            await moving


async def test_too_many_wishes_are_refused_and_counted(ordercast_cluster, monkeypatch) -> None:
    monkeypatch.setattr(administration, "MAX_UNDER_WAY", 1)
    async with ordercast_cluster(1, sequencer=False) as cluster:
        slow = SlowPlacement()
        answering = cluster.leader._presence.administration
        answering.placement = slow
        asked = Administrator([cluster.leader.address], timeout=30)
        moving = asyncio.ensure_future(asked.migrate("g", "p2"))
        while not slow.begun:
            await asyncio.sleep(0.01)
        with pytest.raises(UsageError, match="1 requests are under way"):
            await asked.drain("p2")
        assert answering.stats()["refused"] == 1
        slow.may_end.set()
        await moving


async def test_a_cluster_with_a_key_answers_nobody_without() -> None:
    async with oc.Node("alice", bootstrap=True, key=KEY) as alice:
        said = rf"no node of the cluster answers \({alice.address}: closed by the peer before"
        with pytest.raises(ConnectionError, match=said):
            await Administrator([alice.address]).sequencers()
        proved = Security.given(KEY, None, False)
        [row] = await Administrator([alice.address], security=proved).sequencers()
        assert row == SequencerRow("alice", alice.address, False, 0, 0.0)


async def test_a_second_node_is_asked_when_the_first_is_gone(ordercast_cluster) -> None:
    async with ordercast_cluster(1, sequencer=False) as cluster:
        rows = await Administrator(["127.0.0.1:1", cluster.leader.address]).sequencers()
        assert [row.name for row in rows] == ["p1"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (encode(TableReply(False), b'[{"name": 7}]'), "the table of .* is not readable"),
        (encode(TableReply(True), b"[]"), "the table 'groups' of .* has no end"),
        (
            encode(TableReply(False), msgspec.json.encode([GroupRow("b", "", "", (), (), "")] * 2)),
            "not in order",
        ),
    ],
)
async def test_an_answer_that_no_node_of_ours_gives_is_the_nodes_fault(
    answer: bytes, said: str
) -> None:
    async with Impostor(answer) as address:
        with pytest.raises(PeerError, match=said):
            await Administrator([address]).groups()


async def test_nobody_is_sent_in_plain_text_to_another_machine() -> None:
    async with Impostor(encode(Redirect("192.0.2.1:7700"))) as address:
        said = r"no answer .* \(127.*coordinator='192\.0\.2\.1:7700' .* nothing would be encrypted"
        with pytest.raises(TimeoutError, match=said):
            await Administrator([address], timeout=0.3).groups()


async def test_a_table_that_is_none_closes_who_asks_for_it(ordercast_cluster) -> None:
    async with ordercast_cluster(1, sequencer=False) as cluster:
        asked = Administrator([cluster.leader.address])
        with pytest.raises(PeerError):
            await asked._ask_one(cluster.leader.address, TableRequest("passwords"))
        assert cluster.leader.stats()["peer_faults"] == 1


async def test_a_node_that_is_not_in_yet_says_so() -> None:
    node = oc.Node("late", seeds=["127.0.0.1:1"], join_timeout=5.0)
    starting = asyncio.ensure_future(node.start())
    while not hasattr(node, "_presence") or not node._presence.peers.hello.advertise:
        await asyncio.sleep(0.01)
    with pytest.raises(ConnectionError, match="not in the cluster now"):
        await Administrator([node._presence.peers.address]).migrate("g", "s")
    starting.cancel()
    await asyncio.wait((starting,))


def test_a_wish_is_known_again_by_what_it_asks_for() -> None:
    assert len({MigrateRequest("g", "s"), MigrateRequest("g", "s"), MigrateRequest("g", "t")}) == 2
