"""Listening and connecting over TCP, with or without TLS. Works on uvloop and on plain asyncio."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

import msgspec

from ordercast.errors import PeerError
from ordercast.transport.connection import Connection
from ordercast.transport.contract import Address, ConnectionHandler, Counters, Limits
from ordercast.transport.door import Door
from ordercast.transport.places import Places
from ordercast.transport.security import NONE, Security
from ordercast.transport.tls import TlsContexts
from ordercast.wire.control import Hello

__all__ = [
    "Address",
    "Connection",
    "ConnectionHandler",
    "Counters",
    "Limits",
    "Listener",
    "connect",
    "listen",
    "show_address",
]

DEFAULT_LIMITS = Limits()


def show_address(address: Address) -> str:
    """host:port, with the brackets that an IPv6 host needs."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Listener:
    """A port on which peers may connect."""

    def __init__(
        self,
        hello: Hello,
        handler: ConnectionHandler,
        limits: Limits,
        counters: Counters,
        security: Security,
    ) -> None:
        self.hello = hello  # said to those who connect from now on; may be replaced
        self.handler = handler
        self.limits = limits
        self.counters = counters
        self.address: Address = ("", 0)  # the actual one, also after port 0 was asked for
        self._security = security
        self._server: Door | None = None
        self.places: Places[Connection] = Places(  # accepted, no Hello yet
            limits.max_unknown, limits.max_unknown_per_host, limits.max_stranger_bytes,
            limits.unknown_stay_s,
        )  # fmt: skip

    async def start(self, host: str, port: int) -> None:
        """Take the port, then begin to accept."""
        self._server = await Door.at(host, port, self._begin, self.places.delay)
        bound = self._server.sockets[0].getsockname()
        self.address = (bound[0], bound[1])
        if not self.hello.advertise:
            self.hello = msgspec.structs.replace(self.hello, advertise=show_address(self.address))
        self._server.start_serving()

    def close(self) -> None:
        """Accept no more, and drop those who have not said Hello. Open connections stay."""
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.places):
            connection.abort("the listener was closed")

    def _begin(self, accepted: socket.socket, peer: Address) -> Coroutine[Any, Any, None]:
        connection = Connection(
            self.hello, self.handler, self.limits, self.counters, self.places, self._security.key
        )
        connection.peer = peer
        connection.take_place()
        return self._open(accepted, connection)

    async def _open(self, accepted: socket.socket, connection: Connection) -> None:
        """Hand the socket to the loop, which shakes hands if there is TLS."""
        tls: dict[str, Any] = {}
        if self._security.contexts is not None:
            tls["ssl"] = self._security.contexts.accepting
            tls["ssl_handshake_timeout"] = self.limits.hello_timeout_s
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        try:
            if connection.may_begin(task.cancel):
                await loop.connect_accepted_socket(lambda: connection, accepted, **tls)
            else:
                accepted.close()
        except OSError as error:
            connection.never_made(error)
        finally:
            connection.never_made()


async def listen(
    host: str,
    port: int,
    *,
    hello: Hello,
    handler: ConnectionHandler,
    limits: Limits = DEFAULT_LIMITS,
    counters: Counters | None = None,
    security: Security = NONE,
) -> Listener:
    """Accept peers on this port; 0 takes any free one.

    Without an `advertise` in its hello the node advertises the address it is bound to.
    """
    listener = Listener(hello, handler, limits, counters or Counters(), security)
    await listener.start(host, port)
    return listener


async def connect(
    host: str,
    port: int,
    *,
    hello: Hello,
    handler: ConnectionHandler,
    limits: Limits = DEFAULT_LIMITS,
    counters: Counters | None = None,
    timeout: float = 5.0,
    security: Security = NONE,
) -> Connection:
    """A connection whose peer has said Hello.

    Raises `OSError` (also `TimeoutError`, `ssl.SSLError`) when nobody answers or TLS fails, and
    `PeerError` with the peer's own words when it refuses, or with what was wrong when it is not
    one of us.
    """
    where = show_address((host, port))
    connection = Connection(hello, handler, limits, counters or Counters(), key=security.key)
    try:
        async with asyncio.timeout(timeout):
            await _reach(host, port, connection, security.contexts)
            await connection.opened()
    except TimeoutError:
        raise TimeoutError(f"{where} did not answer within {timeout:g} s") from None
    finally:
        if connection.hello is None:
            connection.abort("given up")
    if connection.reason:
        raise PeerError(f"{where}: {connection.reason}")
    return connection


async def _reach(
    host: str, port: int, connection: Connection, contexts: TlsContexts | None
) -> None:
    loop = asyncio.get_running_loop()
    try:
        if contexts is None:
            await loop.create_connection(lambda: connection, host, port)
            return
        await loop.create_connection(
            lambda: connection, host, port, ssl=contexts.connecting, server_hostname=""
        )
    except UnicodeError:  # what is asked for cannot be written as a name of the domain system
        raise socket.gaierror(socket.EAI_NONAME, "it is no name of a host") from None
    except (ConnectionResetError, ConnectionAbortedError):
        if contexts is None:
            raise
        raise ConnectionResetError(
            "closed by the peer during the TLS handshake: it may not use TLS"
        ) from None
