"""Newcomers whose way in is held up: by a slow loop, by a busy node, by one that never comes."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

import ordercast as oc
from cables import free_addresses
from ordercast.errors import GroupClosed
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.admission import Admission
from ordercast.runtime.cluster_membership import ClusterMembership
from ordercast.runtime.control import Admitted
from ordercast.runtime.options import NodeOptions
from ordercast.wire.control import Hello

PATIENCE = 0.05  # seconds that a seed gets
HANGS = 30.0  # seconds after which it is said to hang


class HeldUp:
    """A seed's connection: the loop stands still until time is up, and then the answer is there."""

    def __init__(self) -> None:
        self.admission: Admission
        self.asked = 0
        self.closed = ""

    def send(self, packet: bytes) -> None:
        self.asked += 1
        asyncio.get_running_loop().call_soon(self._stand_still)

    def _stand_still(self) -> None:
        time.sleep(2 * PATIENCE)
        asyncio.get_running_loop().call_soon(self._answer)

    def _answer(self) -> None:
        node = NodeEntry(1, "me", 1, "127.0.0.1:2", (), False)
        self.admission.handle(self, Admitted(node, 0, (), "run", ()))  # type: ignore[arg-type]

    def close(self, reason: str) -> None:
        self.closed = reason


async def test_an_answer_that_comes_when_time_is_up_counts() -> None:
    conn = HeldUp()

    async def dial(address: str, timeout: float) -> HeldUp:
        return conn

    site = SimpleNamespace(
        peers=SimpleNamespace(dial=dial), options=NodeOptions(), after=0, former=(),
        admitted=lambda conn, answer: None,
    )  # fmt: skip
    admission = conn.admission = Admission(site)  # type: ignore[arg-type]
    answer = await admission.ask(("127.0.0.1:1",), PATIENCE)
    assert answer.me.name == "me"
    assert (conn.asked, conn.closed) == (1, "")


async def test_a_node_that_hangs_up_on_a_newcomer_is_dialled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        oc.Node("a", bootstrap=True) as a,
        oc.Node("b", seeds=[a.address]) as b,
    ):
        peers = b._presence.peers
        let_in = peers.on_hello
        hung_up = []

        def on_hello(conn: Any, hello: Hello) -> None:
            if hung_up:
                let_in(conn, hello)
            else:
                hung_up.append(hello.name)
                asyncio.get_running_loop().call_later(0.05, conn.abort, "it is busy")

        monkeypatch.setattr(peers, "on_hello", on_hello)
        async with asyncio.timeout(HANGS), oc.Node("c", seeds=[a.address], join_timeout=600.0) as c:
            assert hung_up == ["c"]
            assert c.stats()["connections"]["open"] == 2


async def test_a_newcomer_that_dies_on_its_way_keeps_no_other_one_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = ClusterMembership._ask_contacts

    def ask_unless_ghost(self: ClusterMembership) -> None:
        if self._presence.peers.hello.name != "ghost":
            ask(self)

    monkeypatch.setattr(ClusterMembership, "_ask_contacts", ask_unless_ghost)
    async with oc.Node("a", bootstrap=True) as a:
        ghost = oc.Node("ghost", seeds=[a.address])
        coming = asyncio.ensure_future(ghost.start())
        while a._presence.directory.named("ghost") is None:
            await asyncio.sleep(0)
        unanswered = asyncio.Event()
        monkeypatch.setattr(ghost._presence.peers, "_welcome", lambda conn, node: unanswered.set())
        late = oc.Node("late", seeds=[a.address], join_timeout=600.0)
        starting = asyncio.ensure_future(late.start())
        await unanswered.wait()
        ghost._presence.fail(GroupClosed("this node was killed"))
        async with asyncio.timeout(HANGS):
            await starting
        assert late.stats()["node_view"]["members"] == ["a#1", "late#1"]
        await late.aclose()
        with pytest.raises(GroupClosed):
            await coming


async def test_a_name_whose_holder_runs_is_refused_for_good() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        for taken in ("alice", "bob"):
            with pytest.raises(oc.NameTaken, match=f"a node named '{taken}' is in the cluster"):
                async with oc.Node(taken, seeds=[alice.address], join_timeout=60):
                    pass
        assert alice.stats()["nodes"] == bob.stats()["nodes"] == 2


@pytest.mark.parametrize("at", ["its old address", "another address"])
async def test_a_name_is_free_again_although_the_coordinator_did_not_hear_its_holder_go(
    monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """What the holder said last is under way for long: to the coordinator it seems to be there."""
    [address] = free_addresses(1)
    async with oc.Node("alice", bootstrap=True, suspect_ms=400, heartbeat_ms=100) as alice:
        bob = oc.Node("bob", bind=address, seeds=[alice.address])
        await bob.start()
        heard = alice._presence.peers.bound[bob._presence.me.pid]
        monkeypatch.setattr(heard, "connection_lost", lambda error: None)
        monkeypatch.setattr(heard, "eof_received", lambda: True)
        monkeypatch.setattr(heard, "data_received", lambda data: None)
        bob._presence.fail(GroupClosed("this node was killed"))
        await bob.aclose()
        where = {"bind": address} if at == "its old address" else {}
        async with oc.Node("bob", seeds=[alice.address], join_timeout=60, **where) as next_life:
            assert next_life.incarnation == 2
