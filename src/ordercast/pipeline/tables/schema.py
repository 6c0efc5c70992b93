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


_RUN = Column("run", "string", "the run; only the name of the folder has it, no file does")
_PROMISE = Column(
    "promise",
    "struct<order: string, protocol: string, scope: string, groups: array<string>, "
    "everything: boolean>",
    "the declared order that the row is about; null: the whole run",
)
_EVENT_MEANINGS = {
    "process": "the process that logged it; null on `group` rows",
    "index": "position in that log",
    "kind": "what happened: `send`, `deliver`, `view`, ...",
    "message": "id of the message",
    "group": "its group",
    "sender": "the sender, on `deliver`",
    "view": "number of the view",
    "members": "of the view or the declared group, in order",
    "time": "nanoseconds",
    "seq": "the sequencer's number",
    "size": "body bytes",
    "overhead": "header bytes",
    "layer": "the part of the recorded system that logged it",
    "note": "free text",
    "order": "on `group`: the promised order",
    "protocol": "on `group`: the protocol that promised it",
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
            Column("file", "string", "the file it was read from; null on rows that a mapping adds"),
            Column("row", "long", "number of the row in the file, from 1; null with a mapping"),
        ),
        (),
    ),
    Table(
        "clean", "silver", "an event, with notes of crashes resolved; the table is itself a trace",
        (*_EVENT, Column("repeat", "boolean", "the process had delivered this message before")),
        ("process", "index"),
    ),
    Table(
        "deliveries", "silver", "the first delivery of a message at a process, beside its send",
        (
            _RUN,
            Column("message", "string", "id of the message"),
            Column("group", "string", "of the send, else of the delivery"),
            Column("sender", "string", "of the send, else of the delivery"),
            Column("process", "string", "the process that delivered it"),
            Column("index", "long", "position of the delivery in the log of `process`"),
            Column("view", "long", "the view in which it was delivered"),
            Column("sent", "long", "nanoseconds; null where the send has no time"),
            Column("delivered", "long", "nanoseconds; null where the delivery has no time"),
            Column("latency", "long", "nanoseconds from send to delivery"),
            Column("held", "long", "nanoseconds from arrival to delivery; null where not recorded"),
            Column("size", "long", "body bytes"),
            Column("overhead", "long", "header bytes"),
            Column("has_send", "boolean", "whether the trace has the send"),
            Column("repeats", "long", "further deliveries at the same process after the first"),
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
            Column("violations", "long", "number of violations"),
            Column("doubts", "long", "number of points that could not be decided"),
            Column("evidence", "array<struct<sentence: string, witness: string>>",
                   "the first violations, in words and as JSON"),
            Column("reasons", "array<string>", "why the verdict is inconclusive"),
            Column("quiescent", "boolean", "whether cut logs were taken as complete"),
            Column("judge", "string", "digest of the code that judged"),
            Column("judged", "timestamp", "time of the judgement"),
        ),
        ("promise", "property"),
    ),
    Table(
        "violations", "gold", "a violation with evidence",
        (
            _RUN,
            _PROMISE,
            Column("property", "string", "the violated property"),
            Column("sentence", "string", "what happened, for people"),
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
            Column("count", "long", "the number of things counted or measured"),
            Column("value", "double", "the count, the mean, or the rate"),
            Column("min", "long", "from here on: only for metrics with a distribution"),
            Column("p50", "long", "the median"),
            Column("p90", "long", "90 percent are at most this"),
            Column("p99", "long", "99 percent are at most this"),
            Column("max", "long", ""),
            Column("percentiles", "array<long>", "at 0, 2, 4, ... 98, 99, 100 percent"),
        ),
        ("per", "metric"),
    ),
    Table(
        "figures", "gold", "a run",
        (_RUN, Column("figures", "string", "the figures of `ordercast verify --json`, as JSON")),
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
