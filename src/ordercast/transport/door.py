"""Accepting over TLS.

The event loop's own server says nothing of handshakes that are under way or fail. Here they count
among the connections without a Hello from the first packet on, so that there is a limit to them,
and the owner learns what was wrong with a certificate.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Self

from ordercast.transport.connection import Connection
from ordercast.transport.contract import Limits
from ordercast.transport.tls import TlsContexts

BACKLOG = 100  # connections that the system accepts ahead of us
PAUSE_S = 0.1  # after the system could not accept, as when no file descriptor is left


class TlsDoor:
    """The listening sockets of one address, and the handshakes of those who come."""

    def __init__(
        self,
        sockets: list[socket.socket],
        accept: Callable[[], Connection],
        contexts: TlsContexts,
        limits: Limits,
    ) -> None:
        self.sockets = sockets
        self._accept = accept
        self._contexts = contexts
        self._limits = limits
        self._serves = False
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def at(
        cls,
        host: str,
        port: int,
        accept: Callable[[], Connection],
        contexts: TlsContexts,
        limits: Limits,
    ) -> Self:
        """Take the port at every address of that host."""
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sockets: list[socket.socket] = []
        try:
            for family, address in dict.fromkeys((info[0], info[4]) for info in found):
                sockets.append(_listening(family, address))
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        return cls(sockets, accept, contexts, limits)

    async def start_serving(self) -> None:
        """Begin to accept."""
        for sock in self.sockets:
            self._run(self._serve(sock), sock.close)
        self._serves = True

    def close(self) -> None:
        """Accept no more, and drop those in the middle of a handshake."""
        for task in self._tasks:
            task.cancel()
        if not self._serves:
            for sock in self.sockets:
                sock.close()

    def _run(self, work: Coroutine[Any, Any, None], then: Callable[[], None]) -> None:
        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            then()

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(done)

    async def _serve(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(sock)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            connection = self._accept()
            connection.peer = (address[0], address[1])
            if connection.take_place():
                self._run(self._shake_hands(accepted, connection), connection.never_made)
            else:
                accepted.close()
                connection.never_made()

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._contexts.accepting,
                ssl_handshake_timeout=self._limits.hello_timeout_s,
            )
        except OSError as error:
            connection.never_made(error)


def _listening(family: int, address: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"{address[0]}:{address[1]}: {error.strerror}") from None
    return sock
