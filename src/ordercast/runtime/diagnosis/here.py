"""This machine: can the node listen where it wants to, and could others come there?"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

from ordercast.errors import ConfigError
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.transport.security import Security
from ordercast.transport.tls import Tls

CHECK = "this node can listen"


class Doorbell:
    """A port that is open for the time of the diagnosis. It hears that somebody came."""

    def __init__(self, server: asyncio.Server) -> None:
        self.port: int = server.sockets[0].getsockname()[1]
        self._rung: asyncio.Event = asyncio.Event()

    def ring(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody connected."""
        self._rung.set()
        writer.transport.abort()

    async def was_rung(self, patience: float) -> bool:
        """Did somebody come since the last time?"""
        try:
            async with asyncio.timeout(patience):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True


@asynccontextmanager
async def listening(subject: Subject, diagnosis: Diagnosis) -> AsyncIterator[Doorbell | None]:
    """Listen at `bind`; None if it is not known, or not possible."""
    if subject.listens_at is None:
        diagnosis.skip(CHECK, "give --bind to have it checked")
        yield None
        return
    bells: list[Doorbell] = []
    try:
        server = await asyncio.start_server(lambda r, w: bells[0].ring(r, w), *subject.listens_at)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        code = "bind_taken" if taken else "bind_elsewhere"
        seen = "something listens there already" if taken else error.strerror or str(error)
        diagnosis.find(code, "here", f"bind={subject.bind}: {seen}")
        yield None
        return
    bells.append(Doorbell(server))
    diagnosis.passes(CHECK, "here", f"{subject.bind} is free")
    try:
        yield bells[0]
    finally:
        server.close()


def check_bind(subject: Subject, there: str, diagnosis: Diagnosis) -> None:
    """Is the node bound to the loopback, while this other node is on another machine?"""
    if subject.listens_at is None:
        return
    try:
        own, other = ip_address(subject.listens_at[0]), ip_address(there.partition("%")[0])
    except ValueError:  # a name: resolved by those who listen, not here
        return
    if own.is_loopback and not other.is_loopback:
        seen = f"bind={subject.bind} is for this machine only; {there} is another address"
        diagnosis.find("bind_loopback", "here", seen)


def check_files(key: str | bytes | None, tls: Tls | None, diagnosis: Diagnosis) -> Security | None:
    """The key and the certificates; None if no node would accept the certificate."""
    try:
        security = Security.given(key, tls)
    except ConfigError as error:
        diagnosis.find("own_certificate", "here", str(error))
        return None
    if tls is not None:
        diagnosis.passes("own certificate", "here", f"{tls.certificate} is good")
    return security
