"""`ordercast node`: a member from the command line, at its site."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import ordercast as oc

ORDERCAST = str(Path(sys.executable).parent / "ordercast")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("ORDERCAST_")}


@asynccontextmanager
async def running(*words: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        ORDERCAST, "node", "--listen", "127.0.0.1:0", "--log-format", "json", *words,
        env={**ENVIRONMENT, **variables}, stdin=pipe, stdout=pipe, stderr=pipe,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(stream: asyncio.StreamReader | None, text: str) -> str:
    assert stream is not None
    seen = ""
    while line := (await stream.readline()).decode():
        seen += line
        if text in line:
            return line
    raise AssertionError(f"{text!r} is not in {seen!r}")


async def test_a_node_at_a_site_prints_what_its_group_delivers_and_sends_its_lines() -> None:
    words = ("--group", "orders", "--protocol", "two_layered", "--delivery-level", "preack")
    async with running(
        "--name", "alice", "--bootstrap", *words, "--gateway", ORDERCAST_SITE="tokyo"
    ) as alice:
        address = json.loads(await until(alice.stderr, '"msg":"ready"'))["address"]
        async with oc.Node("bob", seeds=[address], site="osaka") as bob:
            group = await bob.join("orders", "causal")
            await until(alice.stdout, "here: alice, bob")
            assert bob.stats()["groups"]["orders"]["subgroups"] == [["alice"], ["bob"]]
            [node] = [n for n in (await oc.query_status(address))["nodes"] if n["name"] == "alice"]
            assert (node["site"], node["gateway"]) == ("tokyo", True)
            await group.multicast(b"from osaka")
            await until(alice.stdout, "bob: from osaka")
            assert alice.stdin is not None
            alice.stdin.write(b"from tokyo\n")
            alice.stdin.close()  # the end of its input is not its own end
            bodies = (event.body async for event in group if isinstance(event, oc.Message))
            assert [await anext(bodies), await anext(bodies)] == [b"from osaka", b"from tokyo"]
            alice.send_signal(signal.SIGTERM)
            assert await alice.wait() == 0
