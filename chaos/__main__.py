"""python -m chaos: random faults on live clusters, judged from outside; docs/CHAOS.md.

Seeds that are done under the present sources are not run again. `--seed N --runs 1` runs one again
and tells its story. Exit code 1 if anything was found that no known rule explains.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

import msgspec
from rich.console import Console

from chaos.judge import Finding, deliveries, judge
from chaos.known import explanation
from chaos.lane import Lane
from chaos.ledger import Found, Ledger, Record, Summary, summary, write
from chaos.logs import Log, read_logs
from chaos.outcome import Outcome
from chaos.plan import Plan, plan_of
from netlab.namespaces import refusal

PATIENCE = 60.0  # seconds within which a cluster must have recovered; generous: machines are busy
MAX_STORY = 400  # characters of a line in the story of a run

console = Console(highlight=False, soft_wrap=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--minutes", type=float, default=60.0, help="no run begins after this")
    parser.add_argument("--out", type=Path, default=Path("out/chaos"))
    parser.add_argument("--lanes", type=int, default=2, help="runs at a time")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds to recover in")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--master", default="local[2]", help="for Spark")
    parser.add_argument("--keep", action="store_true", help="also folders of runs without findings")
    parser.add_argument("--record", action="store_true", help="in chaos/results.json")
    return parser.parse_args()


def main() -> int:
    wanted = arguments()
    if (reason := refusal()) is not None:
        console.print(reason, style="red", markup=False)
        return 2
    ledger = Ledger(wanted.out)
    again = wanted.runs == 1
    done = set() if again else {record.seed for record in ledger.records()}
    seeds = [n for n in range(wanted.seed, wanted.seed + wanted.runs) if n not in done]
    try:
        run_all(seeds, ledger, wanted)
    except KeyboardInterrupt:
        console.print("interrupted; what is done is kept")
    asked = range(wanted.seed, wanted.seed + wanted.runs)
    records = [record for record in ledger.records() if record.seed in asked]
    if again and records:
        tell_story(wanted.out / str(wanted.seed))
    spark, more = verdicts(records, wanted) if wanted.spark else ({}, [])
    result = summary(records, ledger.sources, spark, more)
    tell(result)
    if wanted.record:
        write(result)
    return 1 if result.unexplained else 0


# -- runs -----------------------------------------------------------------------------------------


def run_all(seeds: list[int], ledger: Ledger, wanted: argparse.Namespace) -> None:
    """Work off the seeds on several lanes, each a process with a network of its own."""
    context = get_context("fork")
    tasks: Queue[int] = context.Queue()
    results: Queue[Record | str] = context.Queue()
    deadline = time.monotonic() + 60 * wanted.minutes
    for seed in seeds:
        tasks.put(seed)
    lanes = [
        context.Process(
            target=work,
            args=(tasks, results, wanted.out, wanted.patience, ledger.sources, deadline),
        )
        for _ in range(min(wanted.lanes, len(seeds)))
    ]
    for _ in lanes:
        tasks.put(-1)  # the end
    for lane in lanes:
        lane.start()
    running = len(lanes)
    while running:
        result = results.get()
        if isinstance(result, Record):
            ledger.add(result)
            tell_run(result)
        else:
            running -= 1
            if result:
                console.print(result, style="red", markup=False)
    for lane in lanes:
        lane.join()


def work(
    tasks: Queue[int],
    results: Queue[Record | str],
    out: Path,
    patience: float,
    sources: str,
    deadline: float,
) -> None:
    """In a lane's process: plans until the end of the list, or of the time."""
    trouble = ""
    try:
        with Lane(patience=patience) as lane:
            while (seed := tasks.get()) >= 0 and time.monotonic() < deadline:
                results.put(one_run(lane, plan_of(seed), out / str(seed), sources))
    except BaseException as error:
        trouble = f"a lane ended: {type(error).__name__}: {error}"
        raise
    finally:
        results.put(trouble)


def one_run(lane: Lane, plan: Plan, folder: Path, sources: str) -> Record:
    """Carry a plan out and judge it."""
    shutil.rmtree(folder, ignore_errors=True)
    start = time.monotonic()
    outcome = lane.run(plan, folder)
    logs = read_logs(folder)
    return Record(
        plan.seed,
        sources,
        plan.kinds,
        seconds=round(time.monotonic() - start, 2),
        sends=sum(1 for log in logs for _ in log.of_kind("send")),
        deliveries=deliveries(logs),
        recovery=outcome.recovery,
        findings=findings(plan, outcome, logs),
    )


