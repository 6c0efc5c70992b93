"""Traces that are laid out by run: a task can read the columns of its run itself.

That spares Spark the conversion of every row and the shuffle, which cost more than the checks.
Spark distributes which run, or which part of a large run, a task judges.

    segment of a recording              a file of the run that its head names
    Parquet file whose footer names     a file of that run
    one run, or without column `run`

Anything else is not laid out by run, and goes the other way: see `verify.verify`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from pathlib import Path

import pyarrow as pa

from ordercast.errors import TraceError
from ordercast.judge.kernels.judge import WHOLE, Part, parts
from ordercast.judge.kernels.load import RunLoader
from ordercast.judge.kernels.run import KERNEL_COLUMNS, Run
from ordercast.trace.layout import SEGMENT_SUFFIX
from ordercast.trace.parquet import parquet_pieces, read_piece, single_run
from ordercast.trace.read import file_table
from ordercast.trace.segments import segment_run

SPLIT_FROM = 4 * 1024**3  # bytes of a run from which its parts are judged by several tasks
CLOCK_SHARES = 2  # parts of the clock of such a run
TASK_BYTES = 16 * 1024 * 1024  # of small runs, for one task
READERS = 2  # pieces of files that a task reads at the same time

Reading = Callable[[], pa.Table]


@dataclass
class RunFiles:
    """The files that hold one run."""

    run: str
    files: list[str] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True)
class Work:
    """A run, or a part of it, for one task."""

    files: RunFiles
    part: Part = WHOLE


def runs_of_files(files: Iterable[Path]) -> list[RunFiles] | None:
    """The files of each run; None if some file is not known to hold one run only."""
    found: dict[str, RunFiles] = {}
    for file in files:
        run = _run_of(file)
        if run is None:
            return None
        entry = found.setdefault(run, RunFiles(run))
        entry.files.append(str(file))
        entry.size += file.stat().st_size
    return list(found.values())


def _run_of(file: Path) -> str | None:
    if file.suffix == ".parquet":
        return single_run(file)
    if file.suffix == SEGMENT_SUFFIX:
        try:
            return segment_run(file)
        except (TraceError, OSError):
            return None  # whoever reads it will say what is wrong with it
    return None


def bins(runs: Sequence[RunFiles], *, split_from: int, shares: int, most: int) -> list[list[Work]]:
    """The work of each of at most `most` tasks: large runs in parts, small ones many to a task."""
    large = [run for run in runs if run.size >= split_from]
    work = [Work(run, part) for run in large for part in parts(shares)]
    work += [Work(run) for run in runs if run.size < split_from]
    work.sort(key=lambda one: one.files.size, reverse=True)
    enough = sum(run.size for run in runs) // TASK_BYTES + len(large) * len(parts(shares)) + 1
    filled: list[list[Work]] = [[] for _ in range(min(enough, len(work), most))]
    sizes = [(0, place) for place in range(len(filled))]  # a heap: the emptiest first
    for one in work:
        size, place = heappop(sizes)
        filled[place].append(one)
        heappush(sizes, (size + one.files.size, place))
    return filled


def load_run(files: Sequence[str], *, quiescent: bool) -> Run:
    """Read the columns that the kernels need. Raises `TraceError` for rows that are no trace."""
    loader = RunLoader()
    for table in _read_ahead(_readings(files)):
        loader.add(table)
    return loader.finish(quiescent=quiescent)


def _read_ahead(readings: Iterable[Reading]) -> Iterator[pa.Table]:
    """What they give, in their order, the next ones being read while one is in use."""
    with ThreadPoolExecutor(READERS) as readers:
        coming: deque[Future[pa.Table]] = deque()
        for reading in readings:
            coming.append(readers.submit(reading))
            if len(coming) > READERS:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


def _readings(files: Sequence[str]) -> Iterator[Reading]:
    for file in map(Path, files):
        if file.suffix == ".parquet":
            for piece in parquet_pieces(file):
                yield partial(read_piece, piece, KERNEL_COLUMNS)
        else:
            yield partial(_read_segment, file)


def _read_segment(file: Path) -> pa.Table:
    return file_table(file).select(list(KERNEL_COLUMNS))
