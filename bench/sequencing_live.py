"""Sequencers that are moved, killed and drained under load: real processes, loopback TCP.

Six members are in ten groups of three or four; neighbours share at least two members, so that all
ten are numbered in one place. All members send at a steady rate. Beside the delays it is counted
whether every member of every group got everything, once, in the same order; then the traces are
judged.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

from ordercast import LocalCluster
from ordercast.pipeline.verdict import judge_paths
from ordercast.runtime.node import Node
from ordercast.runtime.processes import WorkerProcess
from ordercast.service.administrator import Administrator

MEMBERS = 6
GROUPS = {
    f"g{number}": [f"p{(number + place) % MEMBERS + 1}" for place in range(3 + number % 2)]
    for number in range(10)
}
PER_SECOND = 100.0  # messages of each member
CALM_SECONDS = 2.0  # before something happens, and after it
VERIFIED = ("wellformed", "no_duplication", "membership", "views", "vsync", "agreement")

Span = tuple[float, float]  # from one moment to another
Act = Callable[["Run"], Awaitable[dict[str, Any]]]


class Run:
    """A cluster under load."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.administrator = Administrator([w.address for w in cluster.workers], timeout=30.0)
        self.sequencers: dict[str, Node | WorkerProcess] = {s.name: s for s in cluster.sequencers}
        self.delays: list[tuple[float, float]] = []  # of all members; when `checked`

    async def all(self, function: str, **args: Any) -> list[Any]:
        """In every member at once."""
        call = f"bench.sequencing_load:{function}"
        return await asyncio.gather(*(w.run(call, **args) for w in self.cluster.workers))

    async def numbered_by(self, name: str) -> list[str]:
        """The groups of that sequencer."""
        return [row.name for row in await self.administrator.groups() if row.sequencer == name]

    async def checked(self) -> dict[str, Any]:
        """End the load: what was sent, and what is wrong with what was taken."""
        reports = await self.all("finish")
        self.delays = [(due, delay) for report in reports for due, delay in report["delays"]]
        sent: Counter[str] = sum((Counter(report["sent"]) for report in reports), Counter())
        taken = await self.all("taken", sent=sent)
        seen = [(group, found) for report in taken for group, found in report.items()]
        errors = [error for report in await self.all("finish") for error in report["errors"]]
        return {
            "messages": sent.total(),
            "deliveries": sum(found["taken"] for _, found in seen),
            "lost": sum(max(0, sent[group] - found["distinct"]) for group, found in seen),
            "doubled": sum(found["taken"] - found["distinct"] for _, found in seen),
            "groups_with_two_orders": sum(
                len({found["order"] for name, found in seen if name == group}) > 1
                for group in GROUPS
            ),
            "errors": len(errors),
            **({"first_errors": errors[:3]} if errors else {}),
        }

    def delays_in(self, label: str, *spans: Span) -> dict[str, float]:
        """Delays of the messages that were due in one of these spans, in milliseconds."""
        found = sorted(
            1e3 * delay
            for due, delay in self.delays
            if any(start <= due < end for start, end in spans)
        )
        cuts = quantiles(found, n=100)
        return {
            f"{label}_p50_ms": cuts[49],
            f"{label}_p99_ms": cuts[98],
            f"{label}_max_ms": found[-1],
        }


async def measured(act: Act, *, order: str, sequencers: int, **options: Any) -> dict[str, Any]:
    """A cluster under load, to which something happens; then the verifier's word."""
    with tempfile.TemporaryDirectory() as trace:
        async with LocalCluster(
            MEMBERS, sequencers=sequencers, consume=False, trace=trace, run="bench", **options
        ) as cluster:
            await _join(cluster, order)
            run = Run(cluster)
            figures = {"order": order, "sequencers": sequencers, "load": os.getloadavg()[0]}
            await run.all("begin", per_second=PER_SECOND)
            await asyncio.sleep(CALM_SECONDS)
            figures |= await act(run)
        return figures | await asyncio.to_thread(_verdict, Path(trace))


async def _join(cluster: LocalCluster, order: str) -> None:
    workers = {worker.name: worker for worker in cluster.workers}
    for group, members in GROUPS.items():
        for name in members:
            await workers[name].do("join", group=group, order=order, protocol=_protocol(order))


def _protocol(order: str) -> str:
    return {
        "total": "sequencing",
        "hybrid": "sequencing_hybrid",
        "causal-total": "sequencing_causal",
        "global-total": "sequencing_global",
    }[order]


