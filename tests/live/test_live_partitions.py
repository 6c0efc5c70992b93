"""Networks that fall apart and heal: who goes on, who is told, and that all meet again.

Times are printed, never asserted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.cluster import LiveCluster
from live.verdict import kept
from netlab.namespaces import Network
from netlab.shaping import shaping, shaping_refusal
from ordercast.runtime.processes import WorkerFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")


# -- partition="primary" --------------------------------------------------------------------------


async def test_the_majority_goes_on_and_the_minority_is_told_and_comes_back(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcde") as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(10)
            for minority in ("de", "ab"):  # without, with the coordinator
                majority = [name for name in network.members if name not in minority]
                await _only_one_side_goes_on(cluster, majority, minority)
    kept(tmp_path)


async def test_of_two_halves_that_with_the_first_node_goes_on_and_of_two_members_the_first(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcd") as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await _only_one_side_goes_on(cluster, "ab", "cd")
            for leaver in "cd":
                await cluster.close(leaver)  # who left in order does not count
            await cluster.agree("ab")
            await _only_one_side_goes_on(cluster, "a", "b")
    kept(tmp_path)


async def _only_one_side_goes_on(
    cluster: LiveCluster, primary: Sequence[str], others: Sequence[str]
) -> None:
    moment = time.monotonic()
    cluster.network.partition(primary, others)
    await cluster.agree(primary)
    await cluster.talk(10, among=primary)
    print(*await cluster.recoveries(moment, without=others), sep="\n")
    for name in others:
        await cluster.saw(name, "NotPrimary", kind="error", after=moment)
        with pytest.raises(WorkerFailed) as refusal:
            await cluster.send(name, 1)
        assert refusal.value.kind == "NotPrimary"
    await _heal(cluster, [*primary, *others])
    await cluster.talk(10)


# -- partition="merge" ----------------------------------------------------------------------------


async def test_both_sides_go_on_and_merge_when_the_network_heals(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcdefghij") as network:
        sides = "abcdef", "ghij"
        how = {"order": "total", "partition": "merge"}
        async with LiveCluster(network, trace=tmp_path, **how) as cluster:
            network.partition(*sides)
            await asyncio.gather(*(_goes_on(cluster, side) for side in sides))
            healed = await _heal(cluster, network.members)
            for name in network.members:
                _, _, _, text = await cluster.saw(name, "Merge", after=healed)
                assert all(repr(member) in text for member in network.members), text
            await cluster.talk(5)
    kept(tmp_path)


async def _goes_on(cluster: LiveCluster, side: Sequence[str]) -> None:
    await cluster.agree(side)
    await cluster.talk(10, among=side)


# -- by the relay ---------------------------------------------------------------------------------


async def test_a_member_that_does_not_hear_the_others_or_one_of_them_does_not_stop_them(
    tmp_path: Path, spark: SparkSession
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network("abc") as network, shaping(network) as shaped:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(10)
            moment = time.monotonic()
            shaped.cut(["a", "b"], ["c"])
            await cluster.agree("ab")
            await cluster.talk(10, among="ab")
            print(*await cluster.recoveries(moment, without=["c"]), sep="\n")
            shaped.mend()
            await cluster.agree("abc")
            moment = time.monotonic()
            shaped.cut(["b"], ["c"])  # the coordinator hears both
            shaped.cut(["c"], ["b"])
            await cluster.saw("c", "Excluded", kind="error", after=moment)
            await cluster.talk(10, among="ab")
            shaped.mend()
            await cluster.agree("abc")
            await cluster.talk(10)
    kept(tmp_path)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
async def test_members_come_and_go_on_a_slow_and_lossy_network(
    tmp_path: Path, spark: SparkSession, transport: str
) -> None:
    if (reason := shaping_refusal()) is not None:
        pytest.skip(reason)
    with Network("abcd") as network, shaping(network) as shaped:
        how = {"order": "total", "transport": transport}
        async with LiveCluster(network, trace=tmp_path, later="d", **how) as cluster:
            shaped.shape(delay_ms=5, jitter_ms=10, loss=0.05)
            sending = asyncio.ensure_future(cluster.send("b", 200, per_second=200))
            await cluster.start("d")
            await cluster.join("d")
            await cluster.kill("a")
            await cluster.agree("bcd")
            await sending
            await cluster.close("c")
            await cluster.start("a")
            await cluster.join("a")
            await cluster.agree("abd")
            await cluster.talk(20)
            assert shaped.lost() > 0
            shaped.shape()
    assert "a#1" in kept(tmp_path).facts.crashed


async def _heal(cluster: LiveCluster, members: Sequence[str]) -> float:
    """The moment of healing, when everybody has one view again."""
    healed = time.monotonic()
    cluster.network.heal()
    await cluster.agree(members)
    print(f"one view of {len(members)} after {time.monotonic() - healed:.3f} s")
    return healed
