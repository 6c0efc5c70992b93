"""Foreign logs on Spark: the examples are judged as their pages say, in both lanes."""

from __future__ import annotations

import json
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.pipeline import read_traces, verify
from ordercast.pipeline.read import SMALL_BYTES
from ordercast.trace.mapping import read_mapping

pytestmark = pytest.mark.xdist_group("spark")

FOREIGN = Path(__file__).parents[2] / "examples" / "foreign"
IN_TASKS = 0  # a limit under which no log is small

VIOLATED = {  # the folder of an example -> of these names, those that are violated
    "app-logs": {"fifo.group"},
    "csv-tables": {"no_duplication", "total.pairwise"},
    "otel-spans": {"causal.global"},
    "redis/pooled": {"fifo.group"},
    "redis/single": set(),
    "text-logs": {"agreement"},
}
LOOKED_AT = ("wellformed", "no_creation", "no_duplication", "membership")


def mapping_of(example: str) -> Path:
    return FOREIGN / example.partition("/")[0] / "mapping.toml"


def test_every_example_is_judged_as_its_page_says(spark: SparkSession) -> None:
    def events_of(example: str, small_bytes: int) -> DataFrame:
        mapping = read_mapping(mapping_of(example))
        events = read_traces(spark, [FOREIGN / example], small_bytes=small_bytes, mapping=mapping)
        return events.withColumn("run", sf.lit(f"{example} {small_bytes}"))

    lanes = [(example, SMALL_BYTES) for example in VIOLATED]
    lanes += [("csv-tables", IN_TASKS), ("text-logs", IN_TASKS)]  # several files, rows added
    together = reduce(DataFrame.unionByName, [events_of(*lane) for lane in lanes])
    rows = verify(together).where("verdict = 'violated'").collect()
    found = {(row["run"], row["property"]) for row in rows}
    for example, size in lanes:
        for name in {*LOOKED_AT, *VIOLATED[example]}:
            is_violated = (f"{example} {size}", name) in found
            assert is_violated == (name in VIOLATED[example]), (example, size, name)
    single = {name for run, name in found if run.startswith("redis/single")}
    assert single == set()


@pytest.mark.parametrize("small_bytes", [IN_TASKS, SMALL_BYTES])
def test_a_refusal_names_the_file_as_the_caller_did_the_line_and_their_field(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int
) -> None:
    monkeypatch.chdir(tmp_path)
    mapping = read_mapping(mapping_of("redis"))
    row = {"t": 1, "client": "a", "op": "publish", "id": "m1", "ch": "ticks"}
    lines = [json.dumps(row), json.dumps({**row, "op": "psubscribe"})]
    Path("a.jsonl").write_text("\n".join(lines))
    with pytest.raises(TraceError) as refused:
        read_traces(spark, ["a.jsonl"], small_bytes=small_bytes, mapping=mapping)
    assert (refused.value.file, refused.value.line, refused.value.column) == ("a.jsonl", 2, "op")
    assert refused.value.reason.startswith("'psubscribe' is not in [kinds]")
    Path("a.jsonl").write_text("oops")
    with pytest.raises(TraceError) as refused:
        read_traces(spark, ["a.jsonl"], small_bytes=small_bytes, mapping=mapping)
    assert (refused.value.file, refused.value.line) == ("a.jsonl", 1)


def test_the_notebook_lines_of_the_page_show_the_violation(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (FOREIGN.parents[1] / "docs" / "FOREIGN.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    for name, log in zip("ab", re.findall(r"```jsonl\n(.*?)```", page, re.DOTALL), strict=True):
        Path("logs", f"{name}.jsonl").write_text(log)
    Path("mapping.toml").write_text(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])
    [lines] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    exec(lines, names)
    assert "fifo.global" in capsys.readouterr().out
    names["events"].write.partitionBy("run").parquet(str(tmp_path / "traces"))
    assert read_traces(spark, ["traces"]).count() == 5
