"""Listening sockets, and one connection after the other that comes in.

The event loop's own server accepts a hundred connections before it reads from any of them: in a
flood of silent ones, those that speak would lose their places before they are heard. Here one is
accepted at a time, when there is a place for it; the others wait in the system's queue. And the
loop's server says nothing of TLS handshakes that are under way or fail. Here its owner begins each
connection itself, counts it from its first packet on, and learns what was wrong with a certificate.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Self

from ordercast.transport.contract import Address

BACKLOG = 4096  # connections that the system accepts ahead of us; it may allow fewer
PAUSE_S = 0.1  # after the system could not accept, as when no file descriptor is left

Begin = Callable[[socket.socket, Address], Coroutine[Any, Any, None]]
"""Gives somebody who has come a place, at once, and returns what is to be done with it."""

Delay = Callable[[str, float], float]
"""For how many seconds the next connection of this host must wait, at this time of the loop."""


class Door:
    """The listening sockets of one address, and the connections that begin."""

    def __init__(self, sockets: list[socket.socket], begin: Begin, delay: Delay) -> None:
        self.sockets = sockets
        self._begin = begin
        self._delay = delay
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def at(cls, host: str, port: int, begin: Begin, delay: Delay) -> Self:
        """Take the port at every address of that host."""
        sockets: list[socket.socket] = []
        try:
            for family, address in await _addresses(host, port):
                sockets.append(_listening(family, address))
        except OSError:
            for sock in sockets:
                sock.close()
            raise
        return cls(sockets, begin, delay)

    def start_serving(self) -> None:
        """Begin to accept."""
        for sock in self.sockets:
            self._run(self._serve(sock))

    def close(self) -> None:
        """Accept no more, and drop those that have only begun. The port is free at once."""
        loop = asyncio.get_running_loop()
        for sock in self.sockets:
            if sock.fileno() >= 0:
                loop.remove_reader(sock)
                sock.close()
        for task in self._tasks:  # not at once: one that never ran would not close its socket
            loop.call_soon(task.cancel)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, (host, port, *_) = await loop.sock_accept(sock)
            except OSError:
                await asyncio.sleep(PAUSE_S)
                continue
            while delay := self._delay(host, loop.time()):
                await asyncio.sleep(delay)
            self._run(self._begin(accepted, (host, port)))


async def _addresses(host: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
    """Where to listen. A number is not looked up: that takes a thread, and a turn of its own."""
    try:
        flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    return list(dict.fromkeys((info[0], info[4]) for info in found))


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
