"""What a row cannot do without. Rows from files were asked that when they were read; those of
somebody's own DataFrame come as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ordercast.errors import TraceError
from ordercast.trace.rows import NEEDED_COLUMNS
from ordercast.trace.schema import KINDS

Codes = npt.NDArray[Any]

_OWN = {kind: ("process", "index") for kind in KINDS if kind != "group"}
_BY_COLUMN = {  # column -> by kind: does a row of it need the column?
    name: np.array([name in (*_OWN.get(k, ()), *NEEDED_COLUMNS.get(k, ())) for k in KINDS])
    for name in ("process", "index", "message", "group", "view")
}


def refuse_incomplete(kind: Codes, rows: Any) -> None:
    """Raise `TraceError` for a kind that does not exist, or a row that lacks a column it needs."""
    strange = np.flatnonzero((kind < 0) | (kind >= len(KINDS)))
    if len(strange):
        told = rows["kind"][int(strange[0])].as_py()
        reason = f"unknown kind {told!r}; known are {', '.join(KINDS)}"
        raise TraceError("the events", None, "kind", reason)
    for name, needs in _BY_COLUMN.items():
        if not rows[name].null_count:
            continue
        lacking = kind[np.asarray(pc.is_null(rows[name]))]
        lacking = lacking[needs[lacking]]
        if len(lacking):
            reason = f"missing; a row of kind {KINDS[lacking[0]]!r} needs it"
            raise TraceError("the events", None, name, reason)
