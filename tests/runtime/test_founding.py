"""bootstrap=True with seeds= or members= starts the cluster only if none of them runs."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

import ordercast as oc
from cables import free_addresses, until
from listeners import closed_port
from ordercast.runtime import founding, rivals
from ordercast.runtime.diagnosis.diagnose import diagnose
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject

FAST = {"heartbeat_ms": 50, "suspect_ms": 400}


async def test_a_program_that_is_started_again_joins_the_cluster_that_runs() -> None:
    """The same program at every start, as on a machine whose unit file never changes."""
    a, b = free_addresses(2)
    first = oc.Node("a", bind=a, bootstrap=True, seeds=[a, b], **FAST)
    await first.start()
    async with oc.Node("b", bind=b, bootstrap=True, seeds=[a, b], **FAST) as other:
        assert first.leads and not other.leads
        await first.aclose()
        await until(lambda: other.leads)
        async with oc.Node("a", bind=a, bootstrap=True, seeds=[a, b], **FAST) as again:
            assert again.incarnation == 2 and not again.leads
            await until(lambda: other.stats()["nodes"] == 2)


async def test_where_none_of_the_seeds_runs_the_cluster_is_started() -> None:
    async with oc.Node("a", bootstrap=True, seeds=[closed_port(), closed_port()]) as node:
        assert node.leads


@pytest.mark.parametrize("not_voting", [{"voter": False}, {"voters": ["a"]}])
async def test_a_node_that_does_not_vote_waits_until_another_one_has_started_the_cluster(
    not_voting: dict[str, Any],
) -> None:
    """All nodes are given the same options; the worker is the first that is there."""
    a, b = free_addresses(2)
    worker = oc.Node("worker", bind=b, bootstrap=True, seeds=[a, b], **not_voting, **FAST)
    starting = asyncio.ensure_future(worker.start())
    await until(lambda: "starting" in repr(worker))
    shared = {"voters": ["a"]} if "voters" in not_voting else {}
    async with oc.Node("a", bind=a, bootstrap=True, seeds=[a, b], **shared, **FAST) as first:
        await starting
        assert first.leads and not worker.leads
        await worker.aclose()


def test_a_node_that_does_not_vote_and_knows_nobody_cannot_start_a_cluster() -> None:
    with pytest.raises(oc.ConfigError, match="'worker' does not vote, and is to start the cluster"):
        oc.Node("worker", bootstrap=True, voter=False)
    with pytest.raises(oc.ConfigError, match="'b' does not vote"):
        oc.Node("b", bootstrap=True, voters=["a"])
    with pytest.raises(oc.ConfigError, match="'a' does not vote"):
        oc.Node("a", members={"a": "127.0.0.1:1", "b": "127.0.0.1:2"}, voters=["b"])
    oc.Node("worker", bootstrap=True, voter=False, partition="merge")


async def test_any_node_of_a_static_list_may_be_told_to_start_it() -> None:
    a, b = free_addresses(2)
    async with oc.Node("b", bootstrap=True, members={"a": a, "b": b}) as second:
        assert second.leads
        async with oc.Node("a", members={"a": a, "b": b}) as first:
            assert not first.leads


async def test_a_seed_of_which_nobody_knows_whether_it_runs_keeps_it_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(founding, "ASK_SECONDS", 0.1)
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    seed = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    with pytest.raises(oc.JoinTimeout, match="a seed did not say whether it runs") as failed:
        await oc.Node("a", bootstrap=True, seeds=[seed]).start()
    assert "would never find it again" in str(failed.value) and seed in failed.value.reasons
    silent.close()


@pytest.mark.parametrize("seed", range(8))
async def test_of_nodes_that_start_in_the_same_moment_one_begins_and_the_others_join(
    seed: int,
) -> None:
    rng = random.Random(seed)
    addresses = free_addresses(rng.choice((2, 3, 5)))
    delays = [rng.choice((0.0, 0.0, rng.random() / 50)) for _ in addresses]

    async def begin(number: int, address: str) -> oc.Node:
        seeds = rng.sample(addresses, len(addresses))
        await asyncio.sleep(delays[number])
        node = oc.Node(f"n{number}", bind=address, bootstrap=True, seeds=seeds, join_timeout=30)
        await node.start()
        return node

    async with AsyncExitStack() as stack:
        nodes = await asyncio.gather(*(begin(*pair) for pair in enumerate(addresses)))
        for node in nodes:
            stack.push_async_callback(node.aclose)
        await until(lambda: all(n.stats()["nodes"] == len(nodes) for n in nodes))
        assert sum(node.leads for node in nodes) == 1, (seed, delays)


async def test_nodes_that_know_each_other_by_names_agree_who_begins() -> None:
    """As a text, a name may come after an address that comes after the address of that name."""
    addresses = free_addresses(2)
    named = [address.replace("127.0.0.1", "localhost") for address in addresses]
    nodes = [
        oc.Node(f"n{i}", bind=address, bootstrap=True, seeds=[named[1 - i]], join_timeout=30)
        for i, address in enumerate(addresses)
    ]
    await asyncio.gather(*(node.start() for node in nodes))
    assert sum(node.leads for node in nodes) == 1
    for node in nodes:
        await node.aclose()


async def test_a_node_that_was_not_there_when_another_asked_is_asked_before_that_one_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The later one has the smaller address, and saw the other one starting: it would begin."""
    low, high = sorted(free_addresses(2))
    asks = founding.Founding._ask
    may_go_on = asyncio.Event()

    async def slowly(self: founding.Founding, address: str) -> founding.Asked:
        answer = await asks(self, address)
        if address == low and answer.state == "absent":
            await may_go_on.wait()  # meanwhile the other one listens, and asks
        return answer

    monkeypatch.setattr(founding.Founding, "_ask", slowly)
    late = oc.Node("late", bind=low, bootstrap=True, seeds=[high])
    early = oc.Node("early", bind=high, bootstrap=True, seeds=[low])
    starting = asyncio.ensure_future(early.start())
    while not hasattr(early, "_presence") or early._presence.state != "starting":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # it has asked, and found nobody
    await late.start()
    may_go_on.set()
    await starting
    assert (late.leads, early.leads) == (True, False)
    await early.aclose()
    await late.aclose()


