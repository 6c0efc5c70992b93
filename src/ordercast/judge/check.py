"""Judge traces in this process: the readers, kernels and figures of `verify`, without Spark.

A trace that is laid out by run is read a few runs at a time, any other one at once. What is read at
a time must fit into the memory of this machine: how much it takes is estimated before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError, TraceTooLarge
from ordercast.judge.conclusion import Row, outcome_of
from ordercast.judge.expectations import expected_properties
from ordercast.judge.files import find_files, read_here
from ordercast.judge.judging import judge_batches
from ordercast.judge.kernels.judge import DEFAULT_WITNESSES
from ordercast.judge.kernels.run import KERNEL_COLUMNS
from ordercast.judge.measured import Measured, measured_here, unmeasured
from ordercast.judge.outcome import Outcome
from ordercast.judge.run_files import RunFiles, runs_of_files
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import Note, log_note

EVENT_BYTES = 400  # that an event takes while it is read, judged and measured
TEXT_BYTES = 12  # ... for each byte of a file that is no Parquet
SHARE = 0.8  # of the free memory that is used
PART_BYTES = 16 * 1024 * 1024  # of the files of small runs that are read at a time

Say = Callable[[str], None]


def check_paths(
    paths: Sequence[str | Path],
    *,
    expect: Iterable[str] = (),
    quiescent: bool = False,
    mapping: LogMapping | None = None,
    figures: bool = True,
    free_bytes: int | None = None,
    say: Say = lambda step: None,
    note: Note = log_note,
) -> Outcome:
    """Judge the traces in `paths` in this process; `say` is told each step.

    The outcome is that of `verify`. Without `figures` nothing is measured but counts of events.
    Raises `TraceError` for input that cannot be read, `ValueError` for an unknown expectation, and
    `TraceTooLarge` for a trace that would not fit into `free_bytes` (default: what is free now).
    """
    expected = expected_properties(expect)
    files = find_files(paths, mapping)
    runs = None if mapping is not None else runs_of_files(files)
    parts = [list(files)] if runs is None else list(_together(runs))
    _refuse_large(parts, free_memory() if free_bytes is None else free_bytes)
    verdicts: list[Row] = []
    measured: dict[str, Measured] = {}
    for number, part in enumerate(parts, 1):
        of_parts = f" ({number:,} of {len(parts):,})" if len(parts) > 1 else ""
        say(f"reading{of_parts}")
        events = read_here([files[file] for file in part], mapping=mapping, note=note)
        say(f"judging {events.num_rows:,} events{of_parts}")
        verdicts += _verdicts(events, quiescent=quiescent)
        if figures:
            say(f"measuring {events.num_rows:,} events{of_parts}")
        measured |= (measured_here if figures else unmeasured)(events)
    if not verdicts:
        raise TraceError(", ".join(map(str, paths)), None, None, "there is not a single event")
    return outcome_of(verdicts, measured, expected)


def _together(runs: Iterable[RunFiles]) -> Iterator[list[Path]]:
    """The files of each large run, and of as many small ones as are read at a time."""
    part: list[Path] = []
    size = 0
    for run in runs:
        if part and size + run.size > PART_BYTES:
            yield part
            part, size = [], 0
        part += map(Path, run.files)
        size += run.size
    yield part


def _verdicts(events: pa.Table, *, quiescent: bool) -> Iterator[Row]:
    """32 rows for each run, and for each domain that it declares."""
    rows = events.select(["run", *KERNEL_COLUMNS])
    if pc.count_distinct(rows["run"]).as_py() > 1:
        rows = rows.sort_by("run")
    batches = rows.combine_chunks().to_batches()
    for judged in judge_batches(
        batches, quiescent=quiescent, witnesses=DEFAULT_WITNESSES, promises=True
    ):
        yield from judged.to_pylist()


# -- memory ---------------------------------------------------------------------------------------


def _refuse_large(parts: Iterable[Sequence[Path]], free: int) -> None:
    needed = max(sum(map(bytes_to_judge, part)) for part in parts)
    if needed > SHARE * free:
        raise TraceTooLarge(needed, free)


def bytes_to_judge(file: Path) -> int:
    """An estimate of the memory that the events of this file take while they are judged."""
    if file.suffix == ".parquet":
        try:
            rows: int = pq.read_metadata(file).num_rows
        except (OSError, pa.ArrowException):
            return 0  # whoever reads it says what is wrong with it
        return rows * EVENT_BYTES
    return file.stat().st_size * TEXT_BYTES


def free_memory() -> int:
    """Bytes that this machine can give without swapping; very many if it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return int(kilobytes) * 1024
    except (OSError, StopIteration, ValueError):
        return 1 << 50
