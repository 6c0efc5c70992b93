"""Views led by one process: PROPOSE, REPORT, INSTALL.

Source      the view change that 003 assumes below TOTAL, with a leader that does not fail.
Guarantees  survivors of a view deliver the same messages in it before the next one begins.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       three packets per member and change, plus the unstable frames twice.

    the members change      attempt := attempt + 1;  send PROPOSE(attempt, view) to members alive
    PROPOSE at p            stop sending;  send each unstable frame, and REPORT(attempt, how many)
    all have reported       send the union of the frames, and INSTALL(attempt, view, how many)
    INSTALL at p            when the union is here: deliver it in the protocol's order;
                            the view begins;  send again

A member that dies in between starts a new attempt without it; what belongs to an older attempt is
ignored. If the leader dies there is no next view: the driver ends the node. A protocol with a
sequencer does not use this while the sequencer lives; it numbers its views among the messages.

Limits      A member that announces more frames than it sends holds the flush up: as packets may
            be late, waiting is right. `waits_for` shows it; excluding that member ends the wait.
            A leader that is no member has no marks. It judges only the form of a reported frame;
            a number far too high passes it, and the survivors skip that frame.
"""

from __future__ import annotations

import msgspec

from ordercast.core.events import Change, Flush, Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.errors import PeerError


class Propose(msgspec.Struct, frozen=True, array_like=True):
    """View `number` is to come: stop sending, and report."""

    attempt: int
    number: int


class Unstable(msgspec.Struct, frozen=True, array_like=True):
    """One unstable frame on its way to the leader, or one of the union on its way back."""

    attempt: int
    origin: ProcessId
    n: int
    stamp: tuple[int, ...]


class Report(msgspec.Struct, frozen=True, array_like=True):
    """So many frames are unstable here; each comes in a packet of its own."""

    attempt: int
    frames: int


class Install(msgspec.Struct, frozen=True, array_like=True):
    """Begin this view, once the union of so many frames is here and delivered."""

    attempt: int
    number: int
    members: tuple[ProcessId, ...]
    era: int
    frames: int


MEMBERSHIP_HEADERS: tuple[type[msgspec.Struct], ...] = (Install, Propose, Report, Unstable)

Frames = dict[tuple[ProcessId, int], Kept]  # by (origin, n)


