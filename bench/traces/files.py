"""Generated runs on disk: written once, reused while the shape is the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.traces.logs import (
    ROWS,
    Messages,
    declarations,
    log_of,
    messages_of,
    shuffled_tables_of,
    tables_of,
)
from bench.traces.plant import named, plant
from bench.traces.shape import Shape
from bench.traces.stage import Fault
from bench.traces.world import World
from ordercast.trace.layout import run_folder
from ordercast.trace.tables import TABLE_SCHEMA, joined

REPEATED = [field.name for field in TABLE_SCHEMA if pa.types.is_dictionary(field.type)]
NOTE = "_shape.json"  # its name is hidden from Spark


@dataclass(frozen=True)
class Generated:
    """A run on disk."""

    path: Path
    rows: int
    bytes: int
    faults: tuple[Fault, ...]


def generate(directory: Path, shape: Shape) -> Generated:
    """Write the run under `directory`, or find it there."""
    folder = run_folder(directory, shape.run)
    note = folder / NOTE
    told = {"shape": msgspec.json.decode(msgspec.json.encode(asdict(shape)))}
    if note.exists():
        known = msgspec.json.decode(note.read_bytes())
        if known["shape"] == told["shape"]:
            return msgspec.convert({**known["run"], "path": str(folder)}, Generated, dec_hook=_path)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    world, messages, faults = build(shape)
    write = _write_heap if shape.layout == "heap" else _write_logs
    rows = write(world, messages, folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    found = Generated(folder, rows, size, tuple(faults))
    run = msgspec.to_builtins(found, enc_hook=str)
    note.write_bytes(msgspec.json.encode({**told, "run": run}))
    return found


def _path(kind: type, text: Any) -> Path:
    return Path(text)


def build(shape: Shape) -> tuple[World, Messages, list[Fault]]:
    """A run that is not yet written."""
    world = World(shape)
    outlines = plant(world)
    messages = messages_of(world)
    used = {m for one in outlines.values() for m in (*one.messages, *one.chain)}
    names = {m: messages.names[m].as_py() for m in used}
    return world, messages, named(world, names, outlines)


def small_table(shape: Shape) -> tuple[Any, list[Fault]]:
    """All rows of a small run in one table, and its faults."""
    world, messages, faults = build(shape)
    logs = (log_of(world, q) for q in range(world.processes))
    tables = [table for log in logs for table in tables_of(world, messages, log)]
    return joined([declarations(world), *tables]), faults


def _write_logs(world: World, messages: Messages, folder: Path) -> int:
    """One file per process. The declarations stand in the first."""
    tables = shuffled_tables_of if world.shape.layout == "shuffled" else tables_of
    rows = 0
    for q in range(world.processes):
        with _writer(folder / f"{world.names[q]}.parquet") as file:
            if q == 0:
                file.write_table(declarations(world))
            for table in tables(world, messages, log_of(world, q)):
                file.write_table(table, row_group_size=ROWS)
                rows += len(table)
    return rows


def _write_heap(world: World, messages: Messages, folder: Path) -> int:
    """One file, in which the rows of all logs lie as they fall."""
    rng = np.random.default_rng(world.shape.seed)
    each = max(ROWS // world.processes, 1)
    logs = [
        shuffled_tables_of(world, messages, log_of(world, q), each) for q in range(world.processes)
    ]
    rows = 0
    with _writer(folder / "heap.parquet") as file:
        file.write_table(declarations(world))
        for tables in _in_turn(logs):
            table = joined(tables).unify_dictionaries()
            file.write_table(table.take(pa.array(rng.permutation(len(table)))))
            rows += len(table)
    return rows


def _in_turn(logs: list[Iterator[Any]]) -> Iterator[list[Any]]:
    """The next table of every log, while there is any."""
    while tables := [table for log in logs if (table := next(log, None)) is not None]:
        yield tables


def _writer(path: Path) -> Any:
    return pq.ParquetWriter(path, TABLE_SCHEMA, compression="zstd", use_dictionary=REPEATED)
