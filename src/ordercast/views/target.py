"""At the coordinator: how the groups should stand. A change makes them so.

a node wants in          it is a member of the target; groups that S1 or S2 keeps together get
                         one sequencer in the same change
a node wants out         it is none
a node is gone           it is in nothing, and numbers nothing
by hand, by load         a component of groups gets another sequencer
a group without members  waits for those who may have a newer state than whoever asks to be in
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import ViewNumbers
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY
from ordercast.core.whereabouts import Whereabouts
from ordercast.membership.node_view import NodeEntry
from ordercast.placement.placement import Placement
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Absent, Row, WantIn

Pages = Callable[[str], type[OrderingProtocol]]

REMEMBERING = 24  # times `refound_ticks`: for whoever has an older state of an empty group
GATHER_TICKS = 4  # so long members of another side wait for each other
MAX_OFFERED = 4096  # groups that were asked about, and that nobody is in yet
MAX_ABSENT = 16  # members of one group that are remembered: those that were in it last


class Aim(msgspec.Struct, frozen=True):
    """How one group should stand."""

    entry: GroupEntry
    members: tuple[ProcessId, ...] = ()
    guests: tuple[ProcessId, ...] = ()
    leader: ProcessId = -1


class Target(PlainState):
    """All groups, as the coordinator of one term wants them."""

    def __init__(self, me: ProcessId, stride: int, refound_ticks: int) -> None:
        self.me = me
        self.refound_ticks = refound_ticks  # so long an empty group waits for those who are absent
        self.waited: dict[GroupId, int] = {}  # ... and has waited
        self.numbers = ViewNumbers(stride=stride)  # of views, in this lineage of the cluster
        self.nodes: dict[ProcessId, NodeEntry] = {}  # of the node view
        self.gone: dict[ProcessId, NodeEntry] = {}  # were in it, and did not leave in order
        self.aims: dict[GroupId, Aim] = {}  # groups that are not known to stand as they should
        self.offered: dict[GroupId, GroupEntry] = {}  # numbers that were given, for groups to come
        self.coming: dict[str, GroupId] = {}  # names of groups that have no row yet
        self.founders: dict[GroupId, dict[ProcessId, WantIn]] = {}  # wait to be in an empty group
        self.gathering: dict[GroupId, dict[ProcessId, WantIn]] = {}  # come over from another side
        self.gathered: dict[GroupId, int] = {}  # ticks since the first of them asked
        self.memory: dict[tuple[GroupId, ProcessId], int] = {}  # with which a group was founded
        self.forgotten: set[GroupId] = set()  # nobody is waited for there
        self.placements: dict[str, Placement] = {}
        self.draining: set[ProcessId] = set()  # are to number nothing; who leaves is among them

    # -- a term begins ----------------------------------------------------------------------------

    def begin(
        self, directory: Directory, nodes: Sequence[NodeEntry], gone: Mapping[ProcessId, NodeEntry],
        pages: Pages,
    ) -> None:  # fmt: skip
        """These nodes are left. Wishes come again from those who have them."""
        self.nodes = {node.pid: node for node in nodes}
        self.gone = dict(gone)
        self.aims, self.founders, self.memory, self.forgotten = {}, {}, {}, set()
        self.gathering, self.gathered = {}, {}
        self.draining &= set(self.nodes)
        self._withdraw(directory)
        placements, self.placements = self.placements, {}
        for row in directory.rows.values():
            self._know(row, pages, placements)
        for placement in self.placements.values():  # groups that were only aimed at
            for g in [g for g in placement.host if g not in directory.rows]:
                placement.forget(g)
        self._bury(directory, pages)

    def _bury(self, directory: Directory, pages: Pages) -> None:
        """Nodes that are gone are in nothing. A change that one of them decided, and that others
        finished, may name it."""
        dead = [p for p in directory.of if p not in self.nodes]
        if not dead:
            return
        for g in sorted(directory.groups_of(dead)):
            aim = self.aim_of(directory, g)
            assert aim is not None
            members = self._living(aim.members)
            self.aims[g] = Aim(aim.entry, members, self._living(aim.guests), aim.leader)
            placement = self.placements.get(aim.entry.protocol)
            if placement is not None:
                placement.know(g, members, aim.leader)
        self._place(directory, pages)

    def installed(self, directory: Directory, rows: Iterable[Row], pages: Pages) -> None:
        """These rows are in force. Who waited while another founded a group comes in now: it gets
        the state from that one. A group whose last members went may be founded again."""
        self._withdraw(directory)
        for row in rows:
            g, page = row.entry.gid, pages(row.entry.protocol)
            if g not in self.aims:
                self._know(row, pages, self.placements)
            if row.members and g in self.founders:
                waiting = self.founders.pop(g)
                self._join(directory, g, waiting, page)
            else:
                self._refound(directory, g, page)

    def forget(self, groups: Iterable[GroupId]) -> None:
        """These groups had no members for long, and are no more."""
        for g in groups:
            self.aims.pop(g, None)
            self.founders.pop(g, None)
            for placement in self.placements.values():
                placement.forget(g)

    def _know(self, row: Row, pages: Pages, before: Mapping[str, Placement]) -> None:
        page = pages(row.entry.protocol)
        if page.together is None:
            return
        name = row.entry.protocol
        if name not in self.placements:
            self.placements[name] = before.get(name) or Placement(together=page.together)
        living = self._living(row.members)
        self.placements[name].know(row.entry.gid, living, row.leader)

    def _living(self, pids: Iterable[ProcessId]) -> tuple[ProcessId, ...]:
        return tuple(p for p in pids if p in self.nodes)

    def _place(self, directory: Directory, pages: Pages) -> None:
        """Groups whose leader is gone get another."""
        able = self.eligible()
        for placement in self.placements.values():
            lost = {g for g, host in placement.host.items() if host not in self.nodes}
            for g, host in placement.place_all(lost, able).items() if lost else ():
                self._aim(directory, g, leader=host)
            for g in [g for g in self.aims if g in placement.host]:
                self._aim(directory, g, leader=placement.host[g])
        for g, aim in tuple(self.aims.items()):
            if aim.entry.protocol not in self.placements:
                self._aim(directory, g, leader=self._first(directory, aim, pages))

    def eligible(self) -> list[ProcessId]:
        """Who may number: the dedicated sequencers; if there are none, everybody."""
        able = [node for node in self.nodes.values() if node.pid not in self.draining]
        dedicated = [node.pid for node in able if node.sequencer]
        return dedicated or [node.pid for node in able] or list(self.nodes)

    def _first(self, directory: Directory, aim: Aim, pages: Pages) -> ProcessId:
        """Where no sequencer is placed, the leader is a member, the same for as long as it is. If
        there are only guests, somebody must number what they send."""
        row = directory.rows.get(aim.entry.gid)
        if row is not None and row.leader in aim.members:
            return row.leader
        if aim.members:
            return aim.members[0]
        numbered = pages(aim.entry.protocol).declaration.sequenced
        return self.me if aim.guests and numbered else NOBODY

    @property
    def sites(self) -> dict[ProcessId, Whereabouts]:
        """Where the nodes are, as far as they say it."""
        return {node.pid: node.whereabouts for node in self.nodes.values() if node.site}

    # -- names and numbers ------------------------------------------------------------------------

    def offer(self, entry: GroupEntry) -> None:
        """Whoever asked for a group of that name was told that this is its number."""
        self.offered[entry.gid] = entry
        self.coming[entry.name] = entry.gid
        if len(self.offered) > MAX_OFFERED:
            oldest = next(iter(self.offered))
            name = self.offered.pop(oldest).name
            if oldest not in self.aims:
                del self.coming[name]

    def _withdraw(self, directory: Directory) -> None:
        """Groups that there are need no offer. A change that was finished after its coordinator was
        gone may have given the number, or the name, to another one."""
        self.offered = {
            g: entry
            for g, entry in self.offered.items()
            if g not in directory.rows and entry.name not in directory.named
        }
        aimed_at = (aim.entry for g, aim in self.aims.items() if g not in directory.rows)
        to_come = (*self.offered.values(), *aimed_at)
        self.coming = {entry.name: entry.gid for entry in to_come}

    def of_number(self, directory: Directory, g: GroupId) -> GroupEntry | None:
        """The group that has this number, or will have it."""
        aim = self.aim_of(directory, g)
        return self.offered.get(g) if aim is None else aim.entry

    def of_name(self, directory: Directory, name: str) -> GroupEntry | None:
        """The group that has this name, or will have it."""
        g = directory.named.get(name, self.coming.get(name))
        return None if g is None else self.of_number(directory, g)

    def highest(self, directory: Directory) -> GroupId:
        """No group has a higher number, nor will have one."""
        return max((*directory.rows, *self.aims, *self.offered), default=0)

    def count(self, directory: Directory) -> int:
        """How many groups there are, or will be."""
        to_come = self.aims.keys() | self.offered.keys()
        return len(directory.rows) + sum(g not in directory.rows for g in to_come)

    # -- what is aimed at -------------------------------------------------------------------------

    def aim_of(self, directory: Directory, g: GroupId) -> Aim | None:
        """How this group should stand; None: there is no such group."""
        aim = self.aims.get(g)
        if aim is None and (row := directory.rows.get(g)) is not None:
            aim = Aim(row.entry, row.members, row.guests, row.leader)
        return aim

    def _aim(
        self,
        directory: Directory,
        g: GroupId,
        *,
        members: tuple[ProcessId, ...] | None = None,
        guests: tuple[ProcessId, ...] | None = None,
        leader: ProcessId | None = None,
    ) -> None:
        aim = self.aim_of(directory, g)
        assert aim is not None
        self.aims[g] = Aim(
            aim.entry,
            aim.members if members is None else members,
            aim.guests if guests is None else guests,
            aim.leader if leader is None else leader,
        )

    def want_in(self, directory: Directory, p: ProcessId, want: WantIn, pages: Pages) -> None:
        """p wants to be in a group. It may say so again and again."""
        g, page = want.group.gid, pages(want.group.protocol)
        aim = self.aim_of(directory, g)
        if aim is None:
            aim = self._found(directory, want, p, page)
        if want.part == "guest":
            self._let_visit(directory, g, p, pages)
        elif p not in aim.members:
            if self._waits(directory, g, aim, want):
                self.founders.setdefault(g, {})[p] = want
                self._refound(directory, g, page)
            elif want.former:
                self.gathering.setdefault(g, {})[p] = want
                self._gather(directory, g, page)
            else:
                self._join(directory, g, (p,), page)

    def _let_visit(self, directory: Directory, g: GroupId, p: ProcessId, pages: Pages) -> None:
        """A member that wants to be a guest leaves: its word that it wants out may have been lost
        with a coordinator."""
        aim = self.aim_of(directory, g)
        if aim is not None and p in aim.members:
            self.want_out(directory, p, g, pages)
            aim = self.aim_of(directory, g)
        assert aim is not None
        page = pages(aim.entry.protocol)
        if page.together is None and p not in aim.guests:
            self._aim(directory, g, guests=(*aim.guests, p))
            self._lead(directory, g, page)

    def _gather(self, directory: Directory, g: GroupId, page: type[OrderingProtocol]) -> None:
        """Members of another side of a partition come over together: in one view, if all of them
        ask within a few ticks."""
        asked = self.gathering.get(g, {})
        waiting = {p: want for p, want in asked.items() if p in self.nodes}
        names = {self.nodes[p].name for p in waiting}
        expected = {name for want in waiting.values() for name in want.former}
        if waiting and (names >= expected or self.gathered.get(g, 0) >= GATHER_TICKS):
            self.gathering.pop(g, None)
            self._join(directory, g, tuple(waiting), page)

    def _waits(self, directory: Directory, g: GroupId, aim: Aim, want: WantIn) -> bool:
        """Must one that asks wait for somebody else to found the group? Where a state is remembered
        one node brings it, and the others come in after it."""
        row = directory.rows.get(g)
        if row is not None and row.members:
            return not aim.members
        remembered = [self.memory.get((g, p), 0) for p in aim.members]
        return not aim.members or want.memory > 0 or any(remembered)

    def _found(
        self, directory: Directory, want: WantIn, p: ProcessId, page: type[OrderingProtocol]
    ) -> Aim:
        g = want.group.gid
        leader = NOBODY
        if page.together is not None:
            name = want.group.protocol
            if name not in self.placements:
                self.placements[name] = Placement(together=page.together)
            founders = (p,) if want.part == "member" else ()
            leader = self.placements[name].place_new(g, self.eligible(), founders)
        self.aims[g] = Aim(want.group, (), (), leader)
        self.coming[want.group.name] = g
        return self.aims[g]

    def _join(
        self, directory: Directory, g: GroupId, who: Iterable[ProcessId],
        page: type[OrderingProtocol],
    ) -> None:  # fmt: skip
        aim = self.aim_of(directory, g)
        assert aim is not None
        joining = tuple(p for p in who if p not in aim.members)
        guests = tuple(p for p in aim.guests if p not in joining)
        self._aim(directory, g, members=aim.members + joining, guests=guests)
        placement = self.placements.get(aim.entry.protocol)
        if placement is not None:
            dest, elsewhere = placement.moves_for_join(g, joining, self.eligible())
            for p in joining:
                placement.joined(g, p)
            self._move(directory, placement, elsewhere, dest)
        self._lead(directory, g, page)

    def _lead(self, directory: Directory, g: GroupId, page: type[OrderingProtocol]) -> None:
        aim = self.aims[g]
        if page.together is None:
            self._aim(directory, g, leader=self._first(directory, aim, lambda _: page))

    def _share_out(self, directory: Directory, g: GroupId, page: type[OrderingProtocol]) -> None:
        """A group whose only member numbers it itself has no second copy of anything. Where other
        groups may name its frames, another node numbers it."""
        aim = self.aims[g]
        if not page.copies_frames or aim.members != (aim.leader,):
            return
        others = self._others(aim.leader)
        if others:
            placement = self.placements[aim.entry.protocol]
            self._move(directory, placement, (g,), min(others, key=placement.load))

    def _share_out_anew(self, directory: Directory) -> None:
        """Somebody comes who may number. If nobody or one could, groups of one member may have had
        to stay with that one."""
        if len(self.nodes.keys() - self.draining) <= 1:
            for g, row in directory.rows.items():
                if row.members == (row.leader,):
                    self._aim(directory, g)

    def _others(self, p: ProcessId) -> list[ProcessId]:
        """Who may number instead of p; nobody that is about to leave."""
        able = [q for q in self.nodes if q != p and q not in self.draining]
        return [q for q in self.eligible() if q in able] or able

    def want_out(self, directory: Directory, p: ProcessId, g: GroupId, pages: Pages) -> None:
        """p wants to be out of a group."""
        self._drop_founder(g, p)
        self.gathering.get(g, {}).pop(p, None)
        aim = self.aim_of(directory, g)
        if aim is None or p not in (*aim.members, *aim.guests):
            return
        members = tuple(q for q in aim.members if q != p)
        self._aim(directory, g, members=members, guests=tuple(q for q in aim.guests if q != p))
        placement = self.placements.get(aim.entry.protocol)
        if placement is not None and p in aim.members:
            placement.left(g, p)
            placement.settled(g, p)
        self._lead(directory, g, pages(aim.entry.protocol))

    def _drop_founder(self, g: GroupId, p: ProcessId) -> None:
        waiting = self.founders.get(g)
        if waiting is not None:
            waiting.pop(p, None)
            if not waiting:
                del self.founders[g]

    # -- sequencers -------------------------------------------------------------------------------

    def _move(
        self, directory: Directory, placement: Placement, groups: Iterable[GroupId], to: ProcessId
    ) -> None:
        for g in groups:
            placement.moved(g, to)
            self._aim(directory, g, leader=to)

    def migrate(self, directory: Directory, g: GroupId, to: ProcessId) -> bool:
        """By hand: a group, and all that must be with it."""
        aim = self.aim_of(directory, g)
        placement = None if aim is None else self.placements.get(aim.entry.protocol)
        if placement is None or to not in self.nodes:
            return False
        self._move(directory, placement, sorted(placement.component(g)), to)
        return True

    def drain(self, directory: Directory, p: ProcessId, *, drained: bool) -> None:
        """p is to number nothing any more, or may number again."""
        if not drained:
            self._share_out_anew(directory)
            self.draining.discard(p)
        elif p in self.nodes:
            self.draining.add(p)
            self._unburden(directory, p)

    def _unburden(self, directory: Directory, p: ProcessId) -> None:
        """Groups that p numbers go elsewhere, if there is anywhere."""
        able = self._others(p) or [q for q in self.nodes if q != p]
        for placement in self.placements.values():
            for groups, to in placement.drain(p, able):
                self._move(directory, placement, sorted(groups), to)
        for g in sorted(directory.of.get(p, ())):
            row = directory.rows[g]
            only_leads = row.leader == p and p not in row.members
            if only_leads and row.entry.protocol not in self.placements and able:
                self._aim(directory, g, leader=able[0])

    def balance(
        self,
        directory: Directory,
        counts: Mapping[str, Mapping[GroupId, Mapping[ProcessId, int]]],
        seconds: float,
    ) -> None:
        """A window ended: to the process that sends most, or away from the busiest sequencer."""
        able = self.eligible()
        for name, placement in self.placements.items():
            counted = counts.get(name, {})
            for g in tuple(placement.host):
                by_sender = counted.get(g, {})
                placement.measured(g, sum(by_sender.values()) / seconds, by_sender)
            move = placement.majority_sender(able) or placement.rebalance(able)
            if move is not None:
                self._move(directory, placement, sorted(move[0]), move[1])

    # -- groups without members -------------------------------------------------------------------

    def refound(self, directory: Directory, g: GroupId, pages: Pages) -> None:
        """By hand: those who are absent are not waited for."""
        row = directory.rows.get(g)
        if row is not None:
            self.forgotten.add(g)
            self._refound(directory, g, pages(row.entry.protocol))

    def tick(self, directory: Directory, pages: Pages) -> bool:
        """One heartbeat: True if an empty group has waited long enough, and is founded again. Who
        asked, gave up and asks again does not wait from the beginning: it might never come in."""
        empty = [g for g in self.waited if g in directory.rows and not directory.rows[g].members]
        self.waited = {
            g: self.waited.get(g, 0) + (g in self.founders)
            for g in dict.fromkeys((*empty, *self.founders))
        }
        late = [g for g in self.founders if self.waited[g] >= self._patience(g)]
        for g in late:
            self.refound(directory, g, pages)
        self.gathered = {g: self.gathered.get(g, 0) + 1 for g in self.gathering}
        complete = [g for g, ticks in self.gathered.items() if ticks >= GATHER_TICKS]
        for g in complete:
            for want in tuple(self.gathering[g].values())[:1]:
                self._gather(directory, g, pages(want.group.protocol))
            self.gathering.pop(g, None)
        return bool(late or complete)

    def _patience(self, g: GroupId) -> int:
        """Whoever remembers an older state waits longer for a newer one than who has nothing."""
        remembers = any(want.memory for want in self.founders[g].values())
        return self.refound_ticks * (REMEMBERING if remembers else 1)

    def awaited(self, directory: Directory, g: GroupId) -> list[Absent]:
        """Those who may have a newer state of an empty group than all who ask to be in."""
        row = directory.rows.get(g)
        if row is None or g in self.forgotten:
            return []
        best = max((w.memory for w in self.founders.get(g, {}).values()), default=0)
        return [a for a in row.absent if a.view > best and not self._has_forgotten(g, a)]

    def _has_forgotten(self, g: GroupId, absent: Absent) -> bool:
        """A later life of that node is here. If it remembers nothing, its memory is gone; if it
        remembers something it will say so when it asks."""
        for node in self.nodes.values():
            if node.name == absent.name and node.incarnation > absent.incarnation:
                return not node.remembers or node.pid in self.founders.get(g, {})
        return False

    def _refound(self, directory: Directory, g: GroupId, page: type[OrderingProtocol]) -> None:
        """Who has the newest state begins; the others come in after it. While the row names members
        it is not known who of them went without a word, and must be waited for."""
        waiting, aim, row = self.founders.get(g), self.aim_of(directory, g), directory.rows.get(g)
        is_empty = not (aim and aim.members) and not (row and row.members)
        if not waiting or not is_empty or self.awaited(directory, g):
            return
        memory = max(want.memory for want in waiting.values())
        first = [p for p, want in waiting.items() if want.memory == memory]
        if memory:
            first = first[:1]
        for p in first:
            self._drop_founder(g, p)
            self.memory[g, p] = memory
        self._join(directory, g, first, page)

    def arrived(self, directory: Directory, nodes: Iterable[NodeEntry], pages: Pages) -> None:
        """Nodes came in: one that remembers nothing may have been waited for."""
        self._share_out_anew(directory)
        self.nodes.update((node.pid, node) for node in nodes)
        for g in tuple(self.founders):
            aim = self.aim_of(directory, g)
            if aim is not None and not aim.members:
                self._refound(directory, g, pages(aim.entry.protocol))

    # -- the next rows ----------------------------------------------------------------------------

    def next_rows(
        self, directory: Directory, stopped: Collection[GroupId], pages: Pages
    ) -> dict[GroupId, Row]:
        """The groups that must change, with all that hang together with them, as they will be.

        Groups that were stopped change, too, also if nothing is different: so they go on.
        """
        self._bury(directory, pages)
        for g in tuple(self.aims):
            self._share_out(directory, g, pages(self._protocol(directory, g)))
        changed = {g for g in self.aims if self._differs(directory, g)}
        self.aims = {g: aim for g, aim in self.aims.items() if g in changed}
        changed |= {g for g in stopped if g in directory.rows}
        changed.update(self.of_earlier_lineages(directory))
        for name in {self._protocol(directory, g) for g in changed}:
            page = pages(name)
            if page.declaration.scope == "domain" and page.together is None:
                changed |= self._hanging_together(directory, name, changed)
        return {g: self._next_row(directory, g, pages) for g in sorted(changed)}

    def is_due(self, directory: Directory) -> bool:
        """Does any group stand in another way than it should?"""
        return any(self._differs(directory, g) for g in self.aims) or any(
            True for _ in self.of_earlier_lineages(directory)
        )

    def of_earlier_lineages(self, directory: Directory) -> Iterator[GroupId]:
        """Groups whose view was numbered before the cluster was recovered. Those who were lost may
        have gone on, and given the next number to another view."""
        if self.numbers.low:
            yield from (g for g, row in directory.rows.items() if row.number < self.numbers.low)

    def _protocol(self, directory: Directory, g: GroupId) -> str:
        aim = self.aim_of(directory, g)
        assert aim is not None
        return aim.entry.protocol

    def _hanging_together(
        self, directory: Directory, name: str, changed: Collection[GroupId]
    ) -> set[GroupId]:
        """By those who are in them now, and by those who will be."""
        of_it = {g for g in changed if self._protocol(directory, g) == name}
        people = {
            p
            for g in of_it
            if (aim := self.aims.get(g)) is not None
            for p in (*aim.members, *aim.guests)
        }
        near = {
            h
            for h in directory.groups_of(people)
            if directory.rows[h].entry.protocol == name
            and people.intersection((*directory.rows[h].members, *directory.rows[h].guests))
        }
        return directory.hanging_together(of_it | near, name)

    def _differs(self, directory: Directory, g: GroupId) -> bool:
        aim, row = self.aims[g], directory.rows.get(g)
        if row is None:
            return True
        return (aim.members, aim.guests, aim.leader) != (row.members, row.guests, row.leader)

    def _next_row(self, directory: Directory, g: GroupId, pages: Pages) -> Row:
        aim, row = self.aim_of(directory, g), directory.rows.get(g)
        assert aim is not None
        if row is None:
            era = directory.floor
            row = Row(aim.entry, self.numbers.below(era), era, (), (), aim.leader)
        number = row.number
        if aim.members != row.members or number < self.numbers.low:
            number = self.numbers.after(number, self.me)
        return Row(
            row.entry, number, row.era + 1, aim.members, aim.guests, aim.leader,
            self._absent(row, aim), pages(row.entry.protocol).subgroups_of(aim.members, self.sites),
        )  # fmt: skip

    def _absent(self, row: Row, aim: Aim) -> tuple[Absent, ...]:
        """Who went without a word, until it is back in, or the group is founded without it."""
        lost = [self.gone[p] for p in row.members if p in self.gone]
        entries = [*row.absent, *(Absent(n.name, n.incarnation, row.number) for n in lost)]
        if not aim.members and any(p in self.nodes for p in row.members):
            return ()  # the last ones left in order: its state ends with them
        if aim.members and not row.members:  # founded again: who had more is not waited for
            best = max((self.memory.get((row.entry.gid, p), 0) for p in aim.members), default=0)
            entries = [a for a in entries if a.view <= best]
        back = {self.nodes[p].name for p in aim.members}
        entries = [a for a in entries if a.name not in back]
        return tuple(sorted(entries, key=lambda a: a.view)[-MAX_ABSENT:])

    def invariants(self, directory: Directory) -> None:
        """Checked by simulators and explorers after every step, at the coordinator."""
        for aim in self.aims.values():
            living = all(p in self.nodes for p in (*aim.members, *aim.guests))
            assert living, "only nodes that are there are aimed at"
            led = aim.leader in self.nodes or (aim.leader == NOBODY and not aim.members)
            assert led, "somebody who is there leads, unless there is no member"
        given = {g: aim.entry for g, aim in self.aims.items()} | self.offered
        coming = {e.name: g for g, e in given.items() if g not in directory.rows}
        assert self.coming == coming, "names of groups to come are known"
        assert len(coming) == len(given.keys() - directory.rows.keys()), "... each of one group"
        assert not any(map(directory.contradicts, given.values())), "no number is given twice"
        for g in self.founders:
            row, goal = directory.rows.get(g), self.aim_of(directory, g)
            begun = row is not None and goal is not None and row.members and goal.members
            assert not begun, "founders wait for an empty group"
        for placement in self.placements.values():
            for g in placement.host:
                found = self.aim_of(directory, g)
                assert found is not None, "only groups that there are have a place"
                assert placement.host[g] == found.leader, "a group is where it is placed"
        for g in (*directory.rows, *self.aims):
            placed = self.placements.get(self._protocol(directory, g))
            assert placed is None or g in placed.host, "every group that is numbered has a place"


def told(rows: Iterable[Row]) -> tuple[ProcessId, ...]:
    """Everybody who has a part in any of these."""
    return tuple(dict.fromkeys(p for row in rows for p in row.concerned))
