"""Real processes killed and frozen: the survivors go on, and who comes back is let in again.

Times are printed, never asserted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.cluster import LiveCluster
from live.verdict import kept
from netlab.namespaces import Network

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")


@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast", "agreed", "javagroups"])
async def test_a_group_goes_on_when_a_member_and_then_two_coordinators_are_killed(
    tmp_path: Path, spark: SparkSession, protocol: str
) -> None:
    with Network("abcde") as network:
        async with LiveCluster(network, trace=tmp_path, protocol=protocol) as cluster:
            await cluster.talk(20)
            for victim in "dab":
                await _kill_while_others_send(cluster, [victim])
    assert set(kept(tmp_path).facts.crashed) == {"d#1", "a#1", "b#1"}


async def test_two_coordinators_killed_at_once_leave_a_working_group(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcde") as network:
        patient = LiveCluster(network, trace=tmp_path, order="total", suspect_ms=20_000)
        async with patient as cluster:
            cluster.freeze("e")  # for a moment: nobody is suspected for that
            sending = asyncio.ensure_future(cluster.send("c", 20))
            await asyncio.sleep(1.0)  # four heartbeats
            cluster.thaw("e")
            await sending
            await cluster.talk(20)
            await _kill_while_others_send(cluster, ["a", "b"])
    assert set(kept(tmp_path).facts.crashed) == {"a#1", "b#1"}


async def test_whoever_joins_while_the_coordinator_is_killed_is_let_in(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abcdef") as network:
        async with LiveCluster(network, trace=tmp_path, order="total", later="ef") as cluster:
            await cluster.start("e")
            joining = asyncio.ensure_future(cluster.join("e"))  # the group
            await cluster.kill("a")
            await joining
            await cluster.agree("bcde")
            starting = asyncio.ensure_future(cluster.start("f"))  # the cluster
            await cluster.knows("b", "f")
            await cluster.kill("b")
            await starting
            await cluster.join("f")
            await cluster.agree("cdef")
            await cluster.talk(20)
    assert {"a#1", "b#1"} <= set(kept(tmp_path).facts.crashed)


async def test_a_frozen_member_is_excluded_and_comes_back_when_it_thaws(
    tmp_path: Path, spark: SparkSession
) -> None:
    with Network("abc") as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(20)
            for frozen in "ca":  # a member; the coordinator
                await _freeze_and_thaw(cluster, frozen)
    assert {"c#1", "a#1"} <= set(kept(tmp_path).facts.crashed)


async def _kill_while_others_send(cluster: LiveCluster, victims: Sequence[str]) -> None:
    others = [name for name in cluster.alive if name not in victims]
    busy = others[-1]
    sending = asyncio.ensure_future(cluster.send(busy, 100, per_second=200))
    await asyncio.sleep(0.1)  # in the middle of it
    moment = await cluster.kill(victims[0])
    for victim in victims[1:]:
        await cluster.kill(victim)
    await cluster.agree(others)
    await sending
    await cluster.talk(20)
    print(*await cluster.recoveries(moment, without=victims), sep="\n")


async def _freeze_and_thaw(cluster: LiveCluster, frozen: str) -> None:
    members = cluster.alive
    moment = cluster.freeze(frozen)
    await cluster.agree(cluster.alive)
    await cluster.talk(20)
    print(*await cluster.recoveries(moment, without=[frozen]), sep="\n")
    thawed = cluster.thaw(frozen)
    await cluster.saw(frozen, "Excluded", kind="error", after=thawed)
    await cluster.agree(members)
    await cluster.talk(20)
