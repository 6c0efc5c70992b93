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
    Column("members", _LONG, "processes that are in groups"),
    Column("groups", _LONG, "groups, spread over the members"),
    Column("group_size", _LONG, "members of each group"),
    Column("overlap", _REAL, "groups that a member is in, on average"),
    Column("ring", _YES, "whether groups lie round a ring; else along a line"),
    Column("cell", _LONG, "size of the cells that groups keep to; 0: none"),
    Column("outside", _REAL, "share of a group's members that is drawn from outside its cell"),
    Column("sequencers", _LONG, "further processes that lead the groups; 0: a member does"),
    Column("subgroups", _LONG, "of each group; 0: as its protocol cuts, or none"),
    Column("messages", _LONG, "messages that the workload starts"),
    Column("workload", _TEXT, "`paced` or `saturating`"),
    Column("senders", _LONG, "how many members send; 0: all"),
    Column("every_us", _REAL, "mean time between two messages, if paced"),
    Column("burst", _LONG, "messages sent in one instant"),
    Column("reply", _REAL, "mean number of answers to a message"),
    Column("depth", _LONG, "how long a chain of answers may be"),
    Column("size", _LONG, "bytes of a message"),
    Column("window", _LONG, "own messages not yet delivered by all; 0: any number"),
    Column("loss", _REAL, "probability that a packet is lost"),
    Column("duplicate", _REAL, "probability that a packet comes twice"),
    Column("fifo", _YES, "whether packets of a pair of processes keep their order"),
    Column("broadcast", _YES, "whether a packet is sent once for all its receivers"),
    Column("delay", _TEXT, "of a packet: distribution and its numbers, in us"),
    Column("megabits", _REAL, "per second, into and out of a process; 0: no limit"),
    Column("work_cost", _REAL, "of all work, as a multiple of the cost model"),
    Column("entry_cost", _REAL, "of an entry of a header, as a multiple of the cost model"),
    Column("crashes", _LONG, "members that crash half-way"),
    Column("moves", _LONG, "how often all groups went to the next sequencer"),
    Column("flush", _YES, "whether views change with one"),
    Column("hearsay", _YES, "whether headers tell of groups that their sender is not in"),
    Column("outage_ms", _REAL, "for so long the last member is cut off half-way"),
    Column("options", _TEXT, "options of the protocol that are not the defaults: JSON"),
    Column("seed", _LONG, "of all that is random"),
)
VERDICTS = (
    Column("verdict", _TEXT, "`kept`, `violated`, `undecided`, or `failed`: an exception"),
    Column("broken", pa.list_(_TEXT), "expected properties that are not `ok`"),
    Column("witness", _TEXT, "the first violation or doubt, or the exception; null if kept"),
    Column(
        "unpromised", pa.list_(_TEXT), "other properties that are violated: nobody promised them"
    ),
    Column("ended", _TEXT, "`quiescent`, or the limit that stopped the run"),
)
FIGURES = (
    Column("sent", _LONG, "messages that were sent, answers too"),
    Column("unsent", _LONG, "messages that nobody could send"),
    Column("deliveries", _LONG, "a message counts once per member"),
    Column("simulated_ms", _REAL, "when the last event was"),
    Column("span_ms", _REAL, "from the first send to the last delivery"),
    Column("throughput_per_s", _REAL, "messages that the slowest member got, over groups"),
    Column("delay_mean_ms", _REAL, "from the send to a delivery, at the sender too"),
    Column("delay_p50_ms", _REAL, "the median of it"),
    Column("delay_p95_ms", _REAL, ""),
    Column("delay_p99_ms", _REAL, ""),
    Column("delay_all_ms", _REAL, "median over messages: from the send until all had it"),
    Column("packets", _LONG, "that were sent, one per receiver or broadcast, lost ones too"),
    Column("packets_per_message", _REAL, "the same by `sent`"),
    Column("payload_bytes", _LONG, "in `packets`"),
    Column("most_bytes_sent", _LONG, "of `payload_bytes`, by one process"),
    Column("lost", _LONG, "packets that the network lost"),
    Column("duplicates", _LONG, "second copies"),
    Column("retransmissions", _LONG, "as machines noted them"),
)
PROTOCOL_FIGURES = (
    Column("packets_received", _LONG, "that arrived, of whatever kind"),
    Column("packet_kinds", _COUNTS, "the same, by the kind of their header"),
    Column("header_bytes", _LONG, "of all packets that arrived"),
    Column("header_bytes_per_message", _REAL, "the same by `sent`"),
    Column("header_mean_bytes", _REAL, "of the packet that brought a delivery"),
    Column("remarks", _COUNTS, "what protocols noted: `nack`, `null`, `drop`, ..."),
    Column("waited", _LONG, "deliveries of messages that had been held back"),
    Column("hold_back_mean_ms", _REAL, "from arrival to delivery, of all that came from others"),
    Column("hold_back_p50_ms", _REAL, ""),
    Column("hold_back_p95_ms", _REAL, ""),
    Column("hold_back_p99_ms", _REAL, ""),
)
COST_FIGURES = (
    Column("cpu_ms", _REAL, "processor time of all processes, by the cost model"),
    Column("cpu_us_per_message", _REAL, "the same by `sent`"),
    Column("busiest", _REAL, "share of `span_ms` that the busiest process worked"),
    Column("busiest_us_per_message", _REAL, "processor time of who worked most, by `sent`"),
    Column("median_us_per_message", _REAL, "... of the process in the middle"),
    Column("longest_line", _LONG, "the most events that waited for one processor"),
)
NEEDLESS_FIGURES = (
    Column("needless_waits", _LONG, "messages held back longer than their order needs"),
    Column("needless_ms", _REAL, "of all waiting, what was longer than the order needs"),
    Column("needless_share", _REAL, "the same as a share of all waiting"),
    Column("single_waits", _LONG, "of messages held back, those at members of one group only"),
    Column("single_needless_waits", _LONG, "... longer than their order needs"),
    Column("single_hold_back_mean_ms", _REAL, "`hold_back_mean_ms` at members of one group only"),
)
SEQUENCING_FIGURES = (
    Column("largest_part", _REAL, "share of the groups that must have one sequencer, at most"),
    Column("context_mean", _REAL, "other groups that the context of a number names"),
)
FALSE_ORDER_FIGURES = (
    Column("concurrent_pairs", _LONG, "pairs of messages of which neither came before the other"),
    Column("same_subgroup_pairs", _LONG, "... of one subgroup"),
    Column("gateways_same", _LONG, "of pairs of one subgroup those that gateways order"),
    Column("gateways_other", _LONG, "... of pairs of two subgroups"),
    Column("seen_pairs", _LONG, "pairs, once for each subgroup: what its members see"),
    Column("waiting_pairs", _LONG, "... of which one waits for the other"),
    Column("rule_1_pairs", _LONG, "... that both vectors together order"),
)
MOVE_FIGURES = (
    Column("change_bytes", _LONG, "packets by which the groups changed, one for all its receivers"),
    Column("repeated", _LONG, "requests that a change made void, and that were sent again"),
    Column("repeated_most", _LONG, "of one sender, at one move"),
    Column("repeated_until_ms", _REAL, "from the order to move until the last of them was sent"),
    Column("repeated_delay_ms", _REAL, "from the send to a delivery of these: median"),
    Column("other_delay_ms", _REAL, "... of all others"),
)
CRASH_FIGURES = (
    Column("uneven", _LONG, "messages that only some of the members that live on delivered"),
    Column("lacking", _LONG, "deliveries that are missing for it"),
    Column("vanished", _LONG, "messages of those that live on that none of them delivered"),
    Column("no_prefix", _LONG, "members that did not get the first messages of a view in order"),
    Column("view_change_ms", _REAL, "from the crash until all that live on have the next view"),
)
_RUN = Column("run", _TEXT, "which run: a digest of its coordinates, its costs and the code")
COLUMNS = (
    _RUN, *COORDINATES, *VERDICTS, *FIGURES, *PROTOCOL_FIGURES, *COST_FIGURES, *NEEDLESS_FIGURES,
    *SEQUENCING_FIGURES, *FALSE_ORDER_FIGURES, *MOVE_FIGURES, *CRASH_FIGURES,
)  # fmt: skip
WORK = (
    _RUN,
    Column("traced", _YES, "whether its trace was written"),
    Column("simulate_s", _REAL, "processor time of this machine for the simulation"),
    Column("judge_s", _REAL, "... for the verdicts"),
    Column("measure_s", _REAL, "... for the figures"),
    Column("write_s", _REAL, "... for the trace"),
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
