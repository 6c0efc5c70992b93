"""The folder of a sweep: what is finished, and the tables made of it.

DIR/runs.parquet      one row per run of the plan, sorted: the table
DIR/work.parquet      what each run took of whatever machine it ran on
DIR/about.json        how the table was made: code, versions, calibrations, the plan
DIR/traces/run=ID/    traces, if any are kept
DIR/parts/            finished runs as tasks wrote them: what makes a sweep go on
DIR/_lock             held by whoever runs a sweep here
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import UsageError
from ordercast.experiments.schema import ABOUT, PART_SCHEMA, RUNS_SCHEMA, WORK_SCHEMA
from ordercast.experiments.task import PARTS, SHARES, TRACES, Share, share_file, write_part

RUNS, WORK_TABLE, ABOUT_FILE, LOCK = "runs.parquet", "work.parquet", "about.json", "_lock"
OURS = frozenset((RUNS, WORK_TABLE, ABOUT_FILE, LOCK, PARTS, SHARES, TRACES))
MOST_PARTS = 64  # files that the next sweep in this folder would have to open


@contextmanager
def sweeping(folder: Path) -> Iterator[None]:
    """Be the only one who sweeps into this folder. `UsageError` if it is not ours, or in use."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a sweep needs a folder")
    found = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if found - OURS and LOCK not in found:
        raise UsageError(f"{folder} has {min(found - OURS)!r} in it: name a new or empty folder")
    for name in (PARTS, SHARES):
        (folder / name).mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = lock.read().strip() or "another process"
            raise UsageError(f"{folder}: {who} is sweeping; try again when it has ended") from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        lock.flush()
        yield


def finished(folder: Path) -> pa.Table:
    """All runs that are finished, each once; if one was run again for its trace, that one."""
    parts = [pq.read_table(file) for file in _parts(folder)]
    same = [part for part in parts if part.schema.equals(PART_SCHEMA)]  # others: of older code
    table = pa.concat_tables([PART_SCHEMA.empty_table(), *same]).combine_chunks()
    places: dict[str, int] = {}
    named = zip(table["run"].to_pylist(), table["traced"].to_pylist(), strict=True)
    for place, (run, traced) in enumerate(named):
        if traced or run not in places:
            places[run] = place
    return table.take(pa.array(sorted(places.values()), pa.int64()))


def count_finished(folder: Path) -> int:
    """Runs in the parts; those in two of them count twice. Cheap: the names of files tell."""
    return sum(int(file.stem.rpartition("-")[2]) for file in _parts(folder))


def _parts(folder: Path) -> list[Path]:
    return sorted((folder / PARTS).glob("[!_]*.parquet"))


def write_shares(folder: Path, shares: Collection[Share]) -> None:
    """What tasks are to do; those of a sweep before are gone."""
    shutil.rmtree(folder / SHARES)
    (folder / SHARES).mkdir()
    for number, share in enumerate(shares):
        share_file(folder, number).write_bytes(msgspec.json.encode(share))


def write_tables(folder: Path, rows: pa.Table, about: dict[str, Any]) -> None:
    """The tables of all runs of a plan, in this order, whole or not at all."""
    told = msgspec.json.encode(about, order="sorted")
    runs = rows.select(RUNS_SCHEMA.names).cast(RUNS_SCHEMA).replace_schema_metadata({ABOUT: told})
    _replace(folder / WORK_TABLE, rows.select(WORK_SCHEMA.names))
    (folder / ABOUT_FILE).write_bytes(msgspec.json.format(told, indent=2) + b"\n")
    _replace(folder / RUNS, runs)


def _replace(path: Path, table: pa.Table) -> None:
    draft = path.with_name(f"_{path.name}")
    pq.write_table(table.combine_chunks(), draft, compression="zstd")
    draft.replace(path)


def tidy(folder: Path, done: pa.Table) -> None:
    """Put many parts together, and forget drafts of those who were killed."""
    shutil.rmtree(folder / SHARES)
    for draft in (folder / PARTS).glob("_*"):
        draft.unlink(missing_ok=True)
    parts = _parts(folder)
    if len(parts) > MOST_PARTS:
        write_part(folder, done)
        for part in parts:
            part.unlink()


def of_runs(table: pa.Table, runs: Collection[str]) -> pa.Table:
    """The rows of these runs, in this order. All must be there."""
    places = {run: place for place, run in enumerate(table["run"].to_pylist())}
    return table.take(pa.array([places[run] for run in runs], pa.int64()))


def is_done(table: pa.Table, *, keep: str) -> set[str]:
    """The runs that need not be run again: those without a trace that is wanted must."""
    traced = table["traced"]
    if keep == "all":
        table = table.filter(pc.or_(traced, pc.equal(table["verdict"], "failed")))
    elif keep == "failed":
        fine = pc.is_in(table["verdict"], pa.array(["kept", "failed"]))
        table = table.filter(pc.or_(traced, fine))
    return set(table["run"].to_pylist())
