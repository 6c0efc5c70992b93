"""A conversation at a terminal: what is told of the groups, and the lines that somebody types."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from io import FileIO

from ordercast.cli.exits import console, escape
from ordercast.runtime.stream_events import Event, Message, View

MAX_LINES = 1000  # read ahead of what the group takes


def tell(event: Event, *, name_groups: bool = False) -> None:
    """Print a message, a view or a merge; with its group, where there are several."""
    if isinstance(event, Message):
        text = bytes(event.body).decode(errors="replace")
        said = f"[bold]{escape(event.sender)}[/]: {escape(text)}"
        console.print(_of(event.group, name_groups) + said, highlight=False, soft_wrap=True)
    elif isinstance(event, View):
        _tell_view(event, _of(event.group, name_groups))
    else:
        back = ", ".join(name for side in event.sides[1:] for name in side)
        console.print(f"[dim]the partition has ended; back: {escape(back)}[/]")


def _of(group: str, name_groups: bool) -> str:
    return f"[dim]{escape(group)}[/] " if name_groups else ""


def _tell_view(view: View, of: str) -> None:
    """Not if nobody came and nobody left: that is no news."""
    if not view.joined and not view.left:
        return
    for what, names in (("came", view.joined), ("left", view.left)):
        if names:
            console.print(f"{of}[dim]{escape(', '.join(names))} {what}[/]", highlight=False)
    console.print(f"{of}[dim]here: {escape(', '.join(view.members))}[/]", highlight=False)


async def lines_of_input() -> AsyncIterator[bytes]:
    """The lines of the standard input: a terminal, a pipe or a file.

    A thread reads them. The event loop could only read a pipe, and would make a terminal
    non-blocking for whoever prints to it; a thread of an executor would be waited for at the end.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(MAX_LINES)

    def read() -> None:
        # Unbuffered: the lock of a buffer, held here, would be fatal when the program ends.
        source = FileIO(sys.stdin.fileno(), closefd=False)
        with suppress(RuntimeError):  # the loop ended before the input
            with suppress(OSError):  # the terminal is gone: that is the end of the input
                while line := source.readline():
                    room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="input", daemon=True).start()
    while line := await lines.get():
        room.release()
        yield line
