"""The examples in processes of their own. The one that coordinates is killed, or paused."""

from __future__ import annotations

import asyncio
import os
import signal
from itertools import pairwise
from pathlib import Path

import pytest

import example_work
import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events


@pytest.fixture(autouse=True)
def workers_find_their_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(example_work.__file__).parent))


def check(trace: Path) -> None:
    promises = PROTOCOLS["sequencer_pb"].declaration.promises
    judged = judge(read_events(trace), only=[*promises, "wellformed", "views", "vsync"])
    assert {name: found for name, found in judged.items() if found.verdict != "ok"} == {}


def lines(journal: Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


async def until_lines(journal: Path, count: int) -> None:
    while len(lines(journal)) < count:
        await asyncio.sleep(0.001)


async def test_a_dictionary_loses_nothing_acknowledged_when_a_node_is_killed(
    tmp_path: Path,
) -> None:
    journals = {name: tmp_path / f"{name}.txt" for name in ("p1", "p2", "p3", "p4")}
    async with oc.LocalCluster(
        4, sequencer=False, consume=False, codec="json", trace=tmp_path / "trace", run="r"
    ) as cluster:
        *founders, late = cluster.workers
        for worker in founders:
            await worker.run("example_work:open_dictionary")
        counts = {"p1": 1000, "p2": 12, "p3": 12}  # p1 will not come so far
        writing = {
            worker.name: asyncio.ensure_future(
                worker.run(
                    "example_work:write",
                    count=counts[worker.name],
                    journal=str(journals[worker.name]),
                )
            )
            for worker in founders
        }
        await until_lines(journals["p1"], 9)
        await cluster.kill(0)
        await late.run("example_work:open_dictionary")
        await late.run("example_work:write", count=3, journal=str(journals["p4"]))
        await asyncio.gather(writing["p2"], writing["p3"])
        with pytest.raises(oc.OrdercastError):
            await writing["p1"]
        copies = [await worker.run("example_work:contents") for worker in cluster.workers[1:]]
        assert copies[0] == copies[1] == copies[2]
        acknowledged = [line for journal in journals.values() for line in lines(journal)]
        keys = {line.removeprefix("set ") for line in acknowledged if line != "counted"}
        assert len(keys) >= 12 + 12 + 3 + 5 and keys <= copies[0].keys()
        # p1 may have counted once more than it had time to note
        assert copies[0]["counter"] - acknowledged.count("counted") in (0, 1)
    check(tmp_path / "trace")


async def test_a_lock_whose_holder_is_killed_goes_to_the_next_and_to_nobody_else(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal.txt"
    async with oc.LocalCluster(
        4, sequencer=False, consume=False, codec="json", trace=tmp_path / "trace", run="r"
    ) as cluster:
        holder, *others = cluster.workers
        for worker in cluster.workers:
            await worker.run("example_work:open_crew")
        assert await others[0].run("example_work:leader", name="p1") == 1
        holding = asyncio.ensure_future(holder.run("example_work:hold", journal=str(journal)))
        await until_lines(journal, 1)
        turns = []
        for length, worker in enumerate(others, start=2):  # who asks first is served first
            turns.append(
                asyncio.ensure_future(
                    worker.run("example_work:take_turns", count=8, journal=str(journal))
                )
            )
            queue = await worker.run("example_work:queue", length=length)
        assert queue == ["p1", "p2", "p3", "p4"]
        await cluster.kill(0)
        await asyncio.gather(*turns)
        assert await others[2].run("example_work:leader", name="p2") > 1
        with pytest.raises(oc.OrdercastError):
            await holding
        assert await others[0].run("example_work:queue", length=0) == []
    held = [line.split() for line in lines(journal)]
    assert held[0] == ["enter", "1", "p1"]  # and p1 never left
    assert [who for what, _, who in held[1:7] if what == "enter"] == ["p2", "p3", "p4"]
    assert len(held) == 1 + 3 * 8 * 2
    for enter, leave in zip(held[1::2], held[2::2], strict=True):
        assert (enter[0], leave[0]) == ("enter", "leave") and enter[1:] == leave[1:]
    fences = [int(fence) for what, fence, _ in held if what == "enter"]
    assert all(one < other for one, other in pairwise(fences))
    check(tmp_path / "trace")


async def test_a_holder_that_was_paused_is_refused_and_comes_back_to_the_queue(
    tmp_path: Path,
) -> None:
    journal = tmp_path / "journal.txt"
    async with oc.LocalCluster(3, sequencer=False, consume=False, codec="json") as cluster:
        for worker in cluster.workers:
            await worker.run("example_work:open_crew")
        holder, *others = cluster.workers
        holding = asyncio.ensure_future(holder.run("example_work:hold", journal=str(journal)))
        await until_lines(journal, 1)
        os.kill(holder.pid, signal.SIGSTOP)
        try:
            for worker in others:
                await worker.run("example_work:take_turns", count=2, journal=str(journal))
                await worker.run("example_work:leader", name="p2")
        finally:
            os.kill(holder.pid, signal.SIGCONT)
        assert await holder.run("example_work:write_at_last", journal=str(journal)) is False
        await holder.run("example_work:leader", name="p2")
        await holder.run("example_work:take_turns", count=1, journal=str(journal))
        holding.cancel()
    fences = [int(line.split()[1]) for line in lines(journal)]
    assert fences == sorted(fences) and fences[0] == 1
    assert [line.split()[2] for line in lines(journal)][-1] == "p1"
