"""What a sweep has done so far, on disk: it goes on where it stopped.

A ledger belongs to one state of the sources. If a file that decides a run has changed, the counts
begin again.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import msgspec

from sweep.trial import Failure

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "core", "protocols", "reliability", "membership", "stack", "wire", "simulation", "trace",
)  # fmt: skip
SOURCES = (*(f"src/ordercast/{package}" for package in PACKAGES), "sweep")


class Ledger(msgspec.Struct):
    """Counts by "protocol/arena", and every failure."""

    sources: str  # hash of the files that decide a run
    done: dict[str, int] = {}  # seeds 0 to n - 1 are done
    failures: list[Failure] = []


def hash_of_sources() -> str:
    """Changes when a Python file changes on which a run or its verdict depends."""
    digest = blake2b(digest_size=16)
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def load(path: Path) -> Ledger:
    """The ledger at `path`, or a new one if there is none of these sources."""
    sources = hash_of_sources()
    if path.exists():
        ledger = msgspec.json.decode(path.read_bytes(), type=Ledger)
        if ledger.sources == sources:
            return ledger
    return Ledger(sources)


def save(path: Path, ledger: Ledger) -> None:
    """Write it whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(ledger)))
    fresh.replace(path)