class LedMembership(PlainState):
    """Both roles, for one group at one process: member, and leader where this process leads."""

    def __init__(self, me: ProcessId, g: GroupId, protocol: OrderingProtocol) -> None:
        self.me = me
        self.g = g
        self.protocol = protocol
        self.view: View | None = None  # in force here
        self.blocked = False  # between PROPOSE and INSTALL nothing is sent
        self.attempt = 0  # the one this process takes part in
        self.proposed: tuple[ProcessId, Propose] | None = None  # overtook the INSTALL before it
        self.installing: tuple[ProcessId, Install] | None = None  # waits for the union
        self.union: Frames = {}  # what has come of it
        # as the leader
        self.pending: list[Change] = []  # wait for the running one
        self.next_members: tuple[ProcessId, ...] | None = None  # proposed; None when idle
        self.audience: tuple[ProcessId, ...] = ()  # who gets the INSTALL: old, leaving, new
        self.expected: dict[ProcessId, int | None] = {}  # frames each reporter announced
        self.reported: dict[ProcessId, Frames] = {}  # frames that came from each

    def begin(self, view: View) -> None:
        """A view is given from outside: a static list, or the leader's empty view 0."""
        self.view = view
        self.blocked = False

    # -- the leader -------------------------------------------------------------------------------

    def change(self, out: Output, change: Change) -> None:
        """the members change"""
        assert self.view is not None and self.view.leader == self.me, "only the leader is told"
        self._strike_from_pending(change.dead)
        members, audience = self.next_members, self.audience
        if members is None:
            members = audience = self.view.members
        elif not change.dead:
            self.pending.append(change)
            return
        gone = (*change.left, *change.dead)
        stay = tuple(p for p in members if p not in gone)
        joined = tuple(p for p in change.joined if p not in stay)
        told = tuple(p for p in audience if p not in change.dead)
        if not joined and (stay, told) == (members, audience):  # nobody came or went
            return
        self.next_members = stay + joined
        self.audience = told + tuple(p for p in joined if p not in told)
        self._propose(out)

    def waits_for(self) -> tuple[ProcessId, ...]:
        """Whose report, or part of it, is missing in the flush led here; empty where none runs."""
        if self.next_members is None:
            return ()
        return tuple(p for p, n in self.expected.items() if len(self.reported[p]) != n)

    def _strike_from_pending(self, dead: tuple[ProcessId, ...]) -> None:
        # p asks to join while a change runs, and dies. Its death is told only once: a view that
        # took it in afterwards would wait for its report for ever.
        if dead:
            self.pending = [
                Change(c.group, tuple(p for p in c.joined if p not in dead), c.left)
                for c in self.pending
            ]

    def _propose(self, out: Output) -> None:
        assert self.view is not None
        self.attempt += 1
        reporters = tuple(p for p in self.audience if p in self.view.members)
        self.expected = dict.fromkeys(reporters)
        self.reported = {p: {} for p in reporters}
        propose = Propose(self.attempt, self.view.number + 1)
        self._tell(out, tuple(p for p in reporters if p != self.me), propose)
        if self.me in reporters:
            self.blocked = True
            frames = self.protocol.unstable(self.g)
            self.expected[self.me] = len(frames)
            self.reported[self.me] = {(kept.origin, kept.n): kept for kept in frames}
        self._install_when_all_reported(out)

    def _install_when_all_reported(self, out: Output) -> None:
        if self.next_members is None or self.waits_for():
            return
        assert self.view is not None
        view = self.view
        union: Frames = {}
        for frames in self.reported.values():
            union.update(frames)
        others = tuple(p for p in self.audience if p != self.me)
        survivors = tuple(p for p in others if p in view.members)
        newcomers = tuple(p for p in others if p not in view.members)
        for kept in union.values():
            header = Unstable(self.attempt, kept.origin, kept.n, kept.stamp)
            self._tell(out, survivors, header, kept.payload)
        number, members, era = view.number + 1, self.next_members, view.era + 1
        self._tell(out, survivors, Install(self.attempt, number, members, era, len(union)))
        self._tell(out, newcomers, Install(self.attempt, number, members, era, 0))
        self.next_members = None
        self.union = union
        self._install(out, self.me, Install(self.attempt, number, members, era, len(union)))
        while self.pending and self.next_members is None:
            self.change(out, self.pending.pop(0))

    def _on_report(self, out: Output, src: ProcessId, report: Report) -> None:
        if report.attempt != self.attempt or src not in self.expected:
            return
        announced, came = self.expected[src], len(self.reported[src])
        if report.frames < came or announced not in (None, report.frames):
            before = came if announced is None else announced
            raise PeerError(f"a report counts {report.frames} unstable frames; before, {before}")
        self.expected[src] = report.frames
        self._install_when_all_reported(out)

    def _on_reported(self, out: Output, src: ProcessId, kept: Kept) -> None:
        assert self.view is not None
        if not self.protocol.plausible(self.view.members, kept):
            raise PeerError(f"frame {kept.n} of process {kept.origin} cannot be one of this view")
        frames, announced = self.reported[src], self.expected[src]
        key = (kept.origin, kept.n)
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
            self._on_unstable(out, src, header, packet.payload)
        elif isinstance(header, Report):
            self._on_report(out, src, header)
        else:
            assert isinstance(header, Install)
            self._on_install(out, src, header)

    def _on_propose(self, out: Output, src: ProcessId, propose: Propose) -> None:
        self._check_leader(src)
        if self.view is None or propose.number > self.view.number + 1:
            # A second attempt may overtake the first: the later one counts.
            if self.proposed is None or propose.attempt > self.proposed[1].attempt:
                self.proposed = (src, propose)
            return
        if propose.attempt <= self.attempt:
            return
        self.attempt = propose.attempt
        self.union = {}
        self.blocked = True
        frames = self.protocol.unstable(self.g)
        for kept in frames:
            header = Unstable(self.attempt, kept.origin, kept.n, kept.stamp)
            self._tell(out, (src,), header, kept.payload)
        self._tell(out, (src,), Report(self.attempt, len(frames)))

    def _on_unstable(self, out: Output, src: ProcessId, header: Unstable, payload: bytes) -> None:
        running = self.blocked or self.next_members is not None
        if header.attempt != self.attempt or not running:  # or a repeat of what is settled
            return
        if self.view is None or header.origin not in self.view.members:
            raise PeerError(f"a frame of process {header.origin}, which is not in the view")
        kept = Kept(header.origin, header.n, header.stamp, payload)
        if src in self.reported:
            self._on_reported(out, src, kept)
            return
        self._check_leader(src)
        self.union[header.origin, header.n] = kept
        if self.installing is not None:
            self._on_install(out, *self.installing)

    def _on_install(self, out: Output, src: ProcessId, install: Install) -> None:
        if self.view is None:
            if install.number <= self.protocol.left_in:  # a repeat from a former stay
                return
        elif install.attempt != self.attempt or install.number != self.view.number + 1:
            return
        self._check_leader(src)
        self.attempt = install.attempt  # a newcomer was not asked
        if len(self.union) < install.frames:
            self.installing = (src, install)
        else:
            self.installing = None
            self._install(out, src, install)

    def _install(self, out: Output, leader: ProcessId, install: Install) -> None:
        before = self.view
        was_member = before is not None and self.me in before.members
        view = View(self.g, install.number, install.members, leader, install.era)
        union, self.union = tuple(self.union.values()), {}
        if was_member:
            self.protocol.handle(Flush(self.g, union))
        self.view = view
        self.blocked = False
        if was_member or self.me in view.members:
            self.protocol.handle(view)
        if self.proposed is not None:
            (src, propose), self.proposed = self.proposed, None
            self._on_propose(out, src, propose)

    def _check_leader(self, src: ProcessId) -> None:
        leader = self.protocol.admitted_by if self.view is None else self.view.leader
        if leader is not None and src != leader:
            raise PeerError(f"process {src} speaks as the leader, which is {leader}")

    def _tell(
        self, out: Output, to: tuple[ProcessId, ...], header: msgspec.Struct, m: bytes = b""
    ) -> None:
        if to:
            era = self.view.era if self.view is not None else 0
            out.transmits.append((to, self.g, era, header, m))
