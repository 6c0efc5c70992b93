"""Speed of real processes over loopback TCP: three members and a sequencer of their own.

Every function starts a cluster, measures, and returns figures as plain data. Functions that take
a `Worker` run inside the processes. Wall-clock figures depend on what else the machine does; the
CPU figures and the ratio to the raw sockets of the same run depend on it less.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from statistics import quantiles
from typing import Any, ClassVar

from ordercast import Group, LocalCluster, Message, View
from ordercast.runtime.processes import WorkerProcess
from ordercast.runtime.worker import Worker

MEMBERS = 3
RAW_CHUNK = 64 * 1024  # as much as a frame
RAW_WINDOW = 4 * 1024 * 1024  # as much as a node's window
PAGE = os.sysconf("SC_PAGE_SIZE")


# -- throughput -----------------------------------------------------------------------------------


async def throughput(
    *, size: int, count: int, protocol: str = "sequencer_pb", trace: str | None = None
) -> dict[str, Any]:
    """Each member sends `count` messages and takes everybody's: messages/s at the slowest."""
    options: dict[str, Any] = {} if trace is None else {"trace": trace}
    async with LocalCluster(MEMBERS, protocol=protocol, consume=False, **options) as cluster:
        raw = await _raw_control(cluster, size * count)
        sequencer = _leader(cluster)
        before = await sequencer.run("bench.live:cpu_seconds")
        reports = await _in_all(cluster, "bench.live:flood", size=size, count=count)
        sequencer_cpu = await sequencer.run("bench.live:cpu_seconds") - before
    total = MEMBERS * count
    seconds = _seconds(reports)
    cpu = sum(report["cpu"] for report in reports) + sequencer_cpu
    return {
        "protocol": protocol,
        "message_bytes": size,
        "messages": total,
        "seconds": seconds,
        "messages_per_second": total / seconds,
        "cpu_us_per_message": 1e6 * cpu / total,
        "cpu_us_per_message_sequencer": 1e6 * sequencer_cpu / total,
        "raw_messages_per_second": total / raw["seconds"],
        "raw_cpu_us_per_message": 1e6 * raw["cpu"] / total,
        "ratio_to_raw_sockets": raw["seconds"] / seconds,
        "frames": sum(report["frames"] for report in reports),
    }


async def flood(worker: Worker, *, size: int, count: int) -> dict[str, float]:
    """In a member: send and take, as fast as it goes."""
    await _take_views(worker)
    start, cpu = time.monotonic(), time.process_time()
    sending = asyncio.ensure_future(_send(worker.groups["main"], bytes(size), count))
    missing = MEMBERS * count
    async for batch in worker.node.batches():
        missing -= len(batch)
        if not missing:
            break
    end = time.monotonic()
    await sending
    frames = worker.node.stats()["groups"]["main"]["frames_sent"]
    return {"start": start, "end": end, "cpu": time.process_time() - cpu, "frames": frames}


async def _take_views(worker: Worker) -> None:
    """After the last one only messages come."""
    async for event in worker.node:
        if isinstance(event, View) and len(event.members) == MEMBERS:
            break


async def _send(group: Group, body: bytes, count: int) -> None:
    for _ in range(count):
        await group.multicast(body)


async def recording(*, size: int, count: int) -> dict[str, Any]:
    """The same with and without a recorder, alternating, and what recording costs."""
    without, with_trace = [], []
    for _ in range(2):
        without.append(await throughput(size=size, count=count))
        with tempfile.TemporaryDirectory() as trace:
            with_trace.append(await throughput(size=size, count=count, trace=trace))
    best = {
        name: max(run["messages_per_second"] for run in runs)
        for name, runs in (("without", without), ("with", with_trace))
    }
    cpu = {
        name: min(run["cpu_us_per_message"] for run in runs)
        for name, runs in (("without", without), ("with", with_trace))
    }
    return {
        "messages_per_second_without": best["without"],
        "messages_per_second_with": best["with"],
        "throughput_lost": 1 - best["with"] / best["without"],
        "cpu_us_per_message_without": cpu["without"],
        "cpu_us_per_message_with": cpu["with"],
        "cpu_added": cpu["with"] / cpu["without"] - 1,
    }


# -- latency --------------------------------------------------------------------------------------


async def latency(*, per_second: float, count: int) -> dict[str, Any]:
    """One-way delay from `multicast` in one process to the stream of the others."""
    async with LocalCluster(MEMBERS, order="total", consume=False) as cluster:
        timing = asyncio.gather(
            *(w.run("bench.live:take_stamps", count=count) for w in cluster.workers[1:])
        )
        await cluster.workers[0].run("bench.live:send_stamps", count=count, per_second=per_second)
        delays = sorted(delay for report in await timing for delay in report)
    cuts = quantiles(delays, n=100)
    return {
        "messages_per_second": per_second,
        "p50_ms": 1e3 * cuts[49],
        "p90_ms": 1e3 * cuts[89],
        "p99_ms": 1e3 * cuts[98],
        "max_ms": 1e3 * delays[-1],
    }


