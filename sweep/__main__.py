"""python -m sweep: many seeds, on all cores, resumable. `--seed` replays one run; `--record` keeps
the counts in the repository."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ordercast.membership.news import Installed
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import Outcome, simulate
from sweep import results
from sweep.arenas import ARENAS
from sweep.cluster_arenas import CLUSTERS
from sweep.cluster_oracle import ClusterRun, run
from sweep.ledger import Ledger, load, save
from sweep.trial import Failure, failures

BLOCK = 20  # seeds that one task judges
SEEDS = -(-10_000 // len(ARENAS))  # at least ten thousand runs of each protocol
FINITE = ("cluster_steps", "pairs")  # every seed is a case of its own, and there are no more
LEDGER = Path("out/sweep/ledger.json")

Task = tuple[str, str, int, int]  # protocol, arena, first seed, seeds

console = Console(highlight=False)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sweep", description=__doc__)
    arenas = [*ARENAS, *CLUSTERS]
    parser.add_argument("--seeds", type=int, help="per protocol and arena; else as many as it asks")
    parser.add_argument("--protocol", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS))
    parser.add_argument("--arena", nargs="+", choices=arenas, default=arenas)
    parser.add_argument("--seed", type=int, help="run only this seed and print the trace")
    parser.add_argument("--record", action="store_true", help="in sweep/results.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    return parser.parse_args()


def main() -> int:
    """Exit code 1 if anything failed."""
    wanted = arguments()
    pairs = [(protocol, arena) for protocol in wanted.protocol for arena in wanted.arena]
    if wanted.seed is not None:
        found = [failure for p, a in pairs for failure in replay(p, a, wanted.seed)]
    else:
        ledger = load(LEDGER)
        results.resume(ledger, results.read())
        sweep(ledger, tasks(ledger, pairs, wanted.seeds), wanted.jobs)
        tell(ledger, pairs)
        if wanted.record:
            results.write(results.recorded(results.read(), ledger))
        found = [
            failure for failure in ledger.failures if (failure.protocol, failure.arena) in pairs
        ]
    for failure in found:
        console.print(str(failure), style="red", markup=False, soft_wrap=True)
    return 1 if found else 0


def tasks(ledger: Ledger, pairs: Iterable[tuple[str, str]], seeds: int | None) -> list[Task]:
    """What is left to do: early seeds of every pair before late seeds of any."""
    left: list[Task] = []
    for protocol, arena in pairs:
        done, wanted = ledger.done.get(f"{protocol}/{arena}", 0), seeds_of(protocol, arena)
        if seeds is not None:
            wanted = min(seeds, wanted) if arena in FINITE or not wanted else seeds
        left += [
            (protocol, arena, first, min(BLOCK, wanted - first))
            for first in range(done, wanted, BLOCK)
        ]
    return sorted(left, key=lambda task: task[2])


def seeds_of(protocol: str, arena: str) -> int:
    """As many as a whole sweep runs."""
    page = PROTOCOLS[protocol]
    if arena in CLUSTERS:
        return CLUSTERS[arena].seeds(page)
    return SEEDS if ARENAS[arena].serves(page) else 0


def judge_block(task: Task) -> tuple[Task, list[Failure]]:
    """In a worker: all seeds of one task."""
    protocol, arena, first, seeds = task
    block = range(first, first + seeds)
    return task, [failure for seed in block for failure in failures(protocol, arena, seed)]


def sweep(ledger: Ledger, left: list[Task], jobs: int) -> None:
    """Work off the tasks, and write down every one that is done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress, get_context("fork").Pool(jobs) as pool:
        bar = progress.add_task("runs", total=sum(task[3] for task in left))
        for task, found in pool.imap(judge_block, left):  # in order: what is done has no holes
            protocol, arena, first, seeds = task
            ledger.done[f"{protocol}/{arena}"] = first + seeds
            ledger.failures += found
            save(LEDGER, ledger)
            progress.advance(bar, seeds)
            if found:
                console.print(str(found[0]), style="red", markup=False, soft_wrap=True)


def tell(ledger: Ledger, pairs: Iterable[tuple[str, str]]) -> None:
    """The counts, one line per protocol."""
    for protocol in dict.fromkeys(protocol for protocol, _ in pairs):
        bad = {(f.arena, f.seed) for f in ledger.failures if f.protocol == protocol}
        runs, sources = ledger.runs(protocol), ledger.sources[protocol][:8]
        console.print(f"{protocol:14} {runs:8,} runs judged, {len(bad)} failed (sources {sources})")


def replay(protocol: str, arena: str, seed: int) -> list[Failure]:
    """Run one seed again; print its trace and what is wrong with it."""
    if arena in CLUSTERS:
        done = run(CLUSTERS[arena].config(PROTOCOLS[protocol], seed))
        tell_cluster(done)
        outcome: Outcome = done.outcome
    else:
        outcome = simulate(ARENAS[arena].config(PROTOCOLS[protocol], seed))
    for event in outcome.events():
        said = event.message or (f"{event.group} {event.view}" if event.view is not None else "")
        console.print(
            f"{(event.time or 0) / 1e6:9.2f} ms  {event.process or '':6} {event.kind:8} {said}",
            markup=False,
        )
    console.print(f"ended: {outcome.ended}")
    return failures(protocol, arena, seed)


def tell_cluster(done: ClusterRun) -> None:
    """The faults, and the node views that were installed."""
    for fault in sorted(done.simulation.config.faults, key=lambda fault: fault.at_ms):
        console.print(str(fault), markup=False)
    for ms, p, news in done.simulation.story:
        said = f"view {news.view.id} {news.view.pids}" if isinstance(news, Installed) else news
        console.print(f"{ms:9.2f} ms  process {p} {said}", markup=False)
    console.print(f"in the end: {done.outcome.standing}", markup=False)


if __name__ == "__main__":
    raise SystemExit(main())
