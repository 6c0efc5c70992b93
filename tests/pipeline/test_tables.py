"""Tables of Parquet files: what is in them, under any name of a run, and what is done again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from notation import trace
from ordercast.errors import ConfigError, TraceError
from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.judge.files import find_files
from ordercast.judge.measured import Measured
from ordercast.judge.run_files import runs_of_files
from ordercast.pipeline.measure import deliveries, measure
from ordercast.pipeline.measure.whole import measured
from ordercast.pipeline.read import read_traces
from ordercast.pipeline.tables import TABLES, Summary, read_table, write_tables
from ordercast.pipeline.tables import write as writing
from ordercast.pipeline.tables.clean import clean
from ordercast.pipeline.tables.manifest import Manifest
from ordercast.pipeline.tables.sources import Sources
from ordercast.pipeline.verify import verify_promises, verify_runs
from ordercast.trace.expand import CRASH_NOTE_INDEX, settle_crashes
from ordercast.trace.mapping import read_mapping
from ordercast.trace.schema import Event
from ordercast.trace.tables import event_table
from ordercast.trace.write import write_csv, write_jsonl, write_parquet
from random_traces import random_trace

pytestmark = pytest.mark.xdist_group("spark")

ODD_RUNS = {"": 0, "007": 3, "7": 6, "a/b": 7, "ü x%=": 8}  # seeds of runs that have it all
ODD_NAMES = tuple(ODD_RUNS)
GOOD = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g; end\n"
KEPT = GOOD + "q: deliver a g; deliver b g; end"
SWAPPED = GOOD + "q: deliver b g; deliver a g; end"


def odd_run(name: str, seed: int) -> list[Event]:
    """A spoiled run, with an order declared and times on its rows."""
    events = random_trace(Random(seed), run=name, mutations=3)
    declared = {"order": "causal", "protocol": f"p{seed}", "scope": "domain"}
    return [
        replace(event, **declared) if event.kind == "group" else replace(event, time=1000 + place)
        for place, event in enumerate(events)
    ]


class Written:
    """Traces in two kinds of files, and the tables made from them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.sources = folder / "traces"
        self.tables = folder / "tables"
        self.sources.mkdir()
        runs = {name: odd_run(name, seed) for name, seed in ODD_RUNS.items()}
        write_csv([*runs[""], *runs["007"], *runs["7"]], self.sources / "three.csv")
        write_parquet([*runs["a/b"], *runs["ü x%="]], self.sources)
        self.summary = write_tables(spark, [self.sources], self.tables)


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(spark, tmp_path_factory.mktemp("tables"))


