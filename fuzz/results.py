"""What the last recorded campaign did: `fuzz/results.json`."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import msgspec

from fuzz.findings import Book, Finding
from sweep.ledger import ROOT, SHARED

FILE = Path(__file__).with_name("results.json")
SOURCES = (*SHARED, "src/ordercast/protocols", "src/ordercast/transport", "fuzz")


class Results(msgspec.Struct, frozen=True):
    """Counts and findings, and the hash of the sources they belong to."""

    sources: str
    day: str
    first_run: int
    runs: int
    seconds: int
    moments: int
    frames: int  # lies that nodes were told
    refused: int  # lies that the decoder kept from them
    faults: int  # recorded, each against the liar
    octets: int  # byte strings for decoders
    by_machine: dict[str, dict[str, int]]  # frames by protocol and kind of state
    ended: dict[str, int]  # nodes that went out of the cluster, by the kind of liar
    doubted: int  # honest packets that did not fit any more after a lie
    findings: list[Finding]


def hash_of_sources() -> str:
    """Changes when a Python file changes on which a campaign depends."""
    digest = blake2b(digest_size=16)
    for path in SOURCES:
        for file in sorted((ROOT / path).rglob("*.py")) or [ROOT / path]:
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def results_of(book: Book, sources: str, first: int, seconds: float) -> Results:
    """A campaign as it is recorded."""
    by_machine: dict[str, dict[str, int]] = defaultdict(dict)
    for (protocol, state), frames in sorted(book.frames.items()):
        by_machine[protocol][state] = frames
    return Results(
        sources, datetime.now(UTC).date().isoformat(), first, book.runs, round(seconds),
        book.moments, book.total, book.tally.refused, book.tally.faults,
        sum(book.octets.values()), dict(by_machine), dict(sorted(book.tally.ended.items())),
        sum(book.tally.doubted.values()), list(book.findings.values()),
    )  # fmt: skip


def write(results: Results, path: Path = FILE) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
