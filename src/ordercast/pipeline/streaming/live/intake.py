"""From rows as they are read to logs that wait for their turn."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.pipeline.streaming.live import membership
from ordercast.pipeline.streaming.live.ledger import recheck, tell, withdraw
from ordercast.pipeline.streaming.live.notices import LIMIT, Notice
from ordercast.pipeline.streaming.live.rows import records_missing
from ordercast.pipeline.streaming.live.state import HeldRow, Limits, Process, RunState
from ordercast.trace.expand import is_crash_note
from ordercast.trace.schema import MEANINGFUL_KINDS, Event


def read(run: RunState, limits: Limits, rows: Iterable[Event]) -> None:
    """Declarations count at once; all other rows are put behind those of their log."""
    logs: dict[str, list[Event]] = {}
    for row in rows:
        run.latest_ns = max(run.latest_ns, row.time or 0)
        if row.kind == "group":
            membership.declare(run, limits, row.group or "", list(row.members or ()))
        elif is_crash_note(row):
            run.process(row.process or "").noted = True
            recheck(run)
        else:
            logs.setdefault(row.process or "", []).append(row)
    for name, log in logs.items():
        log.sort(key=lambda row: row.index or 0)
        p = run.process(name)
        for row in log:
            _queue(run, limits, p, row)


def _queue(run: RunState, limits: Limits, p: Process, row: Event) -> None:
    index = row.index or 0
    if p.last_index is not None and index <= p.last_index:
        _out_of_order(run, limits, p, row, index)
        return
    p.last_index = index
    if p.ended or p.crashed or (p.held and p.held[-1].kind in ("end", "crash")):
        tell(
            run, limits, "wellformed", (p.name, "after the last"),
            f"{p.name} has a `{row.kind}` after its last event.",
            {"process": p.name, "second": index},
        )  # fmt: skip
    if row.kind not in MEANINGFUL_KINDS:
        return
    if row.kind == "send":
        run.upcoming.setdefault(row.message or "", p.number)
    p.held.append(
        HeldRow(
            row.kind, row.message or "", row.group or "", row.sender, row.view or 0,
            list(row.members or ()),
        )
    )  # fmt: skip


def _out_of_order(run: RunState, limits: Limits, p: Process, row: Event, index: int) -> None:
    """Too late to judge. Whatever it would have excused must not stand against p."""
    if index == p.last_index:
        tell(
            run, limits, "wellformed", (p.name, "index", str(index)),
            f"{p.name} has two events with index {index}.",
            {"process": p.name, "index": index},
        )  # fmt: skip
    elif run.doubt("rows that came after later rows of their log"):
        text = f"a row of {p.name} (index {index}) came after later ones: it is not judged"
        run.notices.append(Notice(LIMIT, "", "late rows", text))
    records_missing(run, p)
    message = row.message
    if message is not None:
        withdraw(run, lambda f: message in f.witness.values(), f"a row about {message} came late")
