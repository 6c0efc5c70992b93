"""views and vsync."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.findings import finding, found

_LIFE = ["run", "group", "process"]


def _in_order() -> WindowSpec:
    return Window.partitionBy(*_LIFE).orderBy("index")


def installed(rare: DataFrame) -> DataFrame:
    """The views in each log."""
    return rare.filter((sf.col("kind") == "view") & sf.col("process").isNotNull())


def views(rare: DataFrame) -> DataFrame:
    """Same (g, view) => same member list; ids strictly increase per process; self in members."""
    rows = installed(rare)
    lists = rows.groupBy("run", "group", "view").agg(sf.count_distinct("members").alias("lists"))
    is_in = sf.array_contains("members", sf.col("process"))
    falls = sf.lag("view").over(_in_order()) >= sf.col("view")
    was_in = sf.coalesce(sf.lag(is_in).over(_in_order()), sf.lit(False))
    steps = rows.select("run", falls.alias("falls"), (~is_in & ~was_in).alias("uninvited"))
    wrong_steps = finding("views", violations=_ones("falls") + _ones("uninvited"))
    return found(lists, finding("views", violations=sf.col("lists") - 1)).unionByName(
        found(steps, wrong_steps)
    )


def _ones(column: str) -> Column:
    return sf.coalesce(sf.col(column), sf.lit(False)).cast("long")


def vsync(rare: DataFrame, tally: DataFrame, processes: DataFrame) -> DataFrame:
    """Who installs v and then v' delivers the same messages between: compared by digest."""
    between = installed(rare).select(
        *_LIFE, "view",
        sf.col("index").alias("between"),
        sf.lead("view").over(_in_order()).alias("next_view"),
    ).filter(sf.col("next_view").isNotNull())  # fmt: skip
    delivered = tally.groupBy(*_LIFE, "between").agg(
        sf.sum("copies").alias("copies"),
        sf.bit_xor("one_digest").alias("one"),
        sf.bit_xor("other_digest").alias("other"),
    )
    nothing = sf.lit(0).cast("long")
    digest = sf.struct(*(sf.coalesce(name, nothing) for name in ("copies", "one", "other")))
    compared = (
        between.join(sf.broadcast(delivered), on=[*_LIFE, "between"], how="left")
        .join(
            sf.broadcast(processes.select("run", "process", "lost")),
            on=["run", "process"],
            how="left",
        )
        .withColumn("digest", digest)
        .groupBy("run", "group", "view", "next_view")
        .agg(
            sf.count_distinct("process").alias("processes"),
            sf.count_distinct("digest").alias("sets"),
            sf.count_distinct(sf.when(~sf.col("lost"), sf.col("process"))).alias("sure_processes"),
            sf.count_distinct(sf.when(~sf.col("lost"), sf.col("digest"))).alias("sure_sets"),
        )
    )
    differ = (sf.col("processes") > 1) & (sf.col("sets") > 1)
    surely = (sf.col("sure_processes") > 1) & (sf.col("sure_sets") > 1)
    return found(
        compared,
        finding(
            "vsync",
            violations=surely.cast("long"),
            doubts=(differ & ~surely).cast("long"),
        ),
    )
