"""One address, step by step: parse, resolve, connect, TLS, hello, status, round trips."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import TypeVar

from ordercast.errors import PeerError
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import Control, StatusReply, StatusRequest
from ordercast.runtime.diagnosis.report import Report
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.runtime.diagnosis.unanswered import Attempt, ProbeFailed, why_unanswered
from ordercast.runtime.query_client import QueryClient
from ordercast.runtime.reasons import trouble_of
from ordercast.runtime.status_decoding import decode_status, parts_of_status
from ordercast.transport.connection import Connection
from ordercast.transport.contract import Address, Counters, Limits
from ordercast.transport.tcp import show_address

ROUND_TRIPS = 5


Answer = TypeVar("Answer", bound=Control)


class Probe:
    """A node that answered, on a connection that is open."""

    def __init__(
        self, address: str, conn: Connection, client: QueryClient, patience: float
    ) -> None:
        self.address = address  # as it was given
        self.conn = conn
        self._client = client
        self._patience = patience
        self.report: Report
        self.round_trips: list[float] = []  # seconds

    async def ask(
        self, question: Control, wanted: type[Answer], timeout: float | None = None
    ) -> tuple[Answer, bytes]:
        """One question on this connection."""
        return await self._client.ask(self.conn, question, wanted, timeout or self._patience)

    async def examine(self) -> None:
        """How is it, and how fast does it answer?"""
        loop = asyncio.get_running_loop()
        try:
            for _ in range(ROUND_TRIPS):
                asked = loop.time()
                _, payload = await self.ask(StatusRequest(), StatusReply)
                self.round_trips.append(loop.time() - asked)
            status = decode_status(self.address, payload)
            self.report = parts_of_status(self.address, status, Report)
        except TimeoutError as error:
            raise ProbeFailed("mute", f"it said hello, then {error}") from None
        except PeerError as error:
            raise ProbeFailed("status", str(error)) from None


@asynccontextmanager
async def probing(address: str, subject: Subject) -> AsyncIterator[Probe]:
    """A node that answered all questions, or `ProbeFailed` with the step that failed."""
    host, port = _parsed(address)
    if not subject.security.may_speak_to(host):
        raise ProbeFailed("exposed", f"{address} is on the network, and nothing would be encrypted")
    sock, place = await _reach(await _resolve(host, port, subject.patience), subject)
    client = QueryClient()
    conn = await _greet(sock, place, client, subject)
    try:
        probe = Probe(address, conn, client, subject.patience)
        await probe.examine()
        yield probe
    finally:
        conn.close("examined")


def _parsed(address: str) -> Address:
    try:
        host, port = parse_address("address", address)
    except ValueError as error:
        raise ProbeFailed("address", str(error)) from None
    if port == 0:
        raise ProbeFailed("address", f"address={address!r}: nobody can connect to port 0")
    return host, port


async def _resolve(host: str, port: int, patience: float) -> list[tuple[int, Address]]:
    """Every family and place of that name."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(patience):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        seen = f"{host!r}: the resolver did not answer within {patience:g} s"
        raise ProbeFailed("unresolved", seen) from None
    except (OSError, UnicodeError) as error:
        _, seen = trouble_of(error)
        raise ProbeFailed("unresolved", f"{host!r}: {seen}") from None
    return [(family, (str(place[0]), int(place[1]))) for family, _, _, _, place in found]


async def _reach(
    places: list[tuple[int, Address]], subject: Subject
) -> tuple[socket.socket, Address]:
    """A connected socket to the first place that takes it."""
    failures: list[tuple[str, str]] = []
    for family, place in places:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            await _connect(sock, place, subject)
        except OSError as error:
            sock.close()
            kind, seen = trouble_of(error)
            failures.append((kind if kind in ("refused", "silence") else "no_route", seen))
        else:
            return sock, place
    code, seen = failures[0]
    if len(failures) > 1:
        seen = "; ".join(
            f"{show_address(place)}: {why}"
            for (_, place), (_, why) in zip(places, failures, strict=True)
        )
    raise ProbeFailed(code, seen)


async def _connect(sock: socket.socket, place: Address, subject: Subject) -> None:
    sock.setblocking(False)
    patience = subject.patience
    if (own := _own_host(place, subject)) is not None:
        with suppress(OSError):  # `bind` is no address of this machine: told elsewhere
            sock.bind((own, 0))
    try:
        async with asyncio.timeout(patience):
            await asyncio.get_running_loop().sock_connect(sock, place)
    except TimeoutError:
        raise TimeoutError(f"{show_address(place)} did not answer within {patience:g} s") from None


def _own_host(place: Address, subject: Subject) -> str | None:
    """The host to connect from: the one that the node binds to, if the place is open to it."""
    if subject.listens_at is None:
        return None
    try:
        own, there = ip_address(subject.listens_at[0]), ip_address(place[0].partition("%")[0])
    except ValueError:  # a name
        return None
    if own.is_unspecified or own.version != there.version or own.is_loopback != there.is_loopback:
        return None
    return str(own)


async def _greet(
    sock: socket.socket, place: Address, client: QueryClient, subject: Subject
) -> Connection:
    """The connection of a node that said hello."""
    hello, patience, tls = subject.hello(), subject.patience, subject.tls
    conn = Attempt(hello, client, Limits(), Counters(), key=subject.security.key)
    loop = asyncio.get_running_loop()
    trouble: Exception | None = None
    try:
        async with asyncio.timeout(patience):
            await loop.create_connection(
                lambda: conn, sock=sock, ssl=tls, server_hostname="" if tls else None
            )
            await conn.opened()
    except OSError as error:  # TLS errors are of this kind
        trouble = error
    if conn.hello is not None and not conn.reason:
        return conn
    conn.abort("given up")
    sock.close()
    raise await why_unanswered(conn, trouble or conn.broke, place, subject)
