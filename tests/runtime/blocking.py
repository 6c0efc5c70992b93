"""What blocks the event loop of a worker process, called by `WorkerProcess.run`."""

from __future__ import annotations

import time

from ordercast.runtime.worker import Worker


async def sleep(worker: Worker, *, seconds: float) -> None:
    """In a process: block the event loop and leave the interpreter to others."""
    time.sleep(seconds)


async def compute(worker: Worker, *, seconds: float) -> None:
    """In a process: block the event loop and use the interpreter all the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
