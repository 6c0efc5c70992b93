"""Views led by one process: PROPOSE, REPORT, INSTALL, READY, GO.

Source      the view change that 003 assumes below TOTAL, with a leader that does not fail.
Guarantees  survivors of a view deliver the same messages in it before the next one begins.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       five packets per member and change, plus the unstable frames twice.

    the members change      attempt := attempt + 1;  send PROPOSE(attempt, eras) to members alive
    PROPOSE at p            stop sending;  send each unstable frame, and REPORT(attempt, how many)
    all have reported       send the union of the frames, and INSTALL(attempt, views, how many)
    INSTALL at p            when the union is here: send READY(attempt)
    all are ready           send GO(attempt)
    GO at p                 deliver the union in the protocol's order;  the views begin;  send again

Nobody delivers anything of the union before all have it. If the leader dies in the middle of its
GOs, whoever leads next lets those finish who are ready (`finish`): some others have.

A protocol whose order spans several groups has one of these for all of them, and groups that hang
together change together: the members of g stop, too, when somebody joins an h with which g shares
a member. What a message in g depends on is then delivered, or lost, in every group at once.

A member that dies in between starts a new attempt without it; what belongs to an older attempt is
ignored. If the leader dies, the next views come from outside (`begin`). A protocol with a sequencer
does not use this; it numbers its views among the messages.

Limits      A member that announces more frames than it sends holds the flush up: as packets may
            be late, waiting is right. `waits_for` shows it; excluding that member ends the wait.
            A leader that is no member has no marks. It judges only the form of a reported frame;
            a number far too high passes it, and the survivors skip that frame.
"""

from __future__ import annotations

import msgspec

from ordercast.core.events import Change, Cut, Flush, Kept, Multicast, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import MAX_COUNT
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.whereabouts import is_partition
from ordercast.errors import PeerError
from ordercast.membership.headers import Go, Install, NextView, Propose, Ready, Report, Unstable
from ordercast.membership.plan import Plan, hanging_together

Frames = dict[tuple[GroupId, ProcessId, int], Kept]  # by (group, origin, n)
Eras = tuple[tuple[GroupId, int], ...]  # the eras to come, per group


