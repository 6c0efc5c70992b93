"""`ordercast chat`: a group chat between terminals, the first five minutes of a newcomer."""

from __future__ import annotations

import asyncio
import getpass
import sys

import typer

from ordercast.cli.exits import console, errors_as_exits, escape
from ordercast.runtime.group import Group
from ordercast.runtime.items import Message, View
from ordercast.runtime.node import Node

GROUP = "chat"


def chat(
    join: str | None = typer.Option(None, help="Address that the first terminal printed."),
    name: str | None = typer.Option(None, help="Your name; default: your user name."),
    order: str = typer.Option("causal", help="fifo, causal or total: how messages are ordered."),
    bind: str = typer.Option("127.0.0.1:0", help="Address to listen at."),
) -> None:
    """Start a chat, or join one. Type lines; Ctrl-D leaves."""
    me = name or getpass.getuser() + ("" if join is None else "-2")
    with errors_as_exits():
        asyncio.run(_chat(me, join, order, bind))


async def _chat(name: str, join: str | None, order: str, bind: str) -> None:
    place = {"bootstrap": True} if join is None else {"seeds": [join]}
    async with Node(name, bind=bind, **place) as node:
        group = await node.join(GROUP, order=order)
        console.print(f"You are {escape(name)}; the order is {order}.", highlight=False)
        if join is None:
            console.print("In a second terminal, run:", highlight=False)
            line = f"    ordercast chat --join {node.address} --name bob --order {order}"
            console.print(line, highlight=False, soft_wrap=True)
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
        if isinstance(event, Message):
            text = bytes(event.body).decode(errors="replace")
            console.print(f"[bold]{escape(event.sender)}[/]: {escape(text)}", highlight=False)
        else:
            _tell_view(event)


def _tell_view(view: View) -> None:
    for what, names in (("came", view.joined), ("left", view.left)):
        if names:
            console.print(f"[dim]{escape(', '.join(names))} {what}[/]", highlight=False)
    console.print(f"[dim]here: {escape(', '.join(view.members))}[/]", highlight=False)


async def _speak(group: Group) -> None:
    """Multicast lines from the terminal until it ends."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        if text := line.rstrip(b"\r\n"):
            receipt = await group.multicast(text)
            await receipt.ordered()
