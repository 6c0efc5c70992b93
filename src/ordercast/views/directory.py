"""The directory: every group of the cluster, as all nodes know it."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.views.headers import Row


class Directory(PlainState):
    """Rows by group, and who is in which."""

    def __init__(self) -> None:
        self.rows: dict[GroupId, Row] = {}
        self.of: dict[ProcessId, set[GroupId]] = {}  # groups in which a node has any part

    def put(self, row: Row) -> None:
        """A row that is new, or of the next era."""
        before = self.rows.get(row.entry.gid)
        if before is not None:
            self._unlist(before)
        self.rows[row.entry.gid] = row
        for p in row.concerned:
            self.of.setdefault(p, set()).add(row.entry.gid)

    def _unlist(self, row: Row) -> None:
        for p in row.concerned:
            groups = self.of[p]
            groups.discard(row.entry.gid)
            if not groups:
                del self.of[p]

    def replace(self, rows: Iterable[Row]) -> None:
        """All of it."""
        self.rows, self.of = {}, {}
        for row in rows:
            self.put(row)

    def groups_of(self, nodes: Iterable[ProcessId]) -> set[GroupId]:
        """Groups in which any of these has a part."""
        return set().union(*(self.of.get(p, ()) for p in nodes))

    def hanging_together(self, groups: Iterable[GroupId], protocol: str) -> set[GroupId]:
        """These, and all groups of that protocol that share a member or a guest with one of them,
        directly or through others."""
        found: set[GroupId] = set()
        todo = [g for g in groups if g in self.rows]
        while todo:
            g = todo.pop()
            if g in found:
                continue
            found.add(g)
            row = self.rows[g]
            for p in (*row.members, *row.guests):
                todo += [
                    h
                    for h in self.of[p]
                    if h not in found
                    and self.rows[h].entry.protocol == protocol
                    and p in (*self.rows[h].members, *self.rows[h].guests)
                ]
        return found
