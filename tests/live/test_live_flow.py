"""Nodes in namespaces: what real kills, delay and loss do to a group, judged by Spark."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.cluster import LiveCluster
from live.namespaces import Network
from live.shaping import shaping, shaping_refusal
from live.verdict import kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")


async def test_a_member_killed_in_its_namespace_is_excluded_and_messages_flow(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network(["a", "b", "c"]) as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(20)
            sending = asyncio.ensure_future(cluster.send("a", 100, per_second=200))
            moment = await cluster.kill("c")
            await cluster.agree(["a", "b"])
            await sending
            await cluster.talk(20)
            found = await cluster.recoveries(moment, without=["c"])
            assert {one.member for one in found} == {"a", "b"}
            print(*found, sep="\n")
    assert kept(tmp_path).facts.crashed == ("c#1",)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_a_group_keeps_its_order_on_a_slow_and_lossy_network(
    tmp_path: Path, spark: SparkSession, transport: str
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a", "b", "c"]) as network, shaping(network) as shaped:
        how = {"order": "total", "transport": transport}
        async with LiveCluster(network, trace=tmp_path, **how) as cluster:
            shaped.shape(delay_ms=5, jitter_ms=10, loss=0.05)
            await cluster.talk(100)
            assert shaped.lost() > 0
            shaped.shape()
    assert kept(tmp_path, "validity").facts.deliveries == 3 * 300
