"""The directory: every group of the cluster, as all nodes know it."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row

MAX_EMPTY = 4096  # groups without members that are remembered, with their numbers and absentees


class Directory(PlainState):
    """Rows by group, and who is in which."""

    def __init__(self) -> None:
        self.rows: dict[GroupId, Row] = {}
        self.named: dict[str, GroupId] = {}  # a name is of one group, and a number, too
        self.of: dict[ProcessId, set[GroupId]] = {}  # groups in which a node has any part
        self.empty: set[GroupId] = set()  # groups that nobody is in
        self.floor = 0  # no group that was forgotten has come to a higher era

    def put(self, row: Row) -> None:
        """A row that is new, or of the next era."""
        before = self.rows.get(row.entry.gid)
        if before is not None:
            self._unlist(before)
        self.rows[row.entry.gid] = row
        self.named[row.entry.name] = row.entry.gid
        for p in row.concerned:
            self.of.setdefault(p, set()).add(row.entry.gid)
        if row.members or row.guests:
            self.empty.discard(row.entry.gid)
        else:
            self.empty.add(row.entry.gid)

    def prune(self) -> list[GroupId]:
        """Forget groups without members, if there are too many: the same ones at all nodes. Those
        whose members left in order go first. A group of such a name that is founded later begins
        above the floor: its numbers rise."""
        rows, spare = self.rows, max(0, len(self.empty) - MAX_EMPTY)
        dropped = nsmallest(spare, self.empty, lambda g: (bool(rows[g].absent), rows[g].era, g))
        for g in dropped:
            row = rows.pop(g)
            del self.named[row.entry.name]
            self._unlist(row)
            self.empty.discard(g)
            self.floor = max(self.floor, row.era)
        return dropped

    @property
    def last_era(self) -> int:
        """No group has come to a higher one."""
        return max(self.floor, *(row.era for row in self.rows.values()), 0)

    def _unlist(self, row: Row) -> None:
        for p in row.concerned:
            groups = self.of[p]
            groups.discard(row.entry.gid)
            if not groups:
                del self.of[p]

    def replace(self, rows: Iterable[Row], floor: int) -> None:
        """All of it."""
        self.rows, self.named, self.of, self.empty, self.floor = {}, {}, {}, set(), floor
        for row in rows:
            self.put(row)

    def contradicts(self, entry: GroupEntry) -> bool:
        """Has another group that number, or this one another number, or is it another in kind?"""
        row = self.rows.get(entry.gid)
        renumbered = self.named.get(entry.name, entry.gid) != entry.gid
        return renumbered or (row is not None and row.entry != entry)

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        names = {row.entry.name: row.entry.gid for row in self.rows.values()}
        assert self.named == names and len(names) == len(self.rows), "a name is of one group"
        of: dict[ProcessId, set[GroupId]] = {}
        for g, row in self.rows.items():
            for p in row.concerned:
                of.setdefault(p, set()).add(g)
        assert self.of == of, "who is in which group is known both ways"
        empty = {g for g, row in self.rows.items() if not (row.members or row.guests)}
        assert self.empty == empty, "groups that nobody is in are known"
        for g, row in self.rows.items():
            assert g == row.entry.gid, "a row is listed under its group"
            assert row.number >= 0 and row.era >= 1, "numbers of views and eras rise from 0"
            assert len(set(row.members)) == len(row.members), "nobody is in a group twice"
            assert not row.guests or not set(row.members).intersection(row.guests), (
                "a member is no guest"
            )

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
