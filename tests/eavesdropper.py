"""Somebody on the way between two nodes, who writes down and may change what passes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

Change = Callable[[bytes], bytes]


class Relay:
    """Listens, connects to a node, and passes on."""

    def __init__(self, change: Change = lambda data: data) -> None:
        self.sent: list[bytes] = []  # by the side that connects
        self.answered: list[bytes] = []
        self._change = change

    @contextlib.asynccontextmanager
    async def before(self, address: tuple[str, int]):
        passing: list[asyncio.Task[None]] = []

        async def serve(reader, writer):
            there, back = await asyncio.open_connection(*address)
            passing.append(asyncio.create_task(self._pass_on(reader, back, self.sent)))
            passing.append(asyncio.create_task(self._pass_on(there, writer, self.answered)))

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()
        finally:
            server.close()
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    async def _pass_on(self, reader, writer, record: list[bytes]) -> None:
        try:
            while data := await reader.read(65_536):
                record.append(data)
                writer.write(self._change(data))
        except ConnectionError:
            pass
        finally:
            writer.close()
