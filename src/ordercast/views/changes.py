"""One way to change groups: stop, report what is held, decide, fetch what is missing, go on.

Source      the flush that 003 assumes below TOTAL, and the configuration log that several
            sequencers of 000 need; one machine for both.
Guarantees  all nodes install the same changes, in the same order. All members of a group that go on
            from one view to the next deliver the same frames before it. Groups that have nothing to
            do with a change go on undisturbed.
Needs       agreed node views; reliable FIFO links between nodes for the packets of the cluster.
Costs       Stop, Report, Plan, Ready, Installed for each node that takes part; Install for all. No
            body travels through the coordinator; each is fetched by who lacks it from who has it.

    somebody wants in, out, a move; a node is gone     the coordinator has a goal: the next rows
    the goal                  STOP(scope) to who takes part; in a new term, to all
    STOP at p                 sequencers in scope stop numbering;  REPORT what is held
    all have reported         somebody has an installed change that others lack: INSTALL it, again
                              all have prepared one and the same change: INSTALL it, again
                              a group is stopped that is not in scope: again, with it
                              else decide: where the eras end, who is in the next;  PLAN
    PLAN at p                 fetch what is missing;  when everything is here: READY
    all are ready             INSTALL to all
    INSTALL at p              deliver the rest, begin the eras;  who took part: INSTALLED
    all have said so          the next change

The coordinator of the node view leads, one change at a time. If a node goes, the term ends: what is
under way is void, and whoever coordinates then asks all nodes, so it learns what was installed.
Who took part in a change has installed it before the next one is planned. So a node that lags
behind lacks only changes in which it had no part: for it the rows are enough.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ordercast.core.changing import End, Ending, Held, NextEra
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.membership.nodes import GroupEntry
from ordercast.views.directory import Directory
from ordercast.views.headers import (
    AskRows,
    Change,
    Install,
    Installed,
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
from ordercast.views.target import Target, told

MAX_AHEAD = 4096  # packets of a term that has not begun here


class Lead(enum.IntEnum):
    """What the coordinator is doing."""

    IDLE = 1
    ASKING = 2  # STOP is out, reports come in
    PREPARING = 3  # PLAN is out
    INSTALLING = 4  # INSTALL is out


class Groups(Protocol):
    """What a node has of its groups, as far as a change needs it."""

    def page(self, protocol: str) -> type[OrderingProtocol]:
        """The protocol of that name; a `PeerError` if it is not built in."""

    def machine(self, g: GroupId) -> OrderingProtocol | None:
        """The machine that serves this group here, if it is open."""

    def machines(self) -> Iterable[OrderingProtocol]:
        """All machines."""

    def open_group(self, entry: GroupEntry) -> None:
        """Make a machine for this group, if there is none."""

    def view_of(self, row: Row) -> View:
        """A row as its machine sees it."""

    def begin(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras end, and the next ones begin, at all machines concerned."""

    def send(self, to: tuple[ProcessId, ...], header: msgspec.Struct) -> None:
        """A packet of the cluster."""


