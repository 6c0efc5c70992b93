"""What a run declares that it promises, and the sub-runs on which that is judged.

A promise across groups holds inside one domain: the groups of a run with the same order, protocol
and scope. It is judged on the rows of those groups, as if the run had no others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ordercast.judge.kernels.assemble import Names, assemble
from ordercast.judge.kernels.run import DELIVER, NONE, Ints, Run, Turn
from ordercast.trace.schema import KINDS


class Promise(NamedTuple):
    """Groups of a run for which the same was declared."""

    order: str
    protocol: str
    scope: str  # "domain" or "group"
    groups: tuple[str, ...]
    everything: bool  # the run has no other groups: its own verdicts are the promise's


def promises(run: Run) -> list[Promise]:
    """All domains for which an order was declared."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for one in run.declarations:
        if one.order is not None:
            key = (one.order, one.protocol or "", one.scope or "domain")
            found.setdefault(key, set()).add(run.groups[one.group])
    everything = set(run.groups)
    return sorted(
        Promise(*key, tuple(sorted(groups)), groups == everything) for key, groups in found.items()
    )


def restricted(run: Run, groups: Collection[str], *, quiescent: bool) -> Run:
    """The rows of some groups.

    A delivery belongs to the group of its message's send; rows without a group (crash, end, lost)
    belong to every domain.
    """
    chosen = {place for place, name in enumerate(run.groups) if name in groups}
    kept = _rows_of(run, chosen)
    declarations = [one for one in run.declarations if one.group in chosen]
    declared = {name for one in declarations for name in one.members}
    before = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)
    start = before[run.start]
    present = [
        p
        for p, name in enumerate(run.processes)
        if start[p] < start[p + 1] or name in declared
    ]  # fmt: skip
    columns = {
        "index": run.index, "kind": run.kind, "message": run.message, "group": run.group,
        "sender": run.named_sender,
    }  # fmt: skip
    columns = {name: column[kept] for name, column in columns.items()}
    return assemble(
        Names([run.processes[p] for p in present], run.groups, run.names, run.ids),
        declarations,
        columns,
        np.append(start[present], start[-1]).astype(np.int32),
        [_moved([turn for turn in run.turns[p] if turn.group in chosen], before) for p in present],
        frozenset(KINDS[code] for code in np.unique(columns["kind"]).tolist()),
        quiescent=quiescent,
        scratch=run.scratch,
    )


def _rows_of(run: Run, groups: set[int]) -> Ints:
    group = run.group.copy()
    sent = (run.kind == DELIVER) & (run.message != NONE)
    sent[sent] = run.sender[run.message[sent]] != NONE
    group[sent] = run.group_of[run.message[sent]]
    inside = np.zeros(len(run.groups) + 1, np.bool_)
    inside[list(groups)] = True
    inside[NONE] = True  # the last place: no group
    return inside[group]


def _moved(turns: list[Turn], before: Ints) -> list[Turn]:
    return [
        Turn(int(before[t.row]), t.kind, t.group, t.view, t.members) for t in turns
    ]  # fmt: skip
