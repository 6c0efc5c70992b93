"""A node as a process of its own, with pages for its health, which ends in order.

start      pages for health and metrics, then the node, then "ready"
SIGTERM    it does what it must before it goes, leaves the cluster, and ends with 0; so do SIGINT
           and SIGHUP
again      it ends at once; to the cluster that is a crash

Subclasses say what the node does: `SequencerDaemon` numbers the messages of groups that it is not
in, `MemberDaemon` is a member.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from errno import EADDRINUSE
from http import HTTPStatus
from typing import Any

from ordercast.errors import ConfigError, NodeOut
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.node import Node
from ordercast.runtime.stream_events import Event
from ordercast.service.http import Answer, HttpServer
from ordercast.service.logs import with_fields
from ordercast.service.metrics import CONTENT_TYPE, render
from ordercast.service.notify import READY, STOPPING, notify
from ordercast.service.settings import OFF, Settings

log = logging.getLogger("ordercast.service")

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # the last: its terminal is gone


class Daemon:
    """One run of a node."""

    def __init__(self, settings: Settings, key: str | None) -> None:
        self.settings = settings
        self.security: dict[str, Any] = {
            "key": key,
            "tls": settings.tls,
            "insecure": settings.insecure,
        }
        self._arguments = settings.node_arguments(key)
        self._node: Node | None = None
        self._state = "starting"  # then running, draining, ended
        self._stop = asyncio.Event()
        self._http = HttpServer(
            {"/healthz": self.health, "/readyz": self.readiness, "/metrics": self.metrics}
        )

    async def run(self) -> None:
        """From the start to the end in order. Raises why it could not start, or ended by itself."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
                loop.add_signal_handler(number, self._on_signal, number)
        try:
            await self._serve_http()
            if await self._until_stopped(self._start()):
                log.info("ready", extra=with_fields(**self._identity()))
                notify(READY)
                await self._until_stopped(self._watch())
        finally:
            self._state = "draining" if self._stop.is_set() else "ended"
            notify(STOPPING)
            await self._leave()
            await self._http.close()

    def _on_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._stop.is_set():
            log.warning("ends at once", extra=with_fields(signal=name))
            os._exit(128 + number)
        log.info("stopping", extra=with_fields(signal=name))
        self._stop.set()

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """True if the work was done before somebody wanted the daemon to stop."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        for one in (task, stopping):
            one.cancel()
        await asyncio.wait((task, stopping))
        if not task.cancelled():
            task.result()
        return not self._stop.is_set()

    # -- the node ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        place = self._place()
        log.info("starting", extra=with_fields(name=self._arguments["name"], **place))
        node = Node(**self._arguments, **place)
        await node.start()
        self._node = node
        await self.begin(node)
        self._state = "running"

    async def begin(self, node: Node) -> None:
        """The node is in the cluster; it counts as started when this returns."""

    def take(self, event: Event) -> None:
        """The stream of the node yielded this event."""

    async def before_the_end(self, node: Node) -> None:
        """The node was told to stop, and is still in the cluster."""

    def _place(self) -> dict[str, Any]:
        """The arguments of `Node` that say where the cluster is."""
        place = {"bootstrap": self.settings.bootstrap, "seeds": self.settings.other_peers}
        if not place["seeds"]:
            log.warning("starts a cluster without asking any node: no peers were given")
        return {key: value for key, value in place.items() if value}

    async def _watch(self) -> None:
        """Until the node ends by itself."""
        assert self._node is not None
        while True:
            try:
                async for event in self._node:
                    self.take(event)
                return
            except NodeOut as outage:  # it comes back by itself
                log.warning("out of the cluster", extra=with_fields(reason=str(outage)))

    async def _leave(self) -> None:
        if self._node is None:
            return
        if self._stop.is_set():
            await self.before_the_end(self._node)
        await self._node.aclose()
        log.info("left the cluster")

    # -- pages ------------------------------------------------------------------------------------

    async def _serve_http(self) -> None:
        if self.settings.http in (OFF, ""):
            return
        host, port = parse_address("http", self.settings.http)
        try:
            await self._http.start(host, port)
        except OSError as error:
            why = "it is in use" if error.errno == EADDRINUSE else error.strerror or str(error)
            raise ConfigError(
                f"http={self.settings.http!r}: {why}; choose another address (port 0: any that is "
                "free), or http='off'"
            ) from error
        log.info("serves health and metrics", extra=with_fields(http=self._http.address))

    def health(self) -> Answer:
        """503 when the node has ended: a restart would help."""
        if self._state == "ended":
            return Answer("ended\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return Answer("ok\n")

    def readiness(self) -> Answer:
        """Is it in its cluster, and does it work?"""
        trouble = self._trouble()
        return (
            Answer("ok\n")
            if not trouble
            else Answer(f"{trouble}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        )

    def _trouble(self) -> str:
        if self._node is None or self._state != "running":
            return self._state
        return self._node.stats()["out_reason"] if self._node_is_out() else ""

    def _node_is_out(self) -> bool:
        return self._node is not None and self._node.stats()["out_since"] is not None

    def metrics(self) -> Answer:
        """What it has done, and how near its limits are."""
        node = self._node
        stats = {} if node is None else node.stats()
        stats["service"] = {
            "ready": not self._trouble(),
            "coordinator": node is not None and node.leads,
            "http_cut_off": self._http.cut_off,
        }
        return Answer(render(stats), content_type=CONTENT_TYPE)

    def _identity(self) -> dict[str, Any]:
        assert self._node is not None
        node = self._node
        return {
            "name": node.name,
            "incarnation": node.incarnation,
            "address": node.address,
            "cluster": self.settings.cluster,
            "coordinator": node.leads,
        }
