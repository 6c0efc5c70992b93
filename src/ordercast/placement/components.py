"""Which groups must be sequenced together.

Source      000 (Kindberg), section 4.2: the conditions S1 and S2, and its footnote 2.

    S2   groups on different sequencers share at most one member
    S1   groups on different sequencers share none

Each condition links two groups that may not be apart. "Together" is an equivalence, so the unit of
placement is a connected component of these links. One join can fuse several components: with
G1 = {p, q}, G2 = {p, r}, G = {q, r}, all three become one when p joins G.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Set
from itertools import chain
from typing import Final

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState

Groups = Mapping[GroupId, Set[ProcessId]]
GroupsOf = Mapping[ProcessId, Set[GroupId]]

STRONG: Final = 2  # S2: members that two groups share if they must be together
WEAK: Final = 1  # S1
NEVER: Final = 1 << 62  # no two groups share so many


def strong_components(groups: Groups) -> list[frozenset[GroupId]]:
    """The sets of groups that S2 keeps together, by their lowest group."""
    return _components(groups, STRONG)


def weak_components(groups: Groups) -> list[frozenset[GroupId]]:
    """The sets of groups that S1 keeps together, by their lowest group."""
    return _components(groups, WEAK)


def _components(groups: Groups, share: int) -> list[frozenset[GroupId]]:
    of: dict[ProcessId, set[GroupId]] = {}
    for g, members in groups.items():
        for p in members:
            of.setdefault(p, set()).add(g)
    seen: set[GroupId] = set()
    parts: list[frozenset[GroupId]] = []
    for g in sorted(groups):
        if g not in seen:
            parts.append(_reach(g, groups, of, share))
            seen |= parts[-1]
    return parts


def _reach(g: GroupId, members: Groups, of: GroupsOf, share: int) -> frozenset[GroupId]:
    part = {g}
    todo = [g]
    while todo:
        linked = _linked(todo.pop(), members, of, share) - part
        part |= linked
        todo += linked
    return frozenset(part)


def _linked(g: GroupId, members: Groups, of: GroupsOf, share: int) -> set[GroupId]:
    shared = Counter(chain.from_iterable(of[p] for p in members[g]))
    return {x for x, n in shared.items() if n >= share}


class Components(PlainState):
    """The components of groups whose members come and go, kept up to date.

    A link that appears merges two components at once. One that disappears is noted: whether its
    ends are still connected is found out when somebody asks.
    """

    def __init__(self, share: int) -> None:
        self.share = share  # members that two groups must share to be linked
        self.members: dict[GroupId, set[ProcessId]] = {}
        self.of: dict[ProcessId, set[GroupId]] = {}  # the groups of each process
        self.label: dict[GroupId, GroupId] = {}  # the lowest group of each group's component
        self.parts: dict[GroupId, set[GroupId]] = {}  # the components, by label
        self.lost: list[tuple[GroupId, GroupId]] = []  # links that are gone; see _mend

    def add(self, g: GroupId) -> None:
        """A group without members."""
        assert g not in self.members
        self.members[g] = set()
        self.label[g] = g
        self.parts[g] = {g}

    def remove(self, g: GroupId) -> None:
        """The group exists no more."""
        for p in list(self.members[g]):
            self.leave(g, p)
        self._mend()  # now it stands alone
        del self.members[g], self.label[g], self.parts[g]

    def enter(self, g: GroupId, p: ProcessId) -> None:
        """p is a member of g from now on."""
        linked = self._linked_by(g, (p,))
        self.members[g].add(p)
        self.of.setdefault(p, set()).add(g)
        for x in linked:
            self._merge(self.label[g], self.label[x])

    def leave(self, g: GroupId, p: ProcessId) -> None:
        """p is no member of g from now on."""
        inside = self.members[g]
        if p not in inside:
            return
        inside.remove(p)
        self.of[p].remove(g)
        for x in self._linked_through(p, inside):
            if len(inside & self.members[x]) == self.share - 1:
                self.lost.append((g, x))
        if not self.of[p]:
            del self.of[p]

    def _linked_through(self, p: ProcessId, inside: Set[ProcessId]) -> Iterable[GroupId]:
        """Of the groups that a group with these members was linked with while p was in it, too: of
        each set of groups that are linked with each other at least one. As in `_linked_by`."""
        if self.share == 1:
            return [next(iter(self.of[p]))] if self.of[p] else []
        if self.share > 2:
            return self.of[p] if len(inside) >= self.share - 1 else ()
        shared = (self._in_both(self.of[p], self.of[q]) for q in inside)
        return [x for x in shared if x is not None]

    def component(self, g: GroupId, joining: Iterable[ProcessId] = ()) -> frozenset[GroupId]:
        """The component of g when these processes have joined it; g itself may be new."""
        self._mend()
        labels = {self.label[x] for x in self._linked_by(g, frozenset(joining))}
        labels.add(self.label.get(g, g))
        return frozenset({g}.union(*(self.parts.get(label, ()) for label in labels)))

    def all(self) -> list[frozenset[GroupId]]:
        """Every component, by its lowest group."""
        self._mend()
        return [frozenset(self.parts[label]) for label in sorted(self.parts)]

    def with_any(self, groups: Set[GroupId]) -> list[frozenset[GroupId]]:
        """The components that hold any of these groups, by their lowest group."""
        return [part for part in self.all() if not part.isdisjoint(groups)]

    def _linked_by(self, g: GroupId, joining: Collection[ProcessId]) -> list[GroupId]:
        """Groups that are linked with g once these have joined: of each component at least one.

        All groups that the same one, or the same two, are in are linked with each other. So one
        group for each of them is enough, and a member of thousands of groups costs no more.
        """
        if self.share == 1:
            return [next(iter(self.of[p])) for p in joining if p in self.of]
        inside = self.members.get(g, set()).union(joining)
        if self.share > 2:
            near = set().union(*(self.of.get(p, ()) for p in joining))
            return [x for x in near if len(inside & self.members[x]) >= self.share]
        pairs = ((p, q) for p in joining if p in self.of for q in inside if q != p and q in self.of)
        shared = (self._in_both(self.of[p], self.of[q], g) for p, q in pairs)
        return [x for x in shared if x is not None]

    @staticmethod
    def _in_both(
        one: set[GroupId], other: set[GroupId], but: GroupId | None = None
    ) -> GroupId | None:
        few, many = sorted((one, other), key=len)
        return next((x for x in few if x in many and x != but), None)

    def _merge(self, one: GroupId, other: GroupId) -> None:
        if one == other:
            return
        low, high = sorted((one, other))
        for g in self.parts[high]:
            self.label[g] = low
        self.parts[low] |= self.parts.pop(high)

    def _mend(self) -> None:
        """Split what is connected no more.

        A component, as we have it, is connected by its links and those in `lost`. So when a part
        of it is cut off, lost links that led through this part must go on holding the rest: we
        tie them to a group that stays.
        """
        while self.lost:
            a, b = self.lost.pop()
            part = self._cut_off(a, b) if a != b else None
            if part:
                self._split(part)
                stays = a if b in part else b
                self.lost = [
                    (stays if x in part else x, stays if y in part else y) for x, y in self.lost
                ]

    def _cut_off(self, a: GroupId, b: GroupId) -> set[GroupId] | None:
        """All that is connected with a or all with b, if these are apart: the first we have all of.

        Searching from both ends, a step here and a step there, costs little if they are still
        near to each other, or if one part is small.
        """
        seen = {a: {a}, b: {b}}
        todo = {a: deque((a,)), b: deque((b,))}
        while True:
            for end, other in ((a, b), (b, a)):
                if not todo[end]:
                    return seen[end]
                linked = _linked(todo[end].popleft(), self.members, self.of, self.share)
                if not linked.isdisjoint(seen[other]):
                    return None
                todo[end] += linked - seen[end]
                seen[end] |= linked

    def _split(self, part: set[GroupId]) -> None:
        whole = self.parts.pop(self.label[min(part)])
        for piece in (part, whole - part):
            self.parts[min(piece)] = piece
            self.label.update(dict.fromkeys(piece, min(piece)))
