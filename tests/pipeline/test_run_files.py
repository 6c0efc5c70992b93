"""Which run a file belongs to, as told by its first or last bytes: the same that its rows say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ordercast.errors import TraceError
from ordercast.judge.kernels.judge import Judged, judge_run, judge_table
from ordercast.judge.run_files import bins, load_run, runs_of_files
from ordercast.pipeline.verify import _judge_work
from ordercast.trace.layout import run_folder, run_of_folder
from ordercast.trace.parquet import has_plain_columns, parquet_table, single_run
from ordercast.trace.read import read_table, trace_files
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import PROPERTIES
from ordercast.trace.seal import seal_directory
from ordercast.trace.tables import event_table
from random_traces import random_trace

Findings = dict[str, dict[str, tuple[Any, ...]]]
LONG = "r" * 300  # a folder name holds no such run


def plain_table() -> pa.Table:
    """Rows with plain strings, without the column `run`."""
    table = event_table(random_trace(Random(3)))
    schema = [(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type)
              for f in table.schema]  # fmt: skip
    return table.cast(pa.schema(schema)).drop(["run"])


ROWS = plain_table().num_rows


def written(folder: Path, runs: Any, **options: Any) -> Path:
    """A trace file; `runs` is its column `run`."""
    path = folder / "trace.parquet"
    folder.mkdir(exist_ok=True)
    pq.write_table(plain_table().append_column("run", runs), path, **options)
    return path


def runs_in(path: Path) -> set[str]:
    """What the rows say."""
    return set(pc.cast(parquet_table(path)["run"], pa.string()).to_pylist())


def findings(judged: list[Judged]) -> dict[str, tuple[Any, ...]]:
    return {
        one.property: (one.verdict, one.findings.violations, one.findings.doubts,
                       one.findings.evidence)
        for one in judged
    }  # fmt: skip


def file_by_file(folder: Path) -> Findings:
    runs = runs_of_files(trace_files(folder))
    assert runs is not None
    return {
        one.run: findings(judge_run(load_run(one.files, quiescent=False))) for one in runs
    }  # fmt: skip


def row_by_row(folder: Path) -> Findings:
    table = read_table(folder)
    names = pc.cast(table["run"], pa.string())
    return {
        run: findings(judge_table(table.filter(pc.equal(names, run))))
        for run in names.unique().to_pylist()
    }


@pytest.mark.parametrize("run", ["Y", ""])
def test_a_named_run_counts_and_an_empty_name_is_none(tmp_path: Path, run: str) -> None:
    path = written(tmp_path / "run=X", pa.array([run] * ROWS))
    assert {single_run(path)} == runs_in(path) == {run or "X"}
    assert has_plain_columns(path) == bool(run)


@pytest.mark.parametrize(
    "runs",
    [
        pa.array([None] * ROWS, pa.string()),
        pa.array(["Y"] * (ROWS - 1) + [None]),
        pa.array(["Y"] * (ROWS - 1) + ["Z"]),
        pa.array([LONG + "Y"] * (ROWS - 1) + [LONG + "Z"]),
    ],
)
def test_a_file_of_several_runs_is_nobodys(tmp_path: Path, runs: pa.Array) -> None:
    assert single_run(written(tmp_path / "run=X", runs)) is None


def test_without_statistics_nothing_is_known(tmp_path: Path) -> None:
    path = written(tmp_path, pa.array(["Y"] * ROWS), write_statistics=False)
    assert single_run(path) is None
    assert not has_plain_columns(path)


def test_a_run_that_is_no_text_is_left_to_the_reader_to_refuse(tmp_path: Path) -> None:
    path = written(tmp_path, pa.array([7] * ROWS))
    assert single_run(path) is None
    with pytest.raises(TraceError, match="must be a string column"):
        parquet_table(path)


def test_a_field_called_run_inside_another_column_is_not_the_run(tmp_path: Path) -> None:
    runs = pa.array(["Y"] * (ROWS - 1) + ["Z"])
    table = plain_table().append_column("run", runs)
    table = table.add_column(0, "extra", pa.array([{"run": "W"}] * ROWS))
    pq.write_table(table, tmp_path / "trace.parquet")
    assert single_run(tmp_path / "trace.parquet") is None


def test_a_file_without_rows_is_nobodys(tmp_path: Path) -> None:
    folder = tmp_path / "run=X"
    folder.mkdir()
    pq.write_table(plain_table().slice(0, 0), folder / "trace.parquet")
    assert single_run(folder / "trace.parquet") is None


def test_an_empty_text_is_not_left_to_spark_to_read(tmp_path: Path) -> None:
    path = written(tmp_path, pa.array(["Y"] * ROWS))
    assert has_plain_columns(path)
    senders = pa.array([""] + ["p"] * (ROWS - 1))
    table = pq.read_table(path)
    place = table.column_names.index("sender")
    pq.write_table(table.set_column(place, "sender", senders), path)
    assert not has_plain_columns(path)


@pytest.mark.parametrize("name", [None, ""])
def test_a_member_without_a_name_is_refused_with_its_row(tmp_path: Path, name: str | None) -> None:
    table = {
        "process": [None, "p"], "index": [None, 1], "kind": ["group", "send"],
        "message": [None, "a"], "group": ["g", "g"], "members": [["p", name], None],
    }  # fmt: skip
    pq.write_table(pa.table(table), tmp_path / "trace.parquet")
    with pytest.raises(TraceError, match="must be a list of names") as refused:
        parquet_table(tmp_path / "trace.parquet")
    assert refused.value.line == 1


def record(folder: Path, run: str) -> None:
    """alice sends in several segments, bob delivers and sees her die; carol never wrote a word."""
    alice = Recorder(folder, run=run, process="alice", segment_bytes=1)
    for first in range(1, 8):
        alice.send("g", first, 1, 10, 0)
        alice.flush()
    alice.abort()
    bob = Recorder(folder, run=run, process="bob")
    bob.group("g", ["alice", "bob"], order="fifo", protocol="x", scope="group")
    for first in (2, 1, 4, 3):
        bob.deliver("g", "alice", first, 1, -1, 0, 0)
    bob.crash_of("alice")
    bob.crash_of("carol")
    bob.end()
    bob.close()


def sealed_all(folder: Path) -> None:
    seal_directory(folder)


def sealed_in_part(folder: Path) -> None:
    """As if it were done while somebody looks: some segments are there in both forms."""
    segments = {path: path.read_bytes() for path in folder.rglob("alice-*.seg")}
    seal_directory(folder)
    for path, content in list(segments.items())[:3]:
        path.write_bytes(content)
        path.with_name(path.name + ".parquet").unlink()


@pytest.mark.parametrize("later", [lambda folder: None, sealed_all, sealed_in_part])
def test_a_recording_is_judged_by_the_names_inside_its_files(
    tmp_path: Path, later: Callable[[Path], None]
) -> None:
    record(tmp_path, LONG)
    record(tmp_path, "a")
    later(tmp_path)
    run_folder(tmp_path, "a").rename(tmp_path / "run=b")
    found = file_by_file(tmp_path)
    assert found.keys() == {LONG, "a"}
    assert run_of_folder(run_folder(tmp_path, LONG)) != LONG
    assert found == row_by_row(tmp_path)
    assert found["a"]["fifo.group"][0] == "violated"


def test_a_torn_head_leaves_the_recording_to_those_who_read_all(tmp_path: Path) -> None:
    record(tmp_path, "a")
    (tmp_path / "run=a" / "dave-00001.seg").write_bytes(b"OCAST")
    assert runs_of_files(trace_files(tmp_path)) is None
    (tmp_path / "run=a" / "dave-00001.seg").write_bytes(b"nonsense")
    assert runs_of_files(trace_files(tmp_path)) is None


def test_every_run_that_a_task_was_given_is_judged_also_behind_one_that_cannot_be(
    tmp_path: Path,
) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        log = Recorder(tmp_path, run=name, process="alice#1")
        log.send("g", 1, 2, 10, 0)
        log.close()
    files = trace_files(tmp_path)
    runs = runs_of_files(files)
    assert runs is not None
    files[1].write_bytes(b"no trace")
    work = bins(runs, split_from=1 << 30, shares=1, most=8)
    assert [sorted(one.files.run for one in several) for several in work] == [names]
    given = [pa.record_batch({"id": [0]})]
    judged = _judge_work(work, given, quiescent=False, witnesses=1, promises=False)
    table = pa.Table.from_batches(judged)
    rows = Counter(table.column("run").to_pylist())
    assert rows["a"] == rows["c"] == rows["d"] == len(PROPERTIES)
    assert set(rows) == set(names)
