"""What each kernel of the pipeline costs by itself: CPU time on one core, without Spark."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.traces import Generated
from ordercast.judge.kernels import integrity, liveness, precedence, views
from ordercast.judge.kernels.causality import scan, whole_logs
from ordercast.judge.kernels.judge import DEFAULT_WITNESSES, Part, judge_run
from ordercast.judge.kernels.membership import Membership
from ordercast.judge.kernels.missing_deliveries import MissingDeliveries
from ordercast.judge.kernels.run import Run
from ordercast.judge.kernels.total import check_total
from ordercast.judge.kernels.total_gapless import check_gapless
from ordercast.judge.kernels.vsync import check_vsync
from ordercast.judge.run_files import load_run

REPEATS = 3
LIMIT = DEFAULT_WITNESSES


def load(generated: Generated) -> Run:
    """The run in memory."""
    files = sorted(map(str, Path(generated.path).glob("*.parquet")))
    return load_run(files, quiescent=False)


def cpu_s(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """CPU time of one call, the best of several after one that warms up."""
    action()
    best = float("inf")
    for _ in range(repeats):
        gc.collect()
        before = time.process_time()
        action()
        best = min(best, time.process_time() - before)
    return best


def speeds(generated: Generated) -> dict[str, float]:
    """Events per second and core of every kernel."""
    figures = {"read and number": cpu_s(lambda: load(generated), 1)}
    run = load(generated)
    logs = whole_logs(run)
    scanned = scan(run, logs)
    members = Membership(run, scanned.causality)
    missing = MissingDeliveries(run, members)
    owed, orders = missing.owed, check_total(run, LIMIT)
    kernels: dict[str, Callable[[], Any]] = {
        "happened-before, inversions": lambda: scan(run, logs),
        "fifo, causal": lambda: precedence.check(run, scanned, owed, LIMIT),
        "total": lambda: check_total(run, LIMIT),
        "gapless": lambda: check_gapless(
            run, owed, orders.disordered, orders.disordered_uniform, LIMIT
        ),
        "who is a member, who owes": lambda: (
            MissingDeliveries(run, Membership(run, scanned.causality)).owed
        ),
        "wellformed": lambda: integrity.wellformed(run, scanned.causality, LIMIT),
        "no_duplication": lambda: integrity.no_duplication(run, LIMIT),
        "no_creation": lambda: integrity.no_creation(run, scanned.causality, LIMIT),
        "membership": lambda: integrity.membership(run, members, LIMIT),
        "validity": lambda: liveness.validity(run, members, missing, LIMIT),
        "agreement": lambda: liveness.agreement(run, members, missing, LIMIT),
        "views": lambda: views.check_views(run, members, LIMIT),
        "vsync": lambda: check_vsync(run, members, LIMIT),
        "sending_view": lambda: views.check_sending_view(run, members, LIMIT),
    }
    figures |= {name: cpu_s(kernel) for name, kernel in kernels.items()}
    return {name: generated.rows / seconds for name, seconds in figures.items()}


def causal_s(generated: Generated) -> float:
    """CPU time of all that fifo and causal order need, per event of the run."""
    run = load(generated)
    return cpu_s(lambda: judge_run(run, Part("precedence"))) / generated.rows