async def test_a_second_cluster_of_the_same_name_is_told_by_both_sides(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that was lost is started again with bootstrap=True alone."""
    monkeypatch.setattr(rivals, "LOOK_S", 0.2)
    monkeypatch.setattr(rivals, "SETTLE_S", 0.1)
    [place] = free_addresses(1)
    first = oc.Node("a", bind=place, bootstrap=True, **FAST)
    await first.start()
    async with (
        oc.Node("b", seeds=[place], **FAST) as b,
        oc.Node("c", seeds=[place], **FAST),
    ):
        first._presence.engine.stop()  # as a crash: nobody is told
        first._presence.peers.close("a crash", goodbye=False)
        await until(lambda: b.leads)
        await first.aclose()
        async with oc.Node("a", bind=place, bootstrap=True, **FAST) as again:
            await until(lambda: b.stats()["other_clusters"] and again.stats()["other_clusters"])
            assert b.stats()["other_clusters"] == [
                {"coordinator": "a#1", "address": place, "nodes": 1}
            ]
            assert again.stats()["other_clusters"] == [
                {"coordinator": "b#1", "address": b.address, "nodes": 2}
            ]
            told = [r for r in caplog.records if r.name == "ordercast.runtime.rivals"]
            assert len(told) >= 2 and {r.levelno for r in told} == {logging.WARNING}
            for record in told:
                text = record.getMessage()
                assert "two clusters are named 'ordercast'" in text
                assert f"a#1 at {place} coordinates" in text
                assert f"b#1 at {b.address} coordinates" in text
                assert "stop the nodes of one of them" in text
            diagnosis = Diagnosis()
            await diagnose([again.address], Subject(patience=20.0), diagnosis)
            assert "second_cluster" in {finding.code for finding in diagnosis.findings}
        await until(lambda: not b.stats()["other_clusters"])  # it was stopped: all is well


async def test_a_seed_that_is_another_cluster_is_found_though_nobody_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rivals, "LOOK_S", 0.2)
    monkeypatch.setattr(rivals, "SETTLE_S", 0.1)
    [place] = free_addresses(1)
    async with (
        oc.Node("a", bootstrap=True, seeds=[place]) as a,
        oc.Node("b", bind=place, bootstrap=True) as b,
    ):
        await until(lambda: a.stats()["other_clusters"] and b.stats()["other_clusters"])


async def test_nodes_of_one_cluster_take_nobody_for_another_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rivals, "LOOK_S", 0.05)
    monkeypatch.setattr(rivals, "SETTLE_S", 0.01)
    a, b, c = free_addresses(3)
    async with AsyncExitStack() as stack:
        for name, place in zip("abc", (a, b, c), strict=True):
            node = oc.Node(name, bind=place, bootstrap=True, seeds=[a, b, c])
            await stack.enter_async_context(node)
        await asyncio.sleep(1)
        assert node.stats()["other_clusters"] == []
    assert "two clusters" not in caplog.text
