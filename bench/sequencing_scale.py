"""A thousand groups on two hundred nodes in eight processes, against how much the groups overlap.

Members live in cells of 8. A group has 5 members of its cell, but for a share of them that is drawn
from anywhere else. Every process has one dedicated sequencer and an equal part of the members; all
nodes are connected with all. When the groups stand, single joins are timed with nothing else going
on: those for which no group had to move, and the others. Then all groups are sent to at a steady
rate, and the CPU time of all processes is divided by the messages. At last one node ends without a
word, and the groups that stop for that are counted.

    python -m bench.sequencing_scale --outside 0 --outside 5
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from random import Random
from statistics import quantiles
from typing import Any

from ordercast.core.ids import GroupId, ProcessId
from ordercast.experiments.cells import celled_groups
from ordercast.placement.components import strong_components
from ordercast.runtime.processes import WorkerProcess
from ordercast.service.administrator import Administrator

CELL = 8  # nodes
SIZE = 5  # members of a group
PROCESSES = 8
CELLS = 24  # with a sequencer in each process: 200 nodes
GROUPS = 1000
SHARES = (0, 1, 5, 20, 100)  # percent of the members that are drawn from outside the cell
ORDER = {"order": "total", "protocol": "sequencing"}
PATIENT = {
    "heartbeat_ms": 20_000, "suspect_ms": 120_000, "join_timeout": 120.0, "close_timeout": 1.0,
}  # fmt: skip
JOINS = 100  # timed one by one
CRASH_S = 5.0  # after which everybody has seen that a node is gone
MESSAGES = 4  # to each group ...
PER_SECOND = 200.0  # ... by all nodes together
IN_PROCESS = "bench.sequencing_nodes"

Groups = dict[GroupId, frozenset[ProcessId]]


class Crowd:
    """All processes, and which member lives in which."""

    def __init__(self, processes: int, members: int) -> None:
        self.workers = [WorkerProcess(f"s{number}") for number in range(1, processes + 1)]
        self.members = range(members)

    def home(self, member: int) -> WorkerProcess:
        """A cell is spread over all processes."""
        return self.workers[member % len(self.workers)]

    async def all(self, function: str, **args: Any) -> list[Any]:
        """In every process at once."""
        return await asyncio.gather(
            *(w.run(f"{IN_PROCESS}:{function}", **args) for w in self.workers)
        )

    async def start(self) -> float:
        """Sequencers, then members; seconds that it took."""
        began = time.monotonic()
        first, *others = self.workers
        await first.start(bootstrap=True, sequencer=True, balance=False, **PATIENT)
        for worker in others:
            await worker.start(seeds=[first.address], sequencer=True, balance=False, **PATIENT)
        await asyncio.gather(
            *(
                worker.run(
                    f"{IN_PROCESS}:start",
                    members=[m for m in self.members if self.home(m) is worker],
                    seeds=[first.address],
                    options=PATIENT,
                )
                for worker in self.workers
            )
        )
        return time.monotonic() - began

    async def join(self, groups: Groups) -> list[float]:
        """The first member of each group joins it, then the second of each, and so on."""
        seconds: list[float] = []
        for place in range(SIZE):
            wanted = [(sorted(members)[place], f"g{g}") for g, members in groups.items()]
            done = await asyncio.gather(
                *(
                    worker.run(
                        f"{IN_PROCESS}:join",
                        wanted=[pair for pair in wanted if self.home(pair[0]) is worker],
                        how=ORDER,
                    )
                    for worker in self.workers
                )
            )
            seconds += [one for found in done for one in found]
        return seconds

    async def close(self) -> None:
        """Nobody says good-bye: two hundred views would follow."""
        for worker in self.workers:
            if worker.address:
                await worker.kill()


async def run(
    *, percent: int, groups: int = GROUPS, cells: int = CELLS, processes: int = PROCESSES
) -> dict[str, Any]:
    """One cluster with that share of members from outside their cell."""
    overlap = celled_groups(
        members=cells * CELL,
        cell=CELL,
        groups=groups,
        size=SIZE,
        outside=percent / 100,
        rng=Random(percent),
    )
    crowd = Crowd(processes, cells * CELL)
    parts = strong_components(overlap)
    figures: dict[str, Any] = {
        "outside_percent": percent,
        "nodes": cells * CELL + processes,
        "processes": processes,
        "groups": groups,
        "largest_component": max(map(len, parts)),
        "components": len(parts),
        "load_before": os.getloadavg()[0],
    }
    try:
        figures["start_seconds"] = await crowd.start()
        began = time.monotonic()
        figures |= _cuts("forming_join", await crowd.join(overlap))
        figures["forming_seconds"] = time.monotonic() - began
        figures |= await _single_joins(crowd, overlap, Random(percent))
        figures |= await _messages(crowd, overlap)
        figures |= await _crash(crowd, overlap, Random(percent))
    finally:
        await crowd.close()
    return figures | {"load_after": os.getloadavg()[0]}


async def _single_joins(crowd: Crowd, groups: Groups, rng: Random) -> dict[str, Any]:
    """A node of the cell joins one more of its groups, and leaves it again."""
    administrator = Administrator([crowd.workers[0].address], timeout=30.0)
    still: list[float] = []
    moving: list[float] = []
    for _ in range(JOINS):
        g = rng.choice(list(groups))
        cell = range((first := g % (len(crowd.members) // CELL) * CELL), first + CELL)
        member = rng.choice([m for m in cell if m not in groups[g]])
        before = await _places(administrator)
        (seconds,) = await crowd.home(member).run(
            f"{IN_PROCESS}:join", wanted=[(member, f"g{g}")], how=ORDER
        )
        after = await _places(administrator)
        (still if before == after else moving).append(seconds)
        await crowd.home(member).run(f"{IN_PROCESS}:leave", member=member, group=f"g{g}")
    return {
        "joins_without_a_move": len(still),
        **_cuts("join_without_a_move", still),
        "joins_with_a_move": len(moving),
        **_cuts("join_with_a_move", moving),
    }


async def _places(administrator: Administrator) -> dict[str, str]:
    return {row.name: row.sequencer for row in await administrator.groups()}


async def _messages(crowd: Crowd, groups: Groups) -> dict[str, Any]:
    """Idle for a while, then under load for as long: what a message costs on top."""
    count = MESSAGES * len(groups)
    seconds = count / PER_SECOND
    idle = -await _cpu(crowd)
    await asyncio.sleep(seconds)
    idle += await _cpu(crowd)
    await crowd.all("forget")
    busy, began = -await _cpu(crowd), time.monotonic()
    await asyncio.gather(
        *(
            worker.run(
                f"{IN_PROCESS}:send",
                to=[
                    (member, f"g{g}")
                    for place in range(MESSAGES)
                    for g, members in groups.items()
                    if crowd.home(member := sorted(members)[place % SIZE]) is worker
                ],
                per_second=PER_SECOND / len(crowd.workers),
            )
            for worker in crowd.workers
        )
    )
    await crowd.all("settle", count=MESSAGES)
    lasted = time.monotonic() - began
    busy += await _cpu(crowd)
    reports = await crowd.all("report")
    contexts = sorted(length for report in reports for length in report["contexts"])
    delays = [delay for report in reports for delay in report["delays"]]
    return {
        "messages": count,
        "messages_per_second": count / lasted,
        "idle_cpu_share_of_one_core": idle / seconds,
        "cpu_ms_per_message": 1e3 * (busy - idle * lasted / seconds) / count,
        "context_length_mean": sum(contexts) / max(1, len(contexts)),
        "context_length_max": contexts[-1] if contexts else 0,
        **_cuts("own_delivery", delays),
    }


async def _crash(crowd: Crowd, groups: Groups, rng: Random) -> dict[str, Any]:
    """One member ends without a word: which groups stop for that, and for how long?"""
    dead = rng.choice(crowd.members)
    concerned = {f"g{g}" for g, members in groups.items() if dead in members}
    await crowd.all("watch")
    await crowd.home(dead).run(f"{IN_PROCESS}:crash", member=dead)
    await asyncio.sleep(CRASH_S)
    pauses: dict[str, float] = {}
    for found in await crowd.all("pauses"):
        for group, seconds in found.items():
            pauses[group] = max(seconds, pauses.get(group, 0.0))
    return {
        "groups_of_the_crashed": len(concerned),
        "groups_that_paused": len(pauses),
        "others_that_paused": len(pauses.keys() - concerned),
        **_cuts("pause", list(pauses.values())),
    }


async def _cpu(crowd: Crowd) -> float:
    used = await asyncio.gather(*(w.run("bench.live:cpu_seconds") for w in crowd.workers))
    return float(sum(used))


def _cuts(label: str, seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = quantiles(seconds, n=100)
    return {
        f"{label}_p50_ms": 1e3 * cuts[49],
        f"{label}_p99_ms": 1e3 * cuts[98],
        f"{label}_max_ms": 1e3 * max(seconds),
    }


def main() -> None:
    """The shares that were asked for, or all; a line of JSON for each."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--outside", type=int, action="append", metavar="PERCENT")
    options.add_argument("--groups", type=int, default=GROUPS)
    options.add_argument("--cells", type=int, default=CELLS)
    options.add_argument("--processes", type=int, default=PROCESSES)
    asked = options.parse_args()
    size = {"groups": asked.groups, "cells": asked.cells, "processes": asked.processes}
    for percent in asked.outside or SHARES:
        print(json.dumps(asyncio.run(run(percent=percent, **size)), indent=2), flush=True)


if __name__ == "__main__":
    main()
