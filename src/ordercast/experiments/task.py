"""What a Spark task does: the runs of its share one by one, then one file with their rows.

A task is told a number and finds its share in a file of the sweep's folder, which all machines see
under the same path. Its rows are there whole or not at all, whenever anything is killed.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.experiments.schema import PART_SCHEMA, table_of
from ordercast.experiments.trial import Trial, run_trial
from ordercast.judge.kernels.compiled import compile_at_once

PARTS, SHARES, TRACES = "parts", "_shares", "traces"
DONE_SCHEMA = pa.schema([("runs", pa.int64()), ("trouble", pa.string())])
SPARK_DONE = "runs long, trouble string"


class Share(msgspec.Struct, frozen=True):
    """The runs of one task."""

    trials: tuple[Trial, ...]
    many: bool  # the sweep is so large that compiling pays


def share_file(folder: Path, number: int) -> Path:
    """Where the share of a task is written."""
    return folder / SHARES / f"{number:05d}.json"


def do_shares(folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the shares with these numbers, and tell how many runs that were."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            runs, trouble = _do(Path(folder), number)
            yield pa.record_batch([[runs], [trouble]], schema=DONE_SCHEMA)


def _do(folder: Path, number: int) -> tuple[int, str | None]:
    try:
        told = share_file(folder, number).read_bytes()
    except FileNotFoundError:
        return 0, (
            f"{folder} is not visible on the Spark worker {socket.gethostname()}; it must lie "
            "where every worker sees it under the same path, for example in a shared folder"
        )
    share = msgspec.json.decode(told, type=Share)
    if share.many:
        compile_at_once()
    rows = [run_trial(trial, folder / TRACES) for trial in share.trials]
    write_part(folder, table_of(rows, PART_SCHEMA))
    return len(rows), None


def write_part(folder: Path, rows: pa.Table) -> None:
    """Add finished runs to the folder. The same runs have the same file, whoever ran them."""
    runs = "".join(sorted(rows["run"].to_pylist()))
    name = f"{hashlib.sha256(runs.encode()).hexdigest()[:20]}-{rows.num_rows}"
    draft = folder / PARTS / f"_{name}-{socket.gethostname()}-{os.getpid()}"
    with draft.open("wb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / PARTS / f"{name}.parquet")
