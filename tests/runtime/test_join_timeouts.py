"""A join that takes too long says what it waited for, and gives advice that fits and works."""

from __future__ import annotations

import asyncio
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import ordercast as oc
from listeners import closed_port
from ordercast.cli.app import app
from ordercast.cli.exits import BAD_INPUT
from ordercast.runtime.control import Goodbye, encode
from ordercast.runtime.options import NodeOptions

FAST = {"heartbeat_ms": 50, "suspect_ms": 400}
PATIENT = {"suspect_ms": 60_000, "close_timeout": 0.2}


async def timeout_of(start: Any) -> str:
    with pytest.raises(oc.JoinTimeout) as failed:
        await start
    return str(failed.value)


async def examined(text: str, **files: Path) -> str:
    """What the command that the text suggests prints; it must not be a wrong command."""
    [command] = re.findall("`(ordercast doctor .*?)`", text)
    words = shlex.split(command)
    words = [str(files.get(word, word)) for word in words[1:]]
    result = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert result.exit_code != BAD_INPUT, result.output
    assert "ADDRESS" not in words and "nothing to examine" not in result.output
    return result.output


def make_deaf(node: oc.Node) -> None:
    """Alive, connected, and nothing moves: as a stopped process."""
    node._presence.engine.stop()


async def test_where_nobody_listens_the_advice_is_to_start_a_cluster() -> None:
    address = closed_port()
    text = await timeout_of(oc.Node("bob", seeds=[address], join_timeout=0.2).start())
    assert text.startswith("no seed answered within 0.2 s") and "bootstrap=True" in text
    assert "connection refused" in await examined(text)


