"""The verdicts of the kernels beside those of the relational lane: do the two agree?

They share no code, so where they differ one of them is wrong, and that is a mistake of ours.
Where folds cannot tell, the relational lane says nothing and nothing is compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.judge.files import find_files, total_bytes
from ordercast.judge.outcome import Outcome
from ordercast.pipeline.read import read_checked, read_traces
from ordercast.pipeline.relational import relational
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.failures import failures_explained
from ordercast.pipeline.spark.session import local_session
from ordercast.trace.mapping import LogMapping

KEPT_BYTES = 256 * 1024 * 1024  # a trace of up to this size is read once and kept in memory


@dataclass(frozen=True, order=True)
class Difference:
    """A property of a run that the two lanes judge differently."""

    run: str
    property: str
    kernels: str
    folds: str

    def __str__(self) -> str:
        where = f"run {self.run or '(unnamed)'}, {self.property}"
        return f"{where}: the kernels say {self.kernels}, Spark SQL says {self.folds}"


@dataclass(frozen=True)
class CrossCheck:
    """What came of judging twice."""

    judged_twice: int
    judged_once: int  # of the properties that folds judge: here they cannot tell
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        result = f"{len(self.differences)} differ" if self.differences else "all equal"
        once = (
            f" ({self.judged_once} that Spark SQL alone cannot decide)" if self.judged_once else ""
        )
        return f"cross-check: {self.judged_twice} verdicts judged twice, {result}{once}"


def differences(verdicts: DataFrame, folds: DataFrame) -> DataFrame:
    """Where the rows of `verify` and of `relational` differ: run, property, kernels, folds."""
    return (
        verdicts.select("run", "property", sf.col("verdict").alias("kernels"))
        .join(
            folds.select("run", "property", sf.col("verdict").alias("folds")),
            on=["run", "property"],
            how="inner",
        )
        .filter(sf.col("folds") != sf.col("kernels"))
        .select("run", "property", "kernels", "folds")
    )


def cross_check(
    outcome: Outcome,
    paths: Sequence[str | Path],
    *,
    quiescent: bool = False,
    mapping: LogMapping | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> CrossCheck:
    """Judge the traces in `paths` once more, by folds, and compare with the `outcome`."""
    files = find_files(paths, mapping)
    small = total_bytes(files) <= KEPT_BYTES
    spark = local_session(master or "local[*]", small=small, conf=conf)
    with failures_explained():
        events = _events(spark, paths, files, mapping, small=small)
        try:
            rows = relational(events, quiescent=quiescent).collect()
        finally:
            events.unpersist()
    folds = {(row["run"], row["property"]): row["verdict"] for row in rows}
    return compared({run.run: run.table.verdicts for run in outcome.runs}, folds)


def compared(
    kernels: Mapping[str, Mapping[str, str]], folds: Mapping[tuple[str, str], str | None]
) -> CrossCheck:
    """The verdicts of the kernels by run and property, beside those of the folds."""
    both = [
        Difference(run, name, kernels[run][name], said)
        for (run, name), said in sorted(folds.items())
        if said is not None
    ]
    differing = tuple(one for one in both if one.kernels != one.folds)
    return CrossCheck(len(both), len(folds) - len(both), differing)


def _events(
    spark: SparkSession,
    paths: Sequence[str | Path],
    files: Iterable[Path],
    mapping: LogMapping | None,
    *,
    small: bool,
) -> DataFrame:
    """The events, which were read before and found to be a trace."""
    if mapping is not None:
        events = read_traces(spark, paths, mapping=mapping, note=lambda text: None)
    elif small:
        events = read_traces(spark, paths)
    else:
        return read_checked(spark, files)
    return canonical(events).cache()
