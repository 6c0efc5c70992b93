"""What was swept, for people: `sweep/results.json`, one line for each protocol and arena.

A line keeps the hash of the sources that it was run with. It stays until the same pair is recorded
again, so a sweep of a few pairs does not hide what was found of the others; but it says that it is
of older code.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sweep.ledger import Ledger
from sweep.trial import Failure

FILE = Path(__file__).with_name("results.json")


class Result(msgspec.Struct, frozen=True):
    """All seeds of one protocol in one arena."""

    protocol: str
    arena: str
    runs: int
    sources: str  # hash of the files that decide its runs, then
    failures: tuple[Failure, ...] = ()
    older: bool = False  # these files have changed since


def recorded(before: list[Result], ledger: Ledger) -> list[Result]:
    """Those of before, but for what the ledger has anew."""
    pairs = {(result.protocol, result.arena): _dated(result, ledger) for result in before}
    for pair, runs in ledger.done.items():
        protocol, arena = pair.split("/")
        found = tuple(f for f in ledger.failures if (f.protocol, f.arena) == (protocol, arena))
        result = Result(protocol, arena, runs, ledger.sources[protocol], found)
        pairs[protocol, arena] = result
    return list(pairs.values())


def resume(ledger: Ledger, before: list[Result]) -> None:
    """Seeds that were recorded with the sources of now need not run again."""
    for result in before:
        pair = f"{result.protocol}/{result.arena}"
        is_current = ledger.sources.get(result.protocol) == result.sources
        if is_current and result.runs > ledger.done.get(pair, 0):
            ledger.done[pair] = result.runs
            known = {f.seed for f in ledger.failures if f"{f.protocol}/{f.arena}" == pair}
            ledger.failures += [f for f in result.failures if f.seed not in known]


def _dated(result: Result, ledger: Ledger) -> Result:
    """With a word on whether its code is that of now."""
    older = ledger.sources.get(result.protocol) != result.sources
    return msgspec.structs.replace(result, older=older)


def read(path: Path = FILE) -> list[Result]:
    return msgspec.json.decode(path.read_bytes(), type=list[Result]) if path.exists() else []


def write(results: list[Result], path: Path = FILE) -> None:
    """A line for each."""
    lines = ",\n".join(msgspec.json.encode(result).decode() for result in results)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
