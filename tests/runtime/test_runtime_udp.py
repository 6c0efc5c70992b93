"""Nodes whose groups travel as datagrams: the choice, its errors, and life with losses."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

import ordercast as oc
from datagrams import free_group
from ordercast.reliability.link import LinkAck
from ordercast.runtime.control import Goodbye, encode
from ordercast.runtime.engine import LINKS
from ordercast.runtime.options import NodeOptions
from ordercast.runtime.peers import datagram_address
from ordercast.wire.control import LINK_CHANNEL, Hello
from ordercast.wire.frame import Splitter

LOSSY = oc.Udp(inject_loss=0.1, inject_duplicates=0.05, inject_reordering=0.05, seed=7)


async def bodies(node: oc.Node, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            found.append(event.body)
            if len(found) == count:
                break
    return found


async def everybody(cluster: oc.LocalCluster, count: int) -> list[list[bytes]]:
    return list(await asyncio.gather(*(bodies(node, count) for node in cluster.nodes)))


@pytest.mark.parametrize("transport", ["tpc", None, 5])
def test_a_node_with_an_unknown_transport_is_a_value_error_that_lists_them(transport: Any) -> None:
    with pytest.raises(ValueError, match=r"'tcp', 'udp', Udp\(...\), IpMulticast\("):
        oc.Node("alice", bootstrap=True, transport=transport)


def test_reassembly_that_cannot_hold_the_largest_message_is_a_config_error() -> None:
    with pytest.raises(oc.ConfigError, match="reassembly_bytes=1000000 with max_message=1048576"):
        oc.Node("alice", bootstrap=True, transport=oc.Udp(reassembly_bytes=1_000_000))


def test_delays_suit_the_transport_unless_they_are_given() -> None:
    assert NodeOptions.given({}).retry_ms == 5000
    assert NodeOptions.given({"transport": "udp"}).retry_ms == 100
    assert NodeOptions.given({"transport": "udp", "retry_ms": 77}).retry_ms == 77


@pytest.mark.parametrize(
    ("leader", "joiner"),
    [
        ("tcp", "udp"),
        ("udp", "tcp"),
        ("udp", oc.IpMulticast("239.1.2.3:17700")),
    ],
)
async def test_another_transport_than_the_leaders_is_refused_and_both_are_named(
    leader: Any, joiner: Any
) -> None:
    async with oc.Node("alice", bootstrap=True, transport=leader) as alice:
        bob = oc.Node("bob", seeds=[alice.address], transport=joiner)
        theirs = joiner if isinstance(joiner, str) else joiner.label
        says = f"transport='{theirs}' at 'bob', transport='{leader}' at the coordinator"
        with pytest.raises(oc.ConfigError, match=says):
            await bob.start()


async def test_settings_that_need_not_be_equal_may_differ() -> None:
    large = oc.Udp(max_datagram=60_000)
    async with (
        oc.Node("alice", bootstrap=True, transport=large) as alice,
        oc.Node("bob", seeds=[alice.address], transport="udp") as bob,
    ):
        groups = [await node.join("g", order="total") for node in (alice, bob)]
        for group in groups:
            await group.multicast(b"x" * 20_000)
        assert await bodies(alice, 2) == await bodies(bob, 2) == [b"x" * 20_000] * 2


async def test_the_packets_of_groups_leave_the_connections(ordercast_cluster: Any) -> None:
    async with ordercast_cluster(2, order="total", transport="udp") as cluster:
        before = cluster.nodes[0].stats()["connections"]["frames_out"]
        for number in range(50):
            await cluster.groups[0].multicast(b"%d" % number)
        assert await everybody(cluster, 50) == [[b"%d" % n for n in range(50)]] * 2
        stats = cluster.nodes[0].stats()
        assert stats["connections"]["frames_out"] == before
        assert stats["datagrams"]["datagrams_out"] > 0
        assert stats["datagrams"]["transport"] == "udp"


async def test_stats_of_datagrams_show_every_limit_beside_what_it_limits(
    ordercast_cluster: Any,
) -> None:
    async with ordercast_cluster(2, order="total", transport="udp") as cluster:
        stats = cluster.nodes[0].stats()["datagrams"]
        for limit, used in (
            ("reassembly_bytes", "reassembly_used"),
            ("repair_bytes", "repair_used"),
            ("queue_bytes", "queued_bytes"),
            ("max_under_way", "under_way"),
        ):
            assert 0 <= stats[used] <= stats[limit]
        for count in ("fragments_pending", "reassembly_expired", "datagrams_lost_here"):
            assert stats[count] == 0


@pytest.mark.parametrize("protocol", ["sequencer_pb", "fifo"])
async def test_messages_larger_than_a_datagram_arrive_in_spite_of_losses(
    ordercast_cluster: Any, protocol: str
) -> None:
    sizes = (1, 1_400, 70_000, 1_000_000)
    async with ordercast_cluster(3, protocol=protocol, transport=LOSSY) as cluster:
        for size in sizes:
            await cluster.groups[0].multicast(bytes(size))
        for found in await everybody(cluster, len(sizes)):
            assert [len(body) for body in found] == list(sizes)


async def test_ip_multicast_sends_a_packet_for_several_once(ordercast_cluster: Any) -> None:
    async def sent_by_the_sequencer(transport: Any) -> int:
        options = {"protocol": "sequencer_pb", "transport": transport, "frame_bytes": 1}
        async with ordercast_cluster(5, **options) as cluster:
            sequencer = cluster.nodes[0]  # the oldest member
            before = sequencer.stats()["datagrams"]["bytes_out"]
            for _ in range(10):
                await cluster.groups[1].multicast(bytes(1000))
            await everybody(cluster, 10)
            return int(sequencer.stats()["datagrams"]["bytes_out"] - before)

    once = await sent_by_the_sequencer(oc.IpMulticast(free_group()))
    each = await sent_by_the_sequencer("udp")
    assert 10 * 1000 < once < 20 * 1000
    assert each > 40 * 1000


async def test_nodes_of_another_cluster_in_the_same_multicast_group_are_not_heard() -> None:
    transport = oc.IpMulticast(free_group())
    async with (
        oc.LocalCluster(
            2, order="total", in_process=True, cluster="red", transport=transport
        ) as red,
        oc.LocalCluster(
            2, order="total", in_process=True, cluster="blue", transport=transport
        ) as blue,
    ):
        await red.groups[0].multicast(b"red")
        await blue.groups[0].multicast(b"blue")
        assert await everybody(red, 1) == [[b"red"]] * 2
        assert await everybody(blue, 1) == [[b"blue"]] * 2


@pytest.mark.parametrize("protocol", ["sequencer_pb", "fifo", "vector"])
async def test_leaving_and_coming_back_work_in_spite_of_losses(
    ordercast_cluster: Any, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol, transport=LOSSY) as cluster:
        for lap in range(3):
            await cluster.groups[2].leave()
            # A lost request is repeated: without waiting it could get its place a lap later.
            said = await cluster.groups[0].multicast(b"without %d" % lap)
            await said.ordered()
            cluster.groups[2] = await cluster.nodes[2].join("main", protocol=protocol)
            said = await cluster.groups[1].multicast(b"with %d" % lap)
            await said.ordered()
        heard = await asyncio.gather(
            bodies(cluster.nodes[0], 6), bodies(cluster.nodes[1], 6), bodies(cluster.nodes[2], 3)
        )
        assert [len(found) for found in heard] == [6, 6, 3]
        assert heard[2] == [b"with 0", b"with 1", b"with 2"]


@pytest.mark.parametrize("protocol", ["sequencer_pb", "fifo"])
async def test_one_that_has_left_keeps_nobodys_window_closed(
    ordercast_cluster: Any, protocol: str
) -> None:
    lossy = oc.Udp(inject_loss=0.4, seed=1)
    async with ordercast_cluster(3, protocol=protocol, transport=lossy, retry_ms=20) as cluster:
        readers = [asyncio.ensure_future(bodies(node, 99)) for node in cluster.nodes]
        for _ in range(5):
            await cluster.groups[2].leave()
            receipt = await cluster.groups[0].multicast(b"x")
            await receipt.stable()
            cluster.groups[2] = await cluster.nodes[2].join("main", protocol=protocol)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def test_a_packet_of_a_group_that_was_left_does_not_stop_the_link_for_other_groups(
    ordercast_cluster: Any,
) -> None:
    async with ordercast_cluster(2, protocol="fifo", transport=LOSSY) as cluster:
        others = await cluster.join("other", protocol="fifo", scope="group")
        readers = [asyncio.ensure_future(bodies(node, 41)) for node in cluster.nodes]
        for number in range(40):
            await cluster.groups[0].multicast(b"%d" % number)
        leaving = asyncio.ensure_future(cluster.groups[1].leave())
        receipt = await others[0].multicast(b"still here")
        await receipt.stable()
        await leaving
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)


async def test_the_death_of_a_member_is_noticed_as_over_tcp(ordercast_cluster: Any) -> None:
    async with ordercast_cluster(3, order="total", transport="udp") as cluster:
        await cluster.kill(2)
        async for event in cluster.nodes[0]:
            if isinstance(event, oc.View) and event.left == ("p3",):
                break
        await cluster.groups[0].multicast(b"on we go")
        assert await bodies(cluster.nodes[1], 1) == [b"on we go"]


async def test_a_datagram_that_comes_after_a_good_bye_is_late_and_no_fault(
    ordercast_cluster: Any,
) -> None:
    async with ordercast_cluster(2, protocol="fifo", transport="udp") as cluster:
        leader = cluster.leader
        peers, pid = leader._presence.peers, cluster.nodes[1]._presence.me.pid
        [late] = [c for p, c in peers.bound.items() if p == pid]
        link = leader._presence.engine.stack.links.links.get(pid)
        peers.on_control(late, Splitter(1000).feed(encode(Goodbye()))[0])
        ack = LINKS.encode(LINK_CHANNEL, 0, LinkAck(9), b"")
        cluster.nodes[1]._presence.peers.datagrams.send((leader._presence.me.pid,), ack)
        while not leader.stats()["datagrams"]["datagrams_late"]:
            await asyncio.sleep(0.001)
        assert leader.stats()["peer_faults"] == 0
        assert leader._presence.engine.stack.links.links.get(pid) is link


async def test_a_stranger_with_a_guessed_number_is_not_heard(ordercast_cluster: Any) -> None:
    async with ordercast_cluster(2, order="total", transport="udp") as cluster:
        host, _, port = cluster.nodes[0].address.rpartition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for pid in range(4):
                head = b"OCDG\x01\x00\x00\x00" + pid.to_bytes(4, "big")
                stranger.sendto(head + bytes(8) + bytes(8) + b"nonsense", (host, int(port)))
        while cluster.nodes[0].stats()["datagrams"]["datagrams_refused"] < 4:
            await asyncio.sleep(0.001)
        await cluster.groups[0].multicast(b"x")
        assert await everybody(cluster, 1) == [[b"x"]] * 2


async def test_a_port_that_is_taken_for_udp_is_said_so() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        node = oc.Node("alice", bind=f"127.0.0.1:{port}", bootstrap=True, transport="udp")
        with pytest.raises(OSError, match=f"UDP bind to 127.0.0.1:{port}"):
            await node.start()


@pytest.mark.parametrize(
    ("host", "interface", "says"),
    [
        ("127.0.0.1", "203.0.113.9", "interface='203.0.113.9' is no address of this machine"),
        ("::1", "", "bind='::1' with IpMulticast.*IPv4 only"),
    ],
)
async def test_what_cannot_multicast_is_a_config_error_and_leaves_no_port_open(
    host: str, interface: str, says: str
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    bind = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    transport = oc.IpMulticast(free_group(), interface=interface)
    node = oc.Node("alice", bind=bind, bootstrap=True, transport=transport, insecure=True)
    with pytest.raises(oc.ConfigError, match=says):
        await node.start()
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(family, kind) as probe:
            probe.bind((host, port))


async def test_port_0_finds_a_number_that_is_free_for_both(monkeypatch: Any) -> None:
    opened: list[int] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        from ordercast.transport.udp import DatagramEndpoint

        open_really = DatagramEndpoint.open

        def open_after_a_failure(self: DatagramEndpoint, address: tuple[str, int]) -> None:
            if not opened:
                taken.bind(address)
            opened.append(address[1])
            open_really(self, address)

        monkeypatch.setattr(DatagramEndpoint, "open", open_after_a_failure)
        async with oc.Node("alice", bootstrap=True, transport="udp") as alice:
            assert alice.address.endswith(f":{opened[-1]}") and len(opened) == 2


async def test_processes_of_their_own_take_a_transport_too() -> None:
    transport = oc.Udp(max_datagram=9_000, inject_loss=0.05, seed=3)
    async with oc.LocalCluster(2, order="total", transport=transport) as cluster:
        await asyncio.gather(
            *(w.do("send", group="main", count=200, size=500) for w in cluster.workers)
        )
        for worker in cluster.workers:
            assert await worker.do("wait", group="main", count=400) == 400
            report = await worker.do("report")
            assert report["stats"]["datagrams"]["datagrams_in"] > 0


@pytest.mark.parametrize(
    ("advertise", "address"),
    [
        ("127.0.0.9:7700", ("127.0.0.9", 7700)),
        ("[::1]:7700", ("::1", 7700)),
        ("alice.example:7700", ("192.0.2.7", 7700)),
    ],
)
def test_datagrams_go_to_the_advertised_port_at_an_address_that_needs_no_look_up(
    advertise: str, address: tuple[str, int]
) -> None:
    hello = Hello(cluster="c", name="alice", incarnation=1, advertise=advertise)
    conn = SimpleNamespace(hello=hello, peer=("192.0.2.7", 50_000))
    assert datagram_address(conn) == address  # type: ignore[arg-type]


def test_a_peer_that_advertises_nonsense_is_at_fault_itself() -> None:
    hello = Hello(cluster="c", name="alice", incarnation=1, advertise="nowhere")
    conn = SimpleNamespace(hello=hello, peer=("192.0.2.7", 50_000))
    with pytest.raises(oc.PeerError, match="advertise='nowhere' is not an address"):
        datagram_address(conn)  # type: ignore[arg-type]
