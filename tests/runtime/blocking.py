"""What blocks the event loop of a worker process, called by `WorkerProcess.run`."""

from __future__ import annotations

import logging
import time

from ordercast.runtime.worker import Worker


async def listen(worker: Worker) -> None:
    """In a process: keep the warnings of this library from now on."""
    worker.warned = []  # type: ignore[attr-defined]
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: worker.warned.append(record.getMessage())  # type: ignore[method-assign,attr-defined]
    logging.getLogger("ordercast").addHandler(handler)


async def warned(worker: Worker) -> list[str]:
    """In a process: these warnings."""
    found: list[str] = worker.warned  # type: ignore[attr-defined]
    return found


async def sleep(worker: Worker, *, seconds: float) -> None:
    """In a process: block the event loop and leave the interpreter to others."""
    time.sleep(seconds)


async def compute(worker: Worker, *, seconds: float) -> None:
    """In a process: block the event loop and use the interpreter all the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
