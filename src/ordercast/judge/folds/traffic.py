"""What went on below the application, from the rows of the kinds for statistics.

A recorder writes one row per message. A packet, or a copy sent again, with n messages of one sender
in it is therefore n rows: of one process, at one time, with one note, numbered on and on. They are
counted as one here. Where message ids do not end in a number, as ours do, each row counts. Header
bytes are shared out over the rows in the same way, and put together again here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.folds.folding import PLACE, bars, with_all_columns
from ordercast.judge.folds.matching import of_kinds

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
PACKET = (*PLACE, "kind", "time", "sender", "note")  # the same in all rows of a packet
PACKET_COLUMNS = (*PACKET, "index", "message", "overhead")


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
    told = rows.select([*PACKET, "overhead"])
    told = told.append_column("shift", pc.coalesce(shift, rows["index"]))
    told = told.append_column("alone", pc.is_null(shift))
    keys = [*PACKET, "shift", "alone"]
    packets = told.group_by(keys).aggregate([("overhead", "sum")])
    return packets.rename_columns([*keys, "overhead"])
