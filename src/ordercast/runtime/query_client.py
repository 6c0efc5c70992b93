"""A connection that only asks: it sends one question after the other, and gets the answers."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from ordercast.errors import PeerError
from ordercast.runtime.control import Control, decode, encode
from ordercast.transport.connection import Connection
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame

Answer = TypeVar("Answer", bound=Control)


class QueryClient:
    """The handler of such a connection."""

    def __init__(self) -> None:
        self._wanted: tuple[type[Control], ...] = ()
        self._answer: asyncio.Future[Frame] | None = None
        self._gone = ""  # why the connection is

    async def ask(
        self, conn: Connection, question: Control, wanted: type[Answer], timeout: float
    ) -> tuple[Answer, bytes]:
        """The answer and its payload. `PeerError` if the node hangs up, `TimeoutError`."""
        answer, payload = await self.ask_any(conn, question, (wanted,), timeout)
        assert isinstance(answer, wanted)
        return answer, payload

    async def ask_any(
        self, conn: Connection, question: Control, wanted: tuple[type[Control], ...], timeout: float
    ) -> tuple[Control, bytes]:
        """The same where there are several kinds of answers."""
        if self._gone:
            raise PeerError(self._gone)
        self._wanted = wanted
        self._answer = asyncio.get_running_loop().create_future()
        conn.send(encode(question))
        try:
            async with asyncio.timeout(timeout):
                frame = await self._answer
        except TimeoutError:
            asked = type(question).__name__
            raise TimeoutError(f"no answer to a {asked} within {timeout:g} s") from None
        finally:
            self._answer = None
        return decode(frame), frame[4]

    # -- what the connection calls ----------------------------------------------------------------

    def on_hello(self, conn: Connection, hello: Hello) -> None:
        """Nothing to check: any node may be asked."""

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        for frame in frames:
            answer = self._answer
            if answer is not None and not answer.done() and type(decode(frame)) in self._wanted:
                answer.set_result(frame)

    def on_congested(self, conn: Connection) -> None:
        """One question at a time never fills a buffer."""

    def on_writable(self, conn: Connection) -> None:
        """See `on_congested`."""

    def on_closed(self, conn: Connection, reason: str) -> None:
        self._gone = reason
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(PeerError(reason))
