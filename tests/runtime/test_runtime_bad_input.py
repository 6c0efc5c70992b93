"""The table of bad input, row by row: what is refused, how, and that nothing else broke."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

import ordercast as oc
from ordercast.wire.control import Hello
from ordercast.wire.frame import FIXED, WIRE_VERSION
from ordercast.wire.opening import MAGIC, pack_opening


async def bodies(node: oc.Node, count: int) -> list[bytes]:
    """The next `count` messages of the node's stream, without the views."""
    found: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            found.append(event.body)
            if len(found) == count:
                break
    return found


# -- names, orders, protocols ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [("", "must not be empty"), ("n" * 256, "256 bytes"), ("a\nb", "control character")],
)
async def test_a_bad_name_is_refused_for_nodes_and_for_groups(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        oc.Node(name, bootstrap=True)
    async with oc.Node("alice", bootstrap=True) as node:
        with pytest.raises(ValueError, match=says):
            await node.join(name, order="total")
        group = await node.join("fine", order="total")
        await group.multicast(b"works")
        assert await bodies(node, 1) == [b"works"]


async def test_an_unknown_order_or_protocol_is_refused_with_a_list_of_the_known() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        with pytest.raises(ValueError, match=r"'sideways' is unknown; built are none, fifo"):
            await node.join("g", order="sideways")
        with pytest.raises(ValueError, match=r"unknown protocol 'paxos'; built are basic"):
            await node.join("g", order="total", protocol="paxos")
        with pytest.raises(ValueError, match="say which order"):
            await node.join("g")
        await node.join("g", order="total")  # the name is still free


async def test_an_unknown_scope_is_refused() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        with pytest.raises(ValueError, match="scope='world' is unknown"):
            await node.join("g", order="total", scope="world")


# -- bodies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["text", 7, None, {"a": 1}])
async def test_a_body_that_is_not_bytes_is_refused_without_a_codec(body: object) -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        with pytest.raises(TypeError, match="a body is bytes, not"):
            await group.multicast(body)
        with pytest.raises(TypeError, match="a body is bytes, not"):
            await group.multicast_many([b"good", body])
        await group.multicast(bytearray(b"bytes-like is fine"))
        assert await bodies(node, 1) == [b"bytes-like is fine"]


@pytest.mark.parametrize("codec", ["json", "msgpack"])
async def test_with_a_codec_plain_data_travels(codec: str) -> None:
    async with oc.Node("alice", bootstrap=True, codec=codec) as node:
        group = await node.join("g", order="total")
        await group.multicast({"price": [1, 2.5, "x", None]})
        assert await bodies(node, 1) == [{"price": [1, 2.5, "x", None]}]
        with pytest.raises(TypeError):
            await group.multicast(object())


async def test_a_message_over_the_limit_is_refused_before_anything_is_sent() -> None:
    async with oc.Node("alice", bootstrap=True, max_message=10) as node:
        group = await node.join("g", order="total")
        with pytest.raises(oc.MessageTooLarge, match="11 bytes, the limit is 10") as refusal:
            await group.multicast(b"x" * 11)
        assert (refusal.value.size, refusal.value.limit) == (11, 10)
        with pytest.raises(oc.MessageTooLarge):
            await group.multicast_many([b"a", b"b", b"x" * 11])
        assert node.stats()["groups"]["g"]["messages_sent"] == 0
        await group.multicast(b"x" * 10)
        assert await bodies(node, 1) == [b"x" * 10]


async def test_multicast_many_of_nothing_is_refused() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        with pytest.raises(ValueError, match="at least one message"):
            await group.multicast_many([])


# -- groups ---------------------------------------------------------------------------------------


async def test_a_group_that_exists_with_another_order_names_both(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        a, b = cluster.nodes
        group = await a.join("g", order="total")
        with pytest.raises(oc.OrderMismatch) as refusal:
            await b.join("g", order="causal")
        assert "'total'" in refusal.value.have and "'causal'" in refusal.value.want
        with pytest.raises(oc.OrderMismatch, match=r"'sequencing'.*sequencer_bb"):
            await b.join("g", order="total", protocol="sequencer_bb")
        await b.join("g", order="total")
        await group.multicast(b"still here")
        assert await bodies(b, 1) == [b"still here"]


async def test_the_leader_gets_the_same_order_mismatch(ordercast_cluster) -> None:
    async with ordercast_cluster(2, sequencer=False) as cluster:
        leader, other = cluster.nodes
        await other.join("g", order="fifo")
        with pytest.raises(oc.OrderMismatch, match=r"'fifo'.*'total'"):
            await leader.join("g", order="total")


async def test_a_group_joined_with_its_order_only_takes_the_protocol_it_has(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2) as cluster:
        a, b = cluster.nodes
        await a.join("g", order="total", protocol="sequencer_bb")
        assert (await b.join("g", order="total")).protocol == "sequencer_bb"


async def test_joining_twice_is_refused() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        with pytest.raises(oc.AlreadyJoined, match="'g' already"):
            await node.join("g", order="total")
        await group.multicast(b"works")
        assert await bodies(node, 1) == [b"works"]


async def test_two_joins_of_one_group_at_a_time_give_one_membership() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        results = await asyncio.gather(
            node.join("g", order="total"), node.join("g", order="total"), return_exceptions=True
        )
        assert sorted(type(result).__name__ for result in results) == ["AlreadyJoined", "Group"]


async def test_a_join_waits_for_a_leave_that_is_under_way(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        node, group = cluster.nodes[1], cluster.groups[1]
        leaving = asyncio.ensure_future(group.leave())
        await asyncio.sleep(0)
        again = await node.join("main", order="total")
        assert leaving.done() and again.members == ("p1", "p2")
        with pytest.raises(oc.GroupClosed):
            await group.multicast(b"x")
        await (await again.multicast(b"y")).ordered()


async def test_a_group_that_was_left_is_closed(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        mine, other = cluster.groups
        receipt = await mine.multicast(b"last words")
        await mine.leave()
        await receipt.ordered()
        for use in (mine.multicast(b"x"), mine.multicast_many([b"x"]), mine.leave()):
            with pytest.raises(oc.GroupClosed, match="was left"):
                await use
        await other.multicast(b"alone")
        assert await bodies(cluster.nodes[1], 2) == [b"last words", b"alone"]


async def test_a_group_that_was_left_is_forgotten_when_others_have_what_was_there(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="hybrid") as cluster:
        stacks = [node._presence.engine.stack for node in cluster.nodes]
        (gid,) = stacks[0].groups.entries
        group, stack = next(
            (group, stack)
            for group, stack in zip(cluster.groups, stacks, strict=True)
            if not stack.numbers(gid)
        )
        await group.multicast(b"1")
        await group.leave()
        async with asyncio.timeout(10):
            while gid in stack.groups.machines:
                await asyncio.sleep(0.01)


async def test_a_group_that_was_left_can_be_joined_again(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        first, other = cluster.groups
        await first.multicast(b"1")
        await first.leave()
        await other.multicast(b"2")
        again = await cluster.nodes[0].join("main", order="total")
        await again.multicast(b"3")
        assert await bodies(cluster.nodes[1], 3) == [b"1", b"2", b"3"]
        assert await bodies(cluster.nodes[0], 2) == [b"1", b"3"]


async def test_a_protocol_for_another_order_lists_all_that_it_gives() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        gives = "gives 'global-total' and 'causal-total' and 'total', not 'fifo'; for 'fifo'"
        with pytest.raises(ValueError, match=gives):
            await node.join("g", order="fifo", protocol="block_total")


@pytest.mark.parametrize("place", [2, -1])
async def test_to_kill_a_member_that_is_not_there_says_which_are(
    ordercast_cluster, place: int
) -> None:
    async with ordercast_cluster(2) as cluster:
        with pytest.raises(ValueError, match=f"there is no member {place}; members are 0 to 1"):
            await cluster.kill(place)


async def test_a_local_cluster_has_the_names_and_the_sequencers_that_were_asked_for(
    ordercast_cluster,
) -> None:
    with pytest.raises(ValueError, match="names has 2 names for 3 members: give one for each"):
        ordercast_cluster(3, names=("ann", "ben"))
    with pytest.raises(
        ValueError, match="sequencers=0 must be at least 1; for none at all say sequencer=False"
    ):
        ordercast_cluster(2, sequencers=0)
    async with ordercast_cluster(2, names=("ann", "ben"), sequencers=3) as cluster:
        assert [node.name for node in cluster.nodes] == ["ann", "ben"]
        there = ["sequencer-1", "sequencer-2", "sequencer-3"]
        assert [node.name for node in cluster.sequencers] == there
        with pytest.raises(ValueError, match=f"no sequencer 'ann'; there is {', '.join(there)}"):
            await cluster.kill_sequencer("ann")
        groups = await cluster.join("g", order="hybrid")
        await cluster.kill_sequencer("sequencer-2")
        receipt = await groups[0].multicast(b"x")
        bodies = [[e.body async for e in until_message(node)] for node in cluster.nodes]
        assert bodies == [[b"x"], [b"x"]]
        await receipt.ordered()


async def until_message(node: oc.Node) -> AsyncIterator[oc.Message]:
    async for event in node:
        if isinstance(event, oc.Message):
            yield event
            return


async def test_a_second_group_of_a_group_scoped_order_needs_the_word() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        await node.join("g1", order="total", protocol="sequencer_pb")
        with pytest.raises(oc.ScopeError, match=r"'g1'.*'sequencer_pb'.*scope='group'"):
            await node.join("g2", order="total", protocol="sequencer_pb")
        await node.join("g2", order="total", protocol="sequencer_pb", scope="group")
        await node.join("g3", order="causal")  # another order: another promise


async def test_two_joins_at_a_time_get_past_the_scope_no_more_than_two_in_turn(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(1) as cluster:
        (node,) = cluster.nodes
        results = await asyncio.gather(
            node.join("g1", protocol="sequencer_pb"),
            node.join("g2", protocol="sequencer_pb"),
            return_exceptions=True,
        )
        assert sorted(type(result).__name__ for result in results) == ["Group", "ScopeError"]
        await node.join("g3", protocol="sequencer_pb", scope="group")


async def test_a_group_stream_beside_another_group_of_its_domain_is_refused() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        g1 = await node.join("g1", order="total")
        g2 = await node.join("g2", order="total", scope="group")
        with pytest.raises(oc.UsageError, match=r"async for event in node"):
            aiter(g1)
        await g2.multicast(b"by itself")
        async for event in g2:
            if isinstance(event, oc.Message):
                assert event.body == b"by itself"
                break


# -- finding the cluster --------------------------------------------------------------------------


async def test_no_seed_that_answers_lists_each_address_with_its_reason() -> None:
    async with oc.Node("other", bootstrap=True, cluster="elsewhere") as other:
        seeds = ["127.0.0.1:1", other.address]
        with pytest.raises(oc.JoinTimeout) as refusal:
            await oc.Node("alice", seeds=seeds, join_timeout=0.2).start()
        assert set(refusal.value.reasons) == set(seeds)
        assert "refused" in refusal.value.reasons["127.0.0.1:1"].lower()
        assert "'elsewhere'" in refusal.value.reasons[other.address]
        assert "bootstrap=True" in str(refusal.value)


def test_without_a_word_where_the_cluster_is_no_node_is_made() -> None:
    with pytest.raises(oc.ConfigError, match="neither bootstrap, seeds, members nor discover"):
        oc.Node("alice")


def test_two_words_where_the_cluster_is_contradict_each_other() -> None:
    with pytest.raises(oc.ConfigError, match=r"seeds=\('127.0.0.1:1',\) and members=.* given"):
        oc.Node("alice", seeds=["127.0.0.1:1"], members={"alice": "127.0.0.1:2"})


def test_a_node_must_be_in_its_own_member_list() -> None:
    with pytest.raises(oc.ConfigError, match=r"'eve' is not in members \(alice\)"):
        oc.Node("eve", members={"alice": "127.0.0.1:7700"})


@pytest.mark.parametrize(
    "members", [["alice"], ["=x"], {"alice": "nowhere"}, {}, ["a=h:1", "a=h:2"]]
)
def test_a_member_list_that_cannot_be_read_is_refused(members: object) -> None:
    with pytest.raises(ValueError):
        oc.Node("alice", members=members)


@pytest.mark.parametrize(
    "address",
    ["7700", "host:", ":1", "host:70000", "host:-1", "host:٣", "ho\x01st:80", "h" * 250 + ":80"],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write host:port"):
        oc.Node("alice", bootstrap=True, bind=address)
    with pytest.raises(ValueError, match="write host:port"):
        oc.Node("alice", seeds=[address])
    with pytest.raises(ValueError, match="write host:port"):
        oc.Node("alice", bootstrap=True, advertise=address)


async def test_a_node_whose_start_is_refused_can_be_closed() -> None:
    address = "h" * 249 + ":" + "0" * 14 + "80"
    node = oc.Node("alice", bootstrap=True, advertise=address, insecure=True)
    with pytest.raises(ValueError, match="at most 255"):
        await node.start()
    await node.aclose()
    assert repr(node) == "<Node 'alice', closed>"


async def test_max_starts_is_accepted_and_limits_nothing() -> None:
    with pytest.warns(DeprecationWarning, match="no effect"):
        alice = oc.Node("alice", bootstrap=True, max_starts=2)
    async with alice:
        for name in ("bob", "carol", "dave"):
            async with oc.Node(name, seeds=[alice.address]):
                pass


def test_seeds_that_are_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match="a list of addresses"):
        oc.Node("alice", seeds="127.0.0.1:7700")


def test_listening_everywhere_needs_an_address_for_others() -> None:
    with pytest.raises(oc.ConfigError, match=r"bind=0\.0\.0\.0:7700 without advertise"):
        oc.Node("alice", bootstrap=True, bind="0.0.0.0:7700")
    with pytest.raises(ValueError, match="port 0"):
        oc.Node("alice", bootstrap=True, bind="0.0.0.0:7700", advertise="host:0")
    oc.Node("alice", bootstrap=True, bind="0.0.0.0:7700", advertise="host:7700", insecure=True)


async def test_a_name_in_use_by_a_live_node_is_refused(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        twin = oc.Node("p1", seeds=[cluster.leader.address])
        with pytest.raises(oc.UsageError, match="a node named 'p1' is in the cluster"):
            await twin.start()
        await cluster.groups[0].multicast(b"the first one goes on")
        assert await bodies(cluster.nodes[1], 1) == [b"the first one goes on"]


async def test_a_stranger_to_a_static_list_is_refused() -> None:
    async with oc.Node("alice", bind="127.0.0.1:0", members={"alice": "127.0.0.1:1"}) as alice:
        eve = oc.Node("eve", seeds=[alice.address])
        with pytest.raises(oc.UsageError, match=r"'eve' is not in the member list \(alice\)"):
            await eve.start()


@pytest.mark.parametrize("option", [{"max_message": 99}, {"frame_bytes": 99}, {"codec": "json"}])
async def test_options_that_must_be_equal_everywhere_are_compared(option: dict) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        (name,) = option
        with pytest.raises(
            oc.ConfigError, match=f"{name}=.* at 'bob', {name}=.* at the coordinator"
        ):
            await oc.Node("bob", seeds=[alice.address], **option).start()


# -- options --------------------------------------------------------------------------------------


def test_contradicting_options_name_both_values_and_the_rule() -> None:
    with pytest.raises(oc.ConfigError, match=r"node_window_bytes=9000 with max_message=9000.*fit"):
        oc.Node("alice", bootstrap=True, node_window_bytes=9000, max_message=9000)
    with pytest.raises(oc.ConfigError, match=r"window_bytes=1000 with max_message=5000.*fit"):
        oc.Node("alice", bootstrap=True, window_bytes=1000, max_message=5000)
    with pytest.raises(oc.ConfigError, match=r"reply_reserve=1 with max_message=5.*reserve"):
        oc.Node("alice", bootstrap=True, reply_reserve=1, max_message=5)


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_that_is_not_positive_is_refused(value: float) -> None:
    with pytest.raises((ValueError, TypeError), match="join_timeout"):
        oc.Node("alice", bootstrap=True, join_timeout=value)


@pytest.mark.parametrize("value", ["1000", None, True, 1.5])
def test_a_limit_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="max_message is a number"):
        oc.Node("alice", bootstrap=True, max_message=value)


def test_a_negative_resilience_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"resilience=-1 must not be negative.*number of crashes"):
        oc.Node("alice", bootstrap=True, resilience=-1)


def test_uniform_is_true_or_false_and_contradicts_a_resilience() -> None:
    with pytest.raises(TypeError, match="uniform is True or False, not 1"):
        oc.Node("alice", bootstrap=True, uniform=1)
    with pytest.raises(ValueError, match="resilience=1 and uniform=True: give one of them"):
        oc.Node("alice", bootstrap=True, resilience=1, uniform=True)


@pytest.mark.parametrize("value", [True, "1", 1.0])
def test_a_resilience_that_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="resilience is a number"):
        oc.Node("alice", bootstrap=True, resilience=value)


def test_a_silence_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="silence_ms=0 must be positive"):
        oc.Node("alice", bootstrap=True, silence_ms=0)


async def test_silence_reaches_the_protocols() -> None:
    async with oc.Node("alice", bootstrap=True, silence_ms=7) as node:
        assert node._presence.engine.stack.options.silence_ms == 7


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match="'windowbytes'; did you mean 'window_bytes'"):
        oc.Node("alice", bootstrap=True, windowbytes=1)


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(ValueError, match="codec='pickle' is unknown; use 'json', 'msgpack'"):
        oc.Node("alice", bootstrap=True, codec="pickle")


# -- bytes from strangers and from peers ----------------------------------------------------------

GREETING = pack_opening(Hello(cluster="ordercast", name="mallory", incarnation=0))


@pytest.mark.parametrize(
    "attack",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(range(256)) * 400,
        MAGIC + b"\xff" * 100,
        GREETING + FIXED.pack(2**32 - 1, WIRE_VERSION, 0, 0, 0, 0),  # oversized
        GREETING + FIXED.pack(FIXED.size, WIRE_VERSION + 9, 0, 0, 0, 0),  # another version
        GREETING + FIXED.pack(FIXED.size + 1, WIRE_VERSION, 0, 0, 0, 1) + b"\xc1",  # malformed
        GREETING + FIXED.pack(FIXED.size, WIRE_VERSION, 0, 5, 0, 0),  # a channel of no concern
        GREETING + FIXED.pack(FIXED.size, WIRE_VERSION, 200, 0, 0, 0),  # no such control message
    ],
)
async def test_bytes_that_are_not_ours_close_that_connection_and_nothing_else(
    ordercast_cluster, caplog: pytest.LogCaptureFixture, attack: bytes
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        host, port = cluster.leader.address.rsplit(":", 1)
        with caplog.at_level(logging.WARNING, "ordercast"):
            for _ in range(3):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(attack)
                try:
                    while await reader.read(65536):  # until the node hangs up
                        pass
                except ConnectionResetError:
                    pass
                writer.close()
        assert cluster.leader.stats()["peer_faults"] == 3
        assert len([r for r in caplog.records if "broke the protocol" in r.message]) == 1
        await cluster.groups[0].multicast(b"everybody else goes on")
        assert await bodies(cluster.nodes[1], 1) == [b"everybody else goes on"]


async def test_a_node_that_was_not_started_or_is_closed_says_so() -> None:
    node = oc.Node("alice", bootstrap=True)
    with pytest.raises(oc.UsageError, match="was not started"):
        await node.join("g", order="total")
    with pytest.raises(oc.UsageError, match="was not started"):
        aiter(node)
    async with node:
        with pytest.raises(oc.UsageError, match="was started already"):
            await node.start()
    with pytest.raises(oc.UsageError, match="is closed"):
        await node.join("g", order="total")


@pytest.mark.parametrize("name", ["blocking", "bodies_stay", "constant_resends"])
def test_an_option_of_a_former_release_warns_and_changes_nothing(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} has no effect any more") as warned:
        node = oc.Node("alice", bootstrap=True, **{name: True})
    assert warned[0].filename == __file__  # where the option stands
    assert not hasattr(node, name)
