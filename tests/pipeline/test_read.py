"""Reading traces into Spark: every format, every refusal."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.judge.files import find_files
from ordercast.pipeline.read import SMALL_BYTES, read_checked, read_traces
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import COLUMNS, Event
from ordercast.trace.write import write_csv, write_jsonl, write_parquet
from random_traces import random_traces

pytestmark = pytest.mark.xdist_group("spark")

GOOD = '{"process": "p", "index": 1, "kind": "send", "message": "a", "group": "g"}\n'


IN_TASKS = 0  # a limit under which no trace is small
LANES = [pytest.param(IN_TASKS, id="in tasks"), pytest.param(SMALL_BYTES, id="in the driver")]


def events_of(spark: SparkSession, *paths: Path, small_bytes: int = SMALL_BYTES) -> list[Event]:
    found = read_traces(spark, paths, small_bytes=small_bytes)
    rows = (row.asDict() for row in found.collect())
    return sorted(
        (msgspec.convert(row, Event) for row in rows), key=lambda e: (e.run, str(e), e.index or 0)
    )


@pytest.mark.parametrize("lane", LANES)
def test_the_three_formats_give_the_same_events(
    spark: SparkSession, tmp_path: Path, lane: int
) -> None:
    events = [event for trace in random_traces(Random(1), 20) for event in trace]
    write_jsonl(events, tmp_path / "trace.jsonl")
    write_csv(events, tmp_path / "trace.csv")
    write_parquet(events, tmp_path / "tables")
    wanted = sorted(events, key=lambda e: (e.run, str(e), e.index or 0))
    for name in ("trace.jsonl", "trace.csv", "tables"):
        assert events_of(spark, tmp_path / name, small_bytes=lane) == wanted


def test_the_columns_are_those_of_the_schema(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(GOOD)
    assert tuple(read_traces(spark, [tmp_path]).columns) == COLUMNS


def test_plain_files_without_a_run_are_the_logs_of_one_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "p.jsonl").write_text(GOOD)
    (tmp_path / "q.csv").write_text("process,index,kind,message,group\nq,1,deliver,a,g\n")
    assert {event.run for event in events_of(spark, tmp_path)} == {""}


@pytest.mark.parametrize("lane", LANES)
def test_a_recording_is_read_with_the_crash_that_another_process_saw(
    spark: SparkSession, tmp_path: Path, lane: int
) -> None:
    p = Recorder(tmp_path, run="live", process="p#1", seal=False)
    q = Recorder(tmp_path, run="live", process="q#1", seal=False)
    p.send("g", 1, 3, 300, 1_000)
    p.flush()  # and then it is killed
    q.deliver("g", "p#1", 1, 3, -1, 0, 2_000)
    q.crash_of("p#1")
    q.end()
    q.close()
    events = events_of(spark, tmp_path, small_bytes=lane)
    assert {event.run for event in events} == {"live"}
    assert [(e.index, e.kind) for e in events if e.process == "p#1" and e.kind == "crash"] == [
        (4, "crash")
    ]
    assert sum(event.kind == "deliver" for event in events) == 3


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("name", "text", "line", "column"),
    [
        ("t.jsonl", GOOD + '{"process": "p", "index": "2", "kind": "end"}\n', 2, "index"),
        ("t.jsonl", GOOD + '{"process": "p", "index": 2, "kind": "sent"}\n', 2, "kind"),
        ("t.jsonl", GOOD + '{"index": 2, "kind": "end"}\n', 2, "process"),
        ("t.jsonl", GOOD + '{"process": "p", "index": 2, "kind": "deliver"}\n', 2, "message"),
        ("t.jsonl", GOOD + "{oops\n", 2, None),
        ("t.csv", "process,index,kind,message\np,1,end,\n", 1, "group"),
        ("t.csv", "process,index,kind,message,group\np,one,send,a,g\n", 2, "index"),
        ("t.parquet", "PAR1 and then nothing", None, None),
    ],
)
def test_a_malformed_trace_is_refused_with_file_line_and_column(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    text: str,
    line: int | None,
    column: str | None,
    lane: int,
) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD)
    (tmp_path / name).write_text(text)
    with pytest.raises(TraceError) as refusal:
        read_traces(spark, [tmp_path], small_bytes=lane)
    fault = refusal.value
    assert (fault.file, fault.line, fault.column) == (str(tmp_path / name), line, column)
    assert fault.reason


def test_a_mistyped_parquet_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    columns = {
        "process": ["p"],
        "index": [1.5],
        "kind": ["end"],
        "message": [None],
        "group": [None],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="index"):
        read_traces(spark, [tmp_path / "t.parquet"])


@pytest.mark.parametrize("path", ["nowhere", "empty", "notes.txt"])
def test_a_path_without_a_trace_is_refused_before_any_job(
    spark: SparkSession, tmp_path: Path, path: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(TraceError, match=path):
        read_traces(spark, [tmp_path / path])


@pytest.mark.parametrize("lane", LANES)
def test_a_file_given_twice_is_read_once_and_named_as_the_caller_named_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.jsonl").write_text(GOOD)
    assert len(events_of(spark, Path("t.jsonl"), tmp_path / "t.jsonl", small_bytes=lane)) == 1
    Path("t.jsonl").write_text("oops")
    with pytest.raises(TraceError) as refusal:
        read_traces(spark, ["t.jsonl"], small_bytes=lane)
    assert refusal.value.file == "t.jsonl"


def test_no_path_at_all_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="no path given"):
        read_traces(spark, [])


def test_a_checked_recording_is_read_file_by_file_and_its_crash_notes_are_settled(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = [
        Recorder(tmp_path, run="live", process=name, seal=name != "p#1")
        for name in ("p#1", "q#1", "r#1")
    ]
    logs[0].send("g", 1, 3, 300, 1_000)
    logs[0].flush()  # and then it is killed
    for log in logs[1:]:
        log.deliver("g", "p#1", 1, 3, -1, 0, 2_000)
        log.crash_of("p#1")
    logs[1].crash_of("r#1")  # which ends all the same
    logs[1].crash_of("silent#1")
    for log in logs[1:]:
        log.end()
        log.close()
    found = read_checked(spark, find_files([tmp_path]))
    assert rows_of(found) == rows_of(read_traces(spark, [tmp_path]))
    crashes = found.where("kind = 'crash'").select("process", "index").collect()
    assert sorted(map(tuple, crashes)) == [("p#1", 4), ("silent#1", 1)]


def rows_of(events: DataFrame) -> list[str]:
    return sorted(map(str, events.collect()))
