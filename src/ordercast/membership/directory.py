"""The coordinator's directory: where every group is sequenced, who is in it, and what comes next.

It stands in for the configuration log of several sequencers. All decisions about groups are made by
one node, the coordinator of the node view, one after the other, and die with that view: the flush
that ends it tells the next coordinator what is. A coordinator that was cut off finds nobody to
carry out what it decides, or a side of the cluster that nobody else will hear of.

    JOIN(G, p)     the groups that will have to be with G: are they at one sequencer?
                   if not: hand over those that are elsewhere, wait;  then let p in
    LEAVE(G, p)    the next view is without p; groups may part when all have delivered it
    one wish at a time, in the order in which they came, for all groups of one protocol
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.membership.placement import Placement, Together
from ordercast.membership.placing_headers import Alter, HandOver, Host

NOWHERE: ProcessId = -1  # the sequencer of a group died

Order = tuple[ProcessId, msgspec.Struct]  # (to whom, what)


class Record(PlainState):
    """One group, as decided."""

    def __init__(
        self,
        entry: GroupEntry,
        host: ProcessId,
        members: Iterable[ProcessId],
        guests: Iterable[ProcessId],
        number: int,
    ) -> None:
        self.entry = entry
        self.host = host
        self.members = set(members)
        self.guests = set(guests)
        self.number = number  # of its view when it was placed
        self.changes = 0  # ordered since
        self.named: set[ProcessId] = set()  # who was ordered to be let in since


class Wish(msgspec.Struct, frozen=True):
    """A change of one group that waits for its turn."""

    gid: GroupId
    joined: tuple[ProcessId, ...] = ()
    guests: tuple[ProcessId, ...] = ()
    left: tuple[ProcessId, ...] = ()

    def names(self, people: Collection[ProcessId]) -> bool:
        """Is it about one of these?"""
        return any(p in people for p in (*self.joined, *self.guests, *self.left))


def eligible(nodes: Iterable[NodeEntry], draining: Iterable[ProcessId] = ()) -> list[ProcessId]:
    """Who may sequence: the dedicated sequencers; if there are none, everybody."""
    able = [node for node in nodes if node.pid not in draining]
    dedicated = [node.pid for node in able if node.sequencer]
    return dedicated or [node.pid for node in able]


class Directory(PlainState):
    """All groups of one protocol."""

    def __init__(self, together: Together, since: int) -> None:
        self.since = since  # the flush after which it was begun
        self.records: dict[GroupId, Record] = {}
        self.placement = Placement(together=together)
        self.wishes: deque[Wish] = deque()
        self.moving: dict[GroupId, ProcessId] = {}  # hand-overs under way

    def know(
        self,
        entry: GroupEntry,
        members: Iterable[ProcessId],
        guests: Iterable[ProcessId],
        host: ProcessId,
        number: int,
    ) -> None:
        """A group that is there already."""
        self.records[entry.gid] = Record(entry, host, members, guests, number)
        self.placement.know(entry.gid, members, host)

    # -- wishes -----------------------------------------------------------------------------------

    def found(
        self,
        entry: GroupEntry,
        first: tuple[ProcessId, ...],
        able: Sequence[ProcessId],
        number: int,
    ) -> list[Order]:
        """A new group."""
        host = self.placement.place_new(entry.gid, able, first)
        self.records[entry.gid] = Record(entry, host, (), (), number)
        return [(host, Host(self.since, entry, number))]

    def wish(self, wish: Wish, able: Sequence[ProcessId]) -> list[Order]:
        """Somebody wants to come into a group, or to go. It may be said again and again."""
        people = {*wish.joined, *wish.guests, *wish.left}
        same = (w for w in reversed(self.wishes) if w.gid == wish.gid and w.names(people))
        if next(same, None) == wish:
            return []
        self.wishes.append(wish)
        return self.proceed(able)

    def proceed(self, able: Sequence[ProcessId]) -> list[Order]:
        """Carry out wishes in their order, as long as none must wait for a hand-over."""
        orders: list[Order] = []
        while self.wishes and not self.moving:
            wish = self._news(self.wishes[0])
            joining = [p for p in wish.joined if p not in self.records[wish.gid].members]
            dest, elsewhere = self.placement.moves_for_join(wish.gid, joining, able)
            if elsewhere:
                orders += self._hand_over(elsewhere, dest)
                break
            self.wishes.popleft()
            if wish.joined or wish.guests or wish.left:
                orders.append(self._carry_out(wish))
        return orders

    def _news(self, wish: Wish) -> Wish:
        """Without what is so already."""
        record = self.records[wish.gid]
        inside = record.members | record.guests
        return Wish(
            wish.gid,
            tuple(p for p in wish.joined if p not in record.members),
            tuple(p for p in wish.guests if p not in inside),
            tuple(p for p in wish.left if p in inside),
        )

    def _carry_out(self, wish: Wish) -> Order:
        record = self.records[wish.gid]
        for p in wish.joined:
            record.members.add(p)
            record.guests.discard(p)
            self.placement.joined(wish.gid, p)
        record.guests.update(wish.guests)
        for p in wish.left:
            record.guests.discard(p)
            if p in record.members:
                record.members.discard(p)
                self.placement.left(wish.gid, p)
        record.changes += 1
        record.named.update(wish.joined, wish.guests)
        alter = Alter(self.since, wish.gid, wish.joined, wish.guests, wish.left)
        return record.host, alter

    def never_let_in(self, g: GroupId, p: ProcessId) -> bool:
        """Is p outside that group, and nothing under way that lets it in?"""
        record = self.records[g]
        asked = any(w.gid == g and p in (*w.joined, *w.guests) for w in self.wishes)
        return not asked and p not in record.members | record.guests | record.named

    def needs(self, p: ProcessId) -> bool:
        """Does p number a group, or is it about to?"""
        hosts = (record.host for record in self.records.values())
        return p in self.moving.values() or p in hosts

    def departed(self, p: ProcessId) -> None:
        """p left the cluster, and so all groups; what it wished for is void."""
        self.wishes = deque(_without(wish, p) for wish in self.wishes)
        for g, record in self.records.items():
            record.guests.discard(p)
            if p in record.members:
                record.members.discard(p)
                self.placement.left(g, p)
            self.placement.settled(g, p)

    def settled(self, g: GroupId, left: Iterable[ProcessId], changes: int) -> None:
        """All have delivered the views by which these left. If more was ordered since, one may have
        come and left again: then it goes on to count, which does no harm."""
        if self.records[g].changes == changes:
            for p in left:
                self.placement.settled(g, p)

    # -- hand-overs -------------------------------------------------------------------------------

    def _hand_over(self, groups: Iterable[GroupId], to: ProcessId) -> list[Order]:
        """Those of one sequencer go at once: between the first and the last it would number some,
        and the next one others, of groups that share members."""
        leaving: dict[ProcessId, list[GroupId]] = {}
        for g in groups:
            if self.records[g].host != to and g not in self.moving:
                self.moving[g] = to
                leaving.setdefault(self.records[g].host, []).append(g)
        return [(host, HandOver(self.since, tuple(gs), to)) for host, gs in leaving.items()]

    def moved(
        self, groups: Iterable[GroupId], to: ProcessId, able: Sequence[ProcessId]
    ) -> list[Order]:
        """XFER-ACK."""
        for g in groups:
            if self.moving.get(g) == to:
                del self.moving[g]
                self.records[g].host = to
                self.placement.moved(g, to)
        return self.proceed(able)

    def migrate(self, g: GroupId, to: ProcessId) -> list[Order]:
        """By hand: a group, and all that must be with it."""
        if g not in self.records or self.moving:
            return []
        return self._hand_over(sorted(self.placement.component(g)), to)

    def drain(self, p: ProcessId, able: Sequence[ProcessId]) -> list[Order]:
        """p is to number nothing any more. Asked again until it is so."""
        if self.moving:
            return []
        orders: list[Order] = []
        for groups, to in self.placement.drain(p, [q for q in able if q != p]):
            orders += self._hand_over(sorted(groups), to)
        return orders

    def balance(self, able: Sequence[ProcessId]) -> list[Order]:
        """Once per window: to the process that sends most, or away from the busiest sequencer."""
        if self.moving or self.wishes:
            return []
        move = self.placement.majority_sender(able) or self.placement.rebalance(able)
        return [] if move is None else self._hand_over(sorted(move[0]), move[1])


def hosts_after(
    together: Together,
    groups: dict[GroupId, tuple[tuple[ProcessId, ...], ProcessId | None]],
    able: Sequence[ProcessId],
) -> dict[GroupId, ProcessId]:
    """After a flush: (members, sequencer if it lives) of all groups; where each goes on."""
    placement = Placement(together=together)
    for g, (members, host) in groups.items():
        placement.know(g, members, NOWHERE if host is None or host not in able else host)
    placement.place_all(groups, able)
    return dict(placement.host)


def _without(wish: Wish, p: ProcessId) -> Wish:
    joined, guests = (tuple(q for q in who if q != p) for who in (wish.joined, wish.guests))
    return Wish(wish.gid, joined, guests, wish.left)