async def send_stamps(worker: Worker, *, count: int, per_second: float) -> None:
    """In the sender: each body is the moment of its multicast."""
    reading = asyncio.ensure_future(take_stamps(worker, count=count))
    start = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / per_second - time.monotonic()))
        await worker.groups["main"].multicast(time.monotonic_ns().to_bytes(8, "big"))
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


# -- memory ---------------------------------------------------------------------------------------


async def memory(*, messages: int, size: int = 100, samples: int = 20) -> dict[str, Any]:
    """Resident memory of every process while many messages pass; flat after the first quarter."""
    async with LocalCluster(MEMBERS, order="total", consume=False) as cluster:
        processes = [_leader(cluster), *cluster.workers]
        rounds = []
        started = time.monotonic()
        for _ in range(samples):
            share = messages // samples // MEMBERS
            await _in_all(cluster, "bench.live:flood_exactly", size=size, count=share)
            rounds.append([await p.run("bench.live:resident_mib") for p in processes])
        seconds = time.monotonic() - started
    columns = list(zip(*rounds, strict=True))
    settled = [column[samples // 4 :] for column in columns]
    return {
        "messages": messages // samples // MEMBERS * samples * MEMBERS,
        "messages_per_second": messages / seconds,
        "resident_mib": {
            "sequencer": list(columns[0]),
            **{f"member{i}": list(column) for i, column in enumerate(columns[1:], 1)},
        },
        "growth_mib_after_first_quarter": max(column[-1] - column[0] for column in settled),
    }


async def flood_exactly(worker: Worker, *, size: int, count: int) -> None:
    """In a member: one round, in which every message is waited for."""
    sending = asyncio.ensure_future(_send(worker.groups["main"], bytes(size), count))
    missing = MEMBERS * count
    async for batch in worker.node.batches():
        missing -= sum(isinstance(event, Message) for event in batch)
        if not missing:
            break
    await sending


async def resident_mib(worker: Worker) -> float:
    """Of this process now."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * PAGE / 2**20


async def cpu_seconds(worker: Worker) -> float:
    """Of this process so far."""
    return time.process_time()


# -- the control: the same bytes over raw sockets, in the same processes --------------------------


async def _raw_control(cluster: LocalCluster, share: int) -> dict[str, float]:
    """The sequencer's process forwards what members write; nobody looks at the bytes."""
    port = await _leader(cluster).run("bench.live:start_relay")
    reports = await _in_all(cluster, "bench.live:raw_flood", port=port, share=share)
    relay = await _leader(cluster).run("bench.live:stop_relay")
    cpu = relay + sum(report["cpu"] for report in reports)
    return {"seconds": _seconds(reports), "cpu": cpu}


class _Relay(asyncio.Protocol):
    """Whatever one writes, all read."""

    everybody: ClassVar[list[asyncio.Transport]] = []
    server: asyncio.Server | None = None
    cpu = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.everybody.append(transport)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        for transport in self.everybody:
            transport.write(data)


class _RawMember(asyncio.Protocol):
    """Writes its share, and reads everybody's."""

    def __init__(self, share: int) -> None:
        self.to_write = share
        self.to_read = MEMBERS * share
        self.chunk = bytes(RAW_CHUNK)
        self.all_read: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def write_on(self) -> None:
        while self.to_write and MEMBERS * self.to_write + RAW_WINDOW > self.to_read:
            piece = self.chunk[: self.to_write]
            self.to_write -= len(piece)
            self.transport.write(piece)

    def data_received(self, data: bytes) -> None:
        self.to_read -= len(data)
        if not self.to_read:
            self.all_read.set_result(None)
        self.write_on()


async def start_relay(worker: Worker) -> int:
    """In the sequencer's process."""
    _Relay.everybody.clear()
    _Relay.cpu = time.process_time()
    loop = asyncio.get_running_loop()
    _Relay.server = await loop.create_server(_Relay, "127.0.0.1", 0)
    port: int = _Relay.server.sockets[0].getsockname()[1]
    return port


async def stop_relay(worker: Worker) -> float:
    """CPU seconds that the relay took."""
    assert _Relay.server is not None
    _Relay.server.close()
    return time.process_time() - _Relay.cpu


async def raw_flood(worker: Worker, *, port: int, share: int) -> dict[str, float]:
    """In a member's process."""
    loop = asyncio.get_running_loop()
    transport, member = await loop.create_connection(lambda: _RawMember(share), "127.0.0.1", port)
    await asyncio.sleep(0.1)  # until all are connected
    start, cpu = time.monotonic(), time.process_time()
    member.write_on()
    await member.all_read
    end, used = time.monotonic(), time.process_time() - cpu
    transport.close()
    return {"start": start, "end": end, "cpu": used}


# -- bits -----------------------------------------------------------------------------------------


def _leader(cluster: LocalCluster) -> WorkerProcess:
    assert isinstance(cluster.leader, WorkerProcess)
    return cluster.leader


async def _in_all(cluster: LocalCluster, call: str, **args: Any) -> list[Any]:
    return await asyncio.gather(*(worker.run(call, **args) for worker in cluster.workers))


def _seconds(reports: list[dict[str, float]]) -> float:
    return max(r["end"] for r in reports) - min(r["start"] for r in reports)
