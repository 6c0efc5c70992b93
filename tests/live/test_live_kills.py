"""Real processes killed and frozen: the survivors go on, and who comes back is let in again.

Times are printed, never asserted.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from live.cluster import PATIENCE, PORT, LiveCluster, python_path
from live.verdict import kept
from netlab.namespaces import Network
from ordercast.cli.exits import VIOLATED
from ordercast.runtime.processes import WorkerFailed

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


async def test_after_a_lost_majority_the_command_that_is_printed_brings_the_cluster_back(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Nothing but the defaults: who was started again waits until an operator speaks."""
    with Network("abc") as network:
        async with LiveCluster(network, trace=tmp_path, order="total") as cluster:
            await cluster.talk(10)
            cluster.freeze("c")  # or it could help to exclude b before it dies
            await cluster.kill("b")
            await cluster.kill("c")
            told = await cluster.saw("a", "NotPrimary", kind="error")
            command = f"ordercast recover --node {network.address('a')}:{PORT} --insecure"
            _advises(told[3], command)
            started = await asyncio.gather(*map(cluster.start, "bc"), return_exceptions=True)
            for name, refusal in zip("bc", started, strict=True):
                assert isinstance(refusal, WorkerFailed) and refusal.kind == "JoinTimeout"
                assert f"If {name!r} was started again, it has forgotten" in refusal.text
                _advises(refusal.text, command)
            [doctor] = re.findall("`(ordercast doctor .*?)`", started[0].text)
            _advises(await _run_at(network, "b", doctor), command)
            status = f"ordercast status {network.address('a')}:{PORT} --insecure"
            _advises(await _run_at(network, "c", status), command)
            view = (await cluster.stats("a"))["node_view"]["number"]
            said = await _run_at(network, "a", command, answer=f"{view}\n")
            assert f"node view {view + 1} is in force, with a#1" in said
            for name in "bc":
                await cluster.start(name)
                await cluster.join(name)
            await cluster.agree("abc")
            await cluster.talk(10)
    assert {"b#1", "c#1"} <= set(kept(tmp_path).facts.crashed)


def _advises(text: str, command: str) -> None:
    """This one command, and what it costs."""
    assert set(re.findall("`(ordercast recover.*?)`", text)) == {command}, text
    assert "what only" in text and "had is lost" in text, text


async def _run_at(network: Network, name: str, command: str, *, answer: str = "") -> str:
    """Run a command as it was printed, on the machine of that member; what it prints."""
    path = f"PYTHONPATH={python_path()}"
    words = [*network.enter(name), "env", path, sys.executable, "-m", *shlex.split(command)]
    done = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(PATIENCE):
        out, err = await done.communicate(answer.encode())
    assert done.returncode in (0, VIOLATED), err.decode()
    return out.decode()


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
