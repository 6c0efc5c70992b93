"""The tables of a sweep: one row per run. Written here once, for the writer and for the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import ConfigError

ABOUT = b"ordercast"
"""The key under which the metadata of a table says how it was made, as JSON."""


class Column(NamedTuple):
    """A column, and what it says."""

    name: str
    type: Any  # of Arrow
    meaning: str


_TEXT, _LONG, _REAL, _YES = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_COUNTS = pa.map_(_TEXT, _LONG)

COORDINATES = (
    Column("protocol", _TEXT, "the protocol of all groups"),
    Column("members", _LONG, "number of processes that are in groups"),
    Column("groups", _LONG, "number of groups"),
    Column("group_size", _LONG, "members of each group"),
    Column("overlap", _REAL, "number of groups that a member is in, on average"),
    Column("ring", _YES, "whether groups are laid on a ring of the members; else on a line"),
    Column("cell", _LONG, "members per cell, with each group in one cell; 0: no cells"),
    Column("outside", _REAL, "share of the members of a group that come from outside its cell"),
    Column("sequencers", _LONG, "additional processes that lead the groups; 0: a member does"),
    Column("subgroups", _LONG, "number of subgroups of each group; 0: the protocol decides"),
    Column("messages", _LONG, "messages that the workload sends, not counting answers"),
    Column("workload", _TEXT, "`paced` or `saturating`"),
    Column("senders", _LONG, "number of members that send; 0: all"),
    Column("every_us", _REAL, "mean time between two messages, if paced"),
    Column("burst", _LONG, "messages sent at the same time"),
    Column("reply", _REAL, "mean number of answers to a message"),
    Column("depth", _LONG, "longest chain of answers to answers"),
    Column("size", _LONG, "bytes of a message"),
    Column("window", _LONG, "limit of own messages that not all have delivered; 0: none"),
    Column("loss", _REAL, "probability that a packet is lost"),
    Column("duplicate", _REAL, "probability that a packet arrives twice"),
    Column("fifo", _YES, "whether packets between two processes keep their order"),
    Column("broadcast", _YES, "whether a packet is sent once for all its receivers"),
    Column("delay", _TEXT, "delay of a packet in us: a distribution with its numbers"),
    Column("megabits", _REAL, "megabits per second, into and out of a process; 0: no limit"),
    Column("work_cost", _REAL, "factor on all costs of the cost model"),
    Column("entry_cost", _REAL, "factor on the cost of a header entry in the cost model"),
    Column("crashes", _LONG, "number of members that crash half-way"),
    Column("moves", _LONG, "how often all groups move to the next sequencer"),
    Column("flush", _YES, "whether views change with a flush"),
    Column("hearsay", _YES, "whether headers name groups that their sender is not in"),
    Column("outage_ms", _REAL, "how long the last member is cut off, half-way"),
    Column("options", _TEXT, "options of the protocol that differ from the defaults, as JSON"),
    Column("seed", _LONG, "seed of the random numbers"),
)
VERDICTS = (
    Column("verdict", _TEXT, "`kept`, `violated`, `undecided`, or `failed` after an exception"),
    Column("broken", pa.list_(_TEXT), "expected properties that are not `ok`"),
    Column("witness", _TEXT, "the first violation, the first doubt or the exception; null if kept"),
    Column(
        "unpromised",
        pa.list_(_TEXT),
        "other properties that are violated; the protocol does not promise them",
    ),
    Column("ended", _TEXT, "`quiescent`, or the limit that stopped the run"),
)
FIGURES = (
    Column("sent", _LONG, "messages that were sent, including answers"),
    Column("unsent", _LONG, "messages that could not be sent"),
    Column("deliveries", _LONG, "deliveries; a message counts once per member"),
    Column("simulated_ms", _REAL, "simulated time of the last event"),
    Column("span_ms", _REAL, "time from the first send to the last delivery"),
    Column(
        "throughput_per_s", _REAL, "messages per second at the slowest member, summed over groups"
    ),
    Column("delay_mean_ms", _REAL, "mean time from the send to a delivery, sender included"),
    Column("delay_p50_ms", _REAL, "the median of these times"),
    Column("delay_p95_ms", _REAL, ""),
    Column("delay_p99_ms", _REAL, ""),
    Column("delay_all_ms", _REAL, "median time from the send until all have delivered"),
    Column("packets", _LONG, "packets sent, one per receiver or broadcast, including lost ones"),
    Column("packets_per_message", _REAL, "`packets` divided by `sent`"),
    Column("payload_bytes", _LONG, "payload bytes in `packets`"),
    Column("most_bytes_sent", _LONG, "the most of `payload_bytes` that one process sent"),
    Column("lost", _LONG, "packets that the network lost"),
    Column("duplicates", _LONG, "second copies of packets"),
    Column("retransmissions", _LONG, "retransmissions that the machines recorded"),
)
PROTOCOL_FIGURES = (
    Column("packets_received", _LONG, "packets that arrived, of any kind"),
    Column("packet_kinds", _COUNTS, "`packets_received` by the kind of header"),
    Column("header_bytes", _LONG, "header bytes of all packets that arrived"),
    Column("header_bytes_per_message", _REAL, "`header_bytes` divided by `sent`"),
    Column("header_mean_bytes", _REAL, "mean header bytes of the packets that brought deliveries"),
    Column("remarks", _COUNTS, "rows for statistics by kind: `nack`, `null`, `drop`, ..."),
    Column("waited", _LONG, "deliveries of messages that had been held back"),
    Column("hold_back_mean_ms", _REAL, "mean time from arrival to delivery, without own messages"),
    Column("hold_back_p50_ms", _REAL, ""),
    Column("hold_back_p95_ms", _REAL, ""),
    Column("hold_back_p99_ms", _REAL, ""),
)
COST_FIGURES = (
    Column("cpu_ms", _REAL, "processor time of all processes, by the cost model"),
    Column("cpu_us_per_message", _REAL, "processor time per message sent"),
    Column("busiest", _REAL, "share of `span_ms` that the busiest process worked"),
    Column("busiest_us_per_message", _REAL, "processor time of the busiest process per message"),
    Column("median_us_per_message", _REAL, "the same of the median process"),
    Column("longest_line", _LONG, "the longest queue of events at one processor"),
)
NEEDLESS_FIGURES = (
    Column("needless_waits", _LONG, "messages held back longer than their order requires"),
    Column("needless_ms", _REAL, "waiting time beyond what the order requires"),
    Column("needless_share", _REAL, "`needless_ms` as a share of all waiting time"),
    Column("single_waits", _LONG, "messages held back at members of one group only"),
    Column("single_needless_waits", _LONG, "those held back longer than their order requires"),
    Column("single_hold_back_mean_ms", _REAL, "`hold_back_mean_ms` at members of one group only"),
)
SEQUENCING_FIGURES = (
    Column("largest_part", _REAL, "largest share of the groups that must have the same sequencer"),
    Column("context_mean", _REAL, "mean number of other groups in the context of a number"),
)
FALSE_ORDER_FIGURES = (
    Column("concurrent_pairs", _LONG, "pairs of messages without causal order between them"),
    Column("same_subgroup_pairs", _LONG, "those of one subgroup"),
    Column("gateways_same", _LONG, "pairs of one subgroup that gateways order"),
    Column("gateways_other", _LONG, "pairs of two subgroups that gateways order"),
    Column("seen_pairs", _LONG, "pairs that the members of a subgroup see, summed over subgroups"),
    Column("waiting_pairs", _LONG, "those of which one message waits for the other"),
    Column("rule_1_pairs", _LONG, "those that both vectors together order"),
)
MOVE_FIGURES = (
    Column("change_bytes", _LONG, "bytes of the packets of group changes, each counted once"),
    Column("repeated", _LONG, "requests that a change made void and that were sent again"),
    Column("repeated_most", _LONG, "the most of these by one sender at one move"),
    Column("repeated_until_ms", _REAL, "time from the order to move to the last of these sends"),
    Column("repeated_delay_ms", _REAL, "median time from the send to a delivery of these requests"),
    Column("other_delay_ms", _REAL, "the same of all other requests"),
)
CRASH_FIGURES = (
    Column("uneven", _LONG, "messages that some survivors delivered and others did not"),
    Column("lacking", _LONG, "deliveries missing for these messages"),
    Column("vanished", _LONG, "messages sent by survivors that no survivor delivered"),
    Column("no_prefix", _LONG, "members that did not deliver a prefix of the messages of a view"),
    Column("view_change_ms", _REAL, "time from the crash until all survivors have the next view"),
)
_RUN = Column("run", _TEXT, "id of the run: a digest of its coordinates, its costs and the code")
COLUMNS = (
    _RUN, *COORDINATES, *VERDICTS, *FIGURES, *PROTOCOL_FIGURES, *COST_FIGURES, *NEEDLESS_FIGURES,
    *SEQUENCING_FIGURES, *FALSE_ORDER_FIGURES, *MOVE_FIGURES, *CRASH_FIGURES,
)  # fmt: skip
WORK = (
    _RUN,
    Column("traced", _YES, "whether its trace was written"),
    Column("simulate_s", _REAL, "processor time of this machine for the simulation"),
    Column("judge_s", _REAL, "the same for the verdicts"),
    Column("measure_s", _REAL, "the same for the figures"),
    Column("write_s", _REAL, "the same for writing the trace"),
)


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """As Arrow has it."""
    return pa.schema([(column.name, column.type) for column in columns])


RUNS_SCHEMA = schema_of(COLUMNS)
WORK_SCHEMA = schema_of(WORK)
PART_SCHEMA = schema_of((*COLUMNS, *WORK[1:]))
"""What a task writes: both."""


def table_of(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; what a row does not have is null."""
    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def read_runs(path: str | Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of a table `runs.parquet`, and how it was made. For figures: all of it in memory."""
    table = pq.read_table(path)
    told = (table.schema.metadata or {}).get(ABOUT)
    if told is None:
        raise ConfigError(f"{path} is no table of a sweep: nothing says how it was made")
    rows = table.to_pylist(maps_as_pydicts="strict")
    return rows, msgspec.json.decode(told)


def markdown() -> str:
    """Both tables, for the docs."""
    return "\n\n".join(
        (
            _section("runs.parquet", COLUMNS),
            _section("work.parquet", WORK),
        )
    )


def _section(name: str, columns: tuple[Column, ...]) -> str:
    return "\n".join(
        [
            f"### `{name}`",
            "",
            "| column | type | meaning |",
            "|---|---|---|",
            *(f"| `{one.name}` | `{one.type}` | {_meaning(one)} |" for one in columns),
        ]
    )


def _meaning(column: Column) -> str:
    return column.meaning or column.name.split("_")[-2].replace("p", "percentile ")