def findings(plan: Plan, outcome: Outcome, logs: list[Log]) -> tuple[Found, ...]:
    return tuple(
        Found(plan.seed, one.property, one.sentence, explanation(plan, outcome, logs, one))
        for one in judge(plan, outcome, logs)
    )


def explained(folder: Path, seed: int, finding: Finding) -> Found:
    """A finding on a run of before."""
    outcome = msgspec.json.decode((folder / "outcome.json").read_bytes(), type=Outcome)
    rule = explanation(plan_of(seed), outcome, read_logs(folder), finding)
    return Found(seed, finding.property, finding.sentence, rule)


def verdicts(
    records: list[Record], wanted: argparse.Namespace
) -> tuple[dict[str, int], list[Found]]:
    """Spark's word on the traces that are there; folders of runs without findings go then."""
    from chaos.verdict import spark_verdicts  # whoever wants no Spark does not wait for it

    settled = {record.seed: record.recovery is not None for record in records}
    whole = [record.seed for record in records if "full disk" not in record.kinds]
    folders = [wanted.out / str(seed) for seed in whole]
    there = [folder for folder in folders if any((folder / "trace").rglob("*.*"))]
    if not there:
        return {}, []
    console.print(f"the Spark verdict on {len(there)} traces")
    counts, wrong = spark_verdicts(there, lambda seed: settled[seed], wanted.master)
    found = [explained(wanted.out / str(seed), seed, finding) for seed, finding in wrong]
    if len(whole) < len(records):
        counts["not judged: a trace is cut by a full disk"] = len(records) - len(whole)
    if not wanted.keep and len(records) > 1:
        bad = {one.seed for one in found} | {r.seed for r in records if r.findings}
        for record in records:
            if record.seed not in bad:
                shutil.rmtree(wanted.out / str(record.seed), ignore_errors=True)
    return counts, found


# -- telling --------------------------------------------------------------------------------------


def tell_run(record: Record) -> None:
    news = [found for found in record.findings if not found.rule]
    rules = sorted({found.rule for found in record.findings if found.rule})
    end = "did not recover" if record.recovery is None else f"recovered in {record.recovery:.2f} s"
    line = f"{record.seed:6} {record.seconds:5.1f} s {record.deliveries:6,} deliveries  {end}"
    console.print(f"{line}  {', '.join(record.kinds)}  {' '.join(rules)}", markup=False)
    for found in news:
        console.print(str(found), style="red", markup=False)


def tell_story(folder: Path) -> None:
    """All that happened, in the order of time; deliveries and sends are left out."""
    outcome = (folder / "outcome.json").read_text(encoding="utf-8")
    lines = [
        (entry[0], f"{log.process:5} {' '.join(map(str, entry[1:]))}")
        for log in read_logs(folder)
        for entry in log.entries
        if entry[1] not in ("got", "send", "sent")
    ]
    for moment, words in sorted(lines):
        console.print(f"{moment:12.3f} {words}"[:MAX_STORY], markup=False)
    console.print((folder / "plan.json").read_text(encoding="utf-8"), markup=False)
    console.print(outcome, markup=False)


def tell(result: Summary) -> None:
    """The summary, as a table."""
    for kind, row in result.kinds.items():
        median, ninety = row["recovery_median"], row["recovery_90"]
        times = f"median {median} s, 90 % {ninety} s" if median is not None else "none recovered"
        console.print(
            f"{kind:20} {row['runs']:5} runs, {row['recovered']:5} recovered, {times}, "
            f"{row['explained']} explained, {row['unexplained']} unexplained"
        )
    console.print(
        f"{result.runs:,} runs, {result.deliveries:,} deliveries; recovery: median "
        f"{result.recovery_median} s, 90 % {result.recovery_90} s, slowest {result.slowest[:1]}; "
        "by known rules: "
        f"{result.explained or 'none'}; Spark: {result.spark or 'not asked'}; "
        f"unexplained: {result.unexplained}"
    )
    for found in result.findings:
        if not found.rule:
            console.print(str(found), style="red", markup=False)


if __name__ == "__main__":
    sys.exit(main())
