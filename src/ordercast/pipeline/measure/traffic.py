"""What went on below the application, from the rows of the kinds for statistics.

A recorder writes one row per message. A packet, or a copy sent again, with n messages of one sender
in it is therefore n rows: of one process, at one time, with one note, numbered on and on. They are
counted as one here. Where message ids do not end in a number, as ours do, each row counts. Header
bytes are shared out over the rows in the same way, and put together again here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.pipeline.columns import canonical
from ordercast.pipeline.measure.folding import FOLDED_SCHEMA, PLACE, bars, with_all_columns
from ordercast.pipeline.measure.matching import of_kinds
from ordercast.pipeline.measure.together import together
from ordercast.pipeline.spark.ship import by_tasks

COUNTED = {  # kind: the metric that counts it
    "receive": "packets_received",
    "retransmit": "retransmissions",
    "nack": "nacks",
    "null": "nulls",
    "forward": "forwards",
    "drop": "drops",
    "ack": "acks",
}
PACKET_HEADER = "packet_header"  # bytes of a packet that are no body
_NUMBER = r"/(?P<number>\d{1,18})$"
_PACKET = (*PLACE, "kind", "time", "sender", "note")  # the same in all rows of a packet
_COLUMNS = (*_PACKET, "index", "message", "overhead")


def traffic(events: DataFrame) -> DataFrame:
    """One row per run, group, process, view and metric: how many. Rows that hold are no traffic.

    The header bytes of packets received are a histogram: one row for each size `at`, with the
    `total`, `least` and `most` of the sizes that it stands for. For the memory of tasks see
    `deliveries`.
    """
    sums = (sf.sum("count"), sf.sum("total"), sf.min("least"), sf.max("most"))
    names = ("count", "total", "least", "most")
    return (
        folded_traffic(canonical(events))
        .groupBy(*PLACE, "metric", "at")
        .agg(*(one.alias(name) for one, name in zip(sums, names, strict=True)))
    )


def folded_traffic(events: DataFrame, place: Sequence[str] = PLACE, count: int = 0) -> DataFrame:
    """The same with the columns of other folded rows: several for each place and metric.

    `count` is how many rows of the kinds `COUNTED` there are, 0 if that is not known.
    """
    rows = events.where(sf.col("kind").isin(*COUNTED)).select(*_COLUMNS)
    task = partial(_whole_task, place=place)
    packets = together(rows, *_PACKET, count=count)
    return by_tasks(packets, task, from_arrow_schema(FOLDED_SCHEMA))


def _whole_task(
    batches: Iterable[pa.RecordBatch], *, place: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    own = list(batches)
    if own:
        yield from fold_traffic(pa.Table.from_batches(own), place).to_batches()


def fold_traffic(rows: pa.Table, place: Sequence[str] = PLACE) -> pa.Table:
    """Counts and histograms per `place`, of rows that are whole packets."""
    once = _packets(of_kinds(rows, *COUNTED))
    counted = once.group_by([*place, "kind"]).aggregate([([], "count_all")])
    counted = counted.rename_columns([*place, "kind", "count"])
    counts = [with_all_columns(of_kinds(counted, kind), metric) for kind, metric in COUNTED.items()]
    return pa.concat_tables(
        [*counts, bars(of_kinds(once, "receive"), place, PACKET_HEADER, "overhead")]
    )


def _packets(rows: pa.Table) -> pa.Table:
    """One row for each, with its header bytes."""
    found = pc.extract_regex(rows["message"], _NUMBER)
    number = pc.struct_field(found, "number").cast(pa.int64())
    shift = pc.subtract(rows["index"], number)  # the same in all rows of a packet
    told = rows.select([*_PACKET, "overhead"])
    told = told.append_column("shift", pc.coalesce(shift, rows["index"]))
    told = told.append_column("alone", pc.is_null(shift))
    keys = [*_PACKET, "shift", "alone"]
    packets = told.group_by(keys).aggregate([("overhead", "sum")])
    return packets.rename_columns([*keys, "overhead"])
