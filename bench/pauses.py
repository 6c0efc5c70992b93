"""Who feels it when something happens to one group: eight members, two groups, three sequencers.

`near` has p1 to p4 and is numbered by the second sequencer, `far` has p5 to p8 and is numbered by
the third; the first sequencer coordinates. All members but p4 send at a steady rate. Then

    leave, join     p4 leaves near, and joins it again
    member          p4 is killed
    sequencer       the sequencer of near is killed
    coordinator     the first sequencer is killed, which numbers neither group
    node            a node more starts, and joins nothing

For each, delays until a message is taken, of those due in the second before and in the second
after: near feels what concerns it, far should feel nothing. At last nodes start one after the
other: the wall and CPU time of the first five and of the last five starts. In one process, so the
CPU time is that of all nodes.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from statistics import median, quantiles
from typing import Any

from ordercast import LocalCluster, Node
from ordercast.runtime.processes import WorkerProcess
from ordercast.service.administrator import Administrator

ROUNDS = 5
PER_SECOND = 100.0  # messages of each sender
CALM_SECONDS = 1.5  # before something happens, and after it
MEMBERS = {"near": ("p1", "p2", "p3", "p4"), "far": ("p5", "p6", "p7", "p8")}
SILENT = "p4"  # something happens to it
NODES = 40  # that start one after the other
EDGE = 5  # of them, at both ends

Delays = dict[str, tuple[list[float], list[float]]]
Act = Callable[[LocalCluster], Awaitable[None]]


async def run(*, rounds: int = ROUNDS) -> dict[str, Any]:
    """All of it."""
    figures: dict[str, Any] = {"rounds": rounds, "load": os.getloadavg()[0]}
    for name, acts in LIVES.items():
        found: dict[str, list[Delays]] = defaultdict(list)
        for _ in range(rounds):
            for act, delays in (await _one_life(acts)).items():
                found[act].append(delays)
        for act, all_delays in found.items():
            figures[f"{name}: {act}" if name != act else act] = _summary(all_delays)
    return figures | await starts()


async def _one_life(acts: dict[str, Act]) -> dict[str, Delays]:
    """A cluster under load, to which these happen one after the other."""
    async with LocalCluster(8, sequencers=3, consume=False, balance=False) as cluster:
        workers = {worker.name: worker for worker in cluster.workers}
        for group, members in MEMBERS.items():
            for name in members:
                await workers[name].do("join", group=group, order="total", protocol="sequencing")
        administrator = Administrator([w.address for w in cluster.workers], timeout=30.0)
        _, second, third = (sequencer.name for sequencer in cluster.sequencers)
        await administrator.migrate("near", second)
        await administrator.migrate("far", third)
        for name, worker in workers.items():
            rate = PER_SECOND if name != SILENT else 0.001
            await worker.run("bench.sequencing_load:begin", per_second=rate)
        found: dict[str, Delays] = {}
        for name, act in acts.items():
            await asyncio.sleep(CALM_SECONDS)
            moment = time.monotonic()
            await act(cluster)
            await asyncio.sleep(moment + CALM_SECONDS - time.monotonic())
            found[name] = await _delays(list(workers.values()), moment)
        return found


async def _delays(workers: list[WorkerProcess], moment: float) -> Delays:
    reports = [
        await worker.run("bench.sequencing_load:delays_around", moment=moment, span=1.0)
        for worker in workers
        if worker.name != SILENT
    ]
    found: Delays = {group: ([], []) for group in MEMBERS}
    for report in reports:
        for group, (before, after) in report.items():
            found[group][0].extend(before)
            found[group][1].extend(after)
    return found


def _summary(found: list[Delays]) -> dict[str, float]:
    """The median of the rounds."""
    figures = {}
    for group in MEMBERS:
        for k, when in enumerate(("before", "after")):
            rounds = [sorted(delays[group][k]) for delays in found]
            p99 = [1e3 * quantiles(delays, n=100)[98] for delays in rounds]
            figures[f"{group} p99 ms, {when}"] = median(p99)
            figures[f"{group} max ms, {when}"] = median(1e3 * delays[-1] for delays in rounds)
    return figures


# -- what happens ---------------------------------------------------------------------------------


def _silent(cluster: LocalCluster) -> WorkerProcess:
    return next(worker for worker in cluster.workers if worker.name == SILENT)


async def _leave(cluster: LocalCluster) -> None:
    await _silent(cluster).do("leave", group="near")


async def _join(cluster: LocalCluster) -> None:
    await _silent(cluster).do("join", group="near", order="total", protocol="sequencing")


async def _kill_member(cluster: LocalCluster) -> None:
    await _silent(cluster).kill()


async def _kill_sequencer(cluster: LocalCluster) -> None:
    await cluster.kill_sequencer(cluster.sequencers[1].name)


async def _kill_coordinator(cluster: LocalCluster) -> None:
    await cluster.kill_leader()


async def _one_more(cluster: LocalCluster) -> None:
    more = WorkerProcess("p9")
    await more.start(seeds=[cluster.workers[0].address])
    cluster.workers.append(more)


LIVES: dict[str, dict[str, Act]] = {
    "a member": {"node": _one_more, "leave": _leave, "join": _join, "killed": _kill_member},
    "the sequencer": {"killed": _kill_sequencer},
    "the coordinator": {"killed": _kill_coordinator},
}


# -- nodes start ----------------------------------------------------------------------------------


async def starts(*, count: int = NODES) -> dict[str, float]:
    """One after the other, in this process."""
    patient: dict[str, Any] = {"heartbeat_ms": 5_000, "suspect_ms": 60_000, "close_timeout": 1.0}
    nodes: list[Node] = []
    wall, cpu = [], []
    for number in range(count):
        how = {"seeds": [nodes[0].address]} if nodes else {"bootstrap": True}
        node = Node(f"n{number}", **how, **patient)
        began, used = time.monotonic(), time.process_time()
        await node.start()
        wall.append(1e3 * (time.monotonic() - began))
        await asyncio.sleep(0.05)  # the others learn of it
        cpu.append(1e3 * (time.process_time() - used))
        nodes.append(node)
    for node in reversed(nodes):
        await node.aclose()
    return {
        f"start of one of the first {EDGE} nodes, wall ms": median(wall[1 : EDGE + 1]),
        f"start of one of the last {EDGE} of {count} nodes, wall ms": median(wall[-EDGE:]),
        f"start of one of the first {EDGE} nodes, CPU ms of all": median(cpu[1 : EDGE + 1]),
        f"start of one of the last {EDGE} of {count} nodes, CPU ms of all": median(cpu[-EDGE:]),
    }


if __name__ == "__main__":
    import json

    print(json.dumps(asyncio.run(run()), indent=2))
