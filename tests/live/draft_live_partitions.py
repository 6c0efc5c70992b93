"""Networks that fall apart and heal: who goes on, who is told, and that all meet again.

Not collected yet: the failure detector and the two policies are needed. Times are printed, never
asserted.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.cluster import LiveCluster
from live.namespaces import Network
from live.shaping import shaping, shaping_refusal
from live.verdict import kept
from ordercast.runtime.processes import WorkerFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")


@pytest.mark.parametrize("minority", [["d", "e"], ["a", "b"]])  # without, with the coordinator
async def test_the_majority_goes_on_and_the_minority_is_told_and_comes_back(
    tmp_path: Path, spark: SparkSession, minority: list[str]
) -> None:
    with Network(["a", "b", "c", "d", "e"]) as network:
        majority = [name for name in network.members if name not in minority]
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(10)
            network.partition(majority, minority)
            moment = time.monotonic()
            await cluster.agree(majority)
            await cluster.talk(10, among=majority)
            print(*await cluster.recoveries(moment, without=minority), sep="\n")
            for name in minority:
                await cluster.saw(name, "NotPrimary", kind="error", after=moment)
                with pytest.raises(WorkerFailed) as refusal:
                    await cluster.send(name, 1)
                assert refusal.value.kind == "NotPrimary"
            await _heal(network, cluster)
            await cluster.talk(10)
    kept(tmp_path)


async def test_of_two_members_the_first_goes_on_alone(tmp_path: Path, spark: SparkSession) -> None:
    with Network(["a", "b"]) as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            network.unplug("a")
            moment = time.monotonic()
            await cluster.agree(["a"])
            await cluster.talk(10, among=["a"])
            await cluster.saw("b", "NotPrimary", kind="error", after=moment)
            network.plug("a")
            await cluster.agree(["a", "b"])
            await cluster.talk(10)
    kept(tmp_path)


async def test_both_sides_go_on_and_merge_when_the_network_heals(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network(["a", "b", "c", "d", "e"]) as network:
        sides = ["a", "b", "c"], ["d", "e"]
        how = {"order": "total", "partition": "merge"}
        async with LiveCluster(network, trace=tmp_path, **how) as cluster:
            network.partition(*sides)
            for side in sides:
                await cluster.agree(side)
                await cluster.talk(10, among=side)
            healed = await _heal(network, cluster)
            for name in network.members:
                _, _, _, text = await cluster.saw(name, "Merge", after=healed)
                assert all(repr(member) in text for member in network.members), text
            await cluster.talk(10)
    kept(tmp_path)


async def test_ten_members_meet_again_after_a_partition(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcdefghij") as network:
        how = {"order": "total", "partition": "merge"}
        async with LiveCluster(network, trace=tmp_path, **how) as cluster:
            network.partition("abcdef", "ghij")
            await asyncio.gather(cluster.agree("abcdef"), cluster.agree("ghij"))
            await _heal(network, cluster)
            await cluster.talk(5)
    kept(tmp_path)


async def test_a_member_that_is_heard_but_hears_nothing_does_not_stop_the_others(
    tmp_path: Path, spark: SparkSession
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a", "b", "c"]) as network, shaping(network) as shaped:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(10)
            shaped.cut(["a", "b"], ["c"])
            moment = time.monotonic()
            await cluster.agree(["a", "b"])
            await cluster.talk(10, among=["a", "b"])
            print(*await cluster.recoveries(moment, without=["c"]), sep="\n")
            shaped.mend()
            await cluster.agree(network.members)
            await cluster.talk(10)
    kept(tmp_path)


async def test_two_members_that_cannot_hear_each_other_end_in_one_order(
    tmp_path: Path, spark: SparkSession
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a", "b", "c"]) as network, shaping(network) as shaped:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            shaped.cut(["b"], ["c"])  # one direction of one pair: the coordinator hears both
            shaped.cut(["c"], ["b"])
            await cluster.saw("c", "Excluded", kind="error")
            await cluster.talk(10, among=["a", "b"])
            shaped.mend()
            await cluster.agree(network.members)
            await cluster.talk(10)
    kept(tmp_path)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_a_kill_on_a_slow_and_lossy_network_is_survived(
    tmp_path: Path, spark: SparkSession, transport: str
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network(["a", "b", "c"]) as network, shaping(network) as shaped:
        how = {"order": "total", "transport": transport}
        async with LiveCluster(network, trace=tmp_path, **how) as cluster:
            shaped.shape(delay_ms=5, jitter_ms=10, loss=0.05)
            sending = asyncio.ensure_future(cluster.send("b", 100, per_second=200))
            await cluster.kill("a")
            await cluster.agree(["b", "c"])
            await sending
            await cluster.talk(20)
            shaped.shape()
    kept(tmp_path)


async def _heal(network: Network, cluster: LiveCluster) -> float:
    """The moment of healing, when everybody has one view again."""
    network.heal()
    healed = time.monotonic()
    await cluster.agree(network.members)
    print(f"one view of {len(network.members)} after {time.monotonic() - healed:.3f} s")
    return healed