@pytest.fixture
def little_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is done when: measuring takes longer than all the rest."""
    monkeypatch.setattr(
        writing, "measured", lambda events: dict.fromkeys(row["run"] for row in events.collect())
    )
    monkeypatch.setattr(writing, "measure", lambda events: measure(events, per=["run"]))


def rows(table: DataFrame) -> list[str]:
    return sorted(map(str, table.collect()))


def findings(verdicts: DataFrame) -> list[str]:
    return rows(verdicts.select("run", "promise", "property", "verdict", "violations", "doubts"))


def files_by_run(tables: Path) -> dict[str, set[tuple[str, int]]]:
    found: dict[str, set[tuple[str, int]]] = {}
    for file in tables.glob("*/run=*/*.parquet"):
        run = found.setdefault(file.parent.name.removeprefix("run="), set())
        run.add((str(file), file.stat().st_mtime_ns))
    return found


def test_every_table_holds_every_run_under_its_own_name(
    spark: SparkSession, written: Written
) -> None:
    assert written.summary == Summary(judged=ODD_NAMES, kept=())
    assert str(written.summary) == "judged 5 new runs, kept 0"
    for name, table in TABLES.items():
        found = read_table(spark, written.tables, name)
        assert found.columns == [column.name for column in table.columns]
        assert {row["run"] for row in found.select("run").collect()} == set(ODD_NAMES), name


def test_the_tables_say_what_the_stages_say_of_the_traces(
    spark: SparkSession, written: Written
) -> None:
    events = read_traces(spark, [written.sources])
    direct = verify_promises(events)
    assert findings(read_table(spark, written.tables, "verdicts")) == findings(direct)
    evidence = direct.selectExpr("run", "promise", "property", "inline(evidence)")
    assert rows(read_table(spark, written.tables, "violations")) == rows(evidence)
    assert rows(read_table(spark, written.tables, "deliveries")) == rows(deliveries(events))
    assert rows(read_table(spark, written.tables, "metrics")) == rows(measure(events))
    figures = {
        row["run"]: msgspec.json.decode(row["figures"], type=Measured)
        for row in read_table(spark, written.tables, "figures").collect()
    }
    assert figures == measured(events)


def test_recorded_rows_name_their_file_and_row(spark: SparkSession, written: Written) -> None:
    recorded = read_table(spark, written.tables, "recorded")
    [(file, row)] = {
        (Path(row["file"]), row["row"])
        for row in recorded.where("run = '007'").orderBy("row").limit(1).collect()
    }
    assert file == written.sources / "three.csv"
    lines = file.read_text().splitlines()
    assert ",007," in lines[row]  # after the header
    assert ",007," not in lines[row - 1]


def test_clean_is_laid_out_by_run_and_sorted_and_judged_the_same(
    spark: SparkSession, written: Written
) -> None:
    files = find_files([written.tables / "clean"])
    runs = runs_of_files(files)
    assert runs is not None
    assert sorted(run.run for run in runs) == sorted(ODD_NAMES)
    direct = findings(verify_promises(read_traces(spark, [written.sources])))
    assert findings(verify_runs(spark, runs)) == direct
    for file in files:
        logs = pq.read_table(file, columns=["process", "index"]).to_pylist()
        places = [(row["process"] or "", row["index"] or 0) for row in logs]
        assert places == sorted(places)


def test_clean_settles_crash_notes_and_marks_repeats(spark: SparkSession) -> None:
    events = [
        *trace("p: send a g; deliver a g; deliver a g; deliver a g\nq: deliver a g; end"),
        Event("p", CRASH_NOTE_INDEX, "crash", time=9, note="seen by q"),
        Event("p", CRASH_NOTE_INDEX, "crash", time=8, note="seen by r"),
        Event("q", CRASH_NOTE_INDEX, "crash", time=9, note="seen by r"),
        Event("silent", CRASH_NOTE_INDEX, "crash", note="seen by r"),
    ]
    found = clean(spark.createDataFrame(event_table(events).cast(ARROW_SCHEMA)))
    repeats = [(row["process"], row["index"]) for row in found.where("repeat").collect()]
    assert sorted(repeats) == [("p", 3), ("p", 4)]
    table = event_table(settle_crashes(events)).cast(ARROW_SCHEMA)
    assert rows(found.drop("repeat")) == rows(spark.createDataFrame(table))


@pytest.mark.usefixtures("little_measuring")
def test_only_new_and_changed_runs_are_judged(spark: SparkSession, tmp_path: Path) -> None:
    sources, tables = tmp_path / "traces", tmp_path / "tables"
    first = {"a": SWAPPED, "b": KEPT, "d": KEPT, "e": KEPT}
    write_parquet([e for run, text in first.items() for e in trace(text, run=run)], sources)
    write_tables(spark, [sources], tables)
    before = files_by_run(tables)
    write_parquet([*trace(KEPT, run="a"), *trace(SWAPPED, run="c")], sources)
    (sources / "run=b").rename(sources / "_gone")  # its tables stay, nothing is said of it
    shutil.rmtree(tables / "verdicts" / "run=d")
    done = write_tables(spark, [sources], tables)
    assert done == Summary(judged=("a", "c", "d"), kept=("e",), replaced=("a",))
    assert str(done) == "judged 2 new runs and 1 changed run, kept 1"
    (sources / "_gone").rename(sources / "run=b")
    steps: list[str] = []
    done = write_tables(spark, [sources], tables, say=steps.append)
    assert done == Summary(judged=(), kept=tuple("abcde"))
    assert steps == ["looking for new runs"]
    after = files_by_run(tables)
    assert (after["b"], after["e"]) == (before["b"], before["e"])
    assert not after["a"] & before["a"]
    broken = read_table(spark, tables, "violations").where("property = 'fifo.group'")
    assert [row["run"] for row in broken.collect()] == ["c"]  # those of the former `a` are gone
    counts = read_table(spark, tables, "clean").groupBy("run").count().collect()
    assert {row["run"]: row["count"] for row in counts} == dict.fromkeys("abcde", 9)


@pytest.mark.usefixtures("little_measuring")
def test_an_interrupted_write_is_hidden_and_then_done_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, tables = tmp_path / "trace.jsonl", tmp_path / "tables"
    write_jsonl(trace(SWAPPED, run="007"), source)  # alone it could pass for a number

    def interrupted(events: DataFrame) -> DataFrame:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(writing, "deliveries", interrupted)
        write_tables(spark, [source], tables)
    assert (tables / "verdicts" / "run=007").is_dir()
    assert read_table(spark, tables, "verdicts").count() == 0
    assert write_tables(spark, [source], tables) == Summary(judged=("007",), kept=())
    found = read_table(spark, tables, "verdicts").collect()
    assert [row["run"] for row in found] == ["007"] * 32
    assert read_table(spark, tables, "recorded").count() == 9


MAPPING = """
format = "csv"
complete = true
[columns]
run = { file = '(\\w+)\\.csv' }
process = "who"
index = { by = "line" }
kind = "what"
message = "id"
group = { value = "g" }
[[group]]
name = "g"
order = "fifo"
"""


@pytest.mark.usefixtures("little_measuring")
def test_foreign_logs_become_tables_with_what_the_mapping_adds(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "mapping.toml").write_text(MAPPING)
    mapping = read_mapping(tmp_path / "mapping.toml")
    log = "who,what,id\np,send,a\np,deliver,a\n"
    (tmp_path / "one.csv").write_text(log)
    tables = tmp_path / "_tables"
    write_tables(spark, [tmp_path], tables, mapping=mapping)
    (tmp_path / "two.csv").write_text(log)
    done = write_tables(spark, [tmp_path], tables, mapping=mapping)
    assert done == Summary(judged=("two",), kept=("one",))
    recorded = read_table(spark, tables, "recorded").where("run = 'two'").collect()
    assert sorted((row["kind"], row["file"] is None, row["row"]) for row in recorded) == [
        ("deliver", False, None), ("end", True, None), ("group", True, None), ("send", False, None),
    ]  # fmt: skip
    direct = verify_promises(read_traces(spark, [tmp_path], mapping=mapping))
    assert findings(read_table(spark, tables, "verdicts")) == findings(direct)
    files = find_files([tmp_path], mapping)
    by_tasks = Sources(spark, files, mapping, note=print, small_bytes=0)
    assert rows(by_tasks.recorded([str(tmp_path / "two.csv")], ["two"])) == sorted(
        map(str, recorded)
    )


def test_large_files_are_read_by_tasks_with_the_same_rows_and_refusals(
    spark: SparkSession, written: Written, tmp_path: Path
) -> None:
    files = find_files([written.sources])
    by_tasks = Sources(spark, files, None, note=print, small_bytes=0)
    here = Sources(spark, files, None, note=print)
    seen = by_tasks.with_runs(Manifest())
    assert seen == here.with_runs(Manifest())
    found = by_tasks.recorded(list(seen), ["007", "a/b"])
    table = read_table(spark, written.tables, "recorded").where("run in ('007', 'a/b')")
    assert rows(found) == rows(table)
    (tmp_path / "bad.csv").write_text("process,index,kind,message,group\np,one,send,a,g\n")
    bad = Sources(spark, find_files([tmp_path]), None, note=print, small_bytes=0)
    with pytest.raises(TraceError, match="must be an integer, not 'one'"):
        bad.with_runs(Manifest())


@pytest.fixture
def quiet_folder(tmp_path: Path) -> Iterator[Path]:
    """A place for tables in which nothing may have been written."""
    tables = tmp_path / "tables"
    yield tables
    assert not list(tables.glob("*/run=*"))
    assert not (tables / "_manifest.json").exists()


def test_nothing_is_written_if_any_file_is_no_trace(
    spark: SparkSession, tmp_path: Path, quiet_folder: Path
) -> None:
    write_jsonl(trace(KEPT, run="a"), tmp_path / "good.jsonl")
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"process": "p", "index": 1, "kind": "sent"}\n')
    with pytest.raises(TraceError, match="unknown kind 'sent'") as refused:
        write_tables(spark, [tmp_path], quiet_folder)
    assert (Path(refused.value.file), refused.value.line) == (bad, 1)


def test_tables_among_the_traces_are_refused(spark: SparkSession, written: Written) -> None:
    with pytest.raises(ConfigError, match="made from themselves"):
        write_tables(spark, [written.tables / "clean"], written.tables)


def test_a_table_that_does_not_exist_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no table 'verdict'; there are recorded, clean"):
        read_table(spark, tmp_path, "verdict")
    with pytest.raises(TraceError, match="no table 'verdicts' here"):
        read_table(spark, tmp_path, "verdicts")
