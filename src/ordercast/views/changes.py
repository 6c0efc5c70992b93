"""One way to change groups: stop, report what is held, decide, fetch what is missing, go on.

Source      the flush that 003 assumes below TOTAL, and the configuration log that several
            sequencers of 000 need; one machine for both.
Guarantees  all nodes install the same changes, in the same order. All members of a group that go on
            from one view to the next deliver the same frames before it. Groups that have nothing to
            do with a change go on undisturbed.
Needs       agreed node views; reliable FIFO links between nodes for the packets of the cluster.
Costs       Stop, Report, Plan, Ready, Installed for each node that takes part; Plan, Ready,
            Installed for each voter; Install for all. No body travels through the coordinator; each
            is fetched by who lacks it from who has it.

    somebody wants in, out, a move; a node is gone     the coordinator has a goal: the next rows
    the goal                  STOP(scope) to who takes part; in a new term, to all
    STOP at p                 sequencers in scope stop numbering;  REPORT what is held
    all have reported         somebody has an installed change that others lack: INSTALL it, again
                              all have prepared one and the same change, and a majority decides:
                              INSTALL it, again
                              a group is stopped that is not in scope, or one in scope hangs on
                              it: again, with it
                              else decide: where the eras end, who is in the next;  PLAN
    PLAN at p                 fetch what is missing;  when everything is here: READY
    all are ready             INSTALL to all
    INSTALL at p              deliver the rest, begin the eras;  who took part: INSTALLED
    all have said so          the next change

The coordinator of the node view leads, one change at a time. If a node goes, the term ends: what is
under way is void, and whoever coordinates then asks all nodes, so it learns what was installed.
Who took part in a change has installed it before the next one is planned. So a node that lags
behind lacks only changes in which it had no part: for it the rows are enough.

The voters of the node view take part in every change, as witnesses of it, also if they have none of
its groups. A coordinator that is cut off installs nothing: those who go on without it are voters,
and were not ready. What it has installed they know, even if nobody else who knows of it is left.

Everybody waits for the change that is under way. Whoever lives and does not answer in it is given
up by the coordinator (`holds_up`), as one that is silent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ordercast.core.changing import Changing, End, Ending, Held, NextEra
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import ViewNumbers
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry, NodeView, won
from ordercast.views import plausible
from ordercast.views.ahead import Ahead
from ordercast.views.attempt import Attempt
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import (
    AskRows,
    Change,
    Install,
    Installed,
    LeaveConfirmed,
    Load,
    Next,
    Plan,
    Ready,
    Report,
    Row,
    Rows,
    Stop,
    WantDrained,
    WantIn,
    WantMoved,
    WantOut,
    WantRefounded,
)
from ordercast.views.states import COORDINATING, TAKING_PART, Lead, Stage, follows
from ordercast.views.table import TABLE, Rule, Says
from ordercast.views.target import Pages, Target, told

SHARE = {"strong": 2, "weak": 1}  # members that groups with one sequencer share
HOLD_UP = 5  # times the timeout of a silent node: so long a change waits for the word of one


class Groups(Protocol):
    """What a node has of its groups, as far as a change needs it."""

    def page(self, protocol: str) -> type[OrderingProtocol]:
        """The protocol of that name; a `PeerError` if it is not built in."""

    def machine(self, g: GroupId, entry: GroupEntry | None) -> Changing | None:
        """The machine that serves this group here, if it is open: one with this entry, if any."""

    def machines(self) -> Iterable[Changing]:
        """All machines."""

    def view_of(self, row: Row, end: End | None = None) -> View:
        """A row as its machine sees it, after an era that ended so."""

    def mistaken(self, entry: GroupEntry) -> None:
        """There is no such group: another one has its number, or its name. The driver asks anew."""

    def dissolved(self) -> None:
        """The last change of this side is installed: all groups have ended."""

    def begin(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras end, and the next ones begin, at all machines concerned."""

    def forget(self, forgotten: Iterable[GroupId]) -> None:
        """The directory has no rows of these groups any more, since nobody was in them."""

    def send(self, to: tuple[ProcessId, ...], header: msgspec.Struct) -> None:
        """A packet of the cluster."""

    def blame(self, p: ProcessId, why: str) -> None:
        """A packet of p that was kept for later breaks the protocol."""


