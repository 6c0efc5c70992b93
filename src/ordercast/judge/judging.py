"""Judge the rows of runs with the kernels: in a task of Spark, or without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.kernels.judge import WHOLE, Part, judge_run
from ordercast.judge.kernels.load import RunLoader
from ordercast.judge.kernels.promises import promises as declared
from ordercast.judge.kernels.promises import restricted
from ordercast.judge.kernels.run import Run
from ordercast.judge.verdict_rows import verdict_batch

Batches = Iterable[pa.RecordBatch]


def judge_batches(
    batches: Batches, *, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    """The verdicts on all runs, from batches in which the rows of a run are neighbours."""
    for name, pieces in groupby(pieces_of(batches), key=itemgetter(0)):
        loader = RunLoader()
        for _, piece in pieces:
            loader.add(piece)
        run = loader.finish(quiescent=quiescent)
        yield from judged_run(name, run, WHOLE, quiescent, witnesses, promises)


def judged_run(
    name: str, run: Run, part: Part, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a run, and of each domain that it declares."""
    judged = judge_run(run, part, witnesses=witnesses)
    yield verdict_batch(name, None, judged)
    for promise in declared(run) if promises else ():
        if promise.everything:
            yield verdict_batch(name, promise, judged)
        else:
            inside = restricted(run, promise.groups, quiescent=quiescent)
            yield verdict_batch(name, promise, judge_run(inside, part, witnesses=witnesses))


def pieces_of(batches: Batches) -> Iterator[tuple[str, pa.Table]]:
    """Stretches of rows of one run, from batches in which the rows of a run are neighbours."""
    for batch in batches:
        start = 0
        for stop in _run_ends(batch):
            yield batch.column("run")[start].as_py(), pa.table(batch.slice(start, stop - start))
            start = stop


def _run_ends(batch: pa.RecordBatch) -> list[int]:
    """Where in the batch each stretch of one run ends."""
    if not batch.num_rows:
        return []
    run = batch.column("run")
    changes = pc.not_equal(run.slice(1), run.slice(0, len(run) - 1))
    ends = pc.indices_nonzero(changes).to_pylist()
    return [*(end + 1 for end in ends), batch.num_rows]
