"""From a DataFrame of events to a DataFrame of verdicts, on the caller's session."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.errors import TraceError
from ordercast.judge.judging import pieces_of
from ordercast.pipeline import verify, violations
from ordercast.trace.schema import PROPERTIES

pytestmark = pytest.mark.xdist_group("spark")

ROWS = [
    ("p", 1, "send", "a", "g"),
    ("p", 2, "send", "b", "g"),
    ("p", 3, "end", None, None),
    ("q", 1, "deliver", "b", "g"),
    ("q", 2, "deliver", "a", "g"),
    ("q", 3, "end", None, None),
]
FIVE = "process string, index long, kind string, message string, `group` string"


def test_five_columns_suffice_and_give_32_verdicts(spark: SparkSession) -> None:
    verdicts = verify(spark.createDataFrame(ROWS, FIVE))
    found = {row["property"]: row["verdict"] for row in verdicts.collect()}
    assert found.keys() == set(PROPERTIES)
    assert found["fifo.group"] == "violated"
    assert found["total.group"] == "ok"
    [one] = violations(verdicts).where("property = 'fifo.group'").collect()
    assert one["sentence"] == "q delivers b before a, but p sent a before b"
    assert json.loads(one["witness"])["messages"] == ["a", "b"]


def test_runs_are_judged_apart(spark: SparkSession) -> None:
    rows = [(*row, "one") for row in ROWS[:3]] + [(*row, "two") for row in ROWS[3:]]
    verdicts = verify(spark.createDataFrame(rows, FIVE + ", run string"))
    found = {(row["run"], row["property"]): row["verdict"] for row in verdicts.collect()}
    assert len(found) == 2 * len(PROPERTIES)
    assert found["one", "no_creation"] == "n/a"
    assert found["two", "no_creation"] == "violated"


def test_quiescent_takes_cut_logs_as_complete(spark: SparkSession) -> None:
    rows = [
        ("p", 1, "send", "a", "g"),
        ("p", 2, "deliver", "b", "g"),
        ("q", 1, "deliver", "a", "g"),
    ]
    events = spark.createDataFrame(rows, FIVE)
    asked = "property = 'validity'"
    assert verify(events).where(asked).collect()[0]["verdict"] == "inconclusive"
    assert verify(events, quiescent=True).where(asked).collect()[0]["verdict"] == "violated"


def test_a_dataframe_without_a_needed_column_is_refused(spark: SparkSession) -> None:
    with pytest.raises(TraceError, match="'group'"):
        verify(spark.createDataFrame([("p", 1, "end", None)], FIVE.rsplit(",", 1)[0]))


def test_a_batch_is_cut_where_a_run_ends() -> None:
    def batch(*runs: str) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"run": list(runs)})

    pieces = [batch("a", "a", "b"), batch(), batch("b"), batch("b", "c")]
    assert [(run, table.num_rows) for run, table in pieces_of(pieces)] == [
        ("a", 2),
        ("b", 1),
        ("b", 1),
        ("b", 1),
        ("c", 1),
    ]
