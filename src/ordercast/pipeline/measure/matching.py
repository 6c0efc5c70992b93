"""Deliveries and their sends, matched inside a task that has all rows of a message.

Arrow tables in, Arrow tables out. Which rows a task gets is for `deliveries` to arrange.
"""

from __future__ import annotations

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
_MESSAGE = ["run", "message"]
_COPY = ["run", "message", "process"]  # a message at a process
_FIRST = pc.ScalarAggregateOptions(skip_nulls=False)


def match(rows: pa.Table) -> pa.Table:
    """One row per message and process that delivered it: its first delivery, beside its send."""
    matched = (
        _first_deliveries(rows)
        .join(_sends(rows), _MESSAGE, join_type="left outer")
        .join(_arrivals(rows), _COPY, join_type="left outer")
    )
    sender = pc.coalesce(matched["send_process"], matched["sender"])
    own = pc.fill_null(pc.equal(sender, matched["process"]), False)
    delivered, sent, arrived = matched["delivered"], matched["sent"], matched["arrived"]
    came = pc.and_(pc.invert(own), pc.less_equal(arrived, delivered))
    nothing = pa.scalar(None, pa.int64())
    columns = {
        "group": pc.coalesce(matched["send_group"], matched["group"]),
        "sender": sender,
        "latency": pc.subtract(delivered, sent),
        "held": pc.if_else(came, pc.subtract(delivered, arrived), nothing),
        "size": pc.coalesce(matched["send_size"], matched["size"]),
        "has_send": pc.is_valid(matched["send_process"]),
        "repeats": pc.subtract(matched["times"], 1),
    }
    names = DELIVERY_SCHEMA.names
    found = [columns[name] if name in columns else matched[name] for name in names]
    return pa.table(found, names=names).cast(DELIVERY_SCHEMA)


def of_kinds(rows: pa.Table, *kinds: str) -> pa.Table:
    """The rows of these kinds."""
    return rows.filter(pc.is_in(rows["kind"], pa.array(kinds)))


def _first_deliveries(rows: pa.Table) -> pa.Table:
    told = ("group", "sender", "index", "view", "time", "size", "overhead")
    ordered = of_kinds(rows, "deliver").sort_by([(name, "ascending") for name in (*_COPY, "index")])
    folded = ordered.group_by(_COPY, use_threads=False).aggregate(
        [*((name, "first", _FIRST) for name in told), ("index", "count")]
    )
    return folded.rename_columns(
        [*_COPY, *("delivered" if name == "time" else name for name in told), "times"]
    )


def _sends(rows: pa.Table) -> pa.Table:
    """One row per message; where it was sent twice, which is malformed, the least of each."""
    told = ("process", "group", "time", "size")
    folded = of_kinds(rows, "send").group_by(_MESSAGE).aggregate([(name, "min") for name in told])
    return folded.rename_columns([*_MESSAGE, "send_process", "send_group", "sent", "send_size"])


def _arrivals(rows: pa.Table) -> pa.Table:
    """When a message was first seen at a process, below the application."""
    folded = of_kinds(rows, "receive", "hold").group_by(_COPY).aggregate([("time", "min")])
    return folded.rename_columns([*_COPY, "arrived"])
