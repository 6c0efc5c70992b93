"""Nodes that find their cluster by multicast: `discover=`, beside or instead of seeds."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

import ordercast as oc
from datagrams import LOOPBACK, free_group
from ordercast.runtime import node_discovery
from ordercast.transport.discovery import as_discovery


@pytest.fixture
def discover() -> oc.Discovery:
    return oc.Discovery(free_group())


async def test_a_newcomer_without_seeds_finds_the_cluster_and_talks_in_it(
    discover: oc.Discovery,
) -> None:
    async with (
        oc.Node("alice", bootstrap=True, discover=discover) as alice,
        oc.Node("bob", discover=discover) as bob,
    ):
        assert bob.stats()["nodes"] == 2
        groups = [await node.join("g", order="total") for node in (alice, bob)]
        await groups[0].multicast(b"hello")
        async for event in bob:
            if isinstance(event, oc.Message):
                assert event.body == b"hello"
                break


async def test_whoever_found_the_cluster_is_found_in_its_turn(discover: oc.Discovery) -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,  # nobody finds her
        oc.Node("bob", seeds=[alice.address], discover=discover) as bob,
        oc.Node("carol", discover=discover) as carol,
    ):
        assert carol.stats()["nodes"] == 3
        assert bob.stats()["discovery"]["answered"] >= 1
        assert "discovery" not in alice.stats()


async def test_a_newcomer_that_is_early_waits_for_the_cluster(discover: oc.Discovery) -> None:
    bob = oc.Node("bob", discover=discover)
    starting = asyncio.ensure_future(bob.start())
    async with oc.Node("alice", bootstrap=True, discover=discover) as alice:
        await starting
        assert alice.stats()["nodes"] == 2
        await bob.aclose()


async def test_with_a_key_only_those_who_have_it_find_the_cluster(discover: oc.Discovery) -> None:
    key = "a key that nobody guesses"
    async with oc.Node("alice", bootstrap=True, discover=discover, key=key) as alice:
        stranger = oc.Node("eve", discover=discover, join_timeout=0.1)
        with pytest.raises(oc.JoinTimeout, match="no node of cluster 'ordercast' answered"):
            await stranger.start()
        async with oc.Node("bob", discover=discover, key=key) as bob:
            assert bob.stats()["nodes"] == 2
        assert alice.stats()["discovery"]["refused"] >= 1


async def test_where_nobody_answers_the_timeout_says_which_group_port_and_interface_was_asked(
    discover: oc.Discovery,
) -> None:
    bob = oc.Node("bob", discover=discover, cluster="prod", join_timeout=0.1)
    with pytest.raises(oc.JoinTimeout, match="bootstrap=True") as refusal:
        await bob.start()
    [(asked, reason)] = refusal.value.reasons.items()
    assert asked == f"multicast group {discover.group} on interface {LOOPBACK}"
    assert reason.endswith("times, no node of cluster 'prod' answered")


async def test_a_second_cluster_of_the_same_name_is_not_started_beside_the_first(
    discover: oc.Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with oc.Node("alice", bootstrap=True, discover=discover) as alice:
        monkeypatch.setattr(node_discovery, "LISTEN_S", 5.0)  # it ends with the first answer
        again = oc.Node("bob", bootstrap=True, discover=discover)
        with pytest.raises(oc.UsageError, match="would start a second cluster") as refusal:
            await again.start()
        assert f"alice at {alice.address} answered" in str(refusal.value)
        monkeypatch.setattr(node_discovery, "LISTEN_S", 0.1)
        async with oc.Node("bob", bootstrap=True, discover=discover, cluster="another") as bob:
            assert bob.stats()["nodes"] == 1


async def test_a_node_that_was_closed_is_found_no_more(discover: oc.Discovery) -> None:
    async with oc.Node("alice", bootstrap=True, discover=discover):
        pass
    bob = oc.Node("bob", discover=discover, join_timeout=0.1)
    with pytest.raises(oc.JoinTimeout, match="no node of cluster 'ordercast' answered"):
        await bob.start()


async def test_an_answer_that_leads_nowhere_is_named_with_its_reason(
    discover: oc.Discovery,
) -> None:
    lost = "127.0.0.1:1"
    async with oc.Node("alice", bootstrap=True, discover=discover, advertise=lost):
        bob = oc.Node("bob", discover=discover, join_timeout=1.0)
        with pytest.raises(oc.JoinTimeout) as refusal:
            await bob.start()
        assert "nobody listens there" in refusal.value.reasons[lost]


async def test_an_interface_that_is_not_there_is_refused_before_anything_is_asked() -> None:
    wrong = oc.Discovery("239.192.7.7:7701", interface="192.0.2.1")
    for place in ({"bootstrap": True}, {"seeds": ["127.0.0.1:1"]}, {}):
        node = oc.Node("alice", discover=wrong, **place)  # type: ignore[arg-type]
        with pytest.raises(oc.ConfigError, match=r"interface='192\.0\.2\.1' is no address"):
            await node.start()


@pytest.mark.parametrize("wrong", ["239.192.7.7:7701", True, oc.IpMulticast("239.192.7.7:7701")])
def test_what_is_no_discovery_is_a_type_error_that_shows_how_to_write_it(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"write Discovery\('239\.x\.y\.z:port'\)"):
        oc.Node("alice", discover=wrong)


def test_a_discovery_survives_the_way_to_another_process() -> None:
    settings = oc.Discovery("239.192.7.7:7701", interface="10.0.0.5", ttl=2)
    assert as_discovery(msgspec.json.decode(msgspec.json.encode(settings))) == settings


def test_a_static_list_has_nothing_to_discover() -> None:
    with pytest.raises(oc.ConfigError, match=r"members=.* and discover=.* given"):
        oc.Node("a", members={"a": "127.0.0.1:7700"}, discover=oc.Discovery("239.192.7.7:7701"))
