"""Traces as Arrow tables: the fast way from segments to rows. Needs pyarrow and numpy.

Names that repeat (run, process, kind, group, sender, ...) are dictionary columns: their codes
are integers that a kernel can use as they are. Message ids are plain strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.trace.expand import (
    CRASH_NOTE_INDEX,
    declaration,
    last_events,
    member_list,
    missing,
    seen_by,
)
from ordercast.trace.schema import COLUMNS, Event
from ordercast.trace.segments import (
    KIND_CODES,
    NONE,
    RECORD,
    RECORD_FIELDS,
    RECORD_KINDS,
    Segment,
)

Table = Any  # pyarrow.Table; pyarrow ships no type information
Column = Any  # pyarrow.Array
Codes = npt.NDArray[Any]

_NAME = pa.dictionary(pa.int32(), pa.string())
_TYPES = {
    **dict.fromkeys(COLUMNS, _NAME),
    "message": pa.string(),
    "members": pa.list_(pa.string()),
    **dict.fromkeys(("index", "view", "time", "seq", "size", "overhead"), pa.int64()),
}
assert Event.__struct_fields__ == COLUMNS
TABLE_SCHEMA = pa.schema([(name, _TYPES[name]) for name in COLUMNS])

_RECORD_TYPE = np.dtype(
    {
        "names": list(RECORD_FIELDS),
        "formats": ["u1"] + ["<u4"] * 6 + ["<i8"] * 5,
        "offsets": [0, 4, 8, 12, 16, 20, 24, 28, 36, 44, 52, 60],
        "itemsize": RECORD.size,
    }
)
_SEND, _DELIVER, _VIEW = KIND_CODES["send"], KIND_CODES["deliver"], KIND_CODES["view"]
_GROUP, _CRASH, _LOST = KIND_CODES["group"], KIND_CODES["crash"], KIND_CODES["lost"]
_STATISTICAL = KIND_CODES["receive"]  # this code and all above


def segment_table(segment: Segment) -> Table:
    """One row per message of every record, with the columns of TABLE_SCHEMA."""
    if segment.head is None:
        return TABLE_SCHEMA.empty_table()
    records = np.frombuffer(segment.records, dtype=_RECORD_TYPE)
    kind = records["kind"]
    rows = _Rows(kind, records["count"].astype(np.int64))
    group, sender, text = records["group"], records["sender"], records["text"]
    names, me = segment.names, segment.head.process
    if any((column >= len(names)).any() for column in (group, sender, text)):
        raise TraceError(segment.path, None, None, "damaged record: a name that was never defined")
    if (kind >= len(RECORD_KINDS)).any():
        raise TraceError(segment.path, None, None, "damaged record: a kind that does not exist")
    send, deliver, view = kind == _SEND, kind == _DELIVER, kind == _VIEW
    crash, declared, statistical = kind == _CRASH, kind == _GROUP, kind >= _STATISTICAL
    author = np.where(send, len(names), sender)  # len(names): this process
    columns = {
        "run": rows.named(np.zeros(len(records)), [segment.head.run]),
        "process": rows.named(
            np.where(crash, sender, len(names)), [*names, me], absent=declared
        ),
        "index": rows.numbers(
            np.where(crash, CRASH_NOTE_INDEX, records["index"]), absent=declared, step=True
        ),
        "kind": rows.named(kind, RECORD_KINDS),
        "message": rows.messages(
            author, group, records["first"], [*names, me],
            absent=~(send | deliver | (statistical & (sender > 0) & (records["count"] > 0))),
        ),
        "group": rows.named(group, names, absent=group == 0),
        "sender": rows.named(sender, names, absent=crash | (sender == 0)),
        "view": rows.numbers(records["view"], absent=records["view"] == NONE),
        "members": rows.members(text, names, view, declared),
        "time": rows.numbers(records["time"]),
        "seq": rows.numbers(records["seq"], absent=records["seq"] == NONE),
        "size": rows.shares(records["size"], absent=~send),
        "overhead": rows.shares(records["overhead"], absent=records["overhead"] == 0),
        "note": rows.notes(records, names, me),
        **rows.promises(text, names, declared),
    }  # fmt: skip
    arrays = [columns.get(name, pa.nulls(len(rows), _TYPES[name])) for name in COLUMNS]
    return pa.table(arrays, schema=TABLE_SCHEMA)


class _Rows:
    """How records become rows: a frame of n messages n times, anything else once.

    Arguments are columns of records; `absent` says which records have no such value.
    """

    def __init__(self, kind: Codes, count: Codes) -> None:
        frame = (kind == _SEND) | (kind == _DELIVER)
        each = np.where(frame, count, np.where(kind >= _STATISTICAL, np.maximum(count, 1), 1))
        self.count = np.maximum(count, 1)
        self.source = np.repeat(np.arange(len(kind)), each)  # per row: its record ...
        self.place = np.arange(len(self.source)) - np.repeat(np.cumsum(each) - each, each)

    def __len__(self) -> int:
        return len(self.source)

    def named(
        self, codes: Codes, names: Sequence[str | None], absent: Codes | None = None
    ) -> Column:
        """A dictionary column: `codes` are places in `names`."""
        first = 1 if names[0] is None else 0  # "none" is no word of the dictionary
        codes = codes.astype(np.int32) - first
        indexes = pa.array(codes[self.source], mask=self._rows_of(absent))
        return pa.DictionaryArray.from_arrays(indexes, pa.array(names[first:], pa.string()))

    def numbers(self, values: Codes, absent: Codes | None = None, *, step: bool = False) -> Column:
        """An integer column; with `step` the n-th row of a record is n higher."""
        spread = values.astype(np.int64)[self.source]
        return pa.array(spread + self.place if step else spread, mask=self._rows_of(absent))

    def shares(self, totals: Codes, absent: Codes) -> Column:
        """Bytes of a frame dealt out to its messages so that their sum is right."""
        whole, rest = np.divmod(totals.astype(np.int64), self.count)
        shares = whole[self.source] + (self.place < rest[self.source])
        return pa.array(shares, mask=self._rows_of(absent))

    def messages(
        self, author: Codes, group: Codes, first: Codes, names: Sequence[str | None], absent: Codes
    ) -> Column:
        """sender/group/number, built once per sender and group and joined to the numbers."""
        pairs, codes = np.unique(
            author.astype(np.int64) << 32 | group.astype(np.int64), return_inverse=True
        )
        words = pa.array([f"{names[pair >> 32]}/{names[pair & 0xFFFFFFFF]}/" for pair in pairs])
        prefixes = words.take(pa.array(codes[self.source], mask=self._rows_of(absent)))
        numbers = pc.cast(pa.array(first[self.source] + self.place), pa.string())
        return pc.binary_join_element_wise(prefixes, numbers, "")

    def members(
        self, text: Codes, names: Sequence[str | None], view: Codes, declared: Codes
    ) -> Column:
        """The member lists of `view` and `group` records."""
        lists: list[tuple[str, ...] | None] = [None]
        place = np.zeros(len(view), np.int64)
        for record in np.flatnonzero(view | declared):
            place[record] = len(lists)
            said = names[text[record]]
            lists.append(declaration(said).members if declared[record] else member_list(said))
        return pa.array(lists, pa.list_(pa.string())).take(pa.array(place[self.source]))

    def notes(self, records: Any, names: Sequence[str | None], me: str) -> Column:
        """Notes of protocol events; in words, what was lost and who saw a crash."""
        kind, words, place = records["kind"], list(names), records["text"].astype(np.int64)
        place[kind < _STATISTICAL] = 0
        place[kind == _CRASH] = len(words)
        words.append(seen_by(me))
        for record in np.flatnonzero(kind == _LOST):
            place[record] = len(words)
            words.append(missing(int(records["first"][record])))
        return self.named(place, words, absent=place == 0)

    def promises(
        self, text: Codes, names: Sequence[str | None], declared: Codes
    ) -> dict[str, Column]:
        """order, protocol and scope of `group` records."""
        told = [
            declaration(names[text[record]]) for record in np.flatnonzero(declared)
        ]  # one per `group` record, in order
        place = np.cumsum(declared)
        columns = {}
        for column in ("order", "protocol", "scope"):
            words = [None, *(getattr(one, column) for one in told)]
            known = np.array([word is not None for word in words])
            named = [None, *(word or "" for word in words[1:])]  # a dictionary holds no null
            columns[column] = self.named(place, named, absent=~(declared & known[place]))
        return columns

    def _rows_of(self, absent: Codes | None) -> Codes | None:
        return None if absent is None else absent[self.source]


def event_table(events: Iterable[Event]) -> Table:
    """The same columns, from events."""
    rows = list(events)
    arrays = [pa.array([getattr(row, name) for row in rows], _TYPES[name]) for name in COLUMNS]
    return pa.table(arrays, schema=TABLE_SCHEMA)


def table_events(table: Table) -> list[Event]:
    """The rows of a table that has the columns of TABLE_SCHEMA, as events."""
    columns = {name: _values(table.column(name)) for name in COLUMNS}
    columns["members"] = [None if one is None else tuple(one) for one in columns["members"]]
    columns["run"] = [run or "" for run in columns["run"]]
    return [Event(*row) for row in zip(*columns.values(), strict=True)]


def _values(column: Column) -> list[Any]:
    """The same as `to_pylist`, several times faster for the columns that most traces have."""
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, pa.string())
    if pa.types.is_string(column.type) or (column.null_count == 0 and column.type == pa.int64()):
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    else:
        values = column.to_pylist()
    return values


def joined(tables: Sequence[Table]) -> Table:
    """One table of all rows."""
    return pa.concat_tables([TABLE_SCHEMA.empty_table(), *tables])


def write_table(table: Table, path: Path) -> None:
    """Write Parquet: message ids are nearly all different, so they get no dictionary."""
    repeated = [name for name in COLUMNS if _TYPES[name] == _NAME]
    pq.write_table(table, path, compression="zstd", use_dictionary=repeated)


def settle_crash_rows(table: Table) -> Table:
    """`settle_crashes` for a table; the same table if nobody noted a crash."""
    noted = pc.and_(
        pc.equal(table["index"], CRASH_NOTE_INDEX),
        pc.equal(pc.cast(table["kind"], pa.string()), "crash"),
    )
    noted = pc.fill_null(noted, False)
    if not pc.any(noted).as_py():
        return table
    notes = table_events(table.filter(noted))
    others = table.filter(pc.invert(noted))
    victims = pa.array({note.process for note in notes}, pa.string())
    logs = pa.table(
        {name: pc.cast(others[name], pa.string()) for name in ("run", "process", "kind")}
        | {"index": others["index"]}
    )
    logs = logs.filter(pc.is_in(logs["process"], victims))
    ends = logs.filter(pc.is_in(logs["kind"], pa.array(["crash", "end"])))
    lasts = logs.group_by(["run", "process"]).aggregate([("index", "max")])
    crashes = last_events(
        notes,
        {(row["run"], row["process"]): row["index_max"] for row in lasts.to_pylist()},
        {(row["run"], row["process"]) for row in ends.to_pylist()},
    )
    return pa.concat_tables([others, event_table(crashes)])
