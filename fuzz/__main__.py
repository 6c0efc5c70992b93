"""python -m fuzz: wrong packets for nodes in the states that simulated runs reach, bounded in time,
and wrong control messages for live nodes.
`--seed S --frames 1` runs one seed again; `--record` keeps the counts in the repository."""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import sys
from collections import Counter
from time import monotonic

from rich.console import Console
from rich.table import Table

from fuzz import results
from fuzz.campaign import campaign
from fuzz.control import control_campaign
from fuzz.findings import Book, Finding
from fuzz.known import not_found, unexplained
from fuzz.moments import STATES

ROOM = 2 << 30  # bytes that a campaign may take: more is a packet that makes a node large
EVERY = 20  # runs after which it says how far it is

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000, help="wrong packets in total")
    parser.add_argument("--minutes", type=float, default=30.0, help="no run begins after that")
    parser.add_argument("--seed", type=int, default=0, help="the first run")
    parser.add_argument("--control", type=int, default=20, help="rounds of control messages")
    parser.add_argument("--record", action="store_true", help="in fuzz/results.json")
    return parser.parse_args()


def main() -> int:
    """Exit code 1 if anything was found that nobody knew of."""
    wanted = arguments()
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
    begun, sources = monotonic(), results.hash_of_sources()
    book = campaign(wanted.frames, 60 * wanted.minutes, wanted.seed, after_run=Progress().tell)
    tell(book)
    found = list(book.findings.values())
    if wanted.record:
        results.write(results.results_of(book, sources, wanted.seed, monotonic() - begun))
    bad = [*unexplained(found), *fuzz_control(wanted.seed, wanted.control)]
    done = range(wanted.seed, wanted.seed + book.runs)
    gone = [known for known in not_found(found) if known.run in done]
    for known in gone:
        console.print(f"known and not found any more: {known}", style="red", markup=False)
    return 1 if bad or gone else 0


def fuzz_control(seed: int, rounds: int) -> list[str]:
    """Live nodes, which log what they are told. What went wrong."""
    if not rounds:
        return []
    logging.disable(logging.CRITICAL)
    book = asyncio.run(control_campaign(seed, rounds))
    logging.disable(logging.NOTSET)
    told = ", ".join(f"{role} {count:,}" for role, count in book.roles().items())
    console.print(f"control messages: {told}; {sum(book.faults.values()):,} faults of liars")
    for failure in book.failures:
        console.print(f"control, seed {seed}: {failure}", style="red", markup=False)
    return book.failures


class Progress:
    """How far a campaign is, and what it finds, as it goes."""

    def __init__(self) -> None:
        self.told = 0  # findings

    def tell(self, book: Book) -> None:
        """After a run."""
        for finding in unexplained(list(book.findings.values())[self.told :]):
            tell_finding(finding)
        self.told = len(book.findings)
        if book.runs % EVERY == 0:
            console.print(f"{book.runs:6,} runs, {book.total:9,} frames, {self.told} findings")


def tell(book: Book) -> None:
    """Frames by protocol and state, and the findings."""
    table = Table(title="frames", box=None)
    for column in ("protocol", *STATES, "all"):
        table.add_column(column, justify="left" if column == "protocol" else "right")
    columns: Counter[str] = Counter()
    for protocol in dict.fromkeys(protocol for protocol, _ in book.frames):
        of = {state: book.frames[protocol, state] for state in STATES}
        columns.update(of)
        counts = [f"{n:,}" for n in (*of.values(), sum(of.values()))]
        table.add_row(protocol, *counts)
    table.add_row("all", *(f"{columns[state]:,}" for state in STATES), f"{book.total:,}")
    console.print(table)
    tally = book.tally
    console.print(
        f"{book.runs:,} runs, {book.moments:,} moments, {book.total:,} frames; {tally.faults:,} "
        f"faults of liars; {tally.refused:,} refused by the decoder, beside "
        f"{sum(book.octets.values()):,} byte strings; nodes that ended: {dict(tally.ended)}; "
        f"{sum(tally.doubted.values()):,} honest packets that did not fit any more",
        markup=False,
    )
    for finding in book.findings.values():
        console.print(
            f"{finding.times:5} {finding.kind:10} {finding.place} {finding.function}: "
            f"{finding.header} in {finding.state!r}, from a {finding.liar}; "
            f"python -m fuzz --frames 1 --seed {finding.run}",
            markup=False,
            soft_wrap=True,
        )


def tell_finding(finding: Finding) -> None:
    """One that nobody knew of, with its witness."""
    told = f"{finding.kind} {finding.place} {finding.function}: {finding.header} in {finding.state}"
    said = f"{told}, run {finding.run}, {finding.protocol}: {finding.says}"
    console.print(said, style="red", markup=False, soft_wrap=True)
    for line in finding.witness:
        console.print(f"    {line}", markup=False, soft_wrap=True)


if __name__ == "__main__":
    raise SystemExit(main())
