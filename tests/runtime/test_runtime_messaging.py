"""Nodes over real TCP: every protocol keeps its promise, views come in their place."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS

MEMBERS = 3
EACH = 40


async def take(node: oc.Node, messages: int) -> list[oc.Message]:
    """The next `messages` messages of the node's stream, without the views."""
    found: list[oc.Message] = []
    async for event in node:
        if isinstance(event, oc.Message):
            found.append(event)
            if len(found) == messages:
                break
    return found


async def send_in_bursts(group: oc.Group, name: str) -> None:
    for number in range(EACH):
        receipt = await group.multicast(f"{name}:{number}".encode())
        if number % 7 == 0:
            await asyncio.sleep(0)
    await receipt.ordered()


async def test_the_ten_lines_of_the_quickstart() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        prices = await node.join("prices", order="total")
        receipt = await prices.multicast(b"IBM 191.2")
        await receipt.ordered()
        seen: list[object] = []
        async for event in node:
            match event:
                case oc.View(group="prices", members=members):
                    seen.append(members)
                case oc.Message(group="prices", sender=sender, body=body):
                    seen.append((sender, body))
                    break
        assert seen == [("alice",), ("alice", b"IBM 191.2")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sequencer", [True, False])
async def test_members_agree_and_each_sender_stays_in_order(
    ordercast_cluster, protocol: str, sequencer: bool
) -> None:
    async with ordercast_cluster(MEMBERS, protocol=protocol, sequencer=sequencer) as cluster:
        total = MEMBERS * EACH
        *received, _, _, _ = await asyncio.gather(
            *(take(node, total) for node in cluster.nodes),
            *(send_in_bursts(g, n) for g, n in zip(cluster.groups, cluster.names, strict=True)),
        )
        assert all(sorted(r, key=str) == sorted(received[0], key=str) for r in received)
        order = PROTOCOLS[protocol].declaration.order
        if order == "total":
            assert received[0] == received[1] == received[2]
        if order != "none":
            for messages in received:
                by_sender = defaultdict(list)
                for message in messages:
                    name, number = message.body.decode().split(":")
                    assert name == message.sender
                    by_sender[name].append(int(number))
                assert dict(by_sender) == {name: list(range(EACH)) for name in cluster.names}


async def test_a_reply_is_never_delivered_before_what_it_answers_to(ordercast_cluster) -> None:
    async with ordercast_cluster(3, order="causal") as cluster:

        async def answer(node: oc.Node, group: oc.Group) -> list[bytes]:
            seen = []
            while len(seen) < 90:
                (message,) = await take(node, 1)
                seen.append(message.body)
                if message.body.startswith(b"question"):
                    await group.multicast(b"answer to " + message.body)
            return seen

        async def ask() -> None:
            for number in range(30):
                await cluster.groups[0].multicast(b"question %d" % number)
                await asyncio.sleep(0)

        quiet = take(cluster.nodes[0], 90)
        seen = await asyncio.gather(
            quiet,
            answer(cluster.nodes[1], cluster.groups[1]),
            answer(cluster.nodes[2], cluster.groups[2]),
            ask(),
        )
        for bodies in ([m.body for m in seen[0]], seen[1], seen[2]):
            for place, body in enumerate(bodies):
                if body.startswith(b"answer to "):
                    assert body.removeprefix(b"answer to ") in bodies[:place]


async def test_receipts_of_a_lone_message_become_ordered_and_stable(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        readers = [asyncio.ensure_future(take(node, 1)) for node in cluster.nodes]
        receipt = await cluster.groups[0].multicast(b"x")
        assert "under way" in repr(receipt)
        await receipt.ordered()
        await receipt.stable()
        await receipt.ordered()  # again costs nothing
        assert "stable" in repr(receipt)
        await asyncio.gather(*readers)


async def test_a_message_is_not_stable_while_a_member_has_not_taken_it(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        receipt = await cluster.groups[0].multicast(b"x")
        await receipt.ordered()
        await take(cluster.nodes[0], 1)
        stable = asyncio.ensure_future(receipt.stable())
        done, _ = await asyncio.wait([stable], timeout=0.1)
        assert not done
        await take(cluster.nodes[1], 1)
        await stable


async def test_messages_of_one_turn_share_a_frame_and_its_receipt() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        receipts = [await group.multicast(b"%d" % number) for number in range(50)]
        await receipts[-1].ordered()
        assert len(set(map(id, receipts))) == 1
        assert node.stats()["groups"]["g"]["frames_sent"] == 1
        await group.multicast(b"alone")
        assert len(await take(node, 51)) == 51
        assert node.stats()["groups"]["g"]["frames_sent"] == 2


async def test_multicast_many_sends_all_in_order(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", frame_bytes=300) as cluster:
        bodies = [b"%d" % number for number in range(500)]
        receipt = await cluster.groups[0].multicast_many(bodies)
        await receipt.ordered()
        assert [m.body for m in await take(cluster.nodes[1], 500)] == bodies
        assert cluster.nodes[0].stats()["groups"]["main"]["frames_sent"] > 5


async def test_a_body_larger_than_a_frame_travels_alone(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", frame_bytes=1000) as cluster:
        bodies = [b"small", b"L" * 500_000, b"", b"small again"]
        await cluster.groups[0].multicast_many(bodies)
        assert [m.body for m in await take(cluster.nodes[1], 4)] == bodies


# -- views ----------------------------------------------------------------------------------------


async def test_views_tell_who_joined_and_who_left(ordercast_cluster) -> None:
    async with ordercast_cluster(3) as cluster:
        a, b, c = cluster.nodes
        await a.join("g", order="total")
        of_b = await b.join("g", order="total")
        await c.join("g", order="total")
        await of_b.leave()
        views = [event async for event in _first(a, 4)]
        assert [(v.members, v.joined, v.left) for v in views] == [
            (("p1",), ("p1",), ()),
            (("p1", "p2"), ("p2",), ()),
            (("p1", "p2", "p3"), ("p3",), ()),
            (("p1", "p3"), (), ("p2",)),
        ]
        assert [v.number for v in views] == sorted({v.number for v in views})
        of_the_leaver = [event async for event in _first(b, 3)]
        assert of_the_leaver == [
            oc.View("g", views[1].number, ("p1", "p2"), ("p2",), (), views[1].start),
            views[2],
            views[3],
        ]


async def _first(node: oc.Node, count: int):
    async for event in node:
        yield event
        count -= 1
        if not count:
            return


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_late_joiner_starts_at_its_first_view_and_gets_nothing_before(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3) as cluster:
        early, late = cluster.nodes[0], cluster.nodes[2]
        group = await early.join("g", protocol=protocol)
        for number in range(10):
            await group.multicast(b"before %d" % number)
            await asyncio.sleep(0)
        await (await group.multicast(b"before 10")).ordered()
        of_late = await late.join("g", protocol=protocol)
        await of_late.multicast(b"after")
        events = [event async for event in _first(late, 2)]
        assert isinstance(events[0], oc.View) and events[0].members == ("p1", "p3")
        assert events[1] == oc.Message("g", "p3", b"after")
        if PROTOCOLS[protocol].together is not None:
            assert events[0].start > 1  # the number of the last message before it
        assert [m.body for m in await take(early, 12)][-1] == b"after"


async def test_a_restarted_node_is_a_new_incarnation(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        seed = cluster.leader.address
        for incarnation in (1, 2, 3):
            async with oc.Node("phoenix", seeds=[seed]) as node:
                assert node.incarnation == incarnation
                group = await node.join("main", order="total")
                await (await group.multicast(b"%d" % incarnation)).ordered()
        assert [m.body for m in await take(cluster.nodes[0], 3)] == [b"1", b"2", b"3"]


async def test_a_seed_that_does_not_lead_shows_the_way(ordercast_cluster) -> None:
    async with (
        ordercast_cluster(2, order="total") as cluster,
        oc.Node("late", seeds=[cluster.nodes[1].address]) as late,
    ):
        group = await late.join("main", order="total")
        await group.multicast(b"found")
        assert [m.sender for m in await take(cluster.nodes[0], 1)] == ["late"]


async def test_a_static_list_is_led_by_its_first_and_may_start_in_any_order() -> None:
    ports = [await _free_port() for _ in range(3)]
    members = [f"{name}=127.0.0.1:{port}" for name, port in zip("abc", ports, strict=True)]
    nodes = [oc.Node(name, members=members) for name in "cba"]
    await asyncio.gather(*(node.start() for node in nodes))
    assert [node.leads for node in nodes] == [False, False, True]
    groups = [await node.join("g", order="fifo") for node in nodes]
    await groups[0].multicast(b"hello")
    for node in nodes:
        assert (await take(node, 1))[0].sender == "c"
    await asyncio.gather(*(node.aclose() for node in nodes[:2]))
    await nodes[2].aclose()


async def _free_port() -> int:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_advertise_is_what_others_are_told() -> None:
    port = await _free_port()
    async with oc.Node(
        "alice",
        bootstrap=True,
        bind=f"0.0.0.0:{port}",
        advertise=f"localhost:{port}",
        insecure=True,
    ) as alice:
        assert alice.address == f"localhost:{port}"
        async with oc.Node("bob", seeds=[alice.address]) as bob:
            status = await oc.query_status(bob.address)
            assert {n["name"]: n["address"] for n in status["nodes"]}["alice"] == alice.address


async def test_status_of_a_running_node_comes_over_a_connection_of_its_own(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        status = await oc.query_status(cluster.leader.address)
        assert status["name"] == "sequencer" and status["leads"] and status["state"] == "running"
        assert [node["name"] for node in status["nodes"]] == ["sequencer", "p1", "p2"]
        assert status["groups"] == [
            {
                "name": "main",
                "order": "total",
                "protocol": "sequencing",
                "members": ["p1", "p2"],
                "guests": [],
            }
        ]
        member = await oc.query_status(cluster.nodes[0].address)
        assert member["stats"]["groups"]["main"]["window_bytes"] > 0


# -- order of the stream, whatever happens in one turn ---------------------------------------------

Sends = st.lists(st.tuples(st.sampled_from(["g1", "g2", "g3"]), st.booleans()), min_size=1)


@settings(max_examples=15)
@given(sends=Sends, order=st.sampled_from(["fifo", "total"]))
def test_sends_to_several_groups_in_one_turn_stay_in_order_at_the_stream(
    sends: list[tuple[str, bool]], order: str
) -> None:
    """a to g1, b to g2, c to g1: whichever way they are cut into frames, a, b, c."""

    async def scenario() -> None:
        async with oc.LocalCluster(2, in_process=True) as cluster:
            names = ("g1", "g2", "g3")
            groups = {}
            for name in names:
                groups[name] = (await cluster.join(name, order=order, scope="group"))[0]
            for number, (name, turn_ends) in enumerate(sends):
                await groups[name].multicast(b"%d" % number)
                if turn_ends:
                    await asyncio.sleep(0)
            for node in cluster.nodes:
                messages = await take(node, len(sends))
                assert [int(m.body) for m in messages] == list(range(len(sends)))
                assert [m.group for m in messages] == [name for name, _ in sends]

    asyncio.run(asyncio.wait_for(scenario(), 30))


@settings(max_examples=10)
@given(
    bodies=st.lists(st.binary(max_size=60), min_size=1, max_size=40),
    frame_bytes=st.integers(1, 200),
    pauses=st.sets(st.integers(0, 39)),
)
def test_any_split_into_frames_gives_the_same_order(
    bodies: list[bytes], frame_bytes: int, pauses: set[int]
) -> None:
    async def scenario() -> None:
        async with oc.LocalCluster(
            2, in_process=True, order="total", frame_bytes=frame_bytes
        ) as cluster:
            for number, body in enumerate(bodies):
                await cluster.groups[0].multicast(body)
                if number in pauses:
                    await asyncio.sleep(0)
            for node in cluster.nodes:
                assert [m.body for m in await take(node, len(bodies))] == bodies

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.parametrize("order", ["fifo", "causal", "total"])
async def test_send_deliver_send_in_one_turn_keeps_both_in_order(
    ordercast_cluster, order: str
) -> None:
    async with ordercast_cluster(3, order=order) as cluster:
        _, replier, witness = cluster.nodes
        await cluster.groups[0].multicast(b"m1")
        seen = await take(replier, 1)
        # In one turn: send, take what is there, send again.
        await cluster.groups[1].multicast(b"m2")
        await cluster.groups[0].multicast(b"m3")
        assert (await take(replier, 1))[0].body in (b"m2", b"m3")
        await cluster.groups[1].multicast(b"m4")
        assert [m.body for m in seen] == [b"m1"]
        bodies = [m.body for m in await take(witness, 4)]
        assert bodies.index(b"m2") < bodies.index(b"m4")
        assert bodies.index(b"m1") < bodies.index(b"m3")
        if order != "fifo":
            assert bodies.index(b"m1") < bodies.index(b"m2")
