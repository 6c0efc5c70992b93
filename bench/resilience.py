"""What resilience costs: cbcast over two groups that share two of their three members.

p1, p2, p3 are in "left", p2, p3, p4 in "right"; p2 and p3 send. Every setting runs in turn, several
rounds of all of them, so that the ratios belong to one and the same time; of each the best counts.

    off      resilience=0: no send rule, deliveries wait for nobody
    default  nothing asked for: the send rule, with one holder; deliveries wait for nobody
    1, 2     the send rule with so many holders, and deliveries wait for as many
"""

from __future__ import annotations

import asyncio
import time
from statistics import quantiles
from typing import Any

from ordercast import LocalCluster, Message
from ordercast.runtime.worker import Worker

SETTINGS: dict[str, dict[str, int]] = {
    "off": {"resilience": 0},
    "default": {},
    "1": {"resilience": 1},
    "2": {"resilience": 2},
}
GROUPS = {"left": (0, 1, 2), "right": (1, 2, 3)}
SENDERS = (1, 2)
ROUNDS = 3


async def run(*, size: int = 100, staying: int = 60_000, changing: int = 4000) -> dict[str, Any]:
    """Messages/s where senders stay in a group or change it every time, and the delay."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, asked in SETTINGS.items():
            for figure, value in (await _measured(asked, size, staying, changing)).items():
                pick = min if figure.endswith("_ms") else max
                key = f"{figure}, {name}"
                best[key] = pick(value, best.get(key, value))
    return best


async def _measured(
    asked: dict[str, int], size: int, staying: int, changing: int
) -> dict[str, float]:
    async with LocalCluster(4, consume=False, **asked) as cluster:
        for group, members in GROUPS.items():
            for member in members:
                await cluster.workers[member].do("join", group=group, protocol="cbcast")
        floods = {"staying": (staying, staying), "changing": (changing, 1)}
        figures = {}
        for name, (count, stay) in floods.items():
            seconds = await _flood(cluster, size, count, stay)
            figures[f"messages_per_second {name}"] = len(SENDERS) * count / seconds
        delays = await _delays(cluster, count=400)
    cuts = quantiles(delays, n=100)
    return {**figures, "p50_ms": 1e3 * cuts[49], "p99_ms": 1e3 * cuts[98]}


async def _flood(cluster: LocalCluster, size: int, count: int, stay: int) -> float:
    calls = [
        worker.run(
            "bench.resilience:flood",
            size=size,
            count=count if number in SENDERS else 0,
            stay=stay,
            expect=sum(_sent_to(group, count, stay) for group in _groups_of(number)),
        )
        for number, worker in enumerate(cluster.workers)
    ]
    reports = await asyncio.gather(*calls)
    return max(r["end"] for r in reports) - min(r["start"] for r in reports)


def _groups_of(member: int) -> list[str]:
    return [group for group, members in GROUPS.items() if member in members]


def _sent_to(group: str, count: int, stay: int) -> int:
    """By all senders together: each begins with the first group."""
    place = list(GROUPS).index(group)
    own = sum(1 for number in range(0, count, stay) if number // stay % 2 == place)
    return len(SENDERS) * own * stay


async def flood(
    worker: Worker, *, size: int, count: int, stay: int, expect: int
) -> dict[str, float]:
    """In a member: send, changing the group after `stay` messages, and take what is for it."""
    start = time.monotonic()
    sending = asyncio.ensure_future(_send(worker, bytes(size), count, stay))
    while expect:
        async for batch in worker.node.batches():
            expect -= sum(isinstance(event, Message) for event in batch)
            break
    end = time.monotonic()
    await sending
    return {"start": start, "end": end}


async def _send(worker: Worker, body: bytes, count: int, stay: int) -> None:
    names = list(GROUPS)
    for number in range(count):
        await worker.groups[names[number // stay % 2]].multicast(body)


async def _delays(cluster: LocalCluster, *, count: int) -> list[float]:
    """One-way delays to all members, of a sender that changes the group every time."""
    reading = asyncio.gather(
        *(
            worker.run("bench.resilience:take_stamps", count=len(_groups_of(number)) * count // 2)
            for number, worker in enumerate(cluster.workers)
            if number != SENDERS[0]
        )
    )
    await cluster.workers[SENDERS[0]].run("bench.resilience:send_stamps", count=count)
    return sorted(delay for report in await reading for delay in report)


async def send_stamps(worker: Worker, *, count: int) -> None:
    """In the sender: each body is the moment of its multicast; 200 in a second."""
    reading = asyncio.ensure_future(take_stamps(worker, count=count))
    names = list(GROUPS)
    for number in range(count):
        await asyncio.sleep(0.005)
        await worker.groups[names[number % 2]].multicast(time.monotonic_ns().to_bytes(8, "big"))
    await reading


async def take_stamps(worker: Worker, *, count: int) -> list[float]:
    """In a receiver: how long each message took. The clock is the machine's, one for all."""
    delays: list[float] = []
    async for event in worker.node:
        if isinstance(event, Message):
            now = time.monotonic_ns()
            delays.append((now - int.from_bytes(event.body, "big")) / 1e9)
            if len(delays) == count:
                break
    return delays
