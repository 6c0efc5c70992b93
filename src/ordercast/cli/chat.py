"""`ordercast chat`: a group chat between terminals, the first five minutes of a newcomer."""

from __future__ import annotations

import asyncio
import getpass
import logging
import signal
from collections.abc import Iterable
from contextlib import aclosing, suppress
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
from ordercast.cli.meanings import OF_NODES
from ordercast.errors import NameTaken, NodeOut, NotPrimary, OrdercastError
from ordercast.protocols.registry import DEFAULTS
from ordercast.runtime.group import Group
from ordercast.runtime.node import Node
from ordercast.runtime.stream_events import Event, View

GROUP = "chat"
SIGNALS = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C is a KeyboardInterrupt
MAX_NAMES = 100  # tried, if none was given


def chat(
    join: str | None = typer.Option(None, help="Address that the first terminal printed."),
    name: str | None = typer.Option(
        None, help="Your name; default: your user name, or the next that is free."
    ),
    order: str = typer.Option(
        "causal", help=f"How messages are ordered, the same for all: {', '.join(DEFAULTS)}."
    ),
    bind: str = typer.Option("127.0.0.1:0", help=OF_NODES["bind"]),
    key_file: Path | None = KEY_FILE,
    key: str | None = KEY,
    tls_cert: Path | None = TLS_CERT,
    tls_key: Path | None = TLS_KEY,
    tls_ca: Path | None = TLS_CA,
    insecure: bool = INSECURE,
) -> None:
    """Start a chat, or join one. Type lines; Ctrl-D or Ctrl-C leaves."""
    # What the library logs is told here in other words, and not in the middle of a line.
    logging.getLogger("ordercast").addHandler(logging.NullHandler())
    with errors_as_exits(), suppress(KeyboardInterrupt):
        security = credentials(key_file, key, tls_cert, tls_key, tls_ca, insecure)
        place: dict[str, Any] = {"bootstrap": True} if join is None else {"seeds": [join]}
        options = {"bind": bind, **place, **security}
        asyncio.run(_until_told_to_leave(_names(name), order, options))


def _names(name: str | None) -> Iterable[str]:
    """The names to try: the one that was given, or the user's and those after it."""
    if name is not None:
        return (name,)
    user = getpass.getuser()
    return (user, *(f"{user}-{number}" for number in range(2, MAX_NAMES + 1)))


async def _until_told_to_leave(names: Iterable[str], order: str, options: dict[str, Any]) -> None:
    """A signal ends the chat as Ctrl-D does: in order."""
    chatting = asyncio.ensure_future(_chat(names, order, options))
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            loop.add_signal_handler(number, chatting.cancel)
    with suppress(asyncio.CancelledError):
        await chatting


async def _chat(names: Iterable[str], order: str, options: dict[str, Any]) -> None:
    async with aclosing(await _started(names, options)) as node:
        group = await node.join(GROUP, order=order)
        _greet(node, order, options)
        conversation = Conversation(node)
        listening = asyncio.ensure_future(conversation.listen())
        speaking = asyncio.ensure_future(conversation.speak(group))
        try:
            done, _ = await asyncio.wait((listening, speaking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
            speaking.cancel()
        for task in done:
            task.result()  # the cluster ended: say so


async def _started(names: Iterable[str], options: dict[str, Any]) -> Node:
    """A node under the first of these names that is free."""
    for name in names:
        node = Node(name, **options)
        try:
            await node.start()
            return node
        except NameTaken as reason:
            taken = reason
    raise taken


def _greet(node: Node, order: str, options: dict[str, Any]) -> None:
    console.print(f"You are {escape(node.name)}; the order is {order}.", highlight=False)
    if "bootstrap" in options:
        console.print("In a second terminal, run:", highlight=False)
        line = f"    ordercast chat --join {node.address} --name bob --order {order}"
        console.print(line, highlight=False, soft_wrap=True)
        if options["key"] or options["tls"]:
            console.print("with the same key, and a certificate of its own.", highlight=False)
    console.print("Type a line and press Enter. Ctrl-D leaves.", highlight=False)


class Conversation:
    """Prints what comes and sends what is typed, also after outages."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._is_out = False

    async def listen(self) -> None:
        """Tell what comes, until the node ends."""
        while True:
            try:
                async for event in self._node:
                    self._hear(event)
                return
            except NodeOut as outage:
                self._is_out = True
                _say(f"You are out of the chat: {_why(outage)}. You come back automatically.")

    def _hear(self, event: Event) -> None:
        if self._is_out and isinstance(event, View) and self._node.name in event.joined:
            self._is_out = False
            _say(f"You are back. Here: {', '.join(event.members)}.")
        else:
            tell(event)

    async def speak(self, group: Group) -> None:
        """Multicast lines from the terminal until it ends."""
        async for line in lines_of_input():
            if text := line.rstrip(b"\r\n"):
                try:
                    receipt = await group.multicast(text)
                    await receipt.ordered()
                except NodeOut as outage:
                    _say(f"Not sent, since you are out of the chat: {_why(outage)}.")
                except OrdercastError as reason:  # the line is too long
                    _say(f"Not sent: {reason}.")


def _why(outage: NodeOut) -> str:
    """The reason, in words for a person who chats."""
    if isinstance(outage, NotPrimary):
        return f"no majority can be reached; missing: {', '.join(outage.missing)}"
    return "the others have gone on without you"


def _say(text: str) -> None:
    console.print(f"[dim]{escape(text)}[/]", highlight=False, soft_wrap=True)
