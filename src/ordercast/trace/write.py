"""Write events as JSONL, CSV or Parquet. What is written reads back as the same events."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ordercast.trace.layout import run_folder
from ordercast.trace.schema import COLUMNS, Event


def write_jsonl(events: Iterable[Event], path: Path) -> None:
    """One JSON object per line; absent values are left out."""
    with Path(path).open("wb") as file:
        file.writelines(msgspec.json.encode(event) + b"\n" for event in events)


def write_csv(events: Iterable[Event], path: Path) -> None:
    """All columns; an absent value is an empty cell, members are a JSON array."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([_cell(getattr(event, name)) for name in COLUMNS] for event in events)


def write_parquet(events: Iterable[Event], directory: Path) -> list[Path]:
    """One file per run, `run=<run>/events.parquet`; returns them. Needs pyarrow."""
    from ordercast.trace.tables import event_table, write_table

    runs: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        runs[event.run].append(event)
    files = []
    for run, rows in sorted(runs.items()):
        file = run_folder(Path(directory), run) / "events.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_table(event_table(rows), file)
        files.append(file)
    return files


def _cell(value: object) -> object:
    return msgspec.json.encode(value).decode() if isinstance(value, tuple) else value
