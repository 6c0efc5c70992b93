"""A program that blocks its event loop stays in the cluster, for a while and as long as nobody
needs its answer; one that is dead or frozen does not."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

import pytest

import ordercast as oc
from certificates import signed
from ordercast import LocalCluster
from ordercast.runtime.processes import WorkerProcess
from ordercast.wire.pulse import KEY_BYTES, Pulse, pack_pulse

BLOCKING = "tests.runtime.blocking"


async def until(condition) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def test_a_program_that_blocks_its_loop_for_longer_than_suspect_ms_is_not_excluded() -> None:
    options = {"heartbeat_ms": 250, "suspect_ms": 3000, "stall_ms": 60_000}
    async with LocalCluster(3, order="total", **options) as cluster:
        a, b, c = cluster.workers
        before = await a.do("report")
        await asyncio.gather(
            b.run(f"{BLOCKING}:sleep", seconds=8), c.run(f"{BLOCKING}:compute", seconds=8)
        )
        await asyncio.gather(*(w.do("send", group="main", count=10) for w in cluster.workers))
        await asyncio.gather(*(w.do("wait", group="main", count=30) for w in cluster.workers))
        for worker in cluster.workers:
            report = await worker.do("report")
            assert report["outages"] == [] and report["views"] == before["views"]
        assert (await b.do("report"))["stats"]["pulses"]["sent"] > 0


async def test_a_program_that_blocks_its_loop_for_longer_than_stall_ms_is_excluded() -> None:
    options = {"heartbeat_ms": 100, "suspect_ms": 1000, "stall_ms": 1000}
    async with LocalCluster(3, order="total", **options) as cluster:
        a, b, _ = cluster.workers
        blocking = asyncio.ensure_future(b.run(f"{BLOCKING}:sleep", seconds=60))
        await a.do("wait_members", group="main", members=["p1", "p3"])
        assert not blocking.done()
        await cluster.kill(1)
        await asyncio.gather(blocking, return_exceptions=True)


async def test_without_stall_ms_heartbeats_come_from_the_loop_alone() -> None:
    options = {"heartbeat_ms": 100, "suspect_ms": 1000, "stall_ms": 0}
    async with LocalCluster(3, order="total", **options) as cluster:
        a, b, _ = cluster.workers
        blocking = asyncio.ensure_future(b.run(f"{BLOCKING}:sleep", seconds=60))
        await a.do("wait_members", group="main", members=["p1", "p3"])
        assert not blocking.done()
        assert (await a.do("report"))["stats"]["pulses"]["sent"] == 0
        await cluster.kill(1)
        await asyncio.gather(blocking, return_exceptions=True)


async def test_a_view_change_does_not_wait_for_a_program_that_blocks_its_loop() -> None:
    options = {"heartbeat_ms": 100, "suspect_ms": 1000, "stall_ms": 600_000}
    async with LocalCluster(4, order="total", **options) as cluster:
        a, b, _, d = cluster.workers
        blocking = asyncio.ensure_future(b.run(f"{BLOCKING}:sleep", seconds=100))
        await asyncio.sleep(1)
        await cluster.kill(2)
        for worker in (a, d):
            await worker.do("wait_members", group="main", members=["p1", "p4"])
        assert not blocking.done()
        await cluster.kill(1)
        await asyncio.gather(blocking, return_exceptions=True)


async def warnings_of(suspect_ms: int, stall_ms: int, hold_up) -> list[str]:
    """Of a process that stood still, next to a node that waits for it all the time."""
    patient = {"suspect_ms": 600_000}
    async with oc.Node("alice", bootstrap=True, **patient) as alice:
        bob = WorkerProcess("bob")
        try:
            await bob.start(
                seeds=[alice.address], heartbeat_ms=100, suspect_ms=suspect_ms, stall_ms=stall_ms
            )
            await bob.run(f"{BLOCKING}:listen")
            while not (await bob.do("report"))["stats"]["pulses"]["sent"]:  # the thread runs
                await asyncio.sleep(0.05)
            await hold_up(bob)
            told: list[str] = []
            while not any("stood still" in line for line in told):
                told = await bob.run(f"{BLOCKING}:warned")
            return [line for line in told if "stood still" in line]
        finally:
            await bob.close()


async def test_a_process_that_was_stopped_does_not_say_that_a_thread_sent_its_heartbeats() -> None:
    async def stop(bob: WorkerProcess) -> None:
        os.kill(bob.pid, signal.SIGSTOP)
        await asyncio.sleep(2)
        os.kill(bob.pid, signal.SIGCONT)

    [told] = await warnings_of(1000, 600_000, stop)
    assert told.startswith("the whole process of bob#1 stood still for ")
    assert "sent no heartbeats" in told and "a thread" not in told


@pytest.mark.parametrize(
    ("stall_ms", "said"),
    [(600_000, "a thread sent its heartbeats. "),
     (1000, "a thread sent its heartbeats for the first 1 s (stall_ms=1000) only. ")],
)  # fmt: skip
async def test_a_program_that_blocked_its_loop_is_told_who_sent_its_heartbeats(
    stall_ms: int, said: str
) -> None:
    async def block(bob: WorkerProcess) -> None:
        await bob.run(f"{BLOCKING}:sleep", seconds=3)

    [told] = await warnings_of(1000, stall_ms, block)
    assert told.startswith("the event loop of bob#1 stood still for ") and said in told


async def test_the_others_see_whose_loop_stands_still() -> None:
    options = {"heartbeat_ms": 100, "suspect_ms": 1000, "stall_ms": 600_000}
    async with LocalCluster(2, order="total", **options) as cluster:
        a, b = cluster.workers
        blocking = asyncio.ensure_future(b.run(f"{BLOCKING}:sleep", seconds=100))
        seen: dict[str, float] = {}
        while "p2" not in seen:
            seen = (await a.do("report"))["stats"]["pulses"]["standing_still"]
        assert seen["p2"] > 0
        await cluster.kill(1)
        await asyncio.gather(blocking, return_exceptions=True)


@pytest.mark.parametrize("how", ["plain", "tls and key", "udp"])
async def test_pulses_find_their_way_with_every_kind_of_connection(how: str) -> None:
    def options(name: str) -> dict[str, object]:
        if how == "tls and key":
            return {"tls": signed(name), "key": "0123456789abcdef"}
        return {"transport": "udp"} if how == "udp" else {}

    fast = {"heartbeat_ms": 50, "suspect_ms": 60_000}
    async with (
        oc.Node("alice", bootstrap=True, **fast, **options("alice")) as alice,
        oc.Node("bob", seeds=[alice.address], **fast, **options("bob")) as bob,
    ):
        for node in (alice, bob):
            await until(lambda node=node: node.stats()["pulses"]["heard"])
            assert node.stats()["pulses"]["refused"] == 0


async def test_pulses_of_strangers_and_repeated_ones_count_for_nothing() -> None:
    fast = {"heartbeat_ms": 50, "suspect_ms": 60_000}
    async with (
        oc.Node("alice", bootstrap=True, **fast) as alice,
        oc.Node("bob", seeds=[alice.address], **fast) as bob,
    ):
        await until(lambda: alice.stats()["pulses"]["heard"])
        thread = bob._presence.pulses._thread
        assert thread is not None
        thread.stop()
        thread._thread.join()
        pid = bob._presence.me.pid
        known = alice._presence.pulses._from[pid]
        forged = pack_pulse(Pulse(pid, 2**60, 0), bytes(KEY_BYTES))
        unknown = pack_pulse(Pulse(pid + 9, 2**60, 0), known.key)
        repeated = pack_pulse(Pulse(pid, known.number, 0), known.key)
        port = alice.stats()["pulses"]["port"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(forged, ("127.0.0.1", port))
            await until(lambda: alice.stats()["pulses"]["refused"] == 1)  # bob's last one is read
            heard = alice.stats()["pulses"]["heard"]
            for datagram in (repeated, forged, unknown, b"OCPU", b"", bytes(2000)):
                stranger.sendto(datagram, ("127.0.0.1", port))
            await until(lambda: alice.stats()["pulses"]["refused"] == 6)
        assert alice.stats()["pulses"]["heard"] == heard
        assert alice.stats()["peer_faults"] == 0


@pytest.mark.parametrize(("port", "key"), [(0, KEY_BYTES), (70_000, KEY_BYTES), (9, 3), (-1, 16)])
async def test_a_key_for_pulses_that_cannot_be_is_the_fault_of_its_sender(
    port: int, key: int
) -> None:
    from ordercast.runtime.control import PulseKey

    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address], rejoin=False) as bob,
    ):
        bob._presence.peers.tell(alice._presence.me.pid, PulseKey(port, bytes(key)))
        await until(lambda: alice.stats()["peer_faults"])
        assert alice._presence.error is None
