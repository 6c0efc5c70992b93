"""The way of one message, counted: functions and files of ours that it passes through.

Three nodes run in three threads, each with an event loop of its own, so that a profiler tells them
apart. One message of a member that does not number goes to a group of the default total order.

    sender      from `multicast` to the first write to a socket
    sequencer   from the first bytes to the first write
    member      from the first bytes to the loop of the application
    crash       at a survivor: from the end of a connection to the next view, in one thread
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import ordercast as oc

SOURCE = str(Path(oc.__file__).parent)
QUIET = {"heartbeat_ms": 5_000, "suspect_ms": 30_000}
SETTLE_S = 0.4


class Lane:
    """A thread with an event loop, and what was called in it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.calls: list[tuple[str, str]] = []  # (file, function); ("", "write") for a socket
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run this there, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def watch(self, *, on: bool) -> None:
        """Begin or end to note calls."""
        done = threading.Event()

        def switch() -> None:
            sys.setprofile(self._note if on else None)
            done.set()

        self.loop.call_soon_threadsafe(switch)
        done.wait()

    def _note(self, frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            path = frame.f_code.co_filename
            if path.startswith(SOURCE):
                self.calls.append((path.removeprefix(SOURCE), frame.f_code.co_qualname))
            elif frame.f_code.co_name == "the_application_has_it":
                self.calls.append(("", "taken"))
        elif event == "c_call" and arg.__name__ in ("write", "writelines", "send", "sendmsg"):
            self.calls.append(("", "write"))

    def part(self, begins: str, ends: str) -> list[tuple[str, str]]:
        """From the first call of that name to what ends it."""
        names = [name.rpartition(".")[2] for _, name in self.calls]
        first = names.index(begins)
        last = next(k for k in range(first, len(names)) if self.calls[k] == ("", ends))
        return [call for call in self.calls[first:last] if call[0]]


def the_application_has_it() -> None:
    """Called by the loop that reads a node."""


async def read(node: oc.Node) -> None:
    """As an application does."""
    async for event in node:
        if isinstance(event, oc.Message):
            the_application_has_it()


def measured() -> dict[str, dict[str, int]]:
    """Calls and files, of each role."""
    lanes = {name: Lane() for name in ("sequencer", "sender", "member")}
    nodes: dict[str, oc.Node] = {}
    groups: dict[str, oc.Group] = {}
    for name, lane in lanes.items():
        how: dict[str, Any] = {"bootstrap": True} if not nodes else {"seeds": [_address(nodes)]}
        nodes[name] = oc.Node(name, sequencer=name == "sequencer", **how, **QUIET)
        lane.do(nodes[name].start())
        groups[name] = lane.do(nodes[name].join("g", order="total"))
        lane.loop.call_soon_threadsafe(lane.loop.create_task, read(nodes[name]))

    def send() -> None:
        lanes["sender"].do(groups["sender"].multicast(b"once"))

    send()
    _settle()
    for lane in lanes.values():
        lane.watch(on=True)
    send()
    _settle()
    for lane in lanes.values():
        lane.watch(on=False)
    parts = {
        "sender": lanes["sender"].part("multicast", "write"),
        "sequencer": lanes["sequencer"].part("data_received", "write"),
        "member": lanes["member"].part("data_received", "taken"),
    }
    for lane in lanes.values():
        lane.calls.clear()
    lanes["member"].watch(on=True)
    lanes["sequencer"].do(_crash(nodes["sequencer"]))
    _settle()
    lanes["member"].watch(on=False)
    parts["crash, at a survivor"] = [call for call in lanes["member"].calls if call[0]]
    return {
        role: {"calls": len(calls), "files": len({path for path, _ in calls})}
        for role, calls in parts.items()
    }


def _address(nodes: dict[str, oc.Node]) -> str:
    return next(iter(nodes.values())).address


def _settle() -> None:
    threading.Event().wait(SETTLE_S)


async def _crash(node: oc.Node) -> None:
    """As `kill -9`: nobody is told."""
    presence = node._presence
    presence.engine.stop()
    presence.peers.close("a crash", goodbye=False)


if __name__ == "__main__":
    print(json.dumps(measured(), indent=2))
