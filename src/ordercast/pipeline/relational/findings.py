"""What the checks found, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

NEEDS = {  # a property is n/a in a run in which none of its logs has this kind
    "wellformed": None,
    "no_duplication": "deliver",
    "no_creation": "deliver",
    "membership": "deliver",
    "validity": "send",
    "agreement": "deliver",
    "agreement.uniform": "deliver",
    "views": "view",
    "vsync": "view",
    "sending_view": "view",
}
RELATIONAL = tuple(NEEDS)
_COUNTS = ("violations", "doubts", "undecided", "unsure")


def finding(
    name: str,
    *,
    violations: Column | int = 0,
    doubts: Column | int = 0,
    undecided: Column | int = 0,
    unsure: Column | int = 0,
) -> Column:
    """What one row says about one property, as counts.

    undecided  what may be a violation or nothing: folds cannot tell
    unsure     what may be a doubt or nothing
    """
    amounts = (violations, doubts, undecided, unsure)
    counts = [
        (amount if isinstance(amount, Column) else sf.lit(amount)).cast("long").alias(column)
        for column, amount in zip(_COUNTS, amounts, strict=True)
    ]
    return sf.struct(sf.lit(name).alias("property"), *counts)


def found(rows: DataFrame, *findings: Column) -> DataFrame:
    """All that these rows say: any number of rows per run and property."""
    return rows.select("run", sf.inline(sf.array(*findings)))


def verdicts(said: Sequence[DataFrame], kinds: DataFrame, unspecified: DataFrame) -> DataFrame:
    """One row per run and property.

    `kinds` says what occurs in each run. In the runs named in `unspecified`, nothing is said but
    `wellformed`.
    """
    totals = [sf.sum(column).alias(column) for column in _COUNTS]
    counted = reduce(DataFrame.unionByName, said).groupBy("run", "property").agg(*totals)
    named = unspecified.select("run", sf.lit(True).alias("meaningless")).distinct()
    applies = [
        sf.struct(sf.lit(name).alias("property"), _applies(kind).alias("applies"))
        for name, kind in NEEDS.items()
    ]
    return (
        kinds.select("run", sf.inline(sf.array(*applies)))
        .join(sf.broadcast(counted), on=["run", "property"], how="left")
        .join(sf.broadcast(named), on=["run"], how="left")
        .select(
            "run", "property",
            _verdict().alias("verdict"),
            sf.coalesce("violations", sf.lit(0)).alias("violations"),
            sf.coalesce("doubts", sf.lit(0)).alias("doubts"),
        )
    )  # fmt: skip


def _applies(kind: str | None) -> Column:
    return sf.lit(True) if kind is None else sf.col(kind)


def _verdict() -> Column:
    meaningless = sf.col("meaningless") & (sf.col("property") != "wellformed")
    return (
        sf.when(~sf.col("applies"), "n/a")
        .when(meaningless, None)
        .when(sf.col("violations") > 0, "violated")
        .when(sf.col("undecided") > 0, None)
        .when(sf.col("doubts") > 0, "inconclusive")
        .when(sf.col("unsure") > 0, None)
        .otherwise("ok")
    )
