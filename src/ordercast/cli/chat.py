"""`ordercast chat`: a group chat between terminals, the first five minutes of a newcomer."""

from __future__ import annotations

import asyncio
import getpass
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from ordercast.cli.conversation import lines_of_input, tell
from ordercast.cli.credentials import (
    INSECURE,
    KEY,
    KEY_FILE,
    TLS_CA,
    TLS_CERT,
    TLS_KEY,
    credentials,
)
from ordercast.cli.exits import console, errors_as_exits, escape
from ordercast.protocols.registry import DEFAULTS
from ordercast.runtime.group import Group
from ordercast.runtime.node import Node

GROUP = "chat"


def chat(
    join: str | None = typer.Option(None, help="Address that the first terminal printed."),
    name: str | None = typer.Option(None, help="Your name; default: your user name."),
    order: str = typer.Option(
        "causal", help=f"How messages are ordered, the same for all: {', '.join(DEFAULTS)}."
    ),
    bind: str = typer.Option("127.0.0.1:0", help="Address to listen at."),
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
) -> None:
    """Start a chat, or join one. Type lines; Ctrl-D or Ctrl-C leaves."""
    me = name or getpass.getuser() + ("" if join is None else "-2")
    with errors_as_exits(), suppress(KeyboardInterrupt):
        security = credentials(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        asyncio.run(_chat(me, join, order, {"bind": bind, **security}))


async def _chat(name: str, join: str | None, order: str, options: dict[str, Any]) -> None:
    place: dict[str, Any] = {"bootstrap": True} if join is None else {"seeds": [join]}
    async with Node(name, **place, **options) as node:
        group = await node.join(GROUP, order=order)
        console.print(f"You are {escape(name)}; the order is {order}.", highlight=False)
        if join is None:
            console.print("In a second terminal, run:", highlight=False)
            line = f"    ordercast chat --join {node.address} --name bob --order {order}"
            console.print(line, highlight=False, soft_wrap=True)
            if options["key"] or options["tls"]:
                console.print("with the same key, and a certificate of its own.", highlight=False)
        console.print("Type a line and press Enter. Ctrl-D leaves.", highlight=False)
        listening = asyncio.ensure_future(_listen(node))
        speaking = asyncio.ensure_future(_speak(group))
        done, waiting = await asyncio.wait(
            (listening, speaking), return_when=asyncio.FIRST_COMPLETED
        )
        for task in waiting:
            task.cancel()
        for task in done:
            task.result()  # the cluster ended: say so


async def _listen(node: Node) -> None:
    async for event in node:
        tell(event)


async def _speak(group: Group) -> None:
    """Multicast lines from the terminal until it ends."""
    async for line in lines_of_input():
        if text := line.rstrip(b"\r\n"):
            receipt = await group.multicast(text)
            await receipt.ordered()
