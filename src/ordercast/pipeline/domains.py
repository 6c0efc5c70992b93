"""What a trace declares that it promises, and the sub-traces on which that is judged.

A promise across groups holds inside one domain: the groups of a run with the same order, protocol
and scope. It is judged on the rows of those groups, as if the run had no others.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


@dataclass(frozen=True, order=True)
class Domain:
    """Groups of one run for which the same was declared."""

    run: str
    order: str
    protocol: str
    scope: str  # "domain" or "group"
    groups: tuple[str, ...]
    everything: bool  # the run has no other groups: its own verdicts are the domain's

    @property
    def name(self) -> str:
        """For people: what was promised, by what, for which groups."""
        by = f" by {self.protocol}" if self.protocol else ""
        return f"{self.order}{by} ({self.scope} scope): {', '.join(self.groups)}"


def declared_domains(events: DataFrame) -> list[Domain]:
    """The domains that the `group` rows of the trace declare an order for."""
    groups = events.where("`group` is not null").groupBy("run").agg(
        sf.collect_set("group").alias("all_groups")
    )  # fmt: skip
    rows = (
        events.where("kind = 'group' and `order` is not null")
        .groupBy(
            "run",
            "order",
            sf.coalesce("protocol", sf.lit("")).alias("protocol"),
            sf.coalesce("scope", sf.lit("domain")).alias("scope"),
        )
        .agg(sf.collect_set("group").alias("groups"))
        .join(groups, "run", "inner")
        .collect()
    )
    return sorted(
        Domain(
            row["run"],
            row["order"],
            row["protocol"],
            row["scope"],
            tuple(sorted(row["groups"])),
            set(row["groups"]) == set(row["all_groups"]),
        )
        for row in rows
    )


def sub_traces(events: DataFrame, domains: list[Domain]) -> DataFrame:
    """The events of each domain, with the place of the domain in the list as their `run`.

    A row belongs to the group of its message's send; rows without a group (crash, end, lost)
    belong to every domain of their run.
    """
    wanted = events.sparkSession.createDataFrame(
        [(d.run, str(n), g) for n, d in enumerate(domains) for g in d.groups],
        "run string, domain string, true_group string",
    )
    sends = (
        events.where("kind = 'send'")
        .groupBy("run", "message")
        .agg(sf.min("group").alias("sent_to"))
    )
    placed = events.join(sends, ["run", "message"], "left").withColumn(
        "true_group",
        sf.when(sf.col("kind") == "deliver", sf.coalesce("sent_to", "group")).otherwise(
            sf.col("group")
        ),
    )
    grouped = placed.where("true_group is not null").join(wanted, ["run", "true_group"], "inner")
    whole = placed.where("true_group is null").join(
        wanted.select("run", "domain").distinct(), "run", "inner"
    )
    columns = [c for c in events.columns if c != "run"]
    both = grouped.select("domain", *columns).unionByName(whole.select("domain", *columns))
    return both.withColumnRenamed("domain", "run")
