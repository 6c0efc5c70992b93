"""From batches of rows to a `Run`: ids become integers at once, rows are sorted at the end.

The order of the rows means nothing. Where the rows of a process already come in the order of
their indexes, as recorders write them, nothing has to be sorted.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ordercast.errors import TraceError
from ordercast.judge.kernels.assemble import Names, assemble
from ordercast.judge.kernels.compiled import kernel
from ordercast.judge.kernels.ids import NONE, Ids
from ordercast.judge.kernels.incomplete_rows import refuse_incomplete
from ordercast.judge.kernels.recorded import NO_VIEW
from ordercast.judge.kernels.run import (
    CRASH,
    END,
    GROUP,
    LEAVE,
    VIEW,
    Declaration,
    Run,
    Turn,
)
from ordercast.judge.kernels.scratch import Scratch
from ordercast.trace.expand import CRASH_NOTE_INDEX
from ordercast.trace.schema import KINDS

MAX_EVENTS = 2**31 - 1  # of one run: rows are numbered with 32 bits

Ints = npt.NDArray[Any]
_TYPES = {
    "process": np.int32, "index": np.int64, "kind": np.int8, "message": np.int32,
    "group": np.int32, "sender": np.int32,
}  # fmt: skip


def build_run(table: pa.Table, *, quiescent: bool = False) -> Run:
    """The run whose rows are `table` (columns `KERNEL_COLUMNS`)."""
    loader = RunLoader()
    loader.add(table)
    return loader.finish(quiescent=quiescent)


class RunLoader:
    """Takes the rows of one run, batch by batch."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self._scratch = scratch or Scratch()
        self._ids = Ids()
        self._processes = _Names()
        self._groups = _Names()
        self._names = _Names()
        self._declarations: list[Declaration] = []
        self._views: dict[int, tuple[int, tuple[str, ...]]] = {}  # row as read -> view, members
        self._parts = {name: self._scratch.gather(dtype) for name, dtype in _TYPES.items()}
        self._kinds: set[int] = set()
        self._count = 0

    def add(self, rows: Any) -> None:
        """A table or batch with the columns `KERNEL_COLUMNS`; `members` as lists or as JSON."""
        if not rows.num_rows:
            return
        kind = _kind_codes(rows["kind"])
        refuse_incomplete(kind, rows)
        present = np.flatnonzero(np.bincount(kind, minlength=len(KINDS)))
        self._kinds.update(present.tolist())
        if GROUP in present:
            self._declare(rows.filter(pa.array(kind == GROUP)))
            rows, kind = rows.filter(pa.array(kind != GROUP)), kind[kind != GROUP]
            if not rows.num_rows:
                return
        for place in np.flatnonzero(kind == VIEW).tolist():
            view, members = rows["view"][place].as_py(), rows["members"][place].as_py()
            if view == NO_VIEW:
                raise TraceError("the run", None, "view", f"view ids must be below {NO_VIEW}")
            self._views[self._count + place] = (view, _member_list(members))
        self._count += rows.num_rows
        if self._count > MAX_EVENTS:
            raise TraceError("the run", None, None, f"more than {MAX_EVENTS} events in one run")
        codes = {
            "process": self._processes.codes(rows["process"]),
            "index": np.asarray(rows["index"].to_numpy(), dtype=np.int64),
            "kind": kind,
            "message": self._ids.number(rows["message"]),
            "group": self._groups.codes(rows["group"]),
            "sender": self._names.codes(rows["sender"]),
        }
        for name, column in codes.items():
            self._parts[name].add(column)

    def _declare(self, rows: Any) -> None:
        columns = ["group", "members", "order", "protocol", "scope"]
        for group, members, *promised in zip(
            *(rows[name].to_pylist() for name in columns), strict=True
        ):
            declared = Declaration(self._groups.number(group), _member_list(members), *promised)
            self._declarations.append(declared)

    def finish(self, *, quiescent: bool = False) -> Run:
        """The run. The loader is empty then."""
        columns = {name: self._parts.pop(name).whole() for name in _TYPES}
        members = {name for one in self._declarations for name in one.members}
        names = sorted({*self._processes.names, *members})
        process = self._processes.renumbered(columns.pop("process"), names)
        start = np.zeros(len(names) + 1, np.int32)
        np.cumsum(np.bincount(process, minlength=len(names)), out=start[1:])
        order = _order(process, columns["index"], start, self._scratch)
        del process
        if order is not None:
            columns = {name: self._taken(column, order) for name, column in columns.items()}
        columns, start, order = _settle_crash_notes(columns, start, order)
        return assemble(
            Names(names, self._groups.names, self._names.names, self._ids),
            self._declarations,
            columns,
            start,
            self._turns(columns, start, order),
            frozenset(KINDS[code] for code in self._kinds),
            quiescent=quiescent,
            scratch=self._scratch,
        )

    def _taken(self, column: Ints, order: Ints) -> Ints:
        sorted_column = self._scratch.empty(len(column), column.dtype)
        np.take(column, order, out=sorted_column)
        return sorted_column

    def _turns(self, columns: dict[str, Ints], start: Ints, order: Ints | None) -> list[list[Turn]]:
        turns: list[list[Turn]] = [[] for _ in range(len(start) - 1)]
        kinds = columns["kind"]
        for row in np.flatnonzero((kinds >= VIEW) & (kinds <= LEAVE)).tolist():
            process = int(np.searchsorted(start, row, side="right")) - 1
            kind, group = int(kinds[row]), int(columns["group"][row])
            details = self._views[row if order is None else int(order[row])] if kind == VIEW else ()
            turns[process].append(Turn(row, kind, group, *details))
        return turns


