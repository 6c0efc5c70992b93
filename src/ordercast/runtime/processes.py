"""A worker process as its starter sees it: commands in, answers out, and a real `kill -9`."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Any

import msgspec

from ordercast.errors import OrdercastError
from ordercast.runtime.worker import MAX_LINE


class WorkerFailed(OrdercastError):
    """A command failed in the other process, or the process is gone."""

    def __init__(self, name: str, kind: str, text: str) -> None:
        super().__init__(f"{name}: {kind}: {text}")
        self.kind = kind  # the name of the error's class over there
        self.text = text


class WorkerProcess:
    """One operating-system process with one node."""

    def __init__(self, name: str, *, launcher: Sequence[str] = ()) -> None:
        """`launcher` is a command that becomes the one after it: `nsenter`, `taskset`, `env`."""
        self.name = name
        self.address = ""  # of its node
        self._launcher = tuple(launcher)
        self._process: Process | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._next = 0
        self._reader: asyncio.Task[None] | None = None

    async def start(self, **options: Any) -> None:
        """Start the process and its node; options as for `Node`. A key of bytes must be text."""
        if isinstance(options.get("key"), bytes):
            options["key"] = options["key"].decode()  # JSON would make another text of it
        self._process = await asyncio.create_subprocess_exec(
            *self._launcher,
            sys.executable,
            "-m",
            "ordercast.runtime.worker",
            stdin=PIPE,
            stdout=PIPE,
            limit=MAX_LINE,
            start_new_session=True,  # Ctrl-C is for whoever started it; the pipe's end ends it
        )
        self._reader = asyncio.ensure_future(self._read())
        facts = await self.do("start", name=self.name, **options)
        self.address = facts["address"]

    @property
    def pid(self) -> int:
        """The operating system's number of the process."""
        assert self._process is not None
        return self._process.pid

    async def do(self, command: str, **args: Any) -> Any:
        """Have a command of `ordercast.runtime.worker` carried out; its result."""
        assert self._process is not None and self._process.stdin is not None
        if self._process.returncode is not None:
            code = self._process.returncode
            raise WorkerFailed(self.name, "ProcessGone", f"the process ended with exit code {code}")
        self._next += 1
        number = self._next
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        line = msgspec.json.encode({"id": number, "do": command, "args": args})
        self._process.stdin.write(line + b"\n")
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    async def run(self, call: str, **args: Any) -> Any:
        """Await "package.module:function" over there, called with the worker and `args`."""
        return await self.do("run", call=call, args=args)

    async def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def close(self, timeout: float = 15.0) -> None:
        """Close the node and end the process; a stuck one is killed."""
        if self._process is None:
            return
        try:
            async with asyncio.timeout(timeout):
                if self._process.returncode is None:
                    await self.do("close")
                    assert self._process.stdin is not None
                    self._process.stdin.close()
                await self._process.wait()
        except (TimeoutError, WorkerFailed):
            await self.kill()
        if self._reader is not None:
            await self._reader

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        while line := await self._process.stdout.readline():
            reply = msgspec.json.decode(line)
            answer = self._answers.get(reply["id"])
            if answer is None or answer.done():
                continue
            if "error" in reply:
                answer.set_exception(WorkerFailed(self.name, reply["kind"], reply["error"]))
            else:
                answer.set_result(reply["result"])
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(WorkerFailed(self.name, "ProcessGone", "the process ended"))
