"""What is known of the tables in a folder: which files hold which runs, which runs are finished.

    FOLDER/_manifest.json   replaced by rename, so it is the old one or the new one
    FOLDER/_lock            held by whoever writes; it is free again when that process ends

A run counts as finished when its entry stands here. The entry is taken away before anything of the
run is touched, and put back when all of its tables are written.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.tables.schema import TABLES

MANIFEST, LOCK = "_manifest.json", "_lock"


class SeenFile(msgspec.Struct, frozen=True):
    """A source file as it was when its runs were looked up."""

    size: int
    modified: int  # nanoseconds
    mapping: str  # digest of the mapping it was read through; "" for none
    runs: tuple[str, ...] = ()

    def same_file(self, other: SeenFile) -> bool:
        """Whether both tell of the same bytes, read in the same way."""
        return msgspec.structs.replace(self, runs=other.runs) == other


class JudgedRun(msgspec.Struct, frozen=True):
    """What the tables of a run were made from, and how."""

    sources: str  # digest of its files: names, sizes, times of change
    schema: int
    judge: str  # which code judged
    quiescent: bool


class Manifest(msgspec.Struct, frozen=True):
    """All source files and all finished runs."""

    files: dict[str, SeenFile] = {}  # by absolute path
    runs: dict[str, JudgedRun] = {}

    def without_runs(self, runs: Iterable[str]) -> Manifest:
        gone = set(runs)
        kept = {run: entry for run, entry in self.runs.items() if run not in gone}
        return msgspec.structs.replace(self, runs=kept)

    def with_runs(self, runs: Mapping[str, JudgedRun]) -> Manifest:
        return msgspec.structs.replace(self, runs={**self.runs, **runs})

    def with_files(self, files: Mapping[str, SeenFile]) -> Manifest:
        """These files; of others, those that still exist."""
        others = {path: seen for path, seen in self.files.items() if Path(path).exists()}
        return msgspec.structs.replace(self, files={**others, **files})


def load_manifest(folder: Path) -> Manifest:
    """The manifest of `folder`, an empty one if there is none yet.

    Raises `UsageError` if there are folders called as tables are, but no manifest: they are
    somebody else's, and writing tables removes folders.
    """
    path = folder / MANIFEST
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        foreign = [name for name in TABLES if (folder / name).exists()]
        if foreign:
            reason = f"has {foreign[0]!r} and no {MANIFEST}: not a folder of tables; name another"
            raise UsageError(f"{folder} {reason}") from None
        return Manifest()
    except msgspec.DecodeError as reason:
        hint = "remove the folder, and every run is judged anew"
        raise TraceError(path, None, None, f"not a manifest of tables: {reason}; {hint}") from None


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Put `manifest` in the place of the one before, as a whole."""
    draft = folder / f"{MANIFEST}.new"
    with draft.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / MANIFEST)


def digest(*parts: object) -> str:
    """A short text that differs where the parts differ."""
    told = msgspec.json.encode(parts, order="deterministic")
    return hashlib.sha256(told).hexdigest()[:32]


def check_folder(folder: Path) -> None:
    """Raise `UsageError` for what cannot be a folder of tables."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; tables need a folder")
    load_manifest(folder)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Be the only writer of `folder`. Raises `UsageError` if there is another."""
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = lock.read().strip() or "another process"
            reason = f"{folder}: {who} is writing these tables; try again when it has ended"
            raise UsageError(reason) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        yield