async def test_the_command_that_is_suggested_knows_the_cluster_and_the_key(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("k" * 32)
    secret = {"cluster": "prod", "key": "k" * 32}
    async with oc.Node("alice", bootstrap=True, **secret) as alice:
        bob = oc.Node("bob", seeds=[closed_port(), alice.address], join_timeout=0.2, **secret)
        make_deaf(alice)
        alice._presence.error = ValueError("for a test: it answers nobody who applies")
        text = await timeout_of(bob.start())
        assert "--cluster prod --key-file KEYFILE" in text and "kkk" not in text
        assert "1 node answered" in await examined(text, KEYFILE=key)
        alice._presence.error = None


async def test_a_seed_whose_cluster_is_not_primary_says_who_is_missing() -> None:
    async with (
        oc.Node("a", bootstrap=True, **FAST) as a,
        oc.Node("b", seeds=[a.address], **FAST) as b,
        oc.Node("c", seeds=[a.address], **FAST, close_timeout=0.2) as c,
    ):
        make_deaf(a)
        make_deaf(b)
        async with asyncio.timeout(20):
            while c._presence.blocked is None:
                await asyncio.sleep(0.01)
        text = await timeout_of(oc.Node("d", seeds=[c.address], join_timeout=0.3).start())
        assert "a seed answered, but its cluster is not primary" in text
        assert "c#1 is cut off: of node view 3 it cannot reach a, b" in text
        assert "bootstrap" not in text
        assert f"`ordercast recover --node {c.address}` lets the nodes that are left go on" in text
        assert "what only they had is lost" in text and "has forgotten its vote" not in text
        assert "others that answer are not cut off" in await examined(text)  # they are deaf
        text = await timeout_of(oc.Node("b", seeds=[c.address], join_timeout=0.3).start())
        assert "If 'b' was started again, it has forgotten its vote, and does not count" in text


async def test_a_seed_whose_coordinator_hangs_names_the_coordinator() -> None:
    async with (
        oc.Node("a", bootstrap=True, **PATIENT) as a,
        oc.Node("b", seeds=[a.address], **PATIENT) as b,
    ):
        make_deaf(a)
        a._presence.error = ValueError("for a test: it answers nobody who applies")
        text = await timeout_of(oc.Node("c", seeds=[b.address], join_timeout=0.3).start())
        a._presence.error = None
        assert "a seed answered, but none let this node in" in text
        assert f"it sent this node to its coordinator at {a.address}" in text
        assert "bootstrap" not in text
        assert f"`ordercast doctor {b.address} {a.address}`" in text
        await examined(text)


async def test_seeds_that_wait_themselves_are_told_from_seeds_that_do_not_answer() -> None:
    seed = oc.Node("seed", seeds=[closed_port()], join_timeout=60)
    waiting = asyncio.ensure_future(seed.start())
    while not hasattr(seed, "_presence") or seed._presence._admission is None:
        await asyncio.sleep(0.01)
    text = await timeout_of(
        oc.Node("bob", seeds=[seed._presence.peers.address], join_timeout=0.2).start()
    )
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert "a seed answered, but no seed got into a cluster itself" in text
    assert "exactly one node with bootstrap=True" in text


@pytest.mark.parametrize("order", ["causal", "total"])
async def test_a_node_of_the_cluster_hears_whom_its_join_waits_for_and_not_to_begin_another(
    order: str,
) -> None:
    async with (
        oc.Node("alice", bootstrap=True, **PATIENT) as alice,
        oc.Node("bob", seeds=[alice.address], join_timeout=1.5, **PATIENT) as bob,
    ):
        await alice.join("prices", order=order)
        make_deaf(alice)
        text = await timeout_of(bob.join("prices", order=order))
        assert "group 'prices'" in text and "the coordinator alice#1" in text
        assert "nothing has come from alice#1 for" in text and "suspect_ms=60000" in text
        assert "This node is in the cluster" in text
        assert "bootstrap" not in text and "no seed" not in text
        assert f"`ordercast doctor {alice.address}`" in text
        await examined(text)


async def test_a_good_bye_to_a_node_on_its_way_in_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A newcomer asked another newcomer, gave up and was closed: it says good-bye to it."""
    seed = oc.Node("seed", seeds=[closed_port()], join_timeout=60)
    waiting = asyncio.ensure_future(seed.start())
    while not hasattr(seed, "_presence") or seed._presence._admission is None:
        await asyncio.sleep(0.01)
    async with oc.Node("alice", bootstrap=True) as alice:
        conn = await alice._presence.peers.dial(seed._presence.peers.address, 20)
        conn.send(encode(Goodbye()))
        conn.close("it leaves")
        await conn.closed()
        while seed._presence.peers.unbound:
            await asyncio.sleep(0.01)
    assert seed._presence.peers.peer_faults == 0
    assert "broke the protocol" not in caplog.text
    waiting.cancel()
    await asyncio.wait((waiting,))


async def test_where_discovery_finds_nobody_the_doctor_looks_at_the_same_group() -> None:
    where = oc.Discovery("239.192.7.7:7701")
    text = await timeout_of(oc.Node("bob", discover=where, join_timeout=0.2).start())
    assert "`ordercast doctor --discover 239.192.7.7:7701 --bind 127.0.0.1:0`" in text
    assert "not_discovered" in await examined(text)


async def lonely_member_killed(alice: oc.Node, options: dict[str, Any]) -> None:
    """The only member of a group goes without a word."""
    bob = oc.Node("bob", seeds=[alice.address], rejoin=False, **options)
    await bob.start()
    await bob.join("prices", order="fifo")
    make_deaf(bob)
    for conn in tuple(bob._presence.peers.bound.values()):
        conn.abort("killed")
    while "bob#1" in alice.stats()["node_view"]["members"]:
        await asyncio.sleep(0.01)
    await bob.aclose()


async def test_who_joins_a_group_without_members_is_told_who_is_waited_for() -> None:
    options = {**FAST, "close_timeout": 0.1, "refound_ms": 60_000}
    async with (
        oc.Node("alice", bootstrap=True, **options) as alice,
        oc.Node("carol", seeds=[alice.address], join_timeout=20, **options) as carol,
        oc.Node("dave", seeds=[alice.address], **options),
    ):
        await lonely_member_killed(alice, options)
        carol._presence.options = msgspec.structs.replace(carol._presence.options, join_timeout=0.5)
        text = await timeout_of(carol.join("prices", order="fifo"))
        assert "waits for bob#1, which did not leave in order and may have newer state" in text
        assert "refound_ms=60000" in text


async def test_a_group_without_members_is_founded_again_before_a_join_gives_up() -> None:
    assert NodeOptions().refound_ms < 1000 * NodeOptions().join_timeout
    options = {**FAST, "close_timeout": 0.1, "refound_ms": 200}
    async with (
        oc.Node("alice", bootstrap=True, **options) as alice,
        oc.Node("carol", seeds=[alice.address], **options) as carol,
        oc.Node("dave", seeds=[alice.address], **options),
    ):
        await lonely_member_killed(alice, options)
        await carol.join("prices", order="fifo")
        async for event in carol:
            assert isinstance(event, oc.View) and event.members == ("carol",)
            assert event.number > 1  # numbers go on, also over a crash of the last member
            break


async def test_a_node_that_is_killed_and_started_again_and_again_hears_why_it_waits() -> None:
    async with oc.Node("alice", bootstrap=True, heartbeat_ms=1000) as alice:
        how = {"seeds": [alice.address], "heartbeat_ms": 1000, "rejoin": False}
        for _ in range(2):
            bob = oc.Node("bob", **how)
            await bob.start()
            bob._presence.fail(oc.GroupClosed("killed"))
            while len(alice.stats()["node_view"]["members"]) > 1:
                await asyncio.sleep(0.01)
        text = await timeout_of(oc.Node("bob", **how, join_timeout=0.5).start())
    assert "excluded more than once within a minute waits" in text
    assert "Start this node again later" in text