def _verdict(trace: Path) -> dict[str, Any]:
    (run,) = judge_paths([trace], master="local[2]").runs
    broken = [f"{one.property}: {one.verdict}" for one in run.expected if one.verdict != "ok"]
    broken += [f"{p}: {v}" for p in VERIFIED if (v := run.table.verdicts[p]) != "ok"]
    return {"verifier": "; ".join(broken) or "ok"}


# -- a component moves ----------------------------------------------------------------------------


async def transfer(*, order: str = "total", moves: int = 10) -> dict[str, Any]:
    """All ten groups go to the other sequencer and back, several times.

    The second that begins with each move is compared with the one before it.
    """

    async def act(run: Run) -> dict[str, Any]:
        spans: list[Span] = []
        moved: list[int] = []
        for _ in range(moves):
            start = time.monotonic()
            moved.append(await _move(run))
            spans.append((start, time.monotonic()))
            await asyncio.sleep(CALM_SECONDS)
        figures = await run.checked()
        figures |= run.delays_in("before", *((start - 1.0, start) for start, _ in spans))
        figures |= run.delays_in("in_its_second", *((start, start + 1.0) for start, _ in spans))
        figures["moves"] = moves
        figures["groups_moved_at_a_time"] = min(moved)
        figures["move_ms_max"] = 1e3 * max(end - start for start, end in spans)
        return figures

    return await measured(act, order=order, sequencers=2, balance=False)


async def _move(run: Run) -> int:
    """To the other sequencer: how many groups are there afterwards."""
    rows = await run.administrator.groups()
    before = rows[0].sequencer
    after = next(name for name in run.sequencers if name != before)
    await run.administrator.migrate(rows[0].name, after)
    return len(await run.numbered_by(after))


# -- a sequencer is killed ------------------------------------------------------------------------


async def kill(*, order: str = "total", coordinator: bool) -> dict[str, Any]:
    """kill -9 of a sequencer that has all the groups: until each of them flows again."""

    async def act(run: Run) -> dict[str, Any]:
        first, *others = run.sequencers
        victim = first if coordinator else others[0]
        await run.administrator.migrate(next(iter(GROUPS)), victim)
        groups = await run.numbered_by(victim)
        await asyncio.sleep(CALM_SECONDS)
        moment = time.monotonic()
        await run.cluster.kill_sequencer(victim)
        await asyncio.sleep(CALM_SECONDS)
        figures = await run.checked()
        firsts = await run.all("first_after", moment=moment)
        figures |= run.delays_in("before", (moment - 1.0, moment))
        figures |= run.delays_in("in_its_second", (moment, moment + 1.0))
        return figures | {
            "killed": "coordinator" if coordinator else "sequencer",
            "groups_it_had": len(groups),
            "all_flow_again_after_ms": 1e3
            * max(seconds for found in firsts for g, seconds in found.items() if g in groups),
        }

    return await measured(act, order=order, sequencers=3)


# -- all sequencers are replaced ------------------------------------------------------------------


async def rolling_drain(*, order: str = "total") -> dict[str, Any]:
    """Each of three sequencers is emptied, ended and started again, one after the other."""

    async def act(run: Run) -> dict[str, Any]:
        began = time.monotonic()
        not_moved = 0
        seconds = []
        for name in list(run.sequencers):
            start = time.monotonic()
            await run.administrator.drain(name)
            seconds.append(time.monotonic() - start)
            not_moved += len(await run.numbered_by(name))
            await _replace(run, name)
            await asyncio.sleep(CALM_SECONDS)
        ended = time.monotonic()
        figures = await run.checked()
        figures |= run.delays_in("before", (began - CALM_SECONDS, began))
        figures |= run.delays_in("meanwhile", (began, ended))
        return figures | {
            "drain_ms_max": 1e3 * max(seconds),
            "groups_left_behind": not_moved,
            "sequencers_at_the_end": len(await run.administrator.sequencers()),
        }

    return await measured(act, order=order, sequencers=3)


async def _replace(run: Run, name: str) -> None:
    """End the process in order, and start another of that name."""
    old = run.sequencers[name]
    assert isinstance(old, WorkerProcess)
    await old.close()
    new = WorkerProcess(name)
    place = run.cluster.sequencers.index(old)
    run.sequencers[name] = run.cluster.sequencers[place] = new
    if run.cluster.leader is old:
        run.cluster.leader = new
    await new.start(seeds=[run.cluster.workers[0].address], sequencer=True)