class LedMembership(PlainState):
    """Both roles, for the groups of one machine: member, and leader where this process leads."""

    def __init__(self, me: ProcessId, protocol: OrderingProtocol) -> None:
        self.me = me
        self.protocol = protocol
        self.views: dict[GroupId, View] = {}  # in force here, also where this process only leads
        self.blocked = False  # between PROPOSE and INSTALL nothing is sent
        self.queued: list[Multicast] = []  # what the application said meanwhile
        self.attempt = 0  # the one this process takes part in
        self.proposed: tuple[ProcessId, Propose] | None = None  # overtook the INSTALL before it
        self.installing: tuple[ProcessId, Install] | None = None  # waits for the union
        self.union: Frames = {}  # what has come of it
        self.prepared: tuple[ProcessId, Install] | None = None  # READY was said; waits for GO
        self.gone = 0  # a GO for this attempt has come
        # as the leader
        self.pending: list[Change] = []  # wait for the running one
        self.plans: dict[GroupId, Plan] = {}  # proposed; empty when idle
        self.expected: dict[ProcessId, int | None] = {}  # frames each reporter announced
        self.reported: dict[ProcessId, Frames] = {}  # frames that came from each
        self.mark = 0  # the highest that was reported
        self.unready: set[ProcessId] = set()  # INSTALL was sent; their READY is missing

    def begin(self, view: View) -> None:
        """A view is given from outside: a static list, the leader's empty view 0, or the next one
        after a leader was lost."""
        self.views[view.group] = view

    def void(self, attempt: int = 0) -> None:
        """Views come from outside: whatever was under way here is void, up to this attempt."""
        self.blocked = False
        self.attempt = self.gone = attempt
        self.proposed = self.installing = self.prepared = None
        self.union = {}
        self.pending, self.plans, self.unready = [], {}, set()

    def readied(self) -> tuple[tuple[GroupId, int], ...]:
        """The eras for which this process has said READY and heard no GO."""
        install = None if self.prepared is None else self.prepared[1]
        return () if install is None else tuple((view.group, view.era) for view in install.views)

    def readied_frames(self) -> Frames:
        """What is delivered as these eras begin: one that is dead now may have done so."""
        return self.union if self.prepared is not None else {}

    def finish(self, out: Output) -> None:
        """Some other has heard the GO that this process has not."""
        assert self.prepared is not None, "only what is ready can be finished"
        (src, install), self.prepared = self.prepared, None
        self._install(out, src, install)

    def forget_group(self, g: GroupId) -> None:
        """The group was closed here."""
        self.views.pop(g, None)
        self.queued = [multicast for multicast in self.queued if multicast.group != g]

    # -- the leader -------------------------------------------------------------------------------

    def change(self, out: Output, change: Change) -> None:
        """the members change"""
        assert self.views[change.group].leader == self.me, "only the leader is told"
        if self.plans and not change.dead:
            if change not in self.pending:  # it is asked for again and again
                self.pending.append(change)
            return
        self._strike_from_pending(change.dead)
        plans = dict(self.plans)
        plans.setdefault(change.group, Plan(self.views[change.group]))
        if change.dead:  # it is gone from every group, whichever was named first
            for g, view in self.views.items():
                if view.leader == self.me and not view.peers.isdisjoint(change.dead):
                    plans.setdefault(g, Plan(view))
        differ = [g for g, plan in plans.items() if plan.apply(_in_group(change, g))]
        if differ:
            self._propose(out, plans)

    def waits_for(self, g: GroupId) -> tuple[ProcessId, ...]:
        """Whose report, or part of it, or READY, is missing in the flush of g led here."""
        return (self._silent() or tuple(sorted(self.unready))) if g in self.plans else ()

    def _silent(self) -> tuple[ProcessId, ...]:
        return tuple(p for p, n in self.expected.items() if len(self.reported[p]) != n)

    def strike_opposites(self, change: Change) -> None:
        """p asks to be let out, and in again before its turn comes: only the last wish counts."""
        came, left = (*change.joined, *change.guests), change.left
        self.pending = [
            msgspec.structs.replace(
                old,
                joined=tuple(p for p in old.joined if p not in left),
                guests=tuple(p for p in old.guests if p not in left),
                left=tuple(p for p in old.left if p not in came),
            )
            if old.group == change.group
            else old
            for old in self.pending
        ]

    def _strike_from_pending(self, dead: tuple[ProcessId, ...]) -> None:
        # p asks to join while a change runs, and dies. Its death is told only once: a view that
        # took it in afterwards would wait for its report for ever.
        if dead:
            self.pending = [
                msgspec.structs.replace(
                    change,
                    joined=tuple(p for p in change.joined if p not in dead),
                    guests=tuple(p for p in change.guests if p not in dead),
                )
                for change in self.pending
            ]

    def _propose(self, out: Output, plans: dict[GroupId, Plan]) -> None:
        self.attempt += 1
        led = {g: view for g, view in self.views.items() if view.leader == self.me}
        processes = {
            g: plans[g].audience if g in plans else view.senders for g, view in led.items()
        }
        together = hanging_together(plans, processes)
        self.plans = {g: plans[g] if g in plans else Plan(led[g]) for g in together}
        eras: dict[ProcessId, Eras] = {}
        for g, plan in self.plans.items():
            for p in plan.survivors:
                eras[p] = (*eras.get(p, ()), (g, plan.view.era + 1))
        self.expected = dict.fromkeys(eras)
        self.reported = {p: {} for p in eras}
        self.mark = 0
        self.unready = set()
        if self.me in eras:
            self.blocked = True
            self.expected[self.me], self.reported[self.me] = self._own_frames(eras[self.me])
            self.mark = self._own_mark(eras[self.me])
        for alike in dict.fromkeys(eras.values()):
            to = tuple(p for p, own in eras.items() if own == alike and p != self.me)
            self._tell(out, to, alike[0][0], Propose(self.attempt, alike))
        self._install_when_all_reported(out)

    def _install_when_all_reported(self, out: Output) -> None:
        if not self.plans or self.unready or self._silent():
            return
        union: Frames = {}
        for frames in self.reported.values():
            for key, kept in frames.items():
                union[key] = self.protocol.better(union[key], kept) if key in union else kept
        dead = {g: plan.dead for g, plan in self.plans.items()}
        union = {key: self.protocol.attested(kept, dead[key[0]]) for key, kept in union.items()}
        for (g, _, _), kept in union.items():
            header = Unstable(self.attempt, kept.origin, kept.n, kept.stamp)
            self._tell(out, self._takers_of(g), g, header, kept.payload)
        installs: dict[Install, list[ProcessId]] = {}
        for p in self._audience():
            installs.setdefault(self._install_for(p, union), []).append(p)
        for install, to in installs.items():
            self._tell(out, tuple(to), install.views[0].group, install)
        self.union = union
        # One that leaves is not waited for: it need not have what others deliver in its absence.
        self.unready = {p for plan in self.plans.values() for p in (*plan.members, *plan.guests)}
        self.unready.discard(self.me)
        self._go_when_all_ready(out)

    def _go_when_all_ready(self, out: Output) -> None:
        if self.unready:
            return
        told: dict[GroupId, list[ProcessId]] = {}
        for p in self._audience():
            first = next(g for g, plan in self.plans.items() if p in plan.audience)
            told.setdefault(first, []).append(p)
        for g, to in told.items():
            self._tell(out, tuple(to), g, Go(self.attempt))
        self._install_here(out)
        while self.pending and not self.plans:
            self.change(out, self.pending.pop(0))

    def _audience(self) -> dict[ProcessId, None]:
        told = (p for plan in self.plans.values() for p in plan.audience)
        return {p: None for p in told if p != self.me}

    def _takers_of(self, g: GroupId) -> tuple[ProcessId, ...]:
        """The surviving members of g but for this process: they deliver its union."""
        plan = self.plans[g]
        return tuple(p for p in plan.survivors if p in plan.view.members and p != self.me)

    def _install_for(self, p: ProcessId, union: Frames) -> Install:
        plans = [plan for plan in self.plans.values() if p in plan.audience]
        takes = {plan.view.group for plan in plans if p in plan.view.members}
        frames = sum(1 for g, _, _ in union if g in takes)
        return Install(self.attempt, frames, self.mark, tuple(map(self._next_view, plans)))

    def _next_view(self, plan: Plan) -> NextView:
        subgroups = self.protocol.subgroups(plan.members)
        return plan.next_view(self.protocol.options.view_stride, subgroups)

    def _install_here(self, out: Output) -> None:
        views = tuple(map(self._next_view, self.plans.values()))
        self.plans = {}
        self._install(out, self.me, Install(self.attempt, len(self.union), self.mark, views))

    def _on_ready(self, out: Output, src: ProcessId, ready: Ready) -> None:
        if ready.attempt == self.attempt and src in self.unready:
            self.unready.discard(src)
            self._go_when_all_ready(out)

    def _on_report(self, out: Output, src: ProcessId, report: Report) -> None:
        if report.attempt != self.attempt or src not in self.expected:
            return
        if report.mark > MAX_COUNT:
            raise PeerError(f"a report says that its numbers have come to {report.mark}")
        announced, came = self.expected[src], len(self.reported[src])
        if report.frames < came or announced not in (None, report.frames):
            before = came if announced is None else announced
            raise PeerError(f"a report counts {report.frames} unstable frames; before, {before}")
        self.expected[src] = report.frames
        self.mark = max(self.mark, report.mark)
        self._install_when_all_reported(out)

    def _on_reported(self, out: Output, src: ProcessId, g: GroupId, kept: Kept) -> None:
        if g not in self.plans or src not in self.plans[g].survivors:
            raise PeerError(f"a frame of group {g}, of which it has nothing to report")
        if not self.protocol.plausible(g, self.views[g].senders, kept):
            raise PeerError(f"frame {kept.n} of process {kept.origin} cannot be one of this view")
        frames, announced = self.reported[src], self.expected[src]
        key = (g, kept.origin, kept.n)
        if key not in frames and len(frames) == announced:
            raise PeerError(f"more unstable frames than the {announced} that were announced")
        frames[key] = kept
        self._install_when_all_reported(out)

    # -- a member ---------------------------------------------------------------------------------

    def receive(self, out: Output, packet: Receive) -> None:
        """Handle one packet of the membership."""
        header, src = packet.header, packet.src
        if isinstance(header, Propose):
            self._on_propose(out, src, header)
        elif isinstance(header, Unstable):
            self._on_unstable(out, src, packet.group, header, packet.payload)
        elif isinstance(header, Report):
            self._on_report(out, src, header)
        elif isinstance(header, Ready):
            self._on_ready(out, src, header)
        elif isinstance(header, Go):
            self._on_go(out, src, packet.group, header)
        else:
            assert isinstance(header, Install)
            self._on_install(out, src, header)

    def _on_propose(self, out: Output, src: ProcessId, propose: Propose) -> None:
        eras = propose.eras
        self._check_leader(src, *(g for g, _ in eras))
        if any(g not in self.views or era > self.views[g].era + 1 for g, era in eras):
            # A second attempt may overtake the first: the later one counts.
            if self.proposed is None or propose.attempt > self.proposed[1].attempt:
                self.proposed = (src, propose)
            return
        if propose.attempt <= self.attempt or not eras:
            return
        if any(self.me not in self.views[g].senders for g, _ in eras):
            raise PeerError("a proposal for a group in which this process is not")
        self.attempt = propose.attempt
        self.union = {}
        self.installing = self.prepared = None
        self.blocked = True
        count, frames = self._own_frames(eras)
        for (g, _, _), kept in frames.items():
            header = Unstable(self.attempt, kept.origin, kept.n, kept.stamp)
            self._tell(out, (src,), g, header, kept.payload)
        self._tell(out, (src,), eras[0][0], Report(self.attempt, count, self._own_mark(eras)))

    def _own_frames(self, eras: Eras) -> tuple[int, Frames]:
        """What is unstable here in these groups."""
        frames = {(g, k.origin, k.n): k for g, _ in eras for k in self.protocol.unstable(g)}
        return len(frames), frames

    def _own_mark(self, eras: Eras) -> int:
        return max(self.protocol.report_mark(g) for g, _ in eras)

    def _on_unstable(
        self, out: Output, src: ProcessId, g: GroupId, header: Unstable, payload: bytes
    ) -> None:
        running = self.blocked or bool(self.plans)
        if header.attempt != self.attempt or not running:  # or a repeat of what is settled
            return
        view = self.views.get(g)
        if view is None or header.origin not in view.senders:
            raise PeerError(f"a frame of process {header.origin}, which is not in the view")
        kept = Kept(header.origin, header.n, header.stamp, payload)
        if src in self.reported:
            self._on_reported(out, src, g, kept)
            return
        self._check_leader(src, g)
        self.union[g, header.origin, header.n] = kept
        if self.installing is not None:
            self._on_install(out, *self.installing)

    def _on_install(self, out: Output, src: ProcessId, install: Install) -> None:
        if not install.views:
            raise PeerError("an INSTALL without a view")
        known = [view for view in install.views if view.group in self.views]
        for view in install.views:
            if view not in known and view.era <= self.protocol.left_in.get(view.group, (0, 0))[0]:
                return  # a repeat from a former stay
        if any(view.era != self.views[view.group].era + 1 for view in known):
            return
        if install.attempt < self.attempt or (known and install.attempt != self.attempt):
            return
        self._check_leader(src, *(view.group for view in install.views))
        self._check_install(install)
        self.attempt = install.attempt  # a newcomer was not asked
        if len(self.union) < install.frames:
            self.installing = (src, install)
        else:
            self.installing = None
            self.prepared = (src, install)
            self._tell(out, (src,), install.views[0].group, Ready(install.attempt))
            if self.gone == install.attempt:
                self.finish(out)

    def _on_go(self, out: Output, src: ProcessId, g: GroupId, go: Go) -> None:
        self._check_leader(src, g)
        if self.prepared is not None and self.prepared[1].attempt == go.attempt:
            self.finish(out)
        elif go.attempt >= self.attempt:  # it overtook the last frame, or the INSTALL
            self.gone = go.attempt

    def _check_install(self, install: Install) -> None:
        """Each group once, all that this process is in, and no other but those it asked for."""
        groups = [view.group for view in install.views]
        own = {g for g, view in self.views.items() if self.me in view.senders}
        if len(set(groups)) < len(groups) or not own <= set(groups):
            raise PeerError(f"an INSTALL of groups {groups}, where {sorted(own)} change together")
        for new in install.views:
            asked = new.group in self.protocol.left_in and self.me in (*new.members, *new.guests)
            if new.group not in self.views and not asked:
                raise PeerError(f"an INSTALL of group {new.group}, which is not open here")
            if new.guests and self.protocol.declaration.closed:
                raise PeerError(f"an INSTALL with guests of group {new.group}, which is closed")
            if not is_partition(new.members, new.subgroups):
                raise PeerError(f"an INSTALL of group {new.group} with subgroups of others")
        if install.start > MAX_COUNT:
            raise PeerError(f"an INSTALL says that numbers have come to {install.start}")

    def _install(self, out: Output, leader: ProcessId, install: Install) -> None:
        union, self.union = self.union, {}
        flushes, begun = [], []
        for new in install.views:
            g, old = new.group, self.views.get(new.group)
            view = View(
                g,
                new.number,
                new.members,
                leader,
                new.era,
                install.start,
                guests=new.guests,
                subgroups=new.subgroups,
            )
            self.views[g] = view
            if old is not None and self.me in old.members:
                frames = tuple(kept for (group, _, _), kept in union.items() if group == g)
                flushes.append(Flush(g, frames))
            if self.me in view.senders or (old is not None and self.me in old.senders):
                begun.append(view)
        self.blocked = False
        if begun:
            self.protocol.handle(Cut(tuple(flushes), tuple(begun)))
        if self.proposed is not None:
            (src, propose), self.proposed = self.proposed, None
            self._on_propose(out, src, propose)

    def _check_leader(self, src: ProcessId, *groups: GroupId) -> None:
        for g in groups:
            leader = self.views[g].leader if g in self.views else self._leader_elsewhere()
            if leader is not None and src != leader:
                raise PeerError(f"process {src} speaks as the leader, which is {leader}")

    def _leader_elsewhere(self) -> ProcessId | None:
        """Groups that may come to hang together have one leader."""
        own = (view.leader for view in self.views.values() if self.me in view.senders)
        return next(own, self.protocol.admitted_by)

    def _tell(
        self,
        out: Output,
        to: tuple[ProcessId, ...],
        g: GroupId,
        header: msgspec.Struct,
        m: bytes = b"",
    ) -> None:
        if to:
            era = self.views[g].era if g in self.views else 0
            out.transmits.append((to, g, era, header, m))


def _in_group(change: Change, g: GroupId) -> Change:
    """What a change means for g: only the dead are gone from every group."""
    return change if g == change.group else Change(g, dead=change.dead)
