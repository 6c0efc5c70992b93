"""Nodes in namespaces: what real kills, delay and loss do to a group, judged by Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from live.cluster import LiveCluster
from live.verdict import kept
from netlab.namespaces import Network
from netlab.shaping import Shaped, shaping, shaping_refusal

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


async def test_a_killed_member_that_starts_again_is_its_next_incarnation(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network(["a", "b", "c"]) as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.kill("c")
            await cluster.agree(["a", "b"])
            await cluster.start("c")
            await cluster.join("c")
            await cluster.agree(["a", "b", "c"])
            await cluster.talk(20)
    assert kept(tmp_path).facts.processes == 4


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


@pytest.mark.parametrize(
    ("fault", "transport"), [("cable", "tcp"), ("cut", "tcp"), ("cut", "udp"), ("route", "udp")]
)
async def test_what_is_said_while_the_network_fails_for_a_moment_arrives_later(
    tmp_path: Path, spark: SparkSession, fault: str, transport: str
) -> None:
    if fault == "cut" and (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a", "b", "c"]) as network, ExitStack() as faults:
        patient: dict[str, Any] = {"transport": transport, "suspect_ms": 60_000}
        shaped = faults.enter_context(shaping(network)) if fault == "cut" else None
        cluster = LiveCluster(network, trace=tmp_path, order="total", **patient)
        async with cluster:
            with _failing(network, shaped, fault):
                talking = asyncio.ensure_future(cluster.talk(20))
                await asyncio.wait([talking], timeout=0.5)
                assert not talking.done()
            await talking
    assert kept(tmp_path, "validity").facts.crashed == ()


@contextmanager
def _failing(network: Network, shaped: Shaped | None, fault: str) -> Iterator[None]:
    """Nothing comes from a to b; with the cable, nothing to or from b."""
    if fault == "cable":
        network.unplug("b")
        yield
        network.plug("b")
    elif shaped is not None:
        shaped.cut(["a"], ["b"])
        yield
        shaped.mend()
    else:
        network.blackhole("a", "b")
        yield
        network.unblackhole("a", "b")
