"""Small tables about a run that every check reads: its rare rows and its processes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.spark.canonical import canonical

RARE_KINDS = ("view", "join", "leave", "group")
_COLUMNS = (
    "run", "index", "kind", "message", "sender", "members", "time",
)  # fmt: skip


def told(events: DataFrame) -> DataFrame:
    """The columns that say something about these properties.

    A declaration belongs to nobody's log, a view without a number is number 0, a view without a
    list has the empty one.
    """
    own = sf.when(sf.col("kind") != "group", sf.col("process"))
    return canonical(events).select(
        *_COLUMNS,
        own.alias("process"),
        sf.coalesce("group", sf.lit("")).alias("group"),
        sf.coalesce("view", sf.lit(0)).alias("view"),
    )


def rare_rows(rows: DataFrame) -> DataFrame:
    """The rows that change or declare who is a member."""
    return rows.filter(sf.col("kind").isin(*RARE_KINDS)).select(
        "run", "process", "index", "kind", "group", "view",
        sf.coalesce("members", sf.array().cast("array<string>")).alias("members"),
    )  # fmt: skip


def declared(rare: DataFrame) -> DataFrame:
    """Who is declared a member: (run, group, process), each once."""
    members = sf.explode("members").alias("process")
    return rare.filter(sf.col("kind") == "group").select("run", "group", members).distinct()


def kinds_of_logs(rows: DataFrame) -> DataFrame:
    """Which kinds occur in the log of each process; process null: in the declarations."""
    kinds = ("send", "deliver", "view", "crash", "end", "lost")
    occurs = [sf.max(sf.col("kind") == kind).alias(kind) for kind in kinds]
    return rows.groupBy("run", "process").agg(*occurs)


def kinds_of_runs(kinds: DataFrame) -> DataFrame:
    """Which of the kinds that make a property n/a occur in each run."""
    occurs = [sf.max(kind).alias(kind) for kind in ("send", "deliver", "view")]
    return kinds.groupBy("run").agg(*occurs)


def processes(kinds: DataFrame, rare: DataFrame, *, quiescent: bool) -> DataFrame:
    """How the log of each process stops. One that is only declared has an empty, cut log."""
    own = kinds.filter(sf.col("process").isNotNull()).select(
        "run", "process", "crash", "end", "lost"
    )
    never = sf.lit(False)
    silent = (
        declared(rare)
        .select("run", "process", never.alias("crash"), never.alias("end"), never.alias("lost"))
        .distinct()
    )
    stops = own.unionByName(silent).groupBy("run", "process").agg(
        sf.max("crash").alias("crashed"), sf.max("end").alias("end"), sf.max("lost").alias("lost")
    )  # fmt: skip
    ended = ~sf.col("crashed") & (sf.col("end") | sf.lit(quiescent))
    cut = ~sf.col("crashed") & ~sf.col("end") & ~sf.lit(quiescent)
    return stops.select(
        "run", "process", "crashed", "lost",
        ended.alias("ended"),
        cut.alias("cut"),
        (sf.col("crashed") | cut | sf.col("lost")).alias("incomplete"),
        (sf.col("crashed") & sf.col("end")).alias("contradictory"),
    )  # fmt: skip
