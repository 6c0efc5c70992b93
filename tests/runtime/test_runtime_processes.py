"""Clusters of real operating-system processes, with real kills."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ordercast import LocalCluster
from ordercast.runtime.processes import WorkerFailed, WorkerProcess
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events


async def test_a_killed_member_leaves_the_view_and_the_others_go_on(tmp_path: Path) -> None:
    async with LocalCluster(3, order="total", trace=tmp_path) as cluster:
        a, _, c = cluster.workers
        await asyncio.gather(*(w.do("send", group="main", count=20) for w in cluster.workers))
        await asyncio.gather(*(w.do("wait", group="main", count=60) for w in cluster.workers))
        sending = asyncio.ensure_future(a.do("send", group="main", count=40, per_second=400))
        await cluster.kill(1)
        await asyncio.gather(
            *(w.do("wait_members", group="main", members=["p1", "p3"]) for w in (a, c))
        )
        await sending
        await asyncio.gather(*(w.do("wait", group="main", count=100) for w in (a, c)))
        report = await c.do("report")
        assert report["delivered"] == {"main": 100} and report["ended"] is None
    events = read_events(tmp_path)
    found = {name: judgement.verdict for name, judgement in judge(events).items()}
    assert [e.process for e in events if e.kind == "crash"] == ["p2#1"]
    for name in ("wellformed", "agreement", "validity", "total.gapless", "views", "vsync"):
        assert found[name] == "ok", judge(events)[name]
    assert found["total.group.uniform"] == found["fifo.group.uniform"] == "ok"


async def test_a_killed_sequencer_is_succeeded_by_a_member() -> None:
    async with LocalCluster(2, order="total") as cluster:
        await cluster.kill_leader()
        for worker in cluster.workers:
            await worker.do("send", group="main", count=10)
        for worker in cluster.workers:
            await worker.do("wait", group="main", count=20)


async def test_a_workload_of_ones_own_runs_in_the_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "workload.py").write_text(
        "async def count(worker, *, text):\n"
        "    await (await worker.groups['main'].multicast(text.encode())).ordered()\n"
        "    print('prints do not disturb')\n"
        "    return {'letters': len(text), 'members': worker.groups['main'].members}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    async with LocalCluster(1, order="fifo") as cluster:
        result = await cluster.workers[0].run("workload:count", text="abc")
        assert result == {"letters": 3, "members": ["p1"]}
        with pytest.raises(WorkerFailed, match="p1: ModuleNotFoundError"):
            await cluster.workers[0].run("nowhere:count")
        with pytest.raises(WorkerFailed, match="p1: ValueError: no command 'dance'"):
            await cluster.workers[0].do("dance")


async def test_a_worker_ends_when_its_starter_is_gone() -> None:
    worker = WorkerProcess("alice")
    await worker.start(bootstrap=True)
    assert worker._process is not None and worker._process.stdin is not None
    worker._process.stdin.close()
    assert await worker._process.wait() == 0
    with pytest.raises(WorkerFailed, match="ProcessGone"):
        await worker.do("report")


async def test_a_frozen_process_that_is_killed_later_is_excluded_then() -> None:
    async with LocalCluster(2, order="total", sequencer=False) as cluster:
        first, second = cluster.workers
        os.kill(second.pid, signal.SIGSTOP)
        await first.do("send", group="main", count=10)  # ordered, though not stable
        os.kill(second.pid, signal.SIGKILL)
        await first.do("wait_members", group="main", members=["p1"])
        assert await first.do("wait", group="main", count=10) == 10


def test_a_cluster_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        LocalCluster(0)


async def test_a_cluster_whose_start_fails_leaves_no_process_behind() -> None:
    with pytest.raises(WorkerFailed, match="ConfigError: window_bytes=1"):
        async with LocalCluster(2, window_bytes=1):
            pass