class Changes(PlainState):
    """One node's part in changes, and the coordinator's."""

    def __init__(
        self,
        me: ProcessId,
        stride: int = 1,
        refound_ticks: int = 1 << 30,
        timeout_ticks: int = 1 << 30,
        max_groups: int = plausible.MAX_GROUPS,
    ) -> None:
        self.me = me
        self.max_groups = max_groups
        self.term = 0
        self.nodes: dict[ProcessId, NodeEntry] = {}  # of the node view
        self.coordinator: ProcessId = -1
        self.voters: tuple[ProcessId, ...] = ()  # of the node view; none where every side goes on
        self.votes = stride == 1
        self.gone: dict[ProcessId, NodeEntry] = {}  # went without a word; rows still name them
        self.dissolving = False  # this side ends in order: one last change, of all groups
        self.directory = Directory()
        self.wants: dict[GroupId, WantIn] = {}  # groups this node wants to be in, while it does
        self.unmet: set[GroupId] = set()  # ... and is not; or is in, and does not want to be
        self.leaves = 0  # of groups that had not let this node in: so often it wanted that
        self.unconfirmed: dict[GroupId, int] = {}  # ... the number of such a wish, until it is so
        self.done = 0  # the last change that is installed here
        self.newest: Change | None = None  # ... itself
        self.prepared: Change | None = None
        self.stage = Stage.UNTOLD
        self.planner: tuple[ProcessId, int] = (-1, 0)  # who planned it, in which attempt
        self.ahead = Ahead()  # packets of a term that has not begun here
        self.local: deque[Any] = deque()  # packets of this node to itself
        # as the coordinator
        self.target = Target(me, stride, refound_ticks)
        self.lead = Lead.IDLE
        self.anew = False  # not known yet whether all have installed the same changes in this term
        self.lossy_since = 0  # the term before which packets were lost; 0: a change of all groups
        # was planned in it, or in a later one, and is installed
        self.now = Attempt(0)  # the one that is under way, or was the last
        self.halted: set[GroupId] = set()  # stopped, and not begun again
        self.patience = HOLD_UP * timeout_ticks
        self.waiting: tuple[int, tuple[ProcessId, ...]] = (0, ())  # attempt, for whom; at last tick
        self.waited = 0  # ticks since anybody answered
        self.counts: dict[str, dict[GroupId, dict[ProcessId, int]]] = {}  # requests in this window

    @property
    def leads(self) -> bool:
        """Does this node coordinate?"""
        return self.coordinator == self.me

    def _turn(self, lead: Lead) -> None:
        assert follows(COORDINATING, self.lead, lead), f"{self.lead.name} to {lead.name}"
        self.lead = lead

    def _come_to(self, stage: Stage) -> None:
        assert follows(TAKING_PART, self.stage, stage), f"{self.stage.name} to {stage.name}"
        self.stage = stage

    # -- node views -------------------------------------------------------------------------------

    def begin_view(self, groups: Groups, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        """A node view is in force; these were in the one before, and did not leave."""
        before = self.nodes
        self.nodes = {node.pid: node for node in view.nodes}
        self.coordinator = view.coordinator
        self.voters = view.voters if self.votes else ()
        self.dissolving = view.into >= 0
        stride = self.target.numbers.stride
        self.target.numbers = ViewNumbers.of(view.id.generation, view.id.fork, stride)
        if view.term == self.term:
            new = [node for node in view.nodes if node.pid not in before]
            if self.leads:
                self._send_rows(groups, [node.pid for node in new])
                self.target.arrived(self.directory, new, groups.page)
                self._lead_if_idle(groups)
        else:
            self._begin_term(groups, view, excluded)
        self.run_local(groups)

    def _begin_term(self, groups: Groups, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        # Two die one after the other, the second before the change that buries the first is
        # installed. Both must be known then: an empty group waits for those who were in it.
        known = {p: node for p, node in self.gone.items() if p in self.directory.of}
        self.gone = known | {node.pid: node for node in excluded}
        self.term = view.term
        self._turn(Lead.IDLE)
        # A change that all have prepared is adopted, against a target of now.
        self.now = Attempt(self.now.number)
        self.halted = set()
        if view.anew:  # else it may be due still: whoever was to lead that change is gone
            self.lossy_since = view.term
        self.anew = self.leads
        if self.leads:
            self._aim_anew(groups)
            self._ask(groups)
        else:
            self.press(groups)
        for src, header in self.ahead.take():
            if src in self.nodes:
                self._take_kept(groups, src, header)

    def _take_kept(self, groups: Groups, src: ProcessId, header: Any) -> None:
        """A packet that came before its term. A fault in it is that of its sender, and no reason
        for this term not to begin: whoever told us of the view has said nothing wrong."""
        try:
            self._take(groups, src, header)
        except PeerError as fault:
            groups.blame(src, str(fault))

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, groups: Groups, src: ProcessId, header: msgspec.Struct) -> None:
        """A packet about changes, from a node of the view."""
        self._take(groups, src, header)
        self.run_local(groups)

    def run_local(self, groups: Groups) -> None:
        """Take the packets of this node to itself."""
        while self.local:
            self._take(groups, self.me, self.local.popleft())

    def _send(self, groups: Groups, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        others = tuple(p for p in to if p != self.me)
        if others:
            groups.send(others, header)
        if self.me in to:
            self.local.append(header)

    def _take(self, groups: Groups, src: ProcessId, header: Any) -> None:
        rule = TABLE.get(type(header))
        if rule is None:
            raise PeerError(f"{type(header).__name__} is no word of a change")
        term = getattr(header, "term", self.term)
        if term > self.term:
            self.ahead.keep(src, header)
        elif term == self.term and src in self.nodes and self._counts(rule):
            if not self._may_say(rule.says, src):
                raise PeerError(f"{type(header).__name__} comes from {rule.says.value} only")
            getattr(self, rule.handler)(groups, src, header)

    def _counts(self, rule: Rule) -> bool:
        """Is a word of this kind waited for, in the state of this node?"""
        return not rule.states or (self.leads and self.lead in rule.states)

    def _may_say(self, says: Says, src: ProcessId) -> bool:
        """Does the sender of a word have the part that it takes?"""
        if says is Says.COORDINATOR:
            return src == self.coordinator
        if says is Says.ASKED:
            return src in self.now.asked or src in self.now.reports
        if says is Says.PLANNED:
            return self.now.planned is not None and src in self.now.planned.who
        if says is Says.INSTALLING:
            return src == self.me or (self.newest is not None and src in self.newest.who)
        if says is Says.ROWS:
            return src == self.coordinator or (self.leads and src == self.now.rows_from)
        assert says is Says.NODE
        return True

    # -- what this node wants ---------------------------------------------------------------------

    def want_in(self, groups: Groups, want: WantIn) -> None:
        """Be in a group. It is said at once, also if it is so: a leave may be under way."""
        g = want.group.gid
        self.wants[g] = want
        self.unconfirmed.pop(g, None)
        self._say(groups, want)

    def wants_to_be_member(self, g: GroupId) -> bool:
        """Is this node a member of the group, or asks to be one?"""
        want = self.wants.get(g)
        return want is not None and want.part == "member"

    def want_out(self, groups: Groups, g: GroupId) -> None:
        """Be out of a group. It is said at once, also if it is so: a join may be under way. Then
        the change that lets this node in may be, too, and the coordinator says when none is.
        Should it take this node in, it is in a group that it does not want to be in, and says so.
        """
        self.wants.pop(g, None)
        if self.is_out(g):
            self.leaves += 1
            self.unconfirmed[g] = self.leaves
        self._say(groups, self._word_out(g))

    def _word_out(self, g: GroupId) -> WantOut:
        return WantOut(g, self.unconfirmed.get(g, 0))

    def _say(self, groups: Groups, wish: WantIn | WantOut) -> None:
        g = wish.gid if isinstance(wish, WantOut) else wish.group.gid
        self._compare(groups, (g,))
        if self.nodes:
            self._send(groups, (self.coordinator,), wish)
        self.run_local(groups)

    def ask_coordinator(self, groups: Groups, wish: msgspec.Struct) -> None:
        """Of the driver: a move, a drain, a group that is to begin again."""
        self._send(groups, (self.coordinator,), wish)
        self.run_local(groups)

    def press(self, groups: Groups) -> None:
        """Ask the coordinator again for what is not so yet."""
        for g in sorted(self.unmet) if self.nodes else ():
            self._send(groups, (self.coordinator,), self.wants.get(g) or self._word_out(g))

    def tick(self, groups: Groups) -> None:
        """One heartbeat."""
        self._look_who_answers()
        self.press(groups)
        if self.leads and self.target.tick(self.directory, groups.page):
            self._lead_if_idle(groups)
        self.run_local(groups)

    def waits_for(self) -> tuple[ProcessId, ...]:
        """At the coordinator: whose word the change that is under way lacks."""
        lacking = {
            Lead.IDLE: set(),
            Lead.ASKING: self.now.asked,
            Lead.CATCHING_UP: {self.now.rows_from},
            Lead.PREPARING: self.now.unready,
            Lead.INSTALLING: self.now.uninstalled,
        }
        return tuple(sorted(lacking[self.lead]))

    def is_pressing(self) -> bool:
        """At the coordinator: does anything stand still until those have answered whose word is
        lacking? That a change is installed, only the next one must know."""
        if self.lead is Lead.INSTALLING:
            return self.anew or bool(self.halted) or self.target.is_due(self.directory)
        return bool(self.waits_for())

    def holds_up(self) -> tuple[ProcessId, ...]:
        """Others whose word has been waited for all too long, while nobody else answered."""
        late = self.waiting[1] if self.waited >= self.patience else ()
        return tuple(p for p in late if p != self.me)

    def _look_who_answers(self) -> None:
        waiting = (self.now.number, self.waits_for())
        self.waited = self.waited + 1 if waiting == self.waiting and waiting[1] else 0
        self.waiting = waiting

    def _compare(self, groups: Groups, changed: Iterable[GroupId]) -> None:
        """Which wishes are met, after these groups changed. A wish is no event but a state: if a
        change that was planned before it takes it back, it is unmet again. Nobody need remember
        where it does not want to be: that is every group that it does not want to be in."""
        for g in changed:
            want = self.wants.get(g)
            if not self.is_out(g):  # it was let in all the same: the view without it will tell
                self.unconfirmed.pop(g, None)
            if self.is_out_for_good(g) if want is None else self.is_in(groups, want):
                self.unmet.discard(g)
            else:
                self.unmet.add(g)

    def _drop_mistaken(self, groups: Groups) -> None:
        """A coordinator gave a number for a group, and was gone before the group was founded. The
        next one has given that number to another group, or another number to this one."""
        for g in sorted(self.unmet.intersection(self.wants)):
            entry = self.wants[g].group
            if self.directory.contradicts(entry):
                del self.wants[g]
                self.unmet.discard(g)
                groups.mistaken(entry)

    def is_in(self, groups: Groups, want: WantIn) -> bool:
        """Is what this node wants so already?"""
        row = self.directory.rows.get(want.group.gid)
        if row is None or row.entry != want.group:
            return False
        if want.part == "member":
            return self.me in row.members
        placed = groups.page(row.entry.protocol).together is not None
        return self.me not in row.members and (placed or self.me in row.guests)

    def is_out(self, g: GroupId) -> bool:
        """Is this node out of the group?"""
        row = self.directory.rows.get(g)
        return row is None or self.me not in (*row.members, *row.guests)

    def is_out_for_good(self, g: GroupId) -> bool:
        """... and no change that is under way can let it in, as long as it does not ask again?"""
        return self.is_out(g) and g not in self.unconfirmed and g not in self.wants

    # -- the coordinator --------------------------------------------------------------------------

    def _on_want_in(self, groups: Groups, src: ProcessId, want: WantIn) -> None:
        plausible.entry(want.group, groups.page)
        plausible.guests((src,) if want.part == "guest" else (), want.group, groups.page)
        plausible.bounded("remembered view", want.memory, 0)
        known = self.target.of_number(self.directory, want.group.gid)
        known = known or self.target.of_name(self.directory, want.group.name)
        groups_now = max(len(self.directory.rows), len(self.target.aims))
        if known is None and groups_now >= plausible.MAX_GROUPS:
            raise PeerError(f"there are {plausible.MAX_GROUPS} groups already")
        if known is None and self.target.count(self.directory) >= self.max_groups:
            return  # the driver that asks for its number is told so
        if known is None or known == want.group:  # else it sees itself what the group is
            self.target.want_in(self.directory, src, want, groups.page)
            self._lead_if_idle(groups)

    def _on_want_out(self, groups: Groups, src: ProcessId, want: WantOut) -> None:
        plausible.bounded("number of a wish", want.number, 0)
        self.target.want_out(self.directory, src, want.gid, groups.page)
        self._lead_if_idle(groups)
        if want.number and self._is_named_nowhere(src, want.gid):
            self._send(groups, (src,), LeaveConfirmed(self.term, want.gid, want.number))

    def _is_named_nowhere(self, p: ProcessId, g: GroupId) -> bool:
        """Is p neither in the group nor in what becomes of it? While it is not known what all have
        prepared, that may be a change which names p."""
        decided = self.lead in (Lead.IDLE, Lead.INSTALLING)
        rows = (self.directory.rows.get(g), None if decided else self.now.goal.get(g))
        named = any(row is not None and p in (*row.members, *row.guests) for row in rows)
        return not (named or self.anew)

    def _on_want_moved(self, groups: Groups, src: ProcessId, want: WantMoved) -> None:
        if self.target.migrate(self.directory, want.gid, want.to):
            self._lead_if_idle(groups)

    def _on_want_drained(self, groups: Groups, src: ProcessId, want: WantDrained) -> None:
        self.target.drain(self.directory, want.pid, drained=want.drained)
        self._lead_if_idle(groups)

    def _on_want_refounded(self, groups: Groups, src: ProcessId, want: WantRefounded) -> None:
        self.target.refound(self.directory, want.gid, groups.page)
        self._lead_if_idle(groups)

    def _on_load(self, groups: Groups, src: ProcessId, load: Load) -> None:
        for g, p, count in load.counts:
            plausible.bounded("count of requests", count, 0)
            row = self.directory.rows.get(g)
            if row is not None and row.leader == src and p in self.nodes:
                counted = self.counts.setdefault(row.entry.protocol, {}).setdefault(g, {})
                counted[p] = counted.get(p, 0) + count

    def balance(self, groups: Groups, seconds: float) -> None:
        """At the coordinator: a window ended."""
        counts, self.counts = self.counts, {}
        if self.leads and self.lead is Lead.IDLE:
            self.target.balance(self.directory, counts, seconds)
            self._lead_if_idle(groups)
            self.run_local(groups)

    def unburden(self, groups: Groups, p: ProcessId) -> bool:
        """p wants to leave the cluster; True when nobody needs it there.

        A group that nobody is in needs no sequencer: if two who want to leave are the last, each
        would give it to the other one, for ever.
        """
        rows = [self.directory.rows[g] for g in self.directory.of.get(p, ())]
        needed = [row for row in rows if row.members or row.guests]
        numbers = any(row.leader == p for row in needed)
        if numbers and self.leads:  # else whoever coordinates after the next view does it
            self.target.drain(self.directory, p, drained=True)
            self._lead_if_idle(groups)
            self.run_local(groups)
        return not needed

    def _lead_if_idle(self, groups: Groups) -> None:
        if self.lead is Lead.IDLE:
            self._ask(groups)

    def _ask(self, groups: Groups) -> None:
        """Lead a change, if anything should change."""
        if self.anew and self.lossy_since:
            self.halted |= set(self.directory.rows)
        goal = self.target.next_rows(self.directory, self.halted, groups.page)
        if not (goal or self.anew):
            self._turn(Lead.IDLE)
            self.now = Attempt(self.now.number)
            return
        self.halted |= set(goal)
        self._turn(Lead.ASKING)
        asked = self.nodes if self.anew else self._concerned(goal)
        self.now = Attempt(self.now.number + 1, goal, asked)
        stop = Stop(self.term, self.now.number, tuple(goal), self.anew)
        self._send(groups, sorted(self.now.asked), stop)

    def _concerned(self, goal: Mapping[GroupId, Row]) -> list[ProcessId]:
        """Everybody who takes part: in the groups as they are, and as they will be."""
        before = (self.directory.rows[g] for g in goal if g in self.directory.rows)
        everybody = told((*before, *goal.values()))
        return [p for p in everybody if p in self.nodes] or [self.me]

    def _on_report(self, groups: Groups, src: ProcessId, report: Report) -> None:
        plausible.bounded("attempt", report.attempt, 0, self.now.number)
        if report.attempt != self.now.number or src not in self.now.asked:
            return  # of an attempt that was given up, or said twice
        plausible.report(
            report, self.done, self.now.goal, self.directory, groups.page, self.target.numbers,
            anew=self.anew,
        )  # fmt: skip
        self.now.asked.discard(src)
        self.now.reports[src] = report
        if not self.now.asked:
            self._resolve(groups)

    def _resolve(self, groups: Groups) -> None:
        """All have reported. As long as somebody lacks a change, or must finish one, all are asked
        again after it: two who lag behind may lack different ones."""
        reports = self.now.reports
        stopped = {g for report in reports.values() for g in report.stopped}
        self.halted |= stopped.intersection(self.directory.rows)
        source, newest = max(reports.items(), key=lambda item: item[1].done)
        if newest.done > self.done + 1:  # this node had no part in what it lacks
            self._turn(Lead.CATCHING_UP)
            self.now.rows_from = source
            self._send(groups, (source,), AskRows(self.term))
            return
        behind = [p for p, report in reports.items() if report.done < newest.done]
        if newest.done > self.done or self._bring_up(groups, newest, behind):
            self._finish(groups, newest)
            return
        adopted = self._prepared_by_all()
        if adopted is not None:
            self._install_everywhere(groups, adopted)
            return
        endings = self._endings()
        for protocol, of_it in endings.items():
            self.halted |= groups.page(protocol).hangs_on(of_it).intersection(self.directory.rows)
        if self.halted - set(self.now.goal):
            self._ask(groups)
            return
        self.anew = False
        if self.now.goal or self.dissolving:
            self._plan(groups, self._decide(groups, endings))
        else:
            self._turn(Lead.IDLE)
            self._lead_if_idle(groups)

    def _bring_up(self, groups: Groups, newest: Report, behind: list[ProcessId]) -> bool:
        """Those who lag behind have had no part in what they lack, but for the last change: True if
        one of them must install that first."""
        change = newest.newest
        lacking = [p for p in behind if change is not None and p in change.who]
        self._send_rows(groups, [p for p in behind if p not in lacking])
        return bool(lacking)

    def _finish(self, groups: Groups, newest: Report) -> None:
        """Somebody has a change that others lack, who took part in it; or this node does."""
        change = newest.newest
        assert change is not None
        stopped = {
            g for r in self.now.reports.values() if r.done == newest.done for g in r.stopped
        }  # in the era that this change began
        self._install_everywhere(groups, change, again=stopped)

    def _prepared_by_all(self) -> Change | None:
        """A change for which everybody who lives is ready: one that is gone may have installed it,
        and shown its views. Where every side goes on, it may as well have planned another one
        since, with views of the same numbers; then each side goes its own way. So may those who
        were lost before a recovery: what was planned before it is void."""
        if not self.votes:
            return None
        for report in self.now.reports.values():
            change = report.prepared
            if change is None or change.number != self.done + 1:
                continue
            if not self._is_of_this_lineage(change):
                continue
            part = [r for p, r in self.now.reports.items() if p in change.who]
            complete = set(change.who).intersection(self.nodes) <= set(self.now.reports)
            if complete and all(r.prepared and r.prepared.name == change.name for r in part):
                return change
        return None

    def _is_of_this_lineage(self, change: Change) -> bool:
        """Was it planned since the cluster was last recovered?"""
        low = self.target.numbers.low
        return all(coming.row.number >= low for coming in change.groups)

    def _endings(self) -> dict[str, dict[GroupId, Ending]]:
        """By protocol: the groups that change, and what was reported of them."""
        by_protocol: dict[str, dict[GroupId, Ending]] = {}
        nodes = frozenset(self.nodes)
        held_of: dict[GroupId, dict[ProcessId, Held]] = {}
        for p, report in self.now.reports.items():
            for g, said in report.held:
                held_of.setdefault(g, {})[p] = said
        for g, row in self.now.goal.items():
            before = self.directory.rows.get(g)
            concerned = () if before is None else before.concerned
            dead = frozenset(p for p in concerned if p not in self.nodes)
            era = 0 if before is None else before.era
            ending = Ending(era, held_of.get(g, {}), dead, nodes)
            by_protocol.setdefault(row.entry.protocol, {})[g] = ending
        return by_protocol

    def _decide(self, groups: Groups, endings: Mapping[str, Mapping[GroupId, Ending]]) -> Change:
        """The ends of the eras, from the reports alone."""
        ends: dict[GroupId, End] = {}
        for protocol, of_it in endings.items():
            ends.update(groups.page(protocol).decide(of_it))
        nexts = tuple(Next(row, ends[g]) for g, row in self.now.goal.items())
        part = tuple(self.nodes) if self.dissolving else self._concerned(self.now.goal)
        who = tuple(dict.fromkeys((*part, *self.voters)))
        return Change(self.done + 1, (self.term, self.now.number), nexts, who)

    def _plan(self, groups: Groups, change: Change) -> None:
        self._turn(Lead.PREPARING)
        self.now.planned = change
        self.now.unready = set(change.who)
        self._send(groups, change.who, Plan(self.term, self.now.number, change))

    def _on_ready(self, groups: Groups, src: ProcessId, ready: Ready) -> None:
        if ready.attempt == self.now.number:
            self.now.unready.discard(src)
            if not self.now.unready:
                assert self.now.planned is not None
                if self._is_witnessed(self.now.planned):
                    self._install_everywhere(groups, self.now.planned)
                else:  # others vote by now
                    self._ask(groups)

    def _is_witnessed(self, change: Change) -> bool:
        return not self.voters or won(change.who, self.voters)

    def _install_everywhere(
        self, groups: Groups, change: Change, again: Iterable[GroupId] = ()
    ) -> None:
        self._turn(Lead.INSTALLING)
        begun = {coming.row.entry.gid for coming in change.groups}
        self.halted = (self.halted - begun) | set(again)
        # This node, too, although it may have no part in it: what comes next is aimed at from here.
        self.now.uninstalled = set(change.who).intersection(self.nodes) | {self.me}
        self.now.number += 1
        self._send(groups, tuple(self.nodes), Install(self.term, change))

    def _on_installed(self, groups: Groups, src: ProcessId, word: Installed) -> None:
        if word.number == self.done:
            self.now.uninstalled.discard(src)
            if not self.now.uninstalled:
                self._turn(Lead.IDLE)
                self._ask(groups)

    def _send_rows(self, groups: Groups, to: Sequence[ProcessId]) -> None:
        if to:
            rows = tuple(self.directory.rows.values())
            floor = self.directory.floor
            self._send(groups, tuple(to), Rows(self.term, self.done, self.newest, rows, floor))

    # -- a node -----------------------------------------------------------------------------------

    def _on_stop(self, groups: Groups, src: ProcessId, stop: Stop) -> None:
        held: list[tuple[GroupId, Held]] = []
        for g in stop.scope:
            row = self.directory.rows.get(g)
            machine = groups.machine(g, None if row is None else row.entry)
            if machine is not None:
                machine.stop((g,))
                said = machine.report(g)
                if said is not None:
                    held.append((g, said))
        stopped = tuple(g for machine in groups.machines() for g in machine.stopped())
        ready = self.prepared if self.stage is Stage.READY and stop.anew else None
        newest = self.newest if stop.anew else None
        report = Report(self.term, stop.attempt, self.done, newest, ready, stopped, tuple(held))
        self._send(groups, (src,), report)
        if stop.anew:  # what a coordinator was told before it knew all changes counts no more
            self.press(groups)

    def _on_plan(self, groups: Groups, src: ProcessId, plan: Plan) -> None:
        if plan.change.number != self.done + 1:
            return
        self._check_change(groups, plan.change)
        self._come_to(Stage.FETCHING)
        self.prepared = plan.change
        self.planner = (src, plan.attempt)
        for machine in groups.machines():
            machine.unprepare()
        for machine, nexts in self._by_machine(groups, plan.change):
            machine.prepare(nexts)
        self.look_whether_ready(groups)

    def _by_machine(self, groups: Groups, change: Change) -> list[tuple[Changing, list[NextEra]]]:
        found: dict[int, tuple[Changing, list[NextEra]]] = {}
        for coming in change.groups:
            machine = groups.machine(coming.row.entry.gid, coming.row.entry)
            if machine is not None:
                nexts = found.setdefault(id(machine), (machine, []))[1]
                nexts.append(self._next_era(groups, coming))
        return list(found.values())

    def _next_era(self, groups: Groups, coming: Next) -> NextEra:
        before = self.directory.rows.get(coming.row.entry.gid)
        return NextEra(
            groups.view_of(coming.row, coming.end),
            coming.end,
            None if before is None else groups.view_of(before),
        )

    def look_whether_ready(self, groups: Groups) -> None:
        """Something came that a change may have waited for."""
        change = self.prepared
        if change is None or self.stage is not Stage.FETCHING:
            return
        for coming in change.groups:
            g = coming.row.entry.gid
            machine = groups.machine(g, coming.row.entry)
            if machine is not None and not machine.is_ready(g, coming.end):
                return
        self._come_to(Stage.READY)
        planner, attempt = self.planner
        self._send(groups, (planner,), Ready(self.term, attempt))
        self.run_local(groups)

    def _on_install(self, groups: Groups, src: ProcessId, install: Install) -> None:
        change = install.change
        if change.number == self.done + 1:
            self._check_change(groups, change)
            self._check_ready(groups, change)
            self._install(groups, change)
        if (self.leads or self.me in change.who) and change.number <= self.done:
            self._send(groups, (src,), Installed(self.term, change.number))
        if self.dissolving and change.name[0] == self.term:
            groups.dissolved()

    def _check_change(self, groups: Groups, change: Change) -> None:
        """Can this be the next change, as far as this node knows?"""
        plausible.change(change, self.directory, groups.page, self.target.numbers)
        for machine, nexts in self._by_machine(groups, change):
            machine.check_ends(nexts)

    def _check_ready(self, groups: Groups, change: Change) -> None:
        for coming in change.groups:
            machine = groups.machine(coming.row.entry.gid, coming.row.entry)
            if machine is not None and not machine.is_ready(coming.row.entry.gid, coming.end):
                raise PeerError(f"change {change.number} is decided, and frames are missing here")

    def _install(self, groups: Groups, change: Change) -> None:
        self.done, self.newest = change.number, change
        self._renewed_by(change)
        self._come_to(Stage.UNTOLD)
        self.prepared = None
        nexts = [self._next_era(groups, coming) for coming in change.groups]
        for coming in change.groups:
            self.directory.put(coming.row)
        self._drop_mistaken(groups)
        if self.leads and change is self.now.planned:
            rows = [coming.row for coming in change.groups]
            self.target.installed(self.directory, rows, groups.page)
        elif self.leads:  # wishes were held against other rows; those who have any repeat them
            self._aim_anew(groups)
        begun = {coming.row.entry.gid for coming in change.groups}
        for machine in groups.machines():
            machine.unprepare(begun)
        groups.begin(change.number, nexts)
        self._compare(groups, begun)
        forgotten = self.directory.prune()  # at last: a group of this change may be among them
        self.target.forget(forgotten)
        groups.forget(forgotten)

    def _renewed_by(self, change: Change) -> None:
        """A change that was planned since packets were lost, if they were, is of all groups."""
        if change.name[0] >= self.lossy_since:
            self.lossy_since = 0

    def _aim_anew(self, groups: Groups) -> None:
        nodes = tuple(self.nodes.values())
        self.target.begin(self.directory, nodes, self.gone, groups.page)

    def _on_rows(self, groups: Groups, src: ProcessId, rows: Rows) -> None:
        """A directory for one that has none, or an old one."""
        plausible.rows(rows, self.done, self.directory, groups.page, self.target.numbers)
        if rows.number < self.done or (rows.number == self.done and self.done):
            return
        self.done, self.newest = rows.number, rows.newest
        if rows.newest is not None:
            self._renewed_by(rows.newest)
        self._come_to(Stage.UNTOLD)
        self.prepared = None
        for machine in groups.machines():
            machine.unprepare()
        known = self.directory.rows
        nexts = [
            NextEra(groups.view_of(row), groups.page(row.entry.protocol).nothing_held())
            for row in rows.rows
            if known.get(row.entry.gid) != row
        ]
        self.directory.replace(rows.rows, rows.floor)
        self._drop_mistaken(groups)
        groups.begin(rows.number, nexts)
        groups.forget([g for g in known if g not in self.directory.rows])
        part_in = self.directory.of.get(self.me, ())
        self._compare(groups, (*self.wants, *self.unmet, *part_in))
        if self.lead is Lead.CATCHING_UP:
            self._aim_anew(groups)
            self._ask(groups)
        else:
            self.press(groups)

    def _on_leave_confirmed(self, groups: Groups, src: ProcessId, word: LeaveConfirmed) -> None:
        if self.unconfirmed.get(word.gid) == word.number:
            del self.unconfirmed[word.gid]
            self._compare(groups, (word.gid,))

    def _on_ask_rows(self, groups: Groups, src: ProcessId, ask: AskRows) -> None:
        self._send_rows(groups, (src,))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        assert self.lead is Lead.IDLE or self.leads, "only the coordinator leads"
        if self.prepared is not None:
            assert self.prepared.number == self.done + 1, "only the next change is prepared"
        untold = self.stage is Stage.UNTOLD
        assert untold == (self.prepared is None), "what is prepared was planned"
        if self.newest is not None:
            assert self.newest.number == self.done, "the newest change is the last one"
        part_in = self.directory.of.get(self.me, ())
        assert self.unmet <= {*self.wants, *self.unconfirmed, *part_in}, (
            "unmet is what is wanted, or has this node"
        )
        assert self.unmet.issuperset(self.unconfirmed), (
            "what is to be confirmed is said until it is"
        )
        nodes = set(self.nodes)
        if self.lead is Lead.ASKING:
            assert self.now.asked and self.now.asked <= nodes, "asks somebody"
            assert set(self.now.goal) <= self.halted, "what is stopped begins again"
            for g, row in self.now.goal.items():
                before = self.directory.rows.get(g)
                era = self.directory.floor if before is None else before.era
                assert row.era == era + 1, "what is aimed at follows what stands"
        elif self.lead is Lead.CATCHING_UP:
            assert self.anew and self.now.rows_from in nodes, (
                "asks somebody for rows, in a new term"
            )
        elif self.lead is Lead.PREPARING:
            assert self.now.planned is not None and self.now.planned.number == self.done + 1, (
                "planned next"
            )
            assert self.now.unready and self.now.unready <= nodes, "waits for somebody who is there"
        elif self.lead is Lead.INSTALLING:
            assert self.now.uninstalled and self.now.uninstalled <= nodes, (
                "waits for somebody who is there"
            )
        else:
            assert not (self.leads and self.halted), "nothing stays stopped"
            earlier = list(self.target.of_earlier_lineages(self.directory))
            assert not (self.leads and earlier), "views are numbered in this lineage"
        for row in self.directory.rows.values():
            highest = self.target.numbers.highest(row.era)
            assert row.number <= highest, "eras limit numbers of views"
        self.ahead.invariants()
        self.directory.invariants()
        if self.leads:
            self.target.invariants(self.directory)

    def check_placement(self, pages: Pages) -> None:
        """Of the directory: groups that meet have one sequencer; no frame is at one node alone."""
        rows = tuple(self.directory.rows.values())
        for row in rows:
            page = pages(row.entry.protocol)
            stay = set(self.nodes) - self.target.draining
            alone = page.copies_frames and row.members == (row.leader,) and len(stay) > 1
            settled = self.leads and self.lead is Lead.IDLE
            assert not (alone and settled), "the only member does not number itself"
            share = SHARE.get(page.together or "none", 0)
            for other in rows if share else ():
                meet = len(set(row.members).intersection(other.members)) >= share
                same = row.entry.protocol == other.entry.protocol
                assert not (meet and same) or row.leader == other.leader, "S1, S2"
