"""Sealing: a finished segment becomes a Parquet file with one row per message.

The Parquet file is written under a hidden name, then renamed, then the segment is removed. A
crash in between leaves the segment, or both files: readers prefer the sealed one, and the next
sealing removes the leftover. Needs pyarrow; without it segments stay as they are, and readable.

    python -m ordercast.trace.seal DIRECTORY           what its recorders have finished
    python -m ordercast.trace.seal --tails DIRECTORY   also the last segment of killed processes
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ordercast.errors import TraceError
from ordercast.trace.layout import SEGMENT_SUFFIX, sealed_path
from ordercast.trace.segments import Segment, read_segment


def seal_directory(directory: Path, *, tails: bool = False) -> list[Path]:
    """Seal every finished segment under `directory`; returns the Parquet files written.

    Safe beside recorders that are at work: the segment they write is not finished. With `tails`
    unfinished segments are sealed too: only when the processes that wrote them are gone.
    """
    written = []
    for path in sorted(Path(directory).rglob(f"*{SEGMENT_SUFFIX}")):
        if sealed_path(path).exists():
            path.unlink(missing_ok=True)
            continue
        segment = read_segment(path)
        if segment.finished or tails:
            written.append(seal_segment(segment))
    return written


class Unsealed(NamedTuple):
    """What stayed as it was."""

    segments: int
    reason: str


def seal_segments(paths: Iterable[Path], *, seconds: float) -> Unsealed | None:
    """Seal these in order until `seconds` have passed; what cannot be sealed stays a segment.

    None if nothing is left, or if there is no pyarrow: then nothing is meant to be sealed.
    """
    deadline = time.monotonic() + seconds
    left = [path for path in paths if path.is_file()]  # a device may have no end
    try:
        while left:
            if time.monotonic() >= deadline:
                return Unsealed(len(left), "there was no time for it")
            seal_segment(read_segment(left[0]))
            del left[0]
    except ImportError:
        pass
    except (OSError, TraceError) as reason:  # the segments are still there
        return Unsealed(len(left), getattr(reason, "strerror", None) or str(reason))
    return None


def seal_segment(segment: Segment) -> Path:
    """Write `segment` as Parquet, remove its file, return the new one."""
    from ordercast.trace.tables import segment_table, write_table

    sealed = sealed_path(segment.path)
    draft = sealed.with_name(f".{os.getpid()}-{sealed.name}")
    try:
        write_table(segment_table(segment), draft)
        _reach_disk(draft)
        draft.rename(sealed)
    finally:
        draft.unlink(missing_ok=True)
    segment.path.unlink(missing_ok=True)
    return sealed


def _reach_disk(path: Path) -> None:
    """The segment is removed next: the only copy must not sit in a cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    for folder in (name for name in arguments if name != "--tails"):
        for parquet in seal_directory(Path(folder), tails="--tails" in arguments):
            print(parquet)
