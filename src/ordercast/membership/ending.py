"""The end of a node view, as its coordinator sees it: from the reports to the next views.

Everything here is computed from reports alone, so it is the same at whoever coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import next_view_number
from ordercast.core.protocol import OrderingProtocol, Reach
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    Attempt,
    GroupReport,
    NextGroupView,
    NodeReport,
    UnstableFrame,
)
from ordercast.membership.directory import eligible, hosts_after
from ordercast.membership.nodes import (
    LEAP,
    Ballot,
    GroupEntry,
    NodeEntry,
    NodeView,
    deciding,
    first_unused,
)

Frames = dict[tuple[GroupId, ProcessId, int], Kept]  # by (group, origin, n)
Nodes = tuple[ProcessId, ...]
Pages = Callable[[str], type[OrderingProtocol]]  # the protocol of that name


class Finish(msgspec.Struct, frozen=True):
    """Somebody has begun what others only prepared: these must finish it first."""

    eras: tuple[tuple[GroupId, int], ...]
    view: Attempt | None


class Without(msgspec.Struct, frozen=True):
    """These cannot go on with the others, and their votes are not needed."""

    nodes: frozenset[ProcessId]


class Minority(msgspec.Struct, frozen=True):
    """These nodes are not enough."""

    ballot: Ballot
    missing: tuple[ProcessId, ...]


class NextViews(msgspec.Struct, frozen=True):
    """What begins, and the frames that are delivered before."""

    view: NodeView
    groups: dict[GroupId, NextGroupView]
    takers: dict[GroupId, tuple[ProcessId, ...]]  # the survivors that deliver the union
    told: dict[GroupId, tuple[ProcessId, ...]]  # whoever has the group open
    union: Frames


class Ending(PlainState):
    """One attempt to end a node view: who has reported what, and who is ready."""

    def __init__(
        self,
        attempt: Attempt,
        nodes: tuple[ProcessId, ...],
        *,
        into: ProcessId | None,
    ) -> None:
        self.attempt = attempt
        self.nodes = nodes  # of the next view
        self.into = into  # the node to whose side all go over after this, if any
        self.reports: dict[ProcessId, NodeReport] = {}
        self.frames: dict[ProcessId, Frames] = {p: {} for p in nodes}
        self.next: NextViews | None = None  # once all have reported
        self.unready: set[ProcessId] = set()
        self.age = 0  # ticks

    def reported(self, p: ProcessId, report: NodeReport) -> None:
        """REPORT of p."""
        if p in self.frames and len(self.frames[p]) <= report.frames:
            self.reports[p] = report
        elif p in self.frames:
            raise PeerError(f"a report counts {report.frames} frames; more have come")

    def frame(self, p: ProcessId, header: UnstableFrame, payload: bytes) -> None:
        """One unstable frame of p."""
        if p in self.frames:
            kept = Kept(header.origin, header.n, header.stamp, payload)
            self.frames[p][header.gid, header.origin, header.n] = kept
            if p in self.reports and len(self.frames[p]) > self.reports[p].frames:
                raise PeerError("more unstable frames than were announced")

    def complete(self) -> bool:
        """Have all reported, with all their frames?"""
        return all(
            p in self.reports and len(self.frames[p]) == self.reports[p].frames for p in self.nodes
        )

    # -- what follows from the reports ------------------------------------------------------------

    def resolve(
        self, *, voting: bool, stride: int, pages: Pages
    ) -> Finish | Without | Minority | NextViews:
        """The next views; or what must be done before there can be any.

        Some cannot go on with the others. If there is a vote they vote nevertheless: they know of
        the next view then, and are not in it.
        """
        newest = max(self.reports.values(), key=lambda report: report.view.number)
        late = self._late(newest)
        strangers = self._strangers(late, newest)
        if late - strangers:
            return Finish((), newest.installed)
        if strangers and not voting:
            return Without(strangers)
        if voting:
            lost = self._lost_ballot(newest)
            if lost is not None:
                return Minority(lost, lost.missing(self.nodes))
        ends = [GroupEnd(gid, *self._known_of(gid, strangers)) for gid in self._groups(strangers)]
        unfinished = tuple((end.gid, end.era) for end in ends if end.unfinished())
        if unfinished:
            return Finish(unfinished, None)
        for end in ends:
            end.settle(pages)
        stranded = strangers.union(*(end.stranded for end in ends))
        staying = tuple(p for p in self.nodes if p not in stranded)
        if not staying or (self.attempt.coordinator in stranded and not voting):
            return Without(stranded)
        ends = [
            end
            for end in ends
            if end.lives(staying) or end.owes_a_last_view(staying, pages) or self._awaiting(end)
        ]
        return self._next_views(newest.view, staying, ends, stride, pages)

    def _late(self, newest: NodeReport) -> frozenset[ProcessId]:
        """Who has not installed what another has."""
        made = newest.installed
        if made is None:
            return frozenset()
        return frozenset(
            p
            for p, report in self.reports.items()
            if report.installed != made and 0 < report.view.number < made.number
        )

    def _strangers(self, late: frozenset[ProcessId], newest: NodeReport) -> frozenset[ProcessId]:
        """Who can install it no more: it is not in that view, or got ready for another since."""
        return frozenset(
            p
            for p in late
            if self.reports[p].ready != newest.installed or p not in newest.view.pids
        )

    def _lost_ballot(self, newest: NodeReport) -> Ballot | None:
        ballots = {b for report in self.reports.values() for b in report.ballots}
        # The lowest that counts at a node was in force there. At one that is in no view yet none
        # was: all it may know is what it has prepared.
        in_view = [r for r in self.reports.values() if r.ballots and r.view.number]
        in_force = max((min(b.number for b in r.ballots) for r in in_view), default=0)
        departed = {p for report in self.reports.values() for p in report.departed}
        counted = [b.without(departed) for b in deciding(ballots, in_force)]
        lost = [b for b in counted if not b.won_by(self.nodes) and not self._is_past(b, newest)]
        return min(lost, default=None, key=lambda b: (b.number, b.coordinator))

    def _is_past(self, ballot: Ballot, newest: NodeReport) -> bool:
        """Is there a later view by which all who are not here will judge, too? Who announces one
        counts it from then on: it cannot go on without a majority of it."""
        made = 0 if newest.installed is None else newest.installed.number
        announced = made < newest.view.number
        missing = ballot.missing(self.nodes)
        later = ballot.number < newest.view.number
        return announced and later and set(missing) <= {newest.view.coordinator}

    def _groups(self, strangers: Collection[ProcessId]) -> list[GroupId]:
        known = (r.groups for p, r in self.reports.items() if p not in strangers)
        return sorted({group.entry.gid for groups in known for group in groups})

    def _known_of(
        self, gid: GroupId, strangers: Collection[ProcessId]
    ) -> tuple[dict[ProcessId, GroupReport], dict[ProcessId, Frames]]:
        """What those who have a future know of that group."""
        nodes = [p for p in self.nodes if p not in strangers]
        said = {p: r for p in nodes for r in self.reports[p].groups if r.entry.gid == gid}
        return said, {p: self.frames[p] for p in nodes}

    def _next_views(
        self, newest: NodeView, staying: Nodes, ends: list[GroupEnd], stride: int, pages: Pages
    ) -> NextViews:
        known: dict[ProcessId, NodeEntry] = {
            node.pid: node for r in self.reports.values() for node in r.view.nodes
        }
        order = [p for p in newest.pids if p in staying]
        order += [p for p in staying if p not in order]
        view = NodeView(self.attempt.number, tuple(known[p] for p in order if p in known))
        marks: dict[str, int] = {}  # a domain has one
        for end in ends:
            marks[end.domain(pages)] = max(end.mark, marks.get(end.domain(pages), 0))
        is_new = view.coordinator != newest.coordinator
        # Another attempt from the same view may have been installed where we cannot see it: what
        # sets the two apart is their number. And who led before may have made views unseen.
        leap = self.attempt.number - newest.number
        if is_new or self.attempt.number >= first_unused(newest.number):
            leap += LEAP
        succession = Succession(view.coordinator, is_new, stride, leap)
        living = [end for end in ends if end.lives(staying)]
        leaders = self._leaders(view, staying, living, pages)
        return NextViews(
            view,
            {
                e.gid: e.next_view(
                    staying,
                    marks[e.domain(pages)],
                    self._succession(e, succession, pages),
                    leaders.get(e.gid, NOBODY),
                )
                for e in ends
            },
            {end.gid: end.takers(staying) for end in ends},
            {e.gid: self._told(e, staying, lives=e in living) for e in ends},
            {key: kept for end in ends for key, kept in end.union.items()},
        )

    def _told(self, end: GroupEnd, staying: Nodes, *, lives: bool) -> Nodes:
        told = end.told(staying) if lives else end.last_told(staying)
        awaiting = (p for p in self._awaiting(end) if p in staying)
        return tuple(dict.fromkeys((*told, *awaiting)))

    def _awaiting(self, end: GroupEnd) -> list[ProcessId]:
        """Who may be about to be let in. Word of an era that ends may come there late, and must not
        count."""
        return [p for p, r in self.reports.items() if end.gid in r.awaited]

    def _succession(self, end: GroupEnd, succession: Succession, pages: Pages) -> Succession:
        """A sequencer that is gone may have made views that nobody else saw, too."""
        placed = pages(end.entry.protocol).together is not None
        if not placed or end.sequencer() is not None:
            return succession
        return Succession(succession.leader, True, succession.stride, max(LEAP, succession.leap))

    def _leaders(
        self, view: NodeView, staying: Nodes, ends: list[GroupEnd], pages: Pages
    ) -> dict[GroupId, ProcessId]:
        """The coordinator leads; but some protocols have several sequencers."""
        leaders = {end.gid: view.coordinator for end in ends}
        placed: dict[str, list[GroupEnd]] = {}
        for end in ends:
            if pages(end.entry.protocol).together is not None:
                placed.setdefault(end.entry.protocol, []).append(end)
        for protocol, groups in placed.items():
            together = pages(protocol).together
            assert together is not None
            known = {end.gid: (end.here(staying), end.sequencer()) for end in groups}
            leaders.update(hosts_after(together, known, eligible(view.nodes)))
        return leaders


class Succession(msgspec.Struct, frozen=True):
    """Who leads the groups from now on, and how far its numbers are from those before."""

    leader: ProcessId
    is_new: bool  # another led before
    stride: int
    leap: int


class GroupEnd:
    """One group at the end of a node view."""

    def __init__(
        self,
        gid: GroupId,
        reports: dict[ProcessId, GroupReport],
        frames: dict[ProcessId, Frames],
    ) -> None:
        self.gid = gid
        self.reports = reports
        self.frames = frames
        self.nodes = tuple(frames)  # that live, with or without this group
        self.era = max(report.era for report in reports.values())
        self.settled = {p: r for p, r in reports.items() if r.era == self.era}  # up to date
        self.union: Frames = {}
        self.stranded: set[ProcessId] = set()  # delivered what nobody can supply to the others
        self.members: tuple[ProcessId, ...] = ()  # of the last view that all will have had
        self.guests: tuple[ProcessId, ...] = ()
        self.number = 0
        self.reached: tuple[tuple[ProcessId, int], ...] = ()  # frames delivered by the union

    def domain(self, pages: Pages) -> str:
        """Groups whose numbers belong together: those of a domain."""
        declared = pages(self.entry.protocol).declaration
        return declared.name if declared.scope == "domain" else f"group {self.gid}"

    def unfinished(self) -> bool:
        """Has somebody begun an era that others are ready for, and wait for?"""
        return any(r.era < self.era == r.ready for r in self.reports.values())

    def settle(self, pages: Pages) -> None:
        """What survives of the frames, and of the members."""
        newest = max(self.settled.values(), key=lambda r: (r.delivers, r.number, r.numbers))
        page = pages(newest.entry.protocol)
        senders = {q for r in self.settled.values() for q in (*r.members, *r.guests)}
        dead = [q for q in senders if q not in self.nodes]
        self._unite(page, dead)
        delivering = {p: r for p, r in self.settled.items() if r.delivers}
        lowest = min((r.progress for r in delivering.values()), default=0)
        reach = page.reach(tuple(self.union.values()), lowest)
        self.stranded = {p for p, r in delivering.items() if r.progress > reach.number}
        # One that missed the word for an era that began, and is in it, cannot go on.
        self.stranded |= {
            p
            for p, r in self.reports.items()
            if r.era < self.era and p in (*newest.members, *newest.guests)
        }
        self.number, self.members, self.guests = newest.number, newest.members, newest.guests
        self.reached = reach.last
        if not delivering:
            reach = self._reach_of_guests(page)
        # A view that only guests come in with, or go with, has the number of the one before.
        if reach.view is not None and reach.view[0] >= self.number:
            self.number, self.members, self.guests = reach.view
        self.guests += self._lately(reach.number)

    def _reach_of_guests(self, page: type[OrderingProtocol]) -> Reach:
        """Nobody is left who delivers: the last view that is known, wherever numbers begin."""
        numbers = [kept.stamp[0] for kept in self.union.values() if kept.stamp]
        if not numbers or not page.declaration.sequenced:
            return Reach()
        return page.reach(tuple(self.union.values()), min(numbers) - 1)

    def _lately(self, reach: int) -> tuple[ProcessId, ...]:
        """Guests that were let in by a view which nobody else has any more: they stay."""
        return tuple(
            p
            for p, r in self.settled.items()
            if p in r.guests and r.progress > reach and p not in (*self.members, *self.guests)
        )

    def _unite(self, page: type[OrderingProtocol], dead: Collection[ProcessId]) -> None:
        union: Frames = {}
        for p in self.settled:
            for key, kept in self.frames[p].items():
                if key[0] == self.gid:
                    union[key] = page.better(union[key], kept) if key in union else kept
        self.union = {key: page.attested(kept, dead) for key, kept in union.items()}

    @property
    def mark(self) -> int:
        """The highest that was reported."""
        return max(r.mark for r in self.settled.values())

    def lives(self, staying: Nodes) -> bool:
        """Is anybody left in it?"""
        return any(p in (*self.members, *self.guests) for p in self.reports if p in staying)

    def owes_a_last_view(self, staying: Nodes, pages: Pages) -> bool:
        """All have left it, but one has not heard so: where views are numbered among messages. Or
        one was let in, and word of that may still come: it must not be let in by a group that is
        no more."""
        sequenced = pages(self.entry.protocol).declaration.sequenced
        return sequenced and bool(self.last_told(staying))

    def last_told(self, staying: Nodes) -> Nodes:
        """Who is told that the group has ended: who delivers its last view, is a guest and has not
        heard that it has left, or was just let in."""
        let_in = {*self.members, *self.guests}.difference(self.reports)
        visitors = {p for p, r in self.settled.items() if p in r.guests}
        takers = self.takers(staying)
        others = (let_in | visitors).difference(takers)
        return (*takers, *(p for p in staying if p in others))

    def told(self, staying: Nodes) -> Nodes:
        """Whoever has the group open, or is about to."""
        return tuple(p for p in staying if p in {*self.reports, *self.members, *self.guests})

    def takers(self, staying: Nodes) -> Nodes:
        """Those who deliver what is left of the era that ends."""
        return tuple(p for p, r in self.settled.items() if r.delivers and p in staying)

    def next_view(
        self, nodes: Collection[ProcessId], mark: int, succession: Succession, leader: ProcessId
    ) -> NextGroupView:
        """A new era for those who live; a new number only if the members differ, or if another led
        before: it may have made a view that nobody else saw."""
        # One that was let in and has not heard of it has no view: it will ask again.
        members = self.here(nodes)
        guests = tuple(p for p in self.guests if p in self.reports and p in nodes)
        number = self.number
        highest = max(r.number for r in self.reports.values())
        if members != self.members or highest > number or succession.is_new:
            stride, leap = succession.stride, succession.leap
            number = next_view_number(max(highest, number), succession.leader, stride, leap)
        eras = (max(r.era, r.ready) for r in self.reports.values())
        era = max(eras) + 1
        last = self._last(nodes)
        return NextGroupView(self.entry, number, members, guests, era, mark, last, leader)

    def here(self, nodes: Collection[ProcessId]) -> tuple[ProcessId, ...]:
        """The members that go on."""
        return tuple(p for p in self.members if p in self.reports and p in nodes)

    def sequencer(self) -> ProcessId | None:
        """Who numbered it, if it lives."""
        return next((p for p, r in self.settled.items() if r.numbers), None)

    @property
    def entry(self) -> GroupEntry:
        """As all know it."""
        return next(iter(self.reports.values())).entry

    def _last(self, nodes: Collection[ProcessId]) -> tuple[tuple[ProcessId, int], ...]:
        """The frames that those who go on will have delivered. One that cannot go on may have
        delivered more: that is lost, and asked for again. Where its own stay began even a guest
        knows, who delivers nothing."""
        staying = {p: r for p, r in self.settled.items() if p in nodes}
        known = (pair for p, r in staying.items() for pair in r.last if r.delivers or pair[0] == p)
        last: dict[ProcessId, int] = {}
        for q, n in (*known, *self.reached):
            if q in self.nodes:
                last[q] = max(n, last.get(q, 0))
        return tuple(sorted(last.items()))