class Changes(PlainState):
    """One node's part in changes, and the coordinator's."""

    def __init__(self, me: ProcessId, stride: int = 1) -> None:
        self.me = me
        self.term = 0
        self.nodes: dict[ProcessId, NodeEntry] = {}  # of the node view
        self.coordinator: ProcessId = -1
        self.directory = Directory()
        self.wants: dict[GroupId, WantIn] = {}  # groups this node wants to be in
        self.unwants: set[GroupId] = set()  # groups it wants to be out of
        self.done = 0  # the last change that is installed here
        self.newest: Change | None = None  # ... itself
        self.prepared: Change | None = None
        self.is_ready = False  # ... and everything for it is here
        self.planner: tuple[ProcessId, int] = (-1, 0)  # who planned it, in which attempt
        self.ahead: list[tuple[ProcessId, Any]] = []  # packets of a term that has not begun here
        self.local: deque[Any] = deque()  # packets of this node to itself
        # as the coordinator
        self.target = Target(me, stride)
        self.lead = Lead.IDLE
        self.attempt = 0
        self.asked: set[ProcessId] = set()  # who has not reported
        self.reports: dict[ProcessId, Report] = {}
        self.goal: dict[GroupId, Row] = {}
        self.planned: Change | None = None
        self.unready: set[ProcessId] = set()
        self.uninstalled: set[ProcessId] = (
            set()
        )  # took part in the last change; no word of them yet
        self.halted: set[GroupId] = set()  # stopped, and not begun again
        self.counts: dict[str, dict[GroupId, dict[ProcessId, int]]] = {}  # requests in this window

    @property
    def leads(self) -> bool:
        """Does this node coordinate?"""
        return self.coordinator == self.me

    # -- node views -------------------------------------------------------------------------------

    def begin_view(self, groups: Groups, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        """A node view is in force; these were in the one before, and did not leave."""
        before = self.nodes
        self.nodes = {node.pid: node for node in view.nodes}
        self.coordinator = view.coordinator
        if view.term == self.term:
            new = [node for node in view.nodes if node.pid not in before]
            if self.leads:
                self._send_rows(groups, [node.pid for node in new])
                self.target.arrived(self.directory, new, groups.page)
                self._lead_if_idle(groups)
        else:
            self._begin_term(groups, view.term, {node.pid: node for node in excluded})
        self._run_local(groups)

    def _begin_term(self, groups: Groups, term: int, gone: Mapping[ProcessId, NodeEntry]) -> None:
        self.term = term
        self.lead, self.halted, self.uninstalled = Lead.IDLE, set(), set()
        self.planned = None  # if all have prepared it, it is adopted, against a target of now
        if self.leads:
            self.target.begin(self.directory, tuple(self.nodes.values()), gone, groups.page)
            self._ask(groups, everybody=True)
        self.press(groups)
        ahead, self.ahead = self.ahead, []
        for src, header in ahead:
            if src in self.nodes:
                self._take(groups, src, header)

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, groups: Groups, src: ProcessId, header: msgspec.Struct) -> None:
        """A packet about changes, from a node of the view."""
        self._take(groups, src, header)
        self._run_local(groups)

    def _run_local(self, groups: Groups) -> None:
        while self.local:
            self._take(groups, self.me, self.local.popleft())

    def _send(self, groups: Groups, to: Iterable[ProcessId], header: msgspec.Struct) -> None:
        others = tuple(p for p in to if p != self.me)
        if others:
            groups.send(others, header)
        if self.me in to:
            self.local.append(header)

    def _take(self, groups: Groups, src: ProcessId, header: Any) -> None:
        term = getattr(header, "term", self.term)
        if term > self.term:
            if len(self.ahead) >= MAX_AHEAD:
                raise PeerError(f"more than {MAX_AHEAD} packets of a term that has not begun")
            self.ahead.append((src, header))
        elif term == self.term:
            if type(header) in FROM_COORDINATOR and src != self.coordinator:
                raise PeerError(f"{type(header).__name__} from one that does not coordinate")
            HANDLERS[type(header)](self, groups, src, header)

    # -- what this node wants ---------------------------------------------------------------------

    def want_in(self, groups: Groups, want: WantIn) -> None:
        """Be in a group."""
        self.wants[want.group.gid] = want
        self.unwants.discard(want.group.gid)
        self.press(groups)
        self._run_local(groups)

    def want_out(self, groups: Groups, g: GroupId) -> None:
        """Be out of a group."""
        self.wants.pop(g, None)
        self.unwants.add(g)
        self.press(groups)
        self._run_local(groups)

    def ask_coordinator(self, groups: Groups, wish: msgspec.Struct) -> None:
        """Of the driver: a move, a drain, a group that is to begin again."""
        self._send(groups, (self.coordinator,), wish)
        self._run_local(groups)

    def press(self, groups: Groups) -> None:
        """Ask the coordinator again for what is not so yet."""
        if not self.nodes:
            return
        for g in tuple(self.unwants):
            if self.is_out(g):
                self.unwants.discard(g)
            else:
                self._send(groups, (self.coordinator,), WantOut(g))
        for g, want in tuple(self.wants.items()):
            if self.is_in(groups, want):
                del self.wants[g]
            elif g not in self.unwants:
                self._send(groups, (self.coordinator,), want)

    def is_in(self, groups: Groups, want: WantIn) -> bool:
        """Is what this node wants so already?"""
        row = self.directory.rows.get(want.group.gid)
        if row is None:
            return False
        if want.part == "member":
            return self.me in row.members
        placed = groups.page(row.entry.protocol).together is not None
        return placed or self.me in row.guests

    def is_out(self, g: GroupId) -> bool:
        """Is this node out of the group?"""
        row = self.directory.rows.get(g)
        return row is None or self.me not in (*row.members, *row.guests)

    # -- the coordinator --------------------------------------------------------------------------

    def _on_want_in(self, groups: Groups, src: ProcessId, want: WantIn) -> None:
        if self.leads:
            self.target.want_in(self.directory, src, want, groups.page)
            self._lead_if_idle(groups)

    def _on_want_out(self, groups: Groups, src: ProcessId, want: WantOut) -> None:
        if self.leads:
            self.target.want_out(self.directory, src, want.gid, groups.page)
            self._lead_if_idle(groups)

    def _on_want_moved(self, groups: Groups, src: ProcessId, want: WantMoved) -> None:
        if self.leads and self.target.migrate(self.directory, want.gid, want.to):
            self._lead_if_idle(groups)

    def _on_want_drained(self, groups: Groups, src: ProcessId, want: WantDrained) -> None:
        if self.leads:
            self.target.drain(self.directory, want.pid, drained=want.drained)
            self._lead_if_idle(groups)

    def _on_want_refounded(self, groups: Groups, src: ProcessId, want: WantRefounded) -> None:
        if self.leads:
            self.target.refound(self.directory, want.gid, groups.page)
            self._lead_if_idle(groups)

    def _on_load(self, groups: Groups, src: ProcessId, load: Load) -> None:
        for g, p, count in load.counts if self.leads else ():
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
            self._run_local(groups)

    def unburden(self, groups: Groups, p: ProcessId) -> bool:
        """At the coordinator: p wants to leave the cluster; True when it numbers nothing."""
        if not any(self.directory.rows[g].leader == p for g in self.directory.of.get(p, ())):
            return True
        self.target.unburden(self.directory, p)
        self._lead_if_idle(groups)
        self._run_local(groups)
        return False

    def _lead_if_idle(self, groups: Groups) -> None:
        if self.lead is Lead.IDLE and not self.uninstalled:
            self._ask(groups)

    def _ask(self, groups: Groups, *, everybody: bool = False) -> None:
        """Lead a change, if anything should change."""
        self.goal = self.target.next_rows(self.directory, self.halted, groups.page)
        if not (self.goal or everybody):
            self.lead = Lead.IDLE
            return
        self.halted |= set(self.goal)
        self.attempt += 1
        self.lead, self.reports = Lead.ASKING, {}
        self.asked = set(self.nodes) if everybody else set(self._concerned())
        stop = Stop(self.term, self.attempt, tuple(self.goal), anew=everybody)
        self._send(groups, sorted(self.asked), stop)

    def _concerned(self) -> list[ProcessId]:
        """Everybody who takes part: in the groups as they are, and as they will be."""
        before = (self.directory.rows[g] for g in self.goal if g in self.directory.rows)
        everybody = told((*before, *self.goal.values()))
        return [p for p in everybody if p in self.nodes] or [self.me]

    def _on_report(self, groups: Groups, src: ProcessId, report: Report) -> None:
        if self.lead is not Lead.ASKING or report.attempt != self.attempt or src not in self.asked:
            return
        self.asked.discard(src)
        self.reports[src] = report
        if not self.asked:
            self._resolve(groups)

    def _resolve(self, groups: Groups) -> None:
        """All have reported."""
        reports = self.reports
        stopped = {g for report in reports.values() for g in report.stopped}
        self.halted |= stopped.intersection(self.directory.rows)
        source, newest = max(reports.items(), key=lambda item: item[1].done)
        if newest.done > self.done + 1:  # this node had no part in what it lacks
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
        if self.halted - set(self.goal):
            self._ask(groups, everybody=len(reports) == len(self.nodes))
            return
        if not self.goal:
            self.lead = Lead.IDLE
            self._lead_if_idle(groups)
            return
        self._plan(groups, self._decide(groups))

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
            g for r in self.reports.values() if r.done == newest.done for g in r.stopped
        }  # in the era that this change began
        self._install_everywhere(groups, change, again=stopped)

    def _prepared_by_all(self) -> Change | None:
        """A change for which everybody who lives is ready: one that is gone may have installed it,
        and shown its views."""
        for report in self.reports.values():
            change = report.prepared
            if change is None or change.number != self.done + 1:
                continue
            part = [r for p, r in self.reports.items() if p in change.who]
            complete = set(change.who).intersection(self.nodes) <= set(self.reports)
            if complete and all(r.prepared and r.prepared.name == change.name for r in part):
                return change
        return None

    def _decide(self, groups: Groups) -> Change:
        """The ends of the eras, from the reports alone."""
        by_protocol: dict[str, dict[GroupId, Ending]] = {}
        for g, row in self.goal.items():
            before = self.directory.rows.get(g)
            held: dict[ProcessId, Held] = {}
            for p, report in self.reports.items():
                held.update((p, said) for h, said in report.held if h == g)
            concerned = () if before is None else before.concerned
            dead = frozenset(p for p in concerned if p not in self.nodes)
            era = 0 if before is None else before.era
            ending = Ending(era, held, dead)
            by_protocol.setdefault(row.entry.protocol, {})[g] = ending
        ends: dict[GroupId, End] = {}
        for protocol, endings in by_protocol.items():
            ends.update(groups.page(protocol).decide(endings))
        nexts = tuple(Next(row, ends[g]) for g, row in self.goal.items())
        return Change(self.done + 1, (self.term, self.attempt), nexts, tuple(self._concerned()))

    def _plan(self, groups: Groups, change: Change) -> None:
        self.lead, self.planned = Lead.PREPARING, change
        self.unready = set(change.who)
        self._send(groups, change.who, Plan(self.term, self.attempt, change))

    def _on_ready(self, groups: Groups, src: ProcessId, ready: Ready) -> None:
        if self.lead is Lead.PREPARING and ready.attempt == self.attempt:
            self.unready.discard(src)
            if not self.unready:
                assert self.planned is not None
                self._install_everywhere(groups, self.planned)

    def _install_everywhere(
        self, groups: Groups, change: Change, again: Iterable[GroupId] = ()
    ) -> None:
        self.lead = Lead.INSTALLING
        begun = {coming.row.entry.gid for coming in change.groups}
        self.halted = (self.halted - begun) | set(again)
        self.uninstalled = set(change.who).intersection(self.nodes)
        self.attempt += 1
        self._send(groups, tuple(self.nodes), Install(self.term, change))
        if not self.uninstalled:
            self._installed_by_all(groups)

    def _on_installed(self, groups: Groups, src: ProcessId, word: Installed) -> None:
        if word.number == self.done or word.number == self.done + 1:
            self.uninstalled.discard(src)
            if not self.uninstalled and self.lead is Lead.INSTALLING:
                self._installed_by_all(groups)

    def _installed_by_all(self, groups: Groups) -> None:
        self.lead = Lead.IDLE
        self._ask(groups)

    def _send_rows(self, groups: Groups, to: Sequence[ProcessId]) -> None:
        if to:
            rows = tuple(self.directory.rows.values())
            self._send(groups, tuple(to), Rows(self.term, self.done, rows))

    # -- a node -----------------------------------------------------------------------------------

    def _on_stop(self, groups: Groups, src: ProcessId, stop: Stop) -> None:
        held: list[tuple[GroupId, Held]] = []
        for g in stop.scope:
            machine = groups.machine(g)
            if machine is not None:
                machine.stop((g,))
                said = machine.report(g)
                if said is not None:
                    held.append((g, said))
        stopped = tuple(g for machine in groups.machines() for g in machine.stopped())
        ready = self.prepared if self.is_ready and stop.anew else None
        newest = self.newest if stop.anew else None
        report = Report(self.term, stop.attempt, self.done, newest, ready, stopped, tuple(held))
        self._send(groups, (src,), report)

    def _on_plan(self, groups: Groups, src: ProcessId, plan: Plan) -> None:
        if plan.change.number != self.done + 1:
            return
        self.prepared, self.is_ready = plan.change, False
        self.planner = (src, plan.attempt)
        for machine in groups.machines():
            machine.unprepare()
        for machine, nexts in self._by_machine(groups, plan.change):
            machine.prepare(nexts)
        self.look_whether_ready(groups)

    def _by_machine(
        self, groups: Groups, change: Change
    ) -> list[tuple[OrderingProtocol, list[NextEra]]]:
        found: dict[int, tuple[OrderingProtocol, list[NextEra]]] = {}
        for coming in change.groups:
            machine = groups.machine(coming.row.entry.gid)
            if machine is not None:
                nexts = found.setdefault(id(machine), (machine, []))[1]
                nexts.append(self._next_era(groups, coming))
        return list(found.values())

    def _next_era(self, groups: Groups, coming: Next) -> NextEra:
        before = self.directory.rows.get(coming.row.entry.gid)
        return NextEra(
            groups.view_of(coming.row),
            coming.end,
            None if before is None else groups.view_of(before),
        )

    def look_whether_ready(self, groups: Groups) -> None:
        """Something came that a change may have waited for."""
        change = self.prepared
        if change is None or self.is_ready:
            return
        for coming in change.groups:
            g = coming.row.entry.gid
            machine = groups.machine(g)
            if machine is not None and not machine.is_ready(g, coming.end):
                return
        self.is_ready = True
        planner, attempt = self.planner
        self._send(groups, (planner,), Ready(self.term, attempt))
        self._run_local(groups)

    def _on_install(self, groups: Groups, src: ProcessId, install: Install) -> None:
        change = install.change
        if change.number == self.done + 1:
            self._install(groups, change)
        if self.me in change.who and change.number <= self.done:
            self._send(groups, (src,), Installed(self.term, change.number))
        self.press(groups)

    def _install(self, groups: Groups, change: Change) -> None:
        self.done, self.newest = change.number, change
        self.prepared, self.is_ready = None, False
        nexts = [self._next_era(groups, coming) for coming in change.groups]
        for coming in change.groups:
            self.directory.put(coming.row)
        if self.leads and change is self.planned:
            self.target.installed((coming.row for coming in change.groups), groups.page)
        elif self.leads:  # wishes were held against other rows; those who have any repeat them
            self._aim_anew(groups)
        begun = {coming.row.entry.gid for coming in change.groups}
        for machine in groups.machines():
            machine.unprepare(begun)
        groups.begin(change.number, nexts)

    def _aim_anew(self, groups: Groups) -> None:
        nodes, gone = tuple(self.nodes.values()), self.target.gone
        self.target.begin(self.directory, nodes, gone, groups.page)

    def _on_rows(self, groups: Groups, src: ProcessId, rows: Rows) -> None:
        """A directory for one that has none, or an old one."""
        if rows.number < self.done or (rows.number == self.done and self.done):
            return
        self.done, self.newest = rows.number, None
        self.prepared, self.is_ready = None, False
        known = self.directory.rows
        nexts = [
            NextEra(groups.view_of(row), groups.page(row.entry.protocol).nothing_held())
            for row in rows.rows
            if known.get(row.entry.gid) != row
        ]
        self.directory.replace(rows.rows)
        groups.begin(rows.number, nexts)
        if self.lead is Lead.ASKING:  # it had asked for them
            self._aim_anew(groups)
            self._ask(groups, everybody=True)
        self.press(groups)

    def _on_ask_rows(self, groups: Groups, src: ProcessId, ask: AskRows) -> None:
        self._send_rows(groups, (src,))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        assert self.lead is Lead.IDLE or self.leads, "only the coordinator leads"
        if self.prepared is not None:
            assert self.prepared.number == self.done + 1, "only the next change is prepared"
        if self.lead is Lead.PREPARING:
            assert self.planned is not None and self.planned.number == self.done + 1, "planned next"


FROM_COORDINATOR = (Stop, Plan, Install)

HANDLERS: dict[type, Any] = {
    WantIn: Changes._on_want_in,
    WantOut: Changes._on_want_out,
    WantMoved: Changes._on_want_moved,
    WantDrained: Changes._on_want_drained,
    WantRefounded: Changes._on_want_refounded,
    Load: Changes._on_load,
    Stop: Changes._on_stop,
    Report: Changes._on_report,
    Plan: Changes._on_plan,
    Ready: Changes._on_ready,
    Install: Changes._on_install,
    Installed: Changes._on_installed,
    AskRows: Changes._on_ask_rows,
    Rows: Changes._on_rows,
}
