"""Parquet traces, ours or foreign, as tables with the columns of TABLE_SCHEMA.

The same rules as for rows (see rows.py), checked by column. The line named in a refusal is the
number of the row, from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.trace.layout import run_of_folder
from ordercast.trace.rows import NEEDED_COLUMNS, Row, require_columns
from ordercast.trace.schema import COLUMNS, KINDS
from ordercast.trace.tables import TABLE_SCHEMA, Codes, Column, Table, joined

ROWS_EACH = 1_000_000

_UNKNOWN = -1
_OWN_KINDS = np.array([kind != "group" for kind in KINDS])
_NAMES = [field.name for field in TABLE_SCHEMA if pa.types.is_dictionary(field.type)]


def parquet_table(path: Path) -> Table:
    """Read one file. Columns that the schema does not know are not even read."""
    return joined(list(parquet_tables(path)))


@dataclass(frozen=True)
class Piece:
    """Some of the row groups of a file."""

    path: Path
    row_groups: tuple[int, ...]
    before: int  # rows of the file that come earlier


def parquet_pieces(path: Path, rows_each: int = ROWS_EACH) -> list[Piece]:
    """The file in pieces of about so many rows: they can be read at the same time."""
    with _readable(path), pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    if not sizes:
        return [Piece(path, (), 0)]
    pieces, start, before, rows = [], 0, 0, 0
    for k, size in enumerate(sizes):
        rows += size
        if rows >= rows_each or k + 1 == len(sizes):
            pieces.append(Piece(path, tuple(range(start, k + 1)), before))
            start, before, rows = k + 1, before + rows, 0
    return pieces


def parquet_tables(path: Path, columns: Sequence[str] = COLUMNS) -> Iterator[Table]:
    """The pieces one after the other, only these columns."""
    return (read_piece(piece, columns) for piece in parquet_pieces(path))


def read_piece(piece: Piece, columns: Sequence[str] = COLUMNS) -> Table:
    """Only these columns (with all that every row needs)."""
    path = piece.path
    with _readable(path), pq.ParquetFile(path, read_dictionary=_names_in(path)) as file:
        present = file.schema_arrow.names
        require_columns(present, path, None)
        wanted = [name for name in COLUMNS if name in columns and name in present]
        raw = file.read_row_groups(list(piece.row_groups), columns=wanted)
    return _checked(raw, columns, path, piece.before)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as reason:
        if isinstance(reason, FileNotFoundError):
            raise
        raise TraceError(path, None, None, f"not readable as Parquet: {reason}") from reason


def _names_in(path: Path) -> list[str]:
    """Its columns of plain strings that are to be dictionary columns."""
    schema = pq.read_schema(path)
    return [name for name in _NAMES if name in schema.names and _is_text(schema.field(name).type)]


def _checked(raw: Table, wanted: Sequence[str], path: Path, before: int) -> Table:
    """The rows, if they are as they must be; `before` rows of the file came earlier."""
    names = [name for name in COLUMNS if name in wanted]
    columns = {name: _column(raw, name, path, before) for name in names}
    codes = _kind_codes(columns["kind"])
    _check_kinds(codes, columns["kind"], path, before)
    _check_needed(codes, columns, path, before)
    _disown_declarations(codes, columns)
    if "run" in columns:
        columns["run"] = _filled(columns["run"], run_of_folder(path.parent))
    schema = pa.schema([TABLE_SCHEMA.field(name) for name in names])
    return pa.table([columns[name] for name in names], schema=schema)


def single_run(path: Path) -> str | None:
    """The run that all rows of the file belong to, as far as its footer tells; else None.

    A file without rows tells nothing.
    """
    try:
        with pq.ParquetFile(path) as file:
            if not file.metadata.num_rows:
                return None
            if "run" not in file.schema_arrow.names:
                return run_of_folder(path.parent)
            if not _is_text(file.schema_arrow.field("run").type):
                return None
            runs = _runs_in(file)
    except (pa.ArrowException, OSError, ValueError):
        return None  # whoever reads it will say what is wrong with it
    return runs.pop() or run_of_folder(path.parent) if len(runs) == 1 else None


def _runs_in(file: pq.ParquetFile) -> set[str]:
    """The lowest and the highest run of each row group; none if not all of that is told."""
    paths = [file.schema.column(k).path for k in range(len(file.schema))]
    place = paths.index("run")
    runs: set[str] = set()
    for k in range(file.num_row_groups):
        known = file.metadata.row_group(k).column(place).statistics
        if known is None or not known.has_min_max or known.null_count != 0:
            return set()
        runs |= {known.min, known.max}
    return runs


def has_plain_columns(path: Path) -> bool:
    """Are its columns of just the types of the schema, is every row's run named, and is nothing
    written as "" that is absent?"""
    schema = pq.read_schema(path)
    for name in COLUMNS:
        wanted = TABLE_SCHEMA.field(name).type
        if name not in schema.names:
            continue
        present = schema.field(name).type
        if pa.types.is_integer(wanted) or pa.types.is_list(wanted):
            if present != wanted:
                return False
        elif not _is_text(present):
            return False
    if "run" not in schema.names or single_run(path) is None:
        return False
    with pq.ParquetFile(path) as file:
        return not any(map(_may_have_empty, _text_chunks(file)))


def _text_chunks(file: pq.ParquetFile) -> Iterator[pq.ColumnChunkMetaData]:
    """The parts of the file that hold texts of the schema."""
    texts = {name for name in COLUMNS if _is_text(TABLE_SCHEMA.field(name).type)}
    places = [k for k in range(len(file.schema)) if file.schema.column(k).path in texts]
    for k in range(file.num_row_groups):
        row_group = file.metadata.row_group(k)
        yield from (row_group.column(place) for place in places)


def _may_have_empty(chunk: pq.ColumnChunkMetaData) -> bool:
    """The empty text is the lowest of all."""
    known = chunk.statistics
    if known is None:
        return True
    if known.has_min_max:
        return bool(known.min == "")
    return bool(known.null_count != chunk.num_values)


def _column(raw: Table, name: str, path: Path, before: int) -> Column:
    """The column with the type it must have; "" counts as absent."""
    wanted = TABLE_SCHEMA.field(name).type
    if name not in raw.column_names or pa.types.is_null(raw[name].type):
        return pa.chunked_array([pa.nulls(len(raw), wanted)])
    column = raw[name]
    if pa.types.is_integer(wanted):
        return _integers(column, name, path)
    if pa.types.is_list(wanted) and not _is_text(column.type):
        return _lists(column, name, path, before)
    if not _is_text(column.type):
        raise TraceError(path, None, name, f"must be a string column, not {column.type}")
    if pa.types.is_list(wanted):
        texts = column.to_pylist()
        rows = (Row({name: text}, path, line) for line, text in enumerate(texts, before + 1))
        return pa.chunked_array([pa.array([row.names(name) for row in rows], wanted)])
    return _encoded(_without_empty(column), wanted)


def _integers(column: Column, name: str, path: Path) -> Column:
    if name == "time" and pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("ns", column.type.tz))
        return pc.cast(column, pa.int64())
    if not pa.types.is_integer(column.type):
        raise TraceError(path, None, name, f"must be an integer column, not {column.type}")
    return pc.cast(column, pa.int64())


def _lists(column: Column, name: str, path: Path, before: int) -> Column:
    lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if not lists or not _is_text(column.type.value_type):
        raise TraceError(path, None, name, f"must be a list of strings, not {column.type}")
    column = pc.cast(column, pa.list_(pa.string()))
    names = pc.list_flatten(column)
    if names.null_count or pc.any(pc.equal(names, "")).as_py():
        for line, some in enumerate(column.to_pylist(), before + 1):
            Row({name: some}, path, line).names(name)  # raises, saying what is wrong
    return column


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _without_empty(column: Column) -> Column:
    if pa.types.is_dictionary(column.type):
        if not any("" in chunk.dictionary.to_pylist() for chunk in column.chunks):
            return column
        column = pc.cast(column, column.type.value_type)
    empty = pc.equal(column, "")
    return (
        pc.if_else(empty, pa.scalar(None, column.type), column) if pc.any(empty).as_py() else column
    )


def _encoded(column: Column, wanted: Any) -> Column:
    if column.type == wanted:
        return column
    column = pc.cast(column, pa.string())
    return column.dictionary_encode() if pa.types.is_dictionary(wanted) else column


def _filled(column: Column, run: str) -> Column:
    """`run` where the rows name none."""
    if not column.null_count:
        return column
    return _encoded(pc.fill_null(pc.cast(column, pa.string()), run), column.type)


def _kind_codes(column: Column) -> Codes:
    """Per row the place of its kind in KINDS; _UNKNOWN for anything else."""
    places = {kind: place for place, kind in enumerate(KINDS)}
    parts = []
    for chunk in column.chunks:
        words = [*chunk.dictionary.to_pylist(), None]  # the last place: null
        codes = np.array([places.get(word, _UNKNOWN) for word in words], np.int8)
        parts.append(codes[chunk.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)])
    return np.concatenate(parts) if parts else np.empty(0, np.int8)


def _check_kinds(codes: Codes, kinds: Column, path: Path, before: int) -> None:
    for row in np.flatnonzero(codes == _UNKNOWN)[:1].tolist():
        refused = Row({"kind": kinds[row].as_py()}, path, before + row + 1)
        refused.kind()  # raises, saying what is wrong


def _check_needed(codes: Codes, columns: dict[str, Column], path: Path, before: int) -> None:
    needed = dict.fromkeys(("process", "index"), _OWN_KINDS)
    for kind, names in NEEDED_COLUMNS.items():
        for name in names:
            needed.setdefault(name, np.zeros(len(KINDS), np.bool_))[KINDS.index(kind)] = True
    for name, by_kind in needed.items():
        if not columns[name].null_count:
            continue
        absent = np.flatnonzero(pc.is_null(columns[name]).to_numpy())
        for row in absent[by_kind[codes[absent]]][:1].tolist():
            reason = f"missing; a row of kind {KINDS[codes[row]]!r} needs it"
            raise TraceError(path, before + row + 1, name, reason)


def _disown_declarations(codes: Codes, columns: dict[str, Column]) -> None:
    """A `group` row belongs to nobody's log."""
    declared = pa.array(codes == KINDS.index("group"))
    if not declared.true_count:
        return
    for name in ("process", "index"):
        column = columns[name]
        if pc.any(pc.and_(declared, pc.is_valid(column))).as_py():
            plain = pc.cast(column, pa.string()) if name == "process" else column
            bare = pc.if_else(declared, pa.scalar(None, plain.type), plain)
            columns[name] = _encoded(bare, column.type)
