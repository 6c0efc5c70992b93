"""A view change under saturation: everybody sends at full speed, one is stopped, the others go on.

What waits for the stopped member is bounded, and neither heartbeats nor the change wait behind it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ordercast import LocalCluster
from ordercast.runtime.processes import WorkerProcess

MEMBERS = 5
GROUPS = ("g1", "g2", "g3")
PATIENCE = 60.0  # a guard, no measurement
ROOM = 400 << 20  # bytes by which a member may grow; without a pace it was more than 1 GiB

FLOOD = """
import asyncio, ordercast

sending = set()

async def begin(worker, *, groups, size):
    for group in groups:
        sending.add(asyncio.ensure_future(send(worker.groups[group], bytes(size))))

async def send(group, body):
    while True:
        try:
            await group.multicast(body)
        except ordercast.NodeOut:
            await asyncio.sleep(0.1)
"""


def resident(worker: WorkerProcess) -> int:
    pages = Path(f"/proc/{worker.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("size", [1_000, 1 << 20])
async def test_survivors_of_a_flood_get_the_next_view_and_nobody_else_is_lost(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flood.py").write_text(FLOOD)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    async with LocalCluster(MEMBERS, sequencer=False) as cluster:
        for group in GROUPS:
            await cluster.join(group, order="total")
        before = {worker.name: resident(worker) for worker in cluster.workers}
        for worker in cluster.workers:
            await worker.run("flood:begin", groups=GROUPS, size=size)
        *others, last = cluster.workers
        await asyncio.gather(*(worker.do("wait", group="g1", count=200) for worker in others))
        os.kill(last.pid, signal.SIGSTOP)
        survivors = [worker.name for worker in others]
        async with asyncio.timeout(PATIENCE):
            for group in GROUPS:
                for worker in others:
                    await worker.do("wait_members", group=group, members=survivors)
        for worker in others:
            report = await worker.do("report")
            assert report["outages"] == [] and report["ended"] is None, worker.name
            assert resident(worker) - before[worker.name] < ROOM, worker.name
        for worker in cluster.workers:
            await worker.kill()
