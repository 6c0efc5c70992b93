"""A chat goes on after an outage, finds a free name, and leaves in order when it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ordercast as oc
from cables import Reader, until
from children import heed_signals
from ordercast.cli.conversation import tell

ORDERCAST = str(Path(sys.executable).parent / "ordercast")


class Chat:
    """One terminal."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.shown = ""

    async def until(self, text: str) -> None:
        assert self.process.stdout is not None and self.process.stderr is not None
        async with asyncio.timeout(60):
            while text not in self.shown:
                line = (await self.process.stdout.readline()).decode()
                assert line, self.shown + (await self.process.stderr.read()).decode()
                self.shown += line

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")

    async def ended(self) -> tuple[int, str]:
        """The exit code, and what the standard error got."""
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            return await self.process.wait(), (await self.process.stderr.read()).decode()


@asynccontextmanager
async def chatting(seed: oc.Node, *words: str, user: str = "bob") -> AsyncIterator[Chat]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        ORDERCAST, "chat", "--join", seed.address, *words,
        env={**os.environ, "LOGNAME": user, "COLUMNS": "1000"},
        stdin=pipe, stdout=pipe, stderr=pipe,
        preexec_fn=heed_signals,
    )  # fmt: skip
    try:
        yield Chat(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_chat_leaves_in_order_when_it_is_told_to_end(number: signal.Signals) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        await alice.join("chat", order="causal")
        async with chatting(alice) as bob:
            await bob.until("here: alice, bob")
            bob.process.send_signal(number)
            assert await bob.ended() == (0, "")
        await until(lambda: alice.stats()["nodes"] == 1)
        assert alice.stats()["lost"] == []  # a node that crashed would be looked for


async def test_a_chat_without_a_name_takes_the_next_one_that_is_free() -> None:
    async with oc.Node("ann", bootstrap=True) as ann:
        await ann.join("chat", order="causal")
        async with chatting(ann, user="ann") as second, chatting(ann, user="ann") as third:
            await asyncio.gather(second.until("You are ann-"), third.until("You are ann-"))
            taken = {chat.shown.split()[2].rstrip(";") for chat in (second, third)}
            assert taken == {"ann-2", "ann-3"}
            async with chatting(ann, "--name", "ann") as refused:
                code, errors = await refused.ended()
                assert code == 2 and "a node named 'ann' is in the cluster" in errors


async def test_a_chat_goes_on_after_an_outage_and_nothing_breaks_into_its_lines() -> None:
    async with oc.Node("alice", bootstrap=True, heartbeat_ms=250, suspect_ms=600) as alice:
        group = await alice.join("chat", order="causal")
        reader = Reader(alice)
        async with chatting(alice) as bob:
            await bob.until("here: alice, bob")
            bob.process.send_signal(signal.SIGSTOP)
            await until(lambda: group.members == ("alice",))
            bob.process.send_signal(signal.SIGCONT)
            await bob.until(
                "You are out of the chat: the others have gone on without you. You come back "
                "automatically"
            )
            await bob.until("You are back. Here: alice, bob.")
            bob.say("still here")
            await until(lambda: b"still here" in reader.bodies)
            await bob.until("bob: still here")
            assert bob.process.stdin is not None
            bob.process.stdin.write_eof()
            assert await bob.ended() == (0, "")


async def test_a_line_that_is_too_long_does_not_end_a_chat() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        await alice.join("chat", order="causal")
        async with chatting(alice) as bob:
            await bob.until("here: alice, bob")
            bob.say("x" * (1 << 20) + "y")
            await bob.until("Not sent: the message has 1048577 bytes")
            bob.say("short")
            await bob.until("bob: short")


def test_a_view_in_which_nothing_changed_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    tell(oc.View("chat", 2, ("alice", "bob")))
    assert capsys.readouterr().out == ""
    tell(oc.View("chat", 3, ("alice",), left=("bob",)))
    assert capsys.readouterr().out == "bob left\nhere: alice\n"
