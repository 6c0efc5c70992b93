"""Deliveries and their sends, matched inside a task that has all rows of a message.

Arrow tables in, Arrow tables out. Which rows a task gets is for `deliveries` to arrange.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROW_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "message", "process", "kind", "group", "sender")),
        *((name, pa.int64()) for name in ("index", "view", "time", "size", "overhead")),
    ]
)
DELIVERY_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "message", "group", "sender", "process")),
        *(
            (name, pa.int64())
            for name in (
                "index", "view", "sent", "delivered", "latency", "held", "size", "overhead",
            )
        ),
        ("has_send", pa.bool_()),
        ("repeats", pa.int64()),
    ]
)  # fmt: skip
KINDS = ("send", "deliver", "receive", "hold")  # that tell what became of a message
_OF_SENDS = ["process", "group", "time", "size"]  # what a delivery is told of its send
_LATE = np.iinfo(np.int64).max  # where a row has no time

Rows = np.ndarray  # places of rows in a table
Codes = np.ndarray  # one small number per row


def match(rows: pa.Table) -> pa.Table:
    """One row per message and process that delivered it: its first delivery, beside its send."""
    rows = rows.combine_chunks()
    message = _codes(_numbers(rows["run"]), _numbers(rows["message"]))
    copy = _codes(message, _numbers(rows["process"]))  # of a message, at a process
    index, time = _filled(rows["index"], 0), _filled(rows["time"], _LATE)
    first, times = _firsts(_places(rows, "deliver"), copy, index)
    sends, _ = _firsts(_places(rows, "send"), message, time, index)
    arrivals, _ = _firsts(_places(rows, "receive", "hold"), copy, time)
    delivery = rows.drop_columns("kind").take(pa.array(first))
    send = rows.select(_OF_SENDS).take(_beside(first, sends, message))
    arrived = rows["time"].take(_beside(first, arrivals, copy))
    return _side_by_side(delivery, send, arrived, times - 1)


def _side_by_side(
    delivery: pa.Table, send: pa.Table, arrived: pa.ChunkedArray, repeats: np.ndarray
) -> pa.Table:
    sender = pc.coalesce(send["process"], delivery["sender"])
    own = pc.fill_null(pc.equal(sender, delivery["process"]), False)
    came = pc.and_(pc.invert(own), pc.less_equal(arrived, delivery["time"]))
    nothing = pa.scalar(None, pa.int64())
    columns = {
        "group": pc.coalesce(send["group"], delivery["group"]),
        "sender": sender,
        "sent": send["time"],
        "delivered": delivery["time"],
        "latency": pc.subtract(delivery["time"], send["time"]),
        "held": pc.if_else(came, pc.subtract(delivery["time"], arrived), nothing),
        "size": pc.coalesce(send["size"], delivery["size"]),
        "has_send": pc.is_valid(send["process"]),
        "repeats": pa.array(repeats),
    }
    names = DELIVERY_SCHEMA.names
    found = [columns[name] if name in columns else delivery[name] for name in names]
    return pa.table(found, names=names).cast(DELIVERY_SCHEMA)


def of_kinds(rows: pa.Table, *kinds: str) -> pa.Table:
    """The rows of these kinds."""
    return rows.filter(pc.is_in(rows["kind"], pa.array(kinds)))


def _places(rows: pa.Table, *kinds: str) -> Rows:
    return np.flatnonzero(pc.is_in(rows["kind"], pa.array(kinds)).to_numpy())


def _filled(column: pa.ChunkedArray, value: int) -> np.ndarray:
    filled: np.ndarray = pc.fill_null(column, value).to_numpy()
    return filled


def _numbers(names: pa.ChunkedArray) -> Codes:
    """Equal names, equal numbers."""
    encoded = names.combine_chunks().dictionary_encode(null_encoding="encode")
    numbers: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _codes(first: Codes, second: Codes) -> Codes:
    """Equal pairs, equal numbers, from 0 on without holes."""
    pairs = first * (second.max(initial=0) + 1) + second
    return np.unique(pairs, return_inverse=True)[1]


def _firsts(places: Rows, codes: Codes, *order: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Of the rows with one code the first, in this order; and how many there are."""
    keys = tuple(key[places] for key in reversed(order))
    ordered = places[np.lexsort((*keys, codes[places]))]
    found = codes[ordered]
    starts = np.flatnonzero(np.diff(found, prepend=-1))
    return ordered[starts], np.diff(starts, append=len(ordered))


def _beside(rows: Rows, others: Rows, codes: Codes) -> pa.Array:
    """For each of the rows that one of the others with its code; null where there is none."""
    place = np.full(codes.max(initial=-1) + 1, -1)
    place[codes[others]] = others
    found = place[codes[rows]]
    return pa.array(found, mask=found < 0)
