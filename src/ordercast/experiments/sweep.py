"""Run a plan on Spark: what is finished stays, the rest is shared out, the tables are made anew.

A row depends on nothing but the plan and the code. So the tables are the same on whatever number of
executors, after whatever interruptions.
"""

from __future__ import annotations

import platform
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from ordercast import __version__
from ordercast.errors import UsageError
from ordercast.experiments import store
from ordercast.experiments.coordinates import Coordinates
from ordercast.experiments.identity import code_of, identities
from ordercast.experiments.plan import Plan
from ordercast.experiments.shares import MANY, shared_out, weight
from ordercast.experiments.task import SPARK_DONE, Share, do_shares
from ordercast.experiments.trial import Trial
from ordercast.pipeline.spark.task_code import by_tasks

LOOK_SECONDS = 0.25  # how often the bar is brought up to date
PACKAGES = ("msgspec", "numpy", "pyarrow", "pyspark")

Told = Callable[[int, int], None]
"""(finished runs, all runs)"""

Session = Callable[[], SparkSession]


class Summary(msgspec.Struct, frozen=True):
    """What a sweep did."""

    runs: int
    ran: int  # now; the others were finished
    verdicts: dict[str, int]
    first_bad: tuple[str, ...]  # of the first runs that were not kept: what is wrong

    def __str__(self) -> str:
        said = ", ".join(f"{count:,} {verdict}" for verdict, count in self.verdicts.items())
        before = self.runs - self.ran
        return f"{self.runs:,} runs: {said}; ran {self.ran:,}, {before:,} were finished"


def run_sweep(
    session: Session, plan: Plan, folder: str | Path, *, told: Told = lambda done, of: None
) -> Summary:
    """Run what is not finished, and write the tables. `UsageError` if somebody sweeps there.

    A `session` is asked for only if there is anything to run.
    """
    folder = Path(folder).absolute()
    wanted = identities(plan)
    with store.sweeping(folder):
        done = store.is_done(store.finished(folder), keep=plan.settings.keep)
        trials = trials_of(plan, {run: at for run, at in wanted.items() if run not in done})
        if trials:
            before = len(wanted) - len(trials)
            _run_all(session(), trials, folder, lambda now: told(before + now, len(wanted)))
        told(len(wanted), len(wanted))
        finished = store.finished(folder)
        rows = store.of_runs(finished, list(wanted))
        store.write_tables(folder, rows, about(plan))
        store.tidy(folder, finished)
    verdicts = Counter(rows["verdict"].to_pylist())
    bad = [one for one in rows["witness"].to_pylist() if one is not None]
    return Summary(len(wanted), len(trials), dict(sorted(verdicts.items())), tuple(bad[:3]))


def trials_of(plan: Plan, runs: Mapping[str, Coordinates]) -> list[Trial]:
    """What is to be done for these runs of the plan."""
    settings = plan.settings
    return [
        Trial(
            run=run,
            at=at,
            costs=plan.costs.of(at.protocol),
            trace=settings.trace,
            needless=settings.needless,
            false_order=settings.false_order,
            keep=settings.keep,
        )
        for run, at in runs.items()
    ]


def _run_all(
    spark: SparkSession, trials: list[Trial], folder: Path, told: Callable[[int], None]
) -> None:
    """One Spark job, while this thread looks at what is finished."""
    many = sum(weight(trial.at) for trial in trials) >= MANY
    shares = [Share(tuple(trials), many) for trials in shared_out(trials)]
    store.write_shares(folder, shares)
    before = store.count_finished(folder)
    numbers = spark.range(0, len(shares), 1, len(shares))
    job = _Job(lambda: by_tasks(numbers, partial(do_shares, str(folder)), SPARK_DONE).collect())
    job.start()
    while job.is_alive():
        job.join(LOOK_SECONDS)
        told(store.count_finished(folder) - before)
    if job.failure is not None:
        raise job.failure
    for row in job.answer:
        if row["trouble"] is not None:
            raise UsageError(row["trouble"])


class _Job(threading.Thread):
    """A call that may take long, in a thread of its own."""

    def __init__(self, call: Callable[[], list[Any]]) -> None:
        super().__init__(daemon=True)
        self.call = call
        self.answer: list[Any] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self.answer = self.call()
        except Exception as failure:
            self.failure = failure


def about(plan: Plan) -> dict[str, Any]:
    """How a table was made: what anybody needs to make it again, and nothing that would differ."""
    protocols = sorted({run.protocol for run in plan.runs})
    seeds = sorted({run.seed for run in plan.runs})
    return {
        "name": plan.name,
        "title": plan.settings.title,
        "settings": msgspec.to_builtins(plan.settings),
        "runs": len(plan.runs),
        "seeds": seeds,
        "code": {name: code_of(name) for name in protocols},
        "versions": {
            "ordercast": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "calibrations": msgspec.to_builtins(plan.costs.calibrations),
    }
