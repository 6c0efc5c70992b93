"""This machine: can the node listen where it wants to, and could others come there?"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ordercast.errors import ConfigError
from ordercast.runtime.diagnosis.findings import Diagnosis
from ordercast.runtime.diagnosis.subject import Subject
from ordercast.transport.security import Security, is_loopback
from ordercast.transport.tls import Tls

CHECK = "this node can listen"


class Doorbell:
    """A port that is open for the time of the diagnosis, and notes connections."""

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
    if not subject.security.may_speak_to(subject.listens_at[0]):
        seen = f"bind={subject.bind} is open to the network, and nothing would be encrypted"
        diagnosis.find("exposed", "here", seen)
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
    if is_loopback(subject.listens_at[0]) and not is_loopback(there):
        seen = (
            f"bind={subject.bind} can be reached from this machine only, and {there} is another one"
        )
        diagnosis.find("bind_loopback", "here", seen)


def check_files(
    key: str | bytes | None, tls: Tls | None, insecure: bool, diagnosis: Diagnosis
) -> Security | None:
    """The key and the certificates; None if no node would accept the certificate."""
    try:
        security = Security.given(key, tls, insecure)
    except ConfigError as error:
        diagnosis.find("own_certificate", "here", str(error))
        return None
    if tls is not None:
        diagnosis.passes("own certificate", "here", f"{tls.certificate} is good")
    return security
