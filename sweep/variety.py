"""python -m sweep.variety PROTOCOL: what happens in runs with churn, and how long it takes.

A sweep is worth what its runs are: this counts how many of them see what they are meant to see.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from time import process_time

from ordercast.membership.news import Blocked, Dissolved, Installed, Out
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.log import Ended
from sweep.churn import churn
from sweep.cluster_oracle import ClusterRun, done_ms, enough_live, misplaced, run

RACE_MS = 100.0  # a newcomer's first view and an exclusion: so close, they raced
SEEDS = range(300)


def features(done: ClusterRun) -> Iterator[str]:
    """What happened in this run."""
    simulation, installed = done.simulation, done.installed
    news = [item for _, _, item in simulation.story]
    out = {p for _, p, item in simulation.story if isinstance(item, Out | Dissolved)}
    firsts = {p: ms for ms, p, *_ in reversed(installed)}
    crashes = {
        p: tick / TICKS_PER_MS
        for p, tick, *rows in done.outcome.log.records
        if rows == [Ended("crash")] and p not in out
    }
    exclusions = [
        ms for ms, _, item in simulation.story if isinstance(item, Installed) and item.excluded
    ]
    if any(_coordinated(done, p, ms) for p, ms in crashes.items()):
        yield "a coordinator crashed"
    if done.begun - done.decided:
        yield "an attempt to end a view was cut short"
    if len(done.begun) > 2:
        yield "three or more attempts"
    if simulation.medium.cut:
        yield "packets were cut off"
    if any(isinstance(item, Blocked) for item in news):
        yield "some were blocked"
    if any(isinstance(item, Dissolved) for item in news):
        yield "a side went over to another"
    if any(p >= simulation.config.hosts for p in firsts):
        yield "some came back as the next incarnation"
    if any(abs(ms - at) < RACE_MS for ms in list(firsts.values()) for at in exclusions):
        yield "a join raced with an exclusion"
    if not enough_live(done):
        yield "too few live, as the judge counts"
    if list(misplaced(done)):
        yield "not everything is in place in the end"


def _coordinated(done: ClusterRun, p: int, ms: float) -> bool:
    views = [view for at, q, view in done.installed if q == p and at <= ms]
    return bool(views) and views[-1].coordinator == p and len(views[-1].pids) > 1


def main() -> None:
    """Count, for both kinds of partition."""
    protocol = PROTOCOLS[sys.argv[1] if len(sys.argv) > 1 else "sequencer_pb"]
    for partition in ("primary", "merge"):
        counted: Counter[str] = Counter()
        took = []
        began = process_time()
        for seed in SEEDS:
            done = run(churn(protocol, seed, partition))
            counted.update(features(done))
            if not list(misplaced(done)):
                took.append(max(0.0, done_ms(done) - done.last_fault_ms))
        cpu_ms = 1000 * (process_time() - began) / len(SEEDS)
        print(f"{partition}: {len(SEEDS)} runs, {cpu_ms:.0f} ms of CPU each")
        for name, count in counted.most_common():
            print(f"  {100 * count / len(SEEDS):5.1f} %  {name}")
        ordered = sorted(took)
        marks = {f"{q} %": ordered[int(len(ordered) * q / 100)] for q in (50, 90, 99)}
        told = ", ".join(f"{name} of runs {ms:.0f}" for name, ms in marks.items())
        print(f"  in place after the last fault, in ms: {told}, the longest {ordered[-1]:.0f}")


if __name__ == "__main__":
    main()
