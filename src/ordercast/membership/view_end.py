"""The end of a node view: one flush over all groups, led by whoever is first.

The rules stand at the head of `ordercast.membership.cluster`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    Attempt,
    Depart,
    EndView,
    InstallView,
    NodeReport,
    Nodes,
    NodesAck,
    NoPrimary,
    Overruled,
    PrepareView,
    UnstableFrame,
    ViewReady,
)
from ordercast.membership.ending import Ending, Finish, Frames, Minority, NextViews, Without
from ordercast.membership.knowledge import Knowledge, ballot_of
from ordercast.membership.nodes import NodeView, first_unused
from ordercast.membership.standing import (
    Blocked,
    Dissolved,
    Out,
    Resumed,
)

VIEWS_PER_TERM = 1 << 16  # of one group under one coordinator, before numbers could meet


class ViewEnd(Knowledge):
    """Both parts in the end of a view: its coordinator's, and every node's."""

    # -- its coordinator --------------------------------------------------------------------------

    def _end_view(
        self,
        nodes: tuple[ProcessId, ...],
        finish: Finish | None = None,
        into: ProcessId | None = None,
    ) -> None:
        eras = () if finish is None else finish.eras
        view = None if finish is None else finish.view
        self._finish(eras, view)
        nodes = tuple(p for p in nodes if p in self.pids)
        attempt = Attempt(self._next_number(), self.pids.index(self.me), self.me)
        self.ending = Ending(attempt, nodes, into=into)
        end = EndView(attempt, nodes, eras, view)
        others = tuple(p for p in nodes if p != self.me)
        if others:
            self._tell(others, end)
        self._follow(self.me, end)

    def _finish(self, eras: Sequence[tuple[GroupId, int]], view: Attempt | None) -> None:
        """Somebody has begun what is only ready here."""
        if self.prepared is not None and view == self.prepared.attempt:
            self._install()
        if eras:
            self.finish_groups(eras)
            self.prepared, self.prepared_union = None, {}  # it was made for the eras before

    def _next_number(self) -> int:
        """Above all that were seen here; and, if another coordinated, above what it made unseen."""
        followed = 0 if self.followed is None else self.followed.number
        views = (self._ballot(), *self.ballots)
        return max(
            followed + 1,
            *(b.number + 1 if b.coordinator == self.me else first_unused(b.number) for b in views),
        )

    def _on_report(self, p: ProcessId, report: NodeReport) -> None:
        if self.ending is not None and report.attempt == self.ending.attempt:
            for group in report.groups:
                self._check_group(group.entry, group.guests)
            self.top_group = max(self.top_group, report.top_group)
            self.ending.reported(p, report)
            self._go_on_when_complete()

    def _on_unstable(self, p: ProcessId, header: UnstableFrame, payload: bytes) -> None:
        ending = self.ending
        if ending is not None and header.attempt == ending.attempt and ending.next is None:
            ending.frame(p, header, payload)
            self._go_on_when_complete()
        elif self.preparing is not None and header.attempt == self.preparing.attempt:
            if p != header.attempt.coordinator:
                raise PeerError("a frame of a union from one that does not coordinate")
            kept = Kept(header.origin, header.n, header.stamp, payload)
            self.union[header.gid, header.origin, header.n] = kept
            self._say_ready()

    def _go_on_when_complete(self) -> None:
        ending = self.ending
        if ending is None or ending.next is not None or not ending.complete():
            return
        newest = max(ending.reports.values(), key=lambda report: report.view.number)
        if self._has_missed(newest):  # nodes that others let in are to be asked, too
            self._adopt(Nodes(newest.view, newest.ballots, newest.installed))
            self._end_view(self._alive(), into=ending.into)
            return
        voting = self.cluster_options.partition == "primary"
        found = ending.resolve(voting=voting, stride=self.stride, pages=self.page)
        if isinstance(found, Finish):
            self._end_view(ending.nodes, found, ending.into)
        elif isinstance(found, Without):
            for p in found.nodes - {self.me}:
                self.detector.told(p)
            if self.me in found.nodes:  # another must lead: it will hear nothing from us
                self._leave_for_good(Out(ending.attempt.number, self.me))
            else:
                self._end_view(tuple(p for p in ending.nodes if p not in found.nodes))
        elif isinstance(found, Minority):
            self._refuse(ending, found)
        else:
            self._prepare(ending, found)

    def _has_missed(self, newest: NodeReport) -> bool:
        """Was a view announced that did not come here?"""
        assert self.node_view is not None
        is_later = newest.view.number > self.node_view.number
        return is_later and newest.installed == self.installed and self.me in newest.view.pids

    def _refuse(self, ending: Ending, minority: Minority) -> None:
        self.ending = None
        self.refused = ending.nodes
        word = NoPrimary(ending.attempt, minority.ballot.number, minority.missing)
        others = tuple(p for p in ending.nodes if p != self.me)
        if others:
            self._tell(others, word)
        self._on_no_primary(word)

    def _prepare(self, ending: Ending, found: NextViews) -> None:
        ending.next = found
        ending.unready = set(ending.nodes)
        for p in ending.nodes:
            if p != self.me:
                prepare, frames = self._prepare_for(p, ending, found)
                self._tell((p,), prepare)
                for (gid, origin, n), kept in frames.items():
                    header = UnstableFrame(ending.attempt, gid, origin, n, kept.stamp)
                    self._tell((p,), header, kept.payload)
        prepare, self.union = self._prepare_for(self.me, ending, found)
        self._on_prepare(self.me, prepare)

    def _prepare_for(
        self, p: ProcessId, ending: Ending, found: NextViews
    ) -> tuple[PrepareView, Frames]:
        # The first node knows of all groups, whoever leads them, and wherever it is a member. Who
        # has not had its last view of one that ends hears of that.
        first = found.view.coordinator
        groups = tuple(
            view
            for gid, view in found.groups.items()
            if p in found.told[gid] or (view.senders and p in (first, view.leader))
        )
        frames = {key: kept for key, kept in found.union.items() if p in found.takers[key[0]]}
        view = found.view
        into = -1 if ending.into is None else ending.into
        return PrepareView(ending.attempt, view, groups, len(frames), into), frames

    def _on_ready(self, p: ProcessId, ready: ViewReady) -> None:
        ending = self.ending
        if ending is None or ending.next is None or ready.attempt != ending.attempt:
            return
        ending.unready.discard(p)
        if not ending.unready:
            others = tuple(p for p in ending.nodes if p != self.me)
            if others:
                self._tell(others, InstallView(ending.attempt))
            self._install()

    def _on_overruled(self, word: Overruled) -> None:
        """Others follow a higher attempt: if it fails, ours must be higher still."""
        if self.ending is not None and word.attempt == self.ending.attempt:
            if self.followed is None or word.followed.number > self.followed.number:
                self.followed = word.followed
            self.ending = None

    # -- a node -----------------------------------------------------------------------------------

    def _on_end(self, q: ProcessId, end: EndView) -> None:
        if self.out_of_it or self.me not in end.nodes or q != end.attempt.coordinator:
            return
        if self.retired:
            self._tell((q,), Depart(tuple(self.ballots)))
            return
        number = 0 if self.node_view is None else self.node_view.number
        if end.attempt.number <= number or (self.pids and q not in self.pids):
            return
        limit = self._taken_by_others(q, end.attempt)
        if limit is not None or not end.attempt.beats(self.followed):
            word = limit or self.followed
            if word is not None and end.attempt != self.followed:
                self._tell((q,), Overruled(end.attempt, word))
            return
        self.ending = None
        self._follow(q, end)

    def _taken_by_others(self, q: ProcessId, attempt: Attempt) -> Attempt | None:
        """The last of the numbers among which this one is, if they are not for q to give: a view
        that is in force or ready here is another's, who may have announced more."""
        ready = None if self.prepared is None else self.prepared.view
        for view in filter(None, (ready, self.node_view)):
            unused = first_unused(view.number)
            if attempt.number <= view.number or (view.coordinator != q and attempt.number < unused):
                return Attempt(unused - 1, attempt.rank, view.coordinator)
        return None

    def _follow(self, q: ProcessId, end: EndView) -> None:
        self._finish(end.finish, end.finish_view)
        self.followed = end.attempt
        self.stopped = True
        self.stop_groups()
        groups, frames = self.report_groups()
        # What is ready here may have been delivered elsewhere, by one that is dead now.
        frames = {**frames, **self.prepared_union}
        prepared = self.prepared
        report = NodeReport(
            end.attempt,
            self.installed,
            self.node_view or NodeView(0, (self.node,)),
            tuple(self.ballots),
            tuple(sorted(self.departed)),
            None if prepared is None else prepared.attempt,
            groups,
            len(frames),
            self.top_group,
            self.awaited_groups(),
        )
        self.preparing, self.union = None, {}
        if q == self.me:
            assert self.ending is not None
            self.ending.frames[self.me] = frames
            self._on_report(self.me, report)
            return
        self._tell((q,), report)
        for (gid, origin, n), kept in frames.items():
            header = UnstableFrame(end.attempt, gid, origin, n, kept.stamp)
            self._tell((q,), header, kept.payload)

    def _on_no_primary(self, word: NoPrimary) -> None:
        if word.attempt != self.followed or not self.stopped:  # another was installed meanwhile
            return
        blocked = Blocked(word.view, word.missing)
        if self.blocked != blocked:
            self.blocked = blocked
            self.effects.news.append(blocked)

    def _on_prepare(self, q: ProcessId, prepare: PrepareView) -> None:
        if prepare.attempt != self.followed or q != prepare.attempt.coordinator:
            return
        if not self.stopped:  # it is installed already
            return
        known = [known.attempt for known in (self.preparing, self.prepared) if known is not None]
        if prepare.attempt in known:
            return
        for group in prepare.groups:
            self._check_group(group.entry, group.guests)
        self.preparing = prepare
        self._say_ready()

    def _say_ready(self) -> None:
        prepare = self.preparing
        if prepare is None or len(self.union) < prepare.frames:
            return
        self.preparing, self.prepared = None, prepare
        self.prepared_union, self.union = self.union, {}
        self.ballots.append(ballot_of(prepare.view))
        ready = ViewReady(prepare.attempt)
        if prepare.attempt.coordinator == self.me:
            self._on_ready(self.me, ready)
        else:
            self._tell((prepare.attempt.coordinator,), ready)

    def _on_install(self, q: ProcessId, install: InstallView) -> None:
        prepared = self.prepared
        if prepared is None or install.attempt != self.followed:
            return
        if prepared.attempt == install.attempt and q == install.attempt.coordinator:
            self.detector.trust(q)  # all others followed it
            self._install()

    def _install(self) -> None:
        prepare, union = self.prepared, self.prepared_union
        assert prepare is not None, "only what is ready begins"
        if self.me not in prepare.view.pids:  # it cannot go on with the others
            if self.cluster_options.partition == "merge":
                self._leave_for_good(Out(prepare.view.number, prepare.attempt.coordinator))
            return  # it has voted, and stays until one that is in the view tells it to go
        self.preparing, self.prepared, self.prepared_union = None, None, {}
        self.ending, self.stopped, self.stopped_for = None, False, 0
        self.complaints = {}
        self.installed = prepare.attempt
        was_blocked, self.blocked, self.refused = self.blocked, None, ()
        if was_blocked is not None:
            self.effects.news.append(Resumed())
        before = self.pids
        if before[:1] != (self.me,) == prepare.view.pids[:1]:
            # A group may have been known only to those who are gone.
            self.first_number = prepare.view.number * VIEWS_PER_TERM
        self._put_in_force(prepare.view)
        self.ballots = [self._ballot()]
        self.begin_groups(prepare.groups, union)
        gone = tuple(p for p in before if p not in self.pids)
        for p in gone:
            self.forget_node(p)
        self.acks = {self.me}
        if prepare.view.coordinator != self.me:
            self._tell((prepare.view.coordinator,), NodesAck(prepare.view.number))
        else:
            self._note_held()
        if prepare.into >= 0:
            names = tuple(node.name for node in prepare.view.nodes)
            self._leave_for_good(Dissolved(prepare.into, names))
        else:
            self.repeat_wishes()
