"""A contact that speaks the wire protocol and answers what it likes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from ordercast.runtime.control import Control, StatusReply, StatusRequest, decode, encode
from ordercast.wire.control import Hello
from ordercast.wire.frame import Splitter
from ordercast.wire.opening import pack_opening, split_opening

Answer = Callable[["HostileContact", Control, Hello], "Control | bytes | None"]

RUNS = b'{"state":"running"}'


class HostileContact:
    """Listens at `address`; `asked` counts the questions to which `answer` had one of its own.

    With `hangs_up` it closes the connection behind each such answer.
    """

    def __init__(self, answer: Answer, name: str = "evil", *, hangs_up: bool = False) -> None:
        self.asked = 0
        self._hangs_up = hangs_up
        self.address = ""
        self._answer = answer
        self._name = name

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            data = b""
            while (found := split_opening(data)) is None:
                data += await reader.read(4096) or bytes(1 << 16)  # the end: no opening
            assert isinstance(found[0], Hello)
            mine = Hello(
                cluster=found[0].cluster, name=self._name, incarnation=1, advertise=self.address
            )
            writer.write(pack_opening(mine))
            splitter, data = Splitter(1 << 26), data[found[1] :]
            while True:
                for frame in splitter.feed(data):
                    self._tell(writer, decode(frame), found[0])
                data = await reader.read(65_536)
                if not data:
                    return
        except Exception:
            pass  # whoever hangs up on it is right
        finally:
            writer.close()

    def _tell(self, writer: asyncio.StreamWriter, question: Control, hello: Hello) -> None:
        answer = self._answer(self, question, hello)
        if answer is not None:
            self.asked += 1
            writer.write(answer if isinstance(answer, bytes) else encode(answer))
            if self._hangs_up:
                writer.close()
        elif isinstance(question, StatusRequest):
            writer.write(encode(StatusReply(), RUNS))
