"""Who is a member of which group when: the life of a process in a group, as stretches of its log.

Only the rare rows are sorted. A row of a log finds its stretch by a join with this small table.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.facts import declared

BEGINNING, ENDLESS = -(2**63), 2**63 - 1  # before and after every index
_LIFE = ("run", "group", "process")


def changes(rare: DataFrame) -> DataFrame:
    """The rows that decide about membership: a process that logged views goes by these alone."""
    by_views = sf.max(sf.col("kind") == "view").over(Window.partitionBy(*_LIFE))
    is_in = sf.array_contains("members", sf.col("process"))
    kind = sf.col("kind")
    return (
        rare.filter((kind != "group") & sf.col("process").isNotNull())
        .withColumn("by_views", by_views)
        .filter(~sf.col("by_views") | (kind != "join"))
        .select(
            *_LIFE, "index", "kind", "view", "by_views",
            ((kind == "join") | ((kind == "view") & is_in)).alias("member"),
        )
    )  # fmt: skip


def stretches(rare: DataFrame) -> DataFrame:
    """The life of each process in each group, without a gap from the beginning to the end.

    after, until  the indexes between which a row lies in this stretch
    member        whether the process is a member there ...
    since         ... by the event with this index; null: from the start of the log
    lasting       ... and stays one to the end of the log
    view          its current view, null: none; in `own_view`, the same if the process is in it
    between       index of the `view` row before, if another `view` row comes later
    """
    rows = changes(rare)
    return _after_changes(rows).unionByName(_before_changes(rows)).unionByName(_unchanged(rare))


def _in_order() -> WindowSpec:
    return Window.partitionBy(*_LIFE).orderBy("index")


def _after_changes(rows: DataFrame) -> DataFrame:
    in_order = _in_order()
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    from_here = in_order.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    later = in_order.rowsBetween(1, Window.unboundedFollowing)
    is_view = sf.col("kind") == "view"
    before = sf.coalesce(sf.lag("member").over(in_order), _from_the_start())
    opened = sf.when(sf.col("member") & ~sf.col("before"), sf.col("index"))
    view_at = sf.last(sf.when(is_view, sf.col("index")), ignorenulls=True).over(so_far)
    followed = sf.coalesce(sf.max(is_view).over(later), sf.lit(False))
    return rows.withColumn("before", before).select(
        *_LIFE,
        sf.col("index").alias("after"),
        sf.coalesce(sf.lead("index").over(in_order), sf.lit(ENDLESS)).alias("until"),
        "member",
        sf.when(sf.col("member"), sf.last(opened, ignorenulls=True).over(so_far)).alias("since"),
        sf.min("member").over(from_here).alias("lasting"),
        sf.when(is_view, sf.col("view")).alias("view"),
        sf.when(is_view & sf.col("member"), sf.col("view")).alias("own_view"),
        sf.when(followed, view_at).alias("between"),
    )


def _before_changes(rows: DataFrame) -> DataFrame:
    first = rows.withColumn("place", sf.row_number().over(_in_order())).filter("place = 1")
    return _plain(first, sf.lit(BEGINNING), sf.col("index"), _from_the_start(), sf.lit(False))


def _unchanged(rare: DataFrame) -> DataFrame:
    """Declared, and not a word of it in the log."""
    silent = declared(rare).join(sf.broadcast(changes(rare)), on=list(_LIFE), how="left_anti")
    return _plain(silent, sf.lit(BEGINNING), sf.lit(ENDLESS), sf.lit(True), sf.lit(True))


def _plain(
    rows: DataFrame, after: Column, until: Column, member: Column, lasting: Column
) -> DataFrame:
    nothing = sf.lit(None).cast("long")
    return rows.select(
        *_LIFE,
        after.alias("after"),
        until.alias("until"),
        member.alias("member"),
        nothing.alias("since"),
        lasting.alias("lasting"),
        nothing.alias("view"),
        nothing.alias("own_view"),
        nothing.alias("between"),
    )


def _from_the_start() -> Column:
    """A member that goes by joins and whose first row is `leave` was one from the start."""
    return ~sf.col("by_views") & (sf.col("kind") == "leave")


def at(rows: DataFrame, life: DataFrame) -> DataFrame:
    """Each row with the stretch of `life` it lies in; nulls where there is none.

    The rows have the columns run, group, process and index.
    """
    place = sf.broadcast(life.withColumnsRenamed({name: f"its_{name}" for name in _LIFE}))
    fits = [sf.col(name) == sf.col(f"its_{name}") for name in _LIFE]
    inside = (sf.col("after") < sf.col("index")) & (sf.col("index") < sf.col("until"))
    found = rows.join(place, on=[*fits, inside], how="left")
    return found.drop("after", "until", *(f"its_{name}" for name in _LIFE))
