"""The daemon as a process: it starts, tells how it is, and stops as it is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ordercast as oc
from children import heed_signals
from ordercast.service.administrator import Administrator
from ordercast.service.sequencer import SequencerDaemon
from ordercast.service.settings import SequencerSettings

pytestmark = pytest.mark.xdist_group("servers")

ORDERCAST = str(Path(sys.executable).parent / "ordercast")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORDERCAST_")}
NOBODY = "127.0.0.1:1"


class Running:
    """A daemon in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log: list[dict[str, Any]] = []

    async def until(self, message: str) -> dict[str, Any]:
        """The entry of its log with that message."""
        assert self.process.stderr is not None
        while True:
            line = await self.process.stderr.readline()
            assert line, self.log
            self.log.append(json.loads(line))
            if self.log[-1]["msg"] == message:
                return self.log[-1]

    async def ended(self) -> int:
        assert self.process.stderr is not None
        rest = await self.process.stderr.read()
        self.log += map(json.loads, rest.splitlines())
        return await self.process.wait()


@asynccontextmanager
async def running(*words: str, **variables: str) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        ORDERCAST, "sequencer", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
        "--log-format", "json", *words, env={**ENVIRONMENT, **variables},
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=heed_signals,
    )  # fmt: skip
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def page(address: str, path: str) -> tuple[int, str]:
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]), body


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_daemon_tells_how_it_is_and_leaves_in_order_on_a_signal(
    number: signal.Signals,
) -> None:
    async with running("--bootstrap", "--name", "s1") as daemon:
        http = (await daemon.until("serves health and metrics"))["http"]
        ready = await daemon.until("ready")
        assert ready["name"] == "s1" and ready["coordinator"] is True
        assert await page(http, "/healthz") == await page(http, "/readyz") == (200, "ok\n")
        async with oc.Node("alice", seeds=[ready["address"]]) as alice:
            [row] = await Administrator([alice.address]).sequencers()
            assert (row.name, row.dedicated) == ("s1", True)
            status, metrics = await page(http, "/metrics")
            assert status == 200
            assert "\nordercast_ready 1\n" in metrics
            assert "\nordercast_coordinator 1\n" in metrics
            assert "\nordercast_node_view_size 2\n" in metrics
            daemon.process.send_signal(number)
            assert await daemon.ended() == 0
            assert [entry["msg"] for entry in daemon.log[-1:]] == ["left the cluster"]
            while not alice.leads:
                await asyncio.sleep(0.01)
            assert alice.stats()["node_view"]["members"] == ["alice#1"]
            assert alice.stats()["re_entries"] == 0


async def test_the_service_manager_hears_when_it_is_ready_and_when_it_stops(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        async with running("--bootstrap", NOTIFY_SOCKET=address) as daemon:
            await daemon.until("ready")
            assert await asyncio.to_thread(manager.recv, 64) == b"READY=1"
            daemon.process.send_signal(signal.SIGINT)
            assert await daemon.ended() == 0
        assert manager.recv(64) == b"STOPPING=1"


async def test_a_second_signal_ends_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        begun = asyncio.Event()

        async def drain(name: str) -> None:
            begun.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(alice._presence.administration.placement, "drain", drain)
        async with running("--peers", alice.address) as daemon:
            http = (await daemon.until("serves health and metrics"))["http"]
            await daemon.until("ready")
            daemon.process.send_signal(signal.SIGTERM)
            await begun.wait()
            assert await page(http, "/readyz") == (503, "draining\n")
            daemon.process.send_signal(signal.SIGTERM)
            assert await daemon.ended() == 128 + signal.SIGTERM


async def test_it_can_be_stopped_while_it_looks_for_its_cluster() -> None:
    async with running("--peers", NOBODY, "--option", "join_timeout=60") as daemon:
        http = (await daemon.until("serves health and metrics"))["http"]
        await daemon.until("starting")
        assert await page(http, "/healthz") == (200, "ok\n")
        assert await page(http, "/readyz") == (503, "starting\n")
        daemon.process.send_signal(signal.SIGINT)
        assert await daemon.ended() == 0


async def test_who_finds_no_cluster_ends_with_4_and_says_why_in_its_log() -> None:
    variables = {"ORDERCAST_NODE_JOIN_TIMEOUT": "0.2"}
    async with running("--peers", NOBODY, **variables) as daemon:
        assert await daemon.ended() == 4
        assert daemon.log[-1]["level"] == "error"
        assert f"{NOBODY}: connection refused" in daemon.log[-1]["msg"]


async def test_a_port_that_is_taken_ends_it_with_2_and_what_to_do() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    taken = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with running("--bootstrap", "--http", taken) as daemon:
        assert await daemon.ended() == 2
        assert f"http='{taken}': it is in use; choose another" in daemon.log[-1]["msg"]
    server.close()


# -- where the cluster is -------------------------------------------------------------------------


async def test_bootstrap_begins_no_second_cluster_beside_one_that_runs() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        running("--bootstrap", "--peers", f"{NOBODY},{alice.address}") as daemon,
    ):
        assert (await daemon.until("ready"))["coordinator"] is False
        assert alice.stats()["nodes"] == 2


async def test_bootstrap_begins_the_cluster_where_nobody_runs() -> None:
    async with running("--bootstrap", "--peers", NOBODY) as daemon:
        assert (await daemon.until("ready"))["coordinator"] is True


async def test_bootstrap_waits_for_a_peer_of_which_nobody_knows() -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    peer = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with running("--bootstrap", "--peers", peer) as daemon:
        assert await daemon.ended() == 4
        assert "did not say whether it runs" in daemon.log[-1]["msg"]
    silent.close()


@pytest.mark.parametrize(
    ("state", "stats", "status", "says"),
    [
        ("running", {"out_since": None, "out_reason": ""}, 200, "ok\n"),
        ("running", {"out_since": 1.5, "out_reason": "it was cut off"}, 503, "it was cut off\n"),
        ("starting", None, 503, "starting\n"),
        ("running", None, 503, "running\n"),
        ("draining", {"out_since": None, "out_reason": ""}, 503, "draining\n"),
        ("ended", {"out_since": 1.5, "out_reason": "it was cut off"}, 503, "ended\n"),
    ],
)
def test_readyz_is_ok_only_while_the_node_works_in_its_cluster(
    state: str, stats: dict[str, Any] | None, status: int, says: str
) -> None:
    daemon = SequencerDaemon(SequencerSettings(), None)
    daemon._state = state
    node = None if stats is None else SimpleNamespace(stats=lambda: stats)
    daemon._node = node  # type: ignore[assignment]
    answer = daemon.readiness()
    assert (answer.status, answer.body) == (status, says)