class _Names:
    """Names that occur over and over, numbered as they are first met."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def codes(self, column: Any) -> Ints:
        """The numbers of a column; NONE for null."""
        if column.null_count == len(column):
            return np.full(len(column), NONE, np.int32)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [self._chunk_codes(chunk) for chunk in chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chunk_codes(self, chunk: Any) -> Ints:
        if not pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_encode()
        words = chunk.dictionary.to_pylist()
        numbers = [NONE if word is None else self.number(word) for word in words]
        places = chunk.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
        codes: Ints = np.array([*numbers, NONE], np.int32)[places]
        return codes

    def renumbered(self, codes: Ints, names: list[str]) -> Ints:
        """The same column with places in `names`."""
        places = {name: place for place, name in enumerate(names)}
        moved: Ints = np.array([places[name] for name in self.names], np.int32)[codes]
        return moved


def _kind_codes(column: Any) -> Ints:
    plain = _Names()
    for kind in KINDS:
        plain.number(kind)
    return plain.codes(column).astype(np.int8)


def _member_list(value: Any) -> tuple[str, ...]:
    return tuple(json.loads(value)) if isinstance(value, str) else tuple(value or ())


def _order(process: Ints, index: Ints, start: Ints, scratch: Scratch) -> Ints | None:
    """Which row comes where when sorted by process and index; None if they are."""
    if _is_sorted(process, index):
        return None
    order = scratch.empty(len(process), np.int32)
    ragged = np.zeros(len(start) - 1, np.bool_)
    _by_process(process, index, start[:-1].copy(), order, ragged)
    for p in np.flatnonzero(ragged).tolist():
        own = order[start[p] : start[p + 1]]
        own[:] = own[np.argsort(index[own], kind="stable")]
    return order


@kernel
def _is_sorted(process: Ints, index: Ints) -> bool:
    for row in range(1, len(process)):
        if process[row] < process[row - 1]:
            return False
        if process[row] == process[row - 1] and index[row] < index[row - 1]:
            return False
    return True


@kernel
def _by_process(process: Ints, index: Ints, place: Ints, order: Ints, ragged: Ints) -> None:
    """Bring the rows of each process together, in the order they have; note where that is not
    the order of indexes."""
    first = place.copy()
    for row in range(len(process)):
        p = process[row]
        at = place[p]
        if at > first[p] and index[order[at - 1]] > index[row]:
            ragged[p] = True
        order[at] = row
        place[p] = at + 1


def _settle_crash_notes(
    columns: dict[str, Ints], start: Ints, order: Ints | None
) -> tuple[dict[str, Ints], Ints, Ints | None]:
    """A crash that others noted is the last event of the log, unless the log has its own end.

    Their index sorts such notes to the end of the log; one of them stays.
    """
    noted = (columns["index"] == CRASH_NOTE_INDEX) & (columns["kind"] == CRASH)
    if not noted.any():
        return columns, start, order
    keep, index = ~noted, columns["index"].copy()
    for p in range(len(start) - 1):
        rows = np.arange(start[p], start[p + 1])
        own, notes = rows[~noted[rows]], rows[noted[rows]]
        if len(notes) and not np.isin(columns["kind"][own], (CRASH, END)).any():
            keep[notes[0]] = True
            index[notes[0]] = index[own[-1]] + 1 if len(own) else 1
    columns["index"] = index
    kept = np.concatenate(([0], np.cumsum(keep))).astype(np.int32)
    order = np.flatnonzero(keep).astype(np.int32) if order is None else order[keep]
    return {name: column[keep] for name, column in columns.items()}, kept[start], order
