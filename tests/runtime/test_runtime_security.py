"""Nodes with TLS and a key: they work, and strangers get nothing."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import ordercast as oc
from certificates import signed
from ordercast.runtime.local_cluster import LocalCluster

KEY = "0123456789abcdef"


async def take(node: oc.Node, count: int) -> list[tuple[str, bytes]]:
    """So many messages of the node's stream."""
    taken = []
    async for event in node:
        if isinstance(event, oc.Message):
            taken.append((event.sender, event.body))
            if len(taken) == count:
                break
    return taken


def run(scenario) -> None:
    async def bounded():
        async with asyncio.timeout(30):
            await scenario

    asyncio.run(bounded())


def secured(name: str) -> dict[str, object]:
    return {"tls": signed(name), "key": KEY}


def test_three_nodes_with_tls_and_a_key_exchange_messages_in_one_order():
    async def scenario():
        async with (
            oc.Node("alice", bootstrap=True, **secured("alice")) as alice,
            oc.Node("bob", seeds=[alice.address], **secured("bob")) as bob,
            oc.Node("carol", seeds=[alice.address], **secured("carol")) as carol,
        ):
            nodes = (alice, bob, carol)
            groups = [await node.join("prices", order="total") for node in nodes]
            for group in groups:
                await group.multicast(b"x" * 100)
                await group.multicast(b"y" * 200_000)
            first, *others = await asyncio.gather(*(take(node, 6) for node in nodes))
            assert others == [first, first]
            assert alice.stats()["connections"]["faults"] == 0

    run(scenario())


@pytest.mark.parametrize("order", ["fifo", "total"])
def test_a_key_alone_is_enough_on_one_machine_also_over_datagrams(order):
    async def scenario():
        async with LocalCluster(
            2, order=order, in_process=True, key=KEY, transport="udp"
        ) as cluster:
            await cluster.groups[0].multicast(b"hello")
            assert await take(cluster.nodes[1], 1) == [("p1", b"hello")]

    run(scenario())


def test_processes_are_given_the_key_and_the_certificates():
    async def scenario():
        async with LocalCluster(
            1, order="total", key=KEY.encode(), tls=signed("worker")
        ) as cluster:
            await cluster.workers[0].do("send", group="main", count=3)
            assert await cluster.workers[0].do("wait", group="main", count=3) == 3
            status = await oc.query_status(cluster.workers[0].address, tls=signed("asker"), key=KEY)
            assert status["name"] == "p1"

    run(scenario())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"key": "f" * 16}, "before it proved the key"),
        ({}, "it may want a key, or another certificate"),
    ],
    ids=["another key", "no key"],
)
def test_who_has_not_the_key_gets_neither_in_nor_an_answer(options, reason):
    async def scenario():
        async with oc.Node("alice", bootstrap=True, key=KEY) as alice:
            with pytest.raises(oc.PeerError, match=reason):
                await oc.query_status(alice.address, **options)
            with pytest.raises(oc.JoinTimeout, match=reason):
                await oc.Node("bob", seeds=[alice.address], join_timeout=0.2, **options).start()
            assert (await oc.query_status(alice.address, key=KEY))["name"] == "alice"
            assert alice.stats()["nodes"] == 1
            assert alice.stats()["peer_faults"] >= 2

    run(scenario())


def test_a_node_of_another_authority_is_told_so():
    async def scenario():
        async with oc.Node("alice", bootstrap=True, tls=signed("alice")) as alice:
            eve = oc.Node(
                "eve", seeds=[alice.address], join_timeout=0.2, tls=signed("eve", "theirs")
            )
            with pytest.raises(oc.JoinTimeout, match="certificate"):
                await eve.start()

    run(scenario())


def test_a_stranger_of_a_node_with_tls_gets_only_a_closed_connection():
    async def scenario():
        async with oc.Node("alice", bootstrap=True, tls=signed("alice")) as alice:
            host, _, port = alice.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"OCST\0\0\0 and no more")
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    run(scenario())


# -- plain text stays here ------------------------------------------------------------------------

HERE = {"bootstrap": True}


@pytest.mark.parametrize(
    ("options", "address"),
    [
        (HERE | {"bind": "10.0.0.5:7700"}, r"bind='10\.0\.0\.5:7700'"),
        (HERE | {"bind": "0.0.0.0:7700", "advertise": "localhost:7700"}, r"bind='0\.0\.0\.0:7700'"),
        (HERE | {"bind": "[fe80::1]:7700"}, r"bind='\[fe80::1\]:7700'"),
        (HERE | {"advertise": "alice.example:7700"}, r"advertise='alice\.example:7700'"),
        ({"seeds": ["127.0.0.1:1", "10.0.0.5:7700"]}, r"seeds='10\.0\.0\.5:7700'"),
        (
            {"members": {"alice": "127.0.0.1:7700", "bob": "10.0.0.6:7700"}},
            r"members\['bob'\]='10\.0\.0\.6:7700'",
        ),
        (
            HERE | {"transport": oc.IpMulticast("239.1.2.3:7700", interface="10.0.0.5")},
            r"interface='10\.0\.0\.5'",
        ),
    ],
    ids=["bind", "everywhere", "IPv6", "advertise", "seeds", "members", "interface"],
)
def test_plain_text_that_would_leave_the_machine_is_refused_with_three_ways_out(options, address):
    with pytest.raises(oc.ConfigError, match=f"{address} is not an address of this mach") as caught:
        oc.Node("alice", **options)
    for way in ("tls=Tls(...)", "127.0.0.1, ::1, localhost", "insecure=True"):
        assert way in str(caught.value)
    oc.Node("alice", insecure=True, **options)
    if "transport" not in options:
        oc.Node("alice", tls=signed("alice"), **options)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "[::1]", "localhost", "LOCALHOST"])
def test_the_own_machine_needs_neither(host):
    oc.Node("alice", bootstrap=True, bind=f"{host}:7700")


def test_a_question_about_another_machine_is_not_asked_in_plain_text():
    with pytest.raises(oc.ConfigError, match=r"address='192\.0\.2\.7:7700' is not an address of"):
        asyncio.run(oc.query_status("192.0.2.7:7700"))


def test_an_address_that_others_tell_is_not_called_in_plain_text_either():
    async def scenario():
        async with oc.Node("alice", bootstrap=True) as alice:
            with pytest.raises(oc.PeerError, match="nothing would be encrypted"):
                await alice._presence.peers.dial("192.0.2.7:7700", 1.0)

    run(scenario())


@pytest.mark.parametrize("transport", ["udp", oc.IpMulticast("239.1.2.3:7700")])
def test_tls_over_datagrams_is_a_contradiction(transport):
    with pytest.raises(oc.ConfigError, match="datagrams are not encrypted"):
        oc.Node("alice", bootstrap=True, transport=transport, tls=signed("alice"))


def test_a_certificate_that_nobody_would_accept_is_found_before_the_node_starts():
    with pytest.raises(oc.ConfigError, match="the certificate has expired"):
        oc.Node("alice", bootstrap=True, tls=signed("old", "ours", -1))


def test_wrong_kinds_of_values_are_named():
    with pytest.raises(TypeError, match="insecure is True or False, not 'yes'"):
        oc.Node("alice", bootstrap=True, insecure="yes")
    with pytest.raises(ValueError, match="the key has 5 bytes"):
        oc.Node("alice", bootstrap=True, key="short")
    with pytest.raises(TypeError, match=r"tls is ordercast\.Tls\("):
        oc.Node("alice", bootstrap=True, tls=True)
