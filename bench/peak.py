"""The most memory that this process and all it started held at one time."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

PAGE = os.sysconf("SC_PAGE_SIZE")
EVERY_S = 0.2


class PeakMemory:
    """Looks at /proc while its block runs; `mib` is resident memory, summed over processes.

    Pages that several processes share are counted for each, so this is an upper bound.
    """

    def __init__(self) -> None:
        self.mib = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(EVERY_S):
            self.mib = max(self.mib, resident_mib())


def resident_mib() -> float:
    """Resident memory of this process and all its descendants now."""
    parents, pages = _processes()
    total = 0
    for pid in parents:
        above = pid
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        if above:
            total += pages[pid]
    return total * PAGE / 2**20


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """(parent, resident pages) of every process."""
    parents, pages = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            pages[int(folder.name)] = int((folder / "statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        parents[int(folder.name)] = int(fields[1])
    return {pid: parents[pid] for pid in parents if pid in pages}, pages
