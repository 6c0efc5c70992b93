"""Groups with several sequencers: the coordinator's orders, and those who carry them out.

    coordinator    Directory: decides.  HOST, ALTER, HAND OVER to sequencers
    sequencer      opens the group, numbers the next view, gives its book away (INHERIT)
    the next one   when all of the book is here: INHERITED to both
    now and then   sequencers tell what they number (LOAD), and who has left for good (SETTLED)

Whatever is under way when the node view ends is void: the flush finds out what is.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.core.events import Change, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import Depart, NextGroupView, Nodes, Want
from ordercast.membership.directory import Directory, Order, Wish, eligible
from ordercast.membership.nodes import GroupEntry, NodeView
from ordercast.membership.placing_headers import (
    Alter,
    BookEntry,
    DrainWish,
    HandOver,
    Host,
    Inherit,
    Inherited,
    InheritEntry,
    InheritLeft,
    LeftEntry,
    Load,
    MigrateWish,
    Settled,
)
from ordercast.membership.standing import Command, Drain, Migrate
from ordercast.membership.vetting import vet
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.stack.staying import StayingStack

LOAD_TICKS = 4  # between two words of a sequencer on what it numbers
MAX_SENDERS = 16  # that such a word names
ERAS_PER_VIEW = 1024  # a group that is made anew begins in an era above those of its former life


Heirloom = tuple[ProcessId, Inherit, dict[int, tuple[BookEntry | LeftEntry, bytes]]]
"""The book of a group on its way here: from whom, the book, its entries so far."""


class KnownGroup(msgspec.Struct, frozen=True):
    """A group as a node knows it; the coordinator knows all."""

    entry: GroupEntry
    members: tuple[ProcessId, ...] = ()
    guests: tuple[ProcessId, ...] = ()
    sequencer: ProcessId | None = None  # who numbers its messages, if anybody does


class PlacedStack(StayingStack):
    """What a node does for groups of protocols that have several sequencers."""

    directories: dict[str, Directory]  # at the coordinator, by protocol
    entries: dict[GroupId, GroupEntry]
    inheriting: dict[GroupId, Heirloom]  # books on their way to this node
    parted: set[ProcessId]  # nodes that left the cluster since the last flush
    traffic: dict[GroupId, dict[ProcessId, int]]  # at the coordinator, of this window
    floors: dict[GroupId, int]
    draining: set[ProcessId]  # at the coordinator: they get no groups
    ahead: list[tuple[ProcessId, msgspec.Struct, bytes]]  # orders under a view that is to come

    # -- facts ------------------------------------------------------------------------------------

    def _since(self) -> int:
        """Orders hold until the next flush."""
        return 0 if self.installed is None else self.installed.number

    def _eligible(self) -> list[ProcessId]:
        nodes = () if self.node_view is None else self.node_view.nodes
        return eligible(nodes, self.draining)

    def _service(self, gid: GroupId) -> SequencingService | None:
        """The machine that numbers this group here."""
        protocol = self.protocols.get(gid)
        if isinstance(protocol, SequencingService) and protocol.numbers(gid):
            return protocol
        return None

    def hosted(self) -> list[GroupId]:
        """Groups of several sequencers that are numbered here."""
        return [gid for gid in self.protocols if self._service(gid) is not None]

    def known_groups(self) -> dict[GroupId, KnownGroup]:
        """Groups that are open here; at the coordinator all groups."""
        known = {gid: self._known_here(entry) for gid, entry in self.entries.items()}
        for directory in self.directories.values():
            for gid, record in directory.records.items():
                members = known[gid].members if gid in known else ()
                left_or_new = record.members.symmetric_difference(members)
                if left_or_new:  # the order of a view is known to those who are in it
                    members = tuple(sorted(record.members))
                guests = tuple(sorted(record.guests))
                known[gid] = KnownGroup(record.entry, members, guests, record.host)
        return known

    def known_entry(self, gid: GroupId) -> GroupEntry | None:
        """That of `known_groups`, without looking at all of them."""
        directory = self._directory_of(gid)
        return self.entries.get(gid) if directory is None else directory.records[gid].entry

    def _known_here(self, entry: GroupEntry) -> KnownGroup:
        view = self.view(entry.gid)
        if view is None:
            return KnownGroup(entry)
        sequenced = self.page(entry.protocol).declaration.sequenced
        return KnownGroup(entry, view.members, view.guests, view.leader if sequenced else None)

    def load_of(self, pid: ProcessId) -> float:
        """At the coordinator: what that sequencer carries, as groups are weighed to place them."""
        return sum(directory.placement.load(pid) for directory in self.directories.values())

    def directory(self, protocol: type[OrderingProtocol]) -> Directory:
        """At the coordinator: that of a protocol; a new one if there is none."""
        assert protocol.together is not None
        name = protocol.declaration.name
        if name not in self.directories:
            self.directories[name] = Directory(protocol.together, self._since())
        return self.directories[name]

    def _directory_of(self, gid: GroupId) -> Directory | None:
        return next((d for d in self.directories.values() if gid in d.records), None)

    # -- the coordinator decides ------------------------------------------------------------------

    def place_change(
        self,
        want: Want | None,
        gid: GroupId,
        joined: tuple[ProcessId, ...],
        guests: tuple[ProcessId, ...],
        left: tuple[ProcessId, ...],
    ) -> None:
        """Somebody wants to be in a group, or out of it."""
        directory = self._directory_of(gid)
        if directory is None:
            if want is None:
                return
            directory = self.directory(self.page(want.group.protocol))
            number = max(self.floors.get(gid, 0), self.first_number)
            self._give(directory.found(want.group, joined, self._eligible(), number))
        wish = Wish(gid, joined, guests, left)
        self._give(directory.wish(wish, self._eligible()))

    def never_let_in(self, gid: GroupId, pid: ProcessId) -> bool:
        directory = self._directory_of(gid)
        if directory is not None:
            return directory.never_let_in(gid, pid)
        entry = self.entries.get(gid)  # that it was to be placed was perhaps told to one that died
        placed = entry is None or self.page(entry.protocol).together is not None
        return placed and (gid, pid) not in self.wanted

    def know_groups(self, views: Iterable[NextGroupView]) -> None:
        """After a flush: the first node knows all groups."""
        for directory in self.directories.values():  # one that is made anew goes on above
            for gid, record in directory.records.items():
                highest = record.number + 2 * self.stride * record.changes
                self.floors[gid] = max(highest, self.floors.get(gid, 0))
        self.directories.clear()
        self.inheriting.clear()
        self.parted.clear()
        self.traffic.clear()
        if self.pids[:1] == (self.me,):
            for new in views:
                protocol = self.page(new.entry.protocol)
                if protocol.together is not None and new.senders:  # else it ends with this view
                    directory = self.directory(protocol)
                    directory.know(new.entry, new.members, new.guests, new.leader, new.number)

    def _give(self, orders: Iterable[Order]) -> None:
        for to, order in orders:
            if to == self.me:
                self._obey(self.me, order, b"")
            else:
                self._tell((to,), order)

    def command(self, command: Command) -> None:
        if isinstance(command, Migrate):
            self._pass_on(MigrateWish(command.gid, command.to))
        elif isinstance(command, Drain):
            self._pass_on(DrainWish(command.pid))
        else:
            super().command(command)

    def _pass_on(self, wish: MigrateWish | DrainWish) -> None:
        if self.coordinates:
            self._wished(wish)
        elif self.pids and self.pids[0] != self.me:
            self._tell((self.pids[0],), wish)

    def _wished(self, wish: MigrateWish | DrainWish) -> None:
        if isinstance(wish, MigrateWish):
            directory = self._directory_of(wish.gid)
            if directory is not None and wish.to in self.pids:
                self._give(directory.migrate(wish.gid, wish.to))
            return
        self.draining.add(wish.pid)
        for directory in self.directories.values():
            self._give(directory.drain(wish.pid, self._eligible()))

    def _weigh_groups(self) -> None:
        """Once per window."""
        seconds = LOAD_TICKS * self.cluster_options.heartbeat_ms / 1000
        traffic, self.traffic = self.traffic, {}
        for directory in self.directories.values():
            for gid in directory.records:
                by_sender = traffic.get(gid, {})
                directory.placement.measured(gid, sum(by_sender.values()) / seconds, by_sender)
            if self.cluster_options.balance:
                self._give(directory.balance(self._eligible()))

    # -- packets ----------------------------------------------------------------------------------

    def receive_placing(self, q: ProcessId, header: msgspec.Struct, payload: bytes) -> None:
        """An order, or the answer to one."""
        if self.out_of_it:
            return
        vet(header)
        self.detector.heard(q)
        if isinstance(header, MigrateWish | DrainWish):
            self._pass_on(header)
        elif self._is_ahead(header.since):  # type: ignore[attr-defined]
            if len(self.ahead) < self.options.max_held:
                self.ahead.append((q, header, payload))
        elif not self.stopped and header.since == self._since():  # type: ignore[attr-defined]
            self._obey(q, header, payload)

    def _is_ahead(self, since: int) -> bool:
        """Was it said under a view that has not come here yet?"""
        return self.node_view is None or since > self._since()

    def obey_what_was_ahead(self) -> None:
        """A view is in force."""
        ahead, self.ahead = self.ahead, []
        for q, header, payload in ahead:
            self.receive_placing(q, header, payload)

    def _obey(self, q: ProcessId, order: msgspec.Struct, payload: bytes) -> None:
        if isinstance(order, Inherit):
            self._inherit(q, order)
        elif isinstance(order, InheritEntry):
            self._inherit_entry(q, order, payload)
        elif isinstance(order, InheritLeft):
            self._inherit_left(q, order)
        elif isinstance(order, Inherited):
            self._inherited(q, order)
        elif isinstance(order, Settled | Load):
            self._learn(order)
        elif q == self.pids[0]:  # what follows only the coordinator may say
            if isinstance(order, Host):
                self._host(order)
            elif isinstance(order, Alter):
                if self._service(order.gid) is not None:
                    self._handle(Change(order.gid, order.joined, order.guests, order.left))
            elif isinstance(order, HandOver):
                self._hand_over(order)

    def _learn(self, word: Settled | Load) -> None:
        directory = self._directory_of(word.gid)
        if directory is None:
            return
        if isinstance(word, Settled):
            directory.settled(word.gid, word.left, word.changes)
        else:
            counts = self.traffic.setdefault(word.gid, {})
            for p, n in word.by_sender:
                counts[p] = counts.get(p, 0) + n

    # -- a sequencer ------------------------------------------------------------------------------

    def _check_placed(self, group: GroupEntry) -> None:
        if self.page(group.protocol).together is None:
            raise PeerError(f"{group.protocol!r} has no sequencers that groups could be given to")
        here = self.entries.get(group.gid)
        if here is not None and here.protocol != group.protocol:
            raise PeerError(f"group {group.gid} speaks {here.protocol!r}, not {group.protocol!r}")

    def _host(self, order: Host) -> None:
        self._check_placed(order.group)
        gid = order.group.gid
        self.open_group(order.group)
        if self.view(gid) is None:
            assert self.node_view is not None
            era = self.node_view.number * ERAS_PER_VIEW + 1
            self._handle(View(gid, order.number, (), self.me, era))

    def _hand_over(self, order: HandOver) -> None:
        service = self._service(order.gids[0]) if order.gids else None
        if service is None or not all(map(service.numbers, order.gids)):
            return
        for gid, (state, entries) in service.hand_over(order.gids, order.to).items():
            self._tell((order.to,), Inherit(order.since, self.entries[gid], state, order.gids))
            for book_entry, body in entries:
                if isinstance(book_entry, BookEntry):
                    self._tell((order.to,), InheritEntry(order.since, gid, book_entry), body)
            left = [entry for entry, _ in entries if isinstance(entry, LeftEntry)]
            for k in range(0, len(left), self.options.fetch_batch):
                some = tuple(left[k : k + self.options.fetch_batch])
                self._tell((order.to,), InheritLeft(order.since, gid, some))

    def _inherit(self, q: ProcessId, inherit: Inherit) -> None:
        self._check_placed(inherit.group)
        if inherit.state.entries > self.options.max_held:
            raise PeerError(f"a book of {inherit.state.entries} entries, more than max_held")
        if self._service(inherit.group.gid) is not None:
            raise PeerError("it hands over a group that is numbered here")
        if inherit.group.gid not in inherit.together:
            raise PeerError("it hands over a group that is not among those it names")
        self.inheriting[inherit.group.gid] = (q, inherit, {})
        self._inherit_when_complete(inherit.group.gid)

    def _inherit_entry(self, q: ProcessId, word: InheritEntry, payload: bytes) -> None:
        heirloom = self.inheriting.get(word.gid)
        if heirloom is not None and heirloom[0] == q:
            heirloom[2][word.entry.N] = (word.entry, payload)
            self._inherit_when_complete(word.gid)

    def _inherit_left(self, q: ProcessId, word: InheritLeft) -> None:
        heirloom = self.inheriting.get(word.gid)
        if heirloom is None or heirloom[0] != q:
            return
        part = self._part(word.gid)
        here = {} if part is None else part.left
        if any(entry.holder == self.me and entry.N not in here for entry in word.entries):
            raise PeerError("it says that a body is here which is not")
        heirloom[2].update((entry.N, (entry, b"")) for entry in word.entries)
        self._inherit_when_complete(word.gid)

    def _inherit_when_complete(self, gid: GroupId) -> None:
        source, inherit, _ = self.inheriting[gid]
        books = {g: self.inheriting.get(g) for g in inherit.together}
        if any(b is None or len(b[2]) < b[1].state.entries for b in books.values()):
            return
        whole = {g: self.inheriting.pop(g) for g in inherit.together}
        for _, book, _ in whole.values():
            self.open_group(book.group)
        service = self.protocols[gid]
        assert isinstance(service, SequencingService)
        service.succeed({g: (book.state, list(e.values())) for g, (_, book, e) in whole.items()})
        for g in inherit.together:
            for p in sorted(service.parts[g].expected()):
                if p in self.parted:  # while nobody numbered the group
                    self._handle(Change(g, dead=(p,)))
        sole = tuple(g for g in inherit.together if service.back_up(g, source))
        moves = tuple(whole[g][1].state.move for g in inherit.together)
        done = Inherited(inherit.since, inherit.together, sole, moves)
        self._tell((source,), done)
        self._give([(self.pids[0], done)])

    def _inherited(self, q: ProcessId, word: Inherited) -> None:
        for gid, move in zip(word.gids, word.moves, strict=True):
            part = self._part(gid)
            if part is not None and part.handed_over(move):  # late word of another one is void
                part.tell_moved(gid, sole=gid in word.sole)
        directory = self._directory_of(word.gids[0]) if word.gids else None
        if directory is not None:
            self._give(directory.moved(word.gids, q, self._eligible()))

    def tick(self) -> None:
        super().tick()
        if self.node_view is None or self.stopped or self.ticks % LOAD_TICKS:
            return
        for gid in self.hosted():
            self._report(gid)
        if self.coordinates:
            self._weigh_groups()

    def _report(self, gid: GroupId) -> None:
        service = self._service(gid)
        assert service is not None
        part = service.parts[gid]
        if left := part.settled_leavers():
            word = Settled(self._since(), gid, part.changes, left)
            self._give([(self.pids[0], word)])
        if part.traffic:
            counts, part.traffic = part.traffic, {}
            most = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_SENDERS]
            self._give([(self.pids[0], Load(self._since(), gid, tuple(most)))])

    # -- nodes come and go ------------------------------------------------------------------------

    def _put_in_force(self, view: NodeView) -> None:
        before = self.pids
        super()._put_in_force(view)
        gone = tuple(p for p in before if p not in view.pids)
        self.parted.update(gone)
        self.draining.intersection_update(view.pids)
        if self.installed is not None and self.installed.number == view.number:
            return  # a flush: all groups begin again
        for p in gone:
            for gid in self.hosted():
                self._handle(Change(gid, dead=(p,)))
            for directory in self.directories.values():
                directory.departed(p)

    def _adopt(self, nodes: Nodes) -> None:
        super()._adopt(nodes)
        self.obey_what_was_ahead()

    def owes_nothing(self) -> bool:
        """One that still numbers must be drained first; the coordinator is asked until it is so."""
        others = [p for p in self.pids if p != self.me and p not in self.detector.suspected]
        if others and self.hosted():
            self._pass_on(DrainWish(self.me))
            return False
        return not (others and any(p.keeps_for_others(gid) for gid, p in self.protocols.items()))

    def _on_depart(self, q: ProcessId, depart: Depart) -> None:
        """One that numbers, or is about to, is drained first. It will say good-bye again."""
        busy = [d for d in self.directories.values() if d.needs(q)] if self.coordinates else []
        for directory in busy:
            self._give(directory.drain(q, self._eligible()))
        if not busy or len(self.pids) == 1:
            super()._on_depart(q, depart)
