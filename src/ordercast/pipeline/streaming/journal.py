"""What a watch has found, on disk: each notice once, whatever is killed in between.

    CHECKPOINT/notices/000000012.jsonl   what batch 12 found; written whole, by renaming
    CHECKPOINT/status.json               how things stood after the latest batch
    CHECKPOINT/shown                     the last batch whose notices were printed

A batch that is done again after a restart finds the same and writes the same file again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ordercast.pipeline.streaming.live.notices import Notice


class RunStatus(msgspec.Struct, frozen=True):
    """How one run stands."""

    run: str
    events: int
    processes: int
    remembered: int  # messages that are not settled yet
    waiting_rows: int  # rows whose send was not read yet
    overdue: int  # deliveries
    latest_ns: int  # the highest `time` of its rows
    now_ms: int
    idle: bool  # time alone will bring nothing new
    violated: tuple[str, ...]  # properties, `.uniform` forms and hybrids included
    expected: tuple[str, ...]
    doubts: dict[str, int]


class JournalEntry(msgspec.Struct, frozen=True):
    """A notice, with where it belongs. `batch` and `number` name it for good."""

    run: str
    batch: int
    number: int
    notice: Notice


class Status(msgspec.Struct, frozen=True):
    """All runs."""

    batch: int = -1
    runs: dict[str, RunStatus] = {}


class Journal:
    """The files of one watch."""

    def __init__(self, checkpoint: Path) -> None:
        self.folder = checkpoint
        self.notices = checkpoint / "notices"

    def write(
        self, batch: int, notices: Iterable[tuple[str, Notice]], runs: Iterable[RunStatus]
    ) -> None:
        """Record one batch. Doing so again changes nothing."""
        self.notices.mkdir(parents=True, exist_ok=True)
        told = [JournalEntry(run, batch, n, notice) for n, (run, notice) in enumerate(notices)]
        if told:
            lines = b"".join(msgspec.json.encode(one) + b"\n" for one in told)
            _replace(self.notices / f"{batch:09d}.jsonl", lines)
        known = {**self.status().runs, **{one.run: one for one in runs}}
        _replace(self.folder / "status.json", msgspec.json.encode(Status(batch, known)))

    def status(self) -> Status:
        """As of the latest batch."""
        try:
            return msgspec.json.decode((self.folder / "status.json").read_bytes(), type=Status)
        except FileNotFoundError:
            return Status()

    def read(self, after: int = -1) -> Iterator[JournalEntry]:
        """Everything that was found in batches after this one."""
        if not self.notices.is_dir():
            return
        for file in sorted(self.notices.glob("*.jsonl")):
            if not file.name.startswith(".") and int(file.stem) > after:
                for line in file.read_bytes().splitlines():
                    yield msgspec.json.decode(line, type=JournalEntry)

    def shown(self) -> int:
        """The last batch that was printed; -1 for none."""
        try:
            return int((self.folder / "shown").read_text())
        except FileNotFoundError:
            return -1

    def mark_shown(self, batch: int) -> None:
        _replace(self.folder / "shown", str(batch).encode())


def _replace(file: Path, data: bytes) -> None:
    draft = file.with_name(f".{file.name}")
    with draft.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    draft.rename(file)
