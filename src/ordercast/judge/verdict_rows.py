"""Verdicts as rows: their columns, and how findings become rows.

A fault in the files is a row too, since a task can only answer with rows: its property is FAULT.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.errors import TraceError
from ordercast.judge.kernels.judge import Judged
from ordercast.judge.kernels.promises import Promise

FAULT = "(fault)"

SPARK_VERDICTS = (
    "run string, "
    "promise struct<order: string, protocol: string, scope: string, groups: array<string>, "
    "everything: boolean>, "
    "property string, verdict string, violations long, doubts long, "
    "evidence array<struct<sentence: string, witness: string>>, reasons array<string>"
)
SPARK_PARTS = f"{SPARK_VERDICTS}, place int"  # of the part of the work that says so
_PROMISE = pa.struct(
    [
        ("order", pa.string()),
        ("protocol", pa.string()),
        ("scope", pa.string()),
        ("groups", pa.list_(pa.string())),
        ("everything", pa.bool_()),
    ]
)
_ARROW_VERDICTS = pa.schema(
    [
        ("run", pa.string()),
        ("promise", _PROMISE),
        ("property", pa.string()),
        ("verdict", pa.string()),
        ("violations", pa.int64()),
        ("doubts", pa.int64()),
        ("evidence", pa.list_(pa.struct([("sentence", pa.string()), ("witness", pa.string())]))),
        ("reasons", pa.list_(pa.string())),
    ]
)


def verdict_batch(run: str, promise: Promise | None, judged: Iterable[Judged]) -> pa.RecordBatch:
    """The rows of one run, or of one domain of it."""
    rows = [
        {
            "run": run,
            "promise": None if promise is None else promise._asdict(),
            "property": one.property,
            "verdict": one.verdict,
            "violations": one.findings.violations,
            "doubts": one.findings.doubts,
            "evidence": [
                {"sentence": sentence, "witness": json.dumps(witness)}
                for sentence, witness in one.findings.evidence
            ],
            "reasons": one.findings.reasons,
        }
        for one in judged
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_ARROW_VERDICTS)


def fault_batch(run: str, fault: TraceError) -> pa.RecordBatch:
    """A row that says that the files of a run cannot be read."""
    told = json.dumps([str(fault.file), fault.line, fault.column, fault.reason])
    row = {"run": run, "property": FAULT, "evidence": [{"sentence": str(fault), "witness": told}]}
    return pa.RecordBatch.from_pylist([row], schema=_ARROW_VERDICTS)


def refuse_faults(verdicts: pa.Table) -> None:
    """Raise the first fault among these rows."""
    faults = verdicts.filter(pc.equal(verdicts["property"], FAULT))["evidence"].to_pylist()
    told = [json.loads(evidence[0]["witness"]) for evidence in faults]
    if told:
        raise TraceError(*min(told, key=lambda one: (one[0], one[1] or 0)))


def of_part(verdicts: pa.RecordBatch, place: int) -> pa.RecordBatch:
    """The rows with the place of the part that they come from: columns `SPARK_PARTS`."""
    places = pa.array([place] * verdicts.num_rows, pa.int32())
    return verdicts.append_column("place", places)
