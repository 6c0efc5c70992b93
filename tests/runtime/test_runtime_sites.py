"""Sites on live nodes: who is where, delivery levels, and what waits on its way to another site."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

import ordercast as oc
from certificates import signed
from ordercast.core.whereabouts import Whereabouts
from ordercast.errors import ConfigError, Excluded, NodeOut, OrderMismatch, UsageError
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.protocols.two_layered.headers import Found, Global, GlobalFound, Lost
from ordercast.runtime.options import NodeOptions

PATIENCE = 20.0
TWO: dict[str, Any] = {"protocol": "two_layered"}


def located(node: oc.Node) -> dict[str, Whereabouts]:
    """Who is where, in the node view in force at this node."""
    return {entry.name: entry.whereabouts for entry in node._presence.engine.stack.node_view.nodes}


async def members(group: oc.Group, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(group.members) != count:
            await asyncio.sleep(0.01)


async def test_the_site_of_each_node_is_known_to_all_and_still_when_it_comes_back() -> None:
    where = {"a": ("tokyo", True), "b": ("tokyo", False), "c": ("osaka", True)}
    expected = {name: Whereabouts(*told) for name, told in where.items()}
    how = {name: {"site": s, "gateway": g, "tls": signed(name)} for name, (s, g) in where.items()}
    async with (
        oc.Node("a", bootstrap=True, **how["a"]) as a,
        oc.Node("b", seeds=[a.address], **how["b"]) as b,
        oc.Node("c", seeds=[a.address], **how["c"]) as c,
    ):
        nodes = (a, b, c)
        groups = [await node.join("g", **TWO) for node in nodes]
        for node, group in zip(nodes, groups, strict=True):
            await members(group, 3)
            assert located(node) == expected
            assert node.stats()["groups"]["g"]["subgroups"] == [["a", "b"], ["c"]]
            for conn in node._presence.peers.bound.values():  # also those between sites
                assert conn._transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        c._presence.fail(Excluded("the cluster", 1, "a test", rejoins=True))
        with pytest.raises(NodeOut):
            async for _ in c:
                pass
        async with asyncio.timeout(PATIENCE):
            while not all(n.stats()["incarnation"] == 1 + (n is c) for n in nodes) or any(
                len(located(n)) != 3 or "c#2" not in n.stats()["node_view"]["members"]
                for n in nodes
            ):
                await asyncio.sleep(0.01)
        assert [located(node) for node in nodes] == [expected] * 3


async def test_a_crash_at_one_site_changes_the_groups_of_the_dead_node_and_no_others() -> None:
    """Wide is at both sites, near at one: who dies was in wide only."""
    quick = {"heartbeat_ms": 50, "suspect_ms": 400}
    async with (
        oc.Node("a", bootstrap=True, site="tokyo", **quick) as a,
        oc.Node("b", seeds=[a.address], site="tokyo", **quick) as b,
        oc.Node("c", seeds=[a.address], site="osaka", **quick) as c,
        oc.Node("d", seeds=[a.address], site="osaka", **quick) as d,
    ):
        wide = [await node.join("wide", **TWO, scope="group") for node in (a, b, c, d)]
        near = [await node.join("near", **TWO, scope="group") for node in (a, b)]
        for group in (*wide, *near):
            await members(group, 4 if group in wide else 2)
        before = {name: [eras(node)[name] for node in (a, b)] for name in ("wide", "near")}
        d._presence.fail(oc.GroupClosed("killed"))
        for group in wide[:3]:
            await members(group, 3)
        assert [eras(node)["wide"] for node in (a, b)] == [era + 1 for era in before["wide"]]
        assert [eras(node)["near"] for node in (a, b)] == before["near"]


def eras(node: oc.Node) -> dict[str, int]:
    """By group: every change of it begins the next one."""
    stack = node._presence.engine.stack
    return {row.entry.name: row.era for row in stack.rows.values()}


async def test_a_site_that_is_no_name_is_refused_here_and_at_the_coordinator() -> None:
    with pytest.raises(ValueError, match=r"site name 'to\\nkyo' contains a control character"):
        oc.Node("a", bootstrap=True, site="to\nkyo")
    with pytest.raises(
        ConfigError, match="gateway=True without site: name the site of the gateway"
    ):
        oc.Node("a", bootstrap=True, gateway=True)
    with pytest.raises(TypeError, match="site is a name, not 3"):
        oc.Node("a", bootstrap=True, site=3)
    with pytest.raises(TypeError, match="gateway is True or False"):
        oc.Node("a", bootstrap=True, site="tokyo", gateway="yes")
    async with oc.Node("a", bootstrap=True) as a:
        b = oc.Node("b", seeds=[a.address])
        msgspec.structs.force_setattr(b._options, "site", "to\x1bkyo")  # as nobody can by the API
        with pytest.raises(UsageError, match="the site name 'to"):
            await b.start()
        assert a.stats()["nodes"] == 1


# -- delivery levels ------------------------------------------------------------------------------


async def test_the_first_member_fixes_the_delivery_level_of_a_group() -> None:
    async with (
        oc.Node("a", bootstrap=True, site="tokyo") as a,
        oc.Node("b", seeds=[a.address], site="osaka") as b,
    ):
        first = await a.join("g", **TWO, delivery_level="ack")
        with pytest.raises(
            OrderMismatch, match=re.escape("delivery_level 'ack'); this join asked")
        ):
            await b.join("g", "causal", delivery_level="preack")
        second = await b.join("g", "causal")
        await members(first, 2)
        for node in (a, b):
            [machine] = node._presence.engine.stack.groups.machines.values()
            assert machine.options.delivery_level == "ack"
        await first.multicast(b"hello")
        bodies = (event.body async for event in second if isinstance(event, oc.Message))
        async with asyncio.timeout(PATIENCE):
            assert await anext(bodies) == b"hello"


async def test_a_delivery_level_is_refused_where_there_is_none() -> None:
    async with oc.Node("a", bootstrap=True) as a:
        with pytest.raises(UsageError, match="delivery_level='ack' with protocol 'sequencing': on"):
            await a.join("g", "total", delivery_level="ack")
        with pytest.raises(ValueError, match="delivery_level='acked' is unknown; use 'causal', 'p"):
            await a.join("g", **TWO, delivery_level="acked")  # type: ignore[arg-type]
        await a.join("g", "total")
        assert a._presence.engine.stack.of_name("g").delivery_level is None


# -- what waits -----------------------------------------------------------------------------------


class Sent:
    """Stands in for the connections: what is sent at once, and what may wait."""

    def __init__(self) -> None:
        self.at_once: list[int] = []
        self.later: list[tuple[int, float, int]] = []
        self.datagrams = None

    def transmit(self, to: tuple[int, ...], packet: bytes) -> None:
        self.at_once += to

    def transmit_soon(self, pid: int, packet: bytes, seconds: float, enough: int) -> None:
        self.later.append((pid, seconds, enough))


@pytest.mark.parametrize("milliseconds", [0, 30])
async def test_only_what_goes_to_another_site_waits_for_more(milliseconds: int) -> None:
    options: dict[str, Any] = {"wide_batch_ms": milliseconds, "wide_batch_bytes": 1000}
    async with (
        oc.Node("a", bootstrap=True, site="tokyo", **options) as a,
        oc.Node("b", seeds=[a.address], site="tokyo") as b,
        oc.Node("c", seeds=[a.address], site="osaka") as c,
        oc.Node("d", seeds=[a.address]) as d,
    ):
        site, pids = a._presence, tuple(node._presence.me.pid for node in (b, c, d))
        connections, sent = site.peers, Sent()
        site.peers = sent  # type: ignore[assignment]
        site.transmit_wide(pids, b"packet", None)
        site.peers = connections
    far = pids[1:2] if milliseconds else ()
    assert sent.later == [(pid, 0.03, 1000) for pid in far]
    assert sent.at_once == [pid for pid in pids if pid not in far]


async def test_a_gateway_sends_a_message_where_it_may_wait_and_its_own_site_gets_it_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        oc.Node("a", bootstrap=True, site="tokyo") as a,
        oc.Node("b", seeds=[a.address], site="tokyo") as b,
        oc.Node("c", seeds=[a.address], site="osaka") as c,
    ):
        groups = [await node.join("g", **TWO) for node in (a, b, c)]
        await members(groups[0], 3)
        waiting: list[int] = []
        send = a._presence.peers.transmit_soon

        def noted(pid: int, packet: bytes, seconds: float, enough: int) -> None:
            waiting.append(pid)
            send(pid, packet, seconds, enough)

        monkeypatch.setattr(a._presence.peers, "transmit_soon", noted)
        await groups[0].multicast(b"hello")
        for group in groups[1:]:
            async with asyncio.timeout(PATIENCE):
                bodies = (event.body async for event in group if isinstance(event, oc.Message))
                assert await anext(bodies) == b"hello"
        assert set(waiting) == {c._presence.me.pid}


def test_messages_between_gateways_may_wait_and_what_makes_losses_good_may_not() -> None:
    assert Global in TwoLayered.wide_headers
    assert not {Lost, Found, GlobalFound} & set(TwoLayered.wide_headers)
    assert NodeOptions().wide_batch_ms < NodeOptions().gap_ms
