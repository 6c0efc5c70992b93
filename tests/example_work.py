"""The examples at work in processes of their own: `worker.run("example_work:function")`."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import ordercast as oc
from ordercast.runtime.worker import Worker

EXAMPLES = Path(__file__).parents[1] / "examples"
if str(EXAMPLES) not in sys.path:
    sys.path.append(str(EXAMPLES))

from lock_and_leader import Crew, Ledger  # noqa: E402
from price_boards import Broker, Floor  # noqa: E402
from replicated_dictionary import ReplicatedDict  # noqa: E402
from rooms import Chat, Line  # noqa: E402

__all__ = ["Broker", "Chat", "Crew", "Floor", "Line", "ReplicatedDict"]


def note(journal: str, line: str) -> None:
    """One more line, whole, whoever else writes; it outlives this process."""
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


async def open_dictionary(worker: Worker) -> None:
    worker.dictionary = await ReplicatedDict.join(worker.node, "settings")  # type: ignore[attr-defined]


async def write(worker: Worker, *, count: int, journal: str) -> None:
    """Set keys of its own and count together with the others; note what was acknowledged."""
    settings: ReplicatedDict = worker.dictionary  # type: ignore[attr-defined]
    for number in range(count):
        key = f"{worker.node.name}/{number}"
        await settings.set(key, number)
        note(journal, f"set {key}")
        while not await settings.compare_and_set(
            "counter", so_far := settings.get("counter"), (so_far or 0) + 1
        ):
            pass
        note(journal, "counted")


async def contents(worker: Worker) -> dict[str, Any]:
    settings: ReplicatedDict = worker.dictionary  # type: ignore[attr-defined]
    await settings.sync()
    return settings.copy()


async def open_crew(worker: Worker) -> None:
    worker.crew = await Crew.join(worker.node)  # type: ignore[attr-defined]


async def take_turns(worker: Worker, *, count: int, journal: str) -> None:
    """Hold the lock so many times."""
    for _ in range(count):
        async with worker.crew.lock("report") as fence:  # type: ignore[attr-defined]
            note(journal, f"enter {fence} {worker.node.name}")
            await asyncio.sleep(0.001)
            note(journal, f"leave {fence} {worker.node.name}")


async def hold(worker: Worker, *, journal: str) -> None:
    """Hold the lock for ever."""
    async with worker.crew.lock("report") as fence:  # type: ignore[attr-defined]
        worker.fence = fence  # type: ignore[attr-defined]
        note(journal, f"enter {fence} {worker.node.name}")
        await asyncio.Event().wait()


async def write_at_last(worker: Worker, *, journal: str) -> bool:
    """What a holder wanted to write before it was paused: is it let?"""
    ledger = Ledger()
    for line in Path(journal).read_text().splitlines():
        ledger.write(int(line.split()[1]), line)
    return ledger.write(worker.fence, "at last")  # type: ignore[attr-defined]


async def queue(worker: Worker, *, length: int) -> list[str]:
    crew: Crew = worker.crew  # type: ignore[attr-defined]
    await crew.until(lambda: len(crew.queue("report")) == length)
    return crew.queue("report")


async def leader(worker: Worker, *, name: str) -> int:
    """Wait until that worker leads, over all outages; its term."""
    crew: Crew = worker.crew  # type: ignore[attr-defined]
    while crew.leader != name:
        with suppress(oc.NodeOut):
            await crew.until(lambda: crew.leader == name)
    return crew.term
