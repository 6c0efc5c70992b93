"""What the examples share: a node as the command line says, and the lines that are typed."""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import ordercast as oc


def run(
    about: str, demo: Callable[[], Awaitable[None]], session: Callable[[oc.Node], Awaitable[None]]
) -> None:
    """Without arguments the `demo`; with `--name` a `session` with one node of that name."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--name", help="be one node of this name; without it: a demonstration")
    parser.add_argument("--join", metavar="HOST:PORT", help="a node that runs; without it: start")
    parser.add_argument("--bind", metavar="HOST:PORT", help="listen here; default: any port")
    given = parser.parse_args()
    if given.name is None and (given.join or given.bind):
        parser.error("--join and --bind are for one node: say which, with --name")
    try:
        asyncio.run(_main(given, demo, session))
    except (oc.OrdercastError, ValueError, OSError) as wrong:
        sys.exit(f"{parser.prog}: {wrong}")
    except KeyboardInterrupt:
        sys.exit(130)


async def _main(
    given: argparse.Namespace,
    demo: Callable[[], Awaitable[None]],
    session: Callable[[oc.Node], Awaitable[None]],
) -> None:
    if given.name is None:
        await demo()
        return
    seeds = [given.join] if given.join else []
    async with oc.Node(
        given.name, bind=given.bind, bootstrap=not seeds, seeds=seeds, codec="json"
    ) as node:
        print(f"{node.name} is at {node.address}: --name ANOTHER --join {node.address}", flush=True)
        await session(node)


async def lines() -> AsyncIterator[list[str]]:
    """The words of each line that is typed, until the input ends."""
    typed: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:  # in a thread of its own: it must not keep the program from ending
        line = "..."
        while line:  # empty at the end
            line = sys.stdin.readline()
            loop.call_soon_threadsafe(typed.put_nowait, line)

    threading.Thread(target=read, daemon=True).start()
    while line := await typed.get():
        if words := line.split():
            yield words
