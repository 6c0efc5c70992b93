"""The tables: their names, layers and columns. docs/TABLES.md is made from this."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ordercast.trace.schema import COLUMNS

SCHEMA_VERSION = 1  # to be raised when a table changes: every run is then judged anew

Layer = Literal["bronze", "silver", "gold"]


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: str  # as Spark writes it
    meaning: str


class Table(NamedTuple):
    """One table: a folder with a folder `run=NAME` for each run."""

    name: str
    layer: Layer
    holds: str  # what one row is
    columns: tuple[Column, ...]
    order: tuple[str, ...]  # how the rows of a run are sorted inside a file

    @property
    def schema(self) -> str:
        """For `spark.read.schema`."""
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)


_RUN = Column("run", "string", "the run; the folder states it, no file has it")
_PROMISE = Column(
    "promise",
    "struct<order: string, protocol: string, scope: string, groups: array<string>, "
    "everything: boolean>",
    "which declared order the row is about; null: the whole run",
)
_EVENT_MEANINGS = {
    "process": "whose log; null on `group` rows",
    "index": "place in that log",
    "kind": "what happened: `send`, `deliver`, `view`, ...",
    "message": "id of the message",
    "group": "its group",
    "sender": "who sent it, on `deliver`",
    "view": "number of the view",
    "members": "of the view or the declared group, in order",
    "time": "nanoseconds",
    "seq": "the sequencer's number",
    "size": "body bytes",
    "overhead": "header bytes",
    "layer": "where in the recorded system",
    "note": "free text",
    "order": "on `group`: what was promised",
    "protocol": "on `group`: by which protocol",
    "scope": "on `group`: `group` or `domain`",
}
_LONGS = ("index", "view", "time", "seq", "size", "overhead")


def _event_column(name: str) -> Column:
    if name == "run":
        return _RUN
    kind = "long" if name in _LONGS else "array<string>" if name == "members" else "string"
    return Column(name, kind, _EVENT_MEANINGS[name])


_EVENT = tuple(map(_event_column, COLUMNS))

_ALL = (
    Table(
        "recorded", "bronze", "an event as it was recorded",
        (
            *_EVENT,
            Column("file", "string", "where it was read; null on rows that a mapping adds"),
            Column("row", "long", "which row of the file, from 1; null with a mapping"),
        ),
        (),
    ),
    Table(
        "clean", "silver", "an event, crash notes settled; itself a trace",
        (*_EVENT, Column("repeat", "boolean", "its process delivered this message before")),
        ("process", "index"),
    ),
    Table(
        "deliveries", "silver", "the first delivery of a message at a process, beside its send",
        (
            _RUN,
            Column("message", "string", "id of the message"),
            Column("group", "string", "of the send, else of the delivery"),
            Column("sender", "string", "of the send, else of the delivery"),
            Column("process", "string", "who delivered it"),
            Column("index", "long", "place of the delivery in the log of `process`"),
            Column("view", "long", "in which view it was delivered"),
            Column("sent", "long", "nanoseconds; null where the send has no time"),
            Column("delivered", "long", "nanoseconds; null where the delivery has no time"),
            Column("latency", "long", "nanoseconds from send to delivery"),
            Column("held", "long", "nanoseconds from arrival to delivery; null where not told"),
            Column("size", "long", "body bytes"),
            Column("overhead", "long", "header bytes"),
            Column("has_send", "boolean", "whether there is a send"),
            Column("repeats", "long", "deliveries of it at the same process after the first"),
        ),
        ("process", "index"),
    ),
    Table(
        "verdicts", "gold", "a property of a run, or of an order that it declares",
        (
            _RUN,
            _PROMISE,
            Column("property", "string", "one of the 32 names of PROPERTIES.md"),
            Column("verdict", "string", "`ok`, `violated`, `inconclusive`, `n/a`"),
            Column("violations", "long", "how many there are"),
            Column("doubts", "long", "how many things could not be decided"),
            Column("evidence", "array<struct<sentence: string, witness: string>>",
                   "the first violations, in words and as JSON"),
            Column("reasons", "array<string>", "why something is inconclusive"),
            Column("quiescent", "boolean", "whether cut logs were taken as complete"),
            Column("judge", "string", "which code judged: a digest of it"),
            Column("judged", "timestamp", "when"),
        ),
        ("promise", "property"),
    ),
    Table(
        "violations", "gold", "a violation that there is evidence for",
        (
            _RUN,
            _PROMISE,
            Column("property", "string", "what is violated"),
            Column("sentence", "string", "for people"),
            Column("witness", "string", "the events involved, as JSON"),
        ),
        ("promise", "property"),
    ),
    Table(
        "metrics", "gold", "a metric of a run, protocol, group, process or view",
        (
            _RUN,
            Column("per", "string", "`run`, `protocol`, `group`, `process` or `view`"),
            Column("protocol", "string", "null where the row is over all of them"),
            Column("group", "string", "null where the row is over all of them"),
            Column("process", "string", "null where the row is over all of them"),
            Column("view", "long", "null where the row is over all of them"),
            Column("metric", "string", "`latency`, `hold_back`, `sends`, ..."),
            Column("unit", "string", "`ns`, `bytes`, `1`, `1/s`"),
            Column("count", "long", "how many things were counted or measured"),
            Column("value", "double", "the count, the mean, or the rate"),
            Column("min", "long", "only of what is spread, as all that follow"),
            Column("p50", "long", "the median"),
            Column("p90", "long", ""),
            Column("p99", "long", ""),
            Column("max", "long", ""),
            Column("percentiles", "array<long>", "at 0, 2, 4, ... 98, 99, 100 percent"),
        ),
        ("per", "metric"),
    ),
    Table(
        "figures", "gold", "a run",
        (_RUN, Column("figures", "string", "what `ordercast verify` tells beside verdicts: JSON")),
        (),
    ),
)  # fmt: skip

TABLES = {table.name: table for table in _ALL}


def markdown() -> str:
    """All tables, for the docs."""
    return "\n\n".join(map(_section, TABLES.values()))


def _section(table: Table) -> str:
    order = f" Sorted by {', '.join(table.order)} inside a file." if table.order else ""
    return "\n".join(
        [
            f"### `{table.name}` ({table.layer})",
            "",
            f"One row is {table.holds}.{order}",
            "",
            "| column | type | meaning |",
            "|---|---|---|",
            *(f"| `{one.name}` | `{one.type}` | {one.meaning} |" for one in table.columns),
        ]
    )
