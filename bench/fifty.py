"""Fifty members on one machine: forming one view, one more join, and a minute of nothing.

The join is counted inside the joining process, from `node.join()` of a started node until it
returns, with fifty others awake to install the same view. Where the time goes is told by CPU
seconds: with fifty processes on a few cores, the machine is what is waited for.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable
from statistics import median
from typing import Any

from ordercast.runtime.processes import WorkerProcess
from ordercast.runtime.worker import Worker

GROUP = "main"
ONE_MORE = "p51"
JOINS = 11  # of the one more; the first one counts, the others show the spread
SETTLE_SECONDS = 2.0  # before the join is timed, and before the idle time
PATIENCE = 300.0


async def run(
    *, members: int = 50, idle_seconds: float = 60.0, order: str = "total"
) -> dict[str, Any]:
    """All of it, in one cluster."""
    workers = [WorkerProcess(f"p{number}") for number in range(1, members + 1)]
    try:
        async with asyncio.timeout(PATIENCE + idle_seconds):
            figures: dict[str, Any] = {"members": members, "order": order}
            figures |= await _start(workers)
            figures |= await _form(workers, order)
            figures |= await _one_more(workers, order)
            figures |= await _idle(workers, idle_seconds)
            return figures
    finally:
        await _end(workers)


# -- forming --------------------------------------------------------------------------------------


async def _start(workers: list[WorkerProcess]) -> dict[str, Any]:
    """Processes and nodes, each connected to each."""
    began = time.monotonic()
    first, *others = workers
    await first.start(bootstrap=True)
    alone = await _cpu([first])
    await asyncio.gather(*(worker.start(seeds=[first.address]) for worker in others))
    return {
        "start_seconds": time.monotonic() - began,
        "start_cpu_seconds": await _cpu(workers),
        "start_cpu_seconds_of_python_alone": alone * len(workers),
        "cores": os.cpu_count(),
    }


async def _form(workers: list[WorkerProcess], order: str) -> dict[str, Any]:
    """All join at once; until each has the view with everybody in it."""
    before = await _cpu(workers)
    began = time.monotonic()
    joins = await asyncio.gather(
        *(worker.run("bench.fifty:timed_join", order=order) for worker in workers)
    )
    await _agree(workers)
    seconds = time.monotonic() - began
    return {
        "form_seconds": seconds,
        "form_cpu_seconds": await _cpu(workers) - before,
        "form_join_seconds_median": median(joins),
        "form_join_seconds_max": max(joins),
    }


async def _one_more(workers: list[WorkerProcess], order: str) -> dict[str, Any]:
    """A started node joins, leaves and joins again; it stays out in the end."""
    newcomer = WorkerProcess(ONE_MORE)
    workers.append(newcomer)
    await newcomer.start(seeds=[workers[0].address])
    seconds: list[float] = []
    cpu: list[float] = []
    everywhere: list[float] = []
    for _ in range(JOINS):
        await asyncio.sleep(SETTLE_SECONDS if not seconds else 0.1)
        before, began = await _cpu(workers), time.monotonic()
        seconds.append(await newcomer.run("bench.fifty:timed_join", order=order))
        await _agree(workers)
        everywhere.append(time.monotonic() - began)
        cpu.append(await _cpu(workers) - before)
        await newcomer.do("leave", group=GROUP)
        await _agree(workers[:-1])
    await newcomer.close()
    workers.pop()
    return {
        "join_ms_of_one_more": 1e3 * seconds[0],
        "join_ms_again_median": 1e3 * median(seconds[1:]),
        "join_ms_again_max": 1e3 * max(seconds[1:]),
        "join_ms_until_all_have_the_view_median": 1e3 * median(everywhere),
        "join_cpu_ms_of_all_median": 1e3 * median(cpu),
    }


async def timed_join(worker: Worker, *, order: str) -> float:
    """In a member: seconds from the call of `node.join()` to its return."""
    began = time.monotonic()
    await worker.join(GROUP, order=order)
    return time.monotonic() - began


# -- idle -----------------------------------------------------------------------------------------


async def _idle(workers: list[WorkerProcess], seconds: float) -> dict[str, Any]:
    """Nobody sends. What is said all the same, and is anybody suspected?"""
    await asyncio.sleep(SETTLE_SECONDS)
    before, began, used = await _reports(workers), time.monotonic(), await _cpu(workers)
    await asyncio.sleep(seconds)
    lasted = time.monotonic() - began
    used = await _cpu(workers) - used
    after = await _reports(workers)
    heartbeats = _growth(before, after, "heartbeats_sent")
    packets = _growth(
        (report["connections"] for report in before),
        (report["connections"] for report in after),
        "frames_out",
    )
    views = [report["groups"][GROUP]["view"] for report in after]
    return {
        "idle_seconds": lasted,
        "idle_heartbeats_per_node_and_second": None
        if heartbeats is None
        else max(heartbeats) / lasted,
        "idle_heartbeats_of_all_per_second": None
        if heartbeats is None
        else sum(heartbeats) / lasted,
        "idle_frames_of_all_per_second": sum(packets or ()) / lasted,
        "idle_cpu_share_of_one_core": used / lasted,
        "false_suspicions": sum(len(report["suspicions"]) for report in after)
        + sum(_node_view(old) != _node_view(new) for old, new in zip(before, after, strict=True)),
        "views_changed_while_idle": sum(
            view != report["groups"][GROUP]["view"]
            for view, report in zip(views, before, strict=True)
        ),
    }


def _growth(
    before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]], name: str
) -> list[int] | None:
    """Of a count, at each node; None if nodes do not count it."""
    pairs = [(old.get(name), new.get(name)) for old, new in zip(before, after, strict=True)]
    return [new - old for old, new in pairs if old is not None and new is not None] or None


def _node_view(report: dict[str, Any]) -> int:
    """A suspicion is not taken back: another view follows, or the node is still suspected."""
    return int(report["node_view"]["number"])


# -- bits -----------------------------------------------------------------------------------------


async def _agree(workers: list[WorkerProcess]) -> None:
    names = [worker.name for worker in workers]
    await asyncio.gather(*(w.do("wait_members", group=GROUP, members=names) for w in workers))


async def _cpu(workers: list[WorkerProcess]) -> float:
    """CPU seconds of all processes so far."""
    used = await asyncio.gather(*(worker.run("bench.live:cpu_seconds") for worker in workers))
    return float(sum(used))


async def _reports(workers: list[WorkerProcess]) -> list[dict[str, Any]]:
    reports = await asyncio.gather(*(worker.do("report") for worker in workers))
    return [report["stats"] for report in reports]


async def _end(workers: list[WorkerProcess]) -> None:
    """The first one leads: it goes last."""
    await asyncio.gather(*(worker.close() for worker in workers[1:]))
    await workers[0].close()
