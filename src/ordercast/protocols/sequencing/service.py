"""The groups of one process that share an order of the sequencing service: one machine.

It keeps what one group's part cannot know alone: which entries wait for other groups, what is sent
when (`sending.py`), and, as a sequencer, which groups share members.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from ordercast.core.events import Change, Cut, Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options, Reach
from ordercast.core.waiting import NOBODY, Awaited, Holdings, Waiting, WaitingFrame
from ordercast.machinery.numbering import Context, Numbered
from ordercast.machinery.transfer import AnyEntry, BookState
from ordercast.protocols.sequencing.explained import kept_by_sender
from ordercast.protocols.sequencing.headers import Dismissed, Forwarded, Ids, Moved, Release, Safe
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.sending import SenderToGroups
from ordercast.protocols.sequencing.sequencer import SequencerPart

HandedOver = tuple[BookState, Collection[tuple[AnyEntry, bytes]]]
"""The book of a group, and its unstable entries with their bodies, but for those that stay."""


class Tally:
    """What was done here as a sequencer, for people: it decides nothing, and is no state."""

    __slots__ = ("forwarded", "numbered", "transfers_in", "transfers_out")

    def __init__(self) -> None:
        self.numbered = self.forwarded = self.transfers_in = self.transfers_out = 0


class SequencingService(SenderToGroups):
    """All groups of one order at one process: as a member, as a guest, as their sequencer."""

    handlers: ClassVar[dict[type, Callable[..., None]]] = dict(GroupPart.handlers)
    exact: ClassVar[bool]  # contexts name the last numbers of groups that share a member
    linked_headers = (Forwarded, Moved, Release, Safe, Dismissed)
    header_version = 6
    kind: ClassVar[type[GroupPart]] = GroupPart  # the tests put faulty ones here

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        self.effects = Output()
        self.tally = Tally()
        super().__init__(me, options)
        self.blocked: dict[GroupId, set[GroupId]] = {}  # groups whose next entry waits for that one
        self.to_try: deque[GroupId] = deque()  # groups whose next entry may wait no more
        self.trying = False
        self.taking_over = False  # books are being put in place: nothing is numbered
        self.reach_of: dict[GroupId, int] = {}  # at a cut: no higher number will come
        self.just_numbered: dict[ProcessId, None] = {}  # who had frames numbered, not looked at yet
        self.numbering = False  # inside `has_numbered`
        self.wanted: dict[GroupId, bool] = {}  # groups this process asks to be in; as a member?
        self.meets: dict[GroupId, tuple[GroupId, ...]] | None = None  # as a sequencer; None: anew

    # -- the parts --------------------------------------------------------------------------------

    @property
    def out(self) -> Output:
        """Shared with the parts."""
        return self.effects

    @out.setter
    def out(self, out: Output) -> None:
        self.effects = out
        for part in self.parts.values():
            part.out = out

    @property
    def early(self) -> list[Receive]:
        """Of all parts."""
        return [packet for part in self.parts.values() for packet in part.early]

    @early.setter
    def early(self, packets: list[Receive]) -> None:
        assert not packets, "packets belong to parts"

    def part(self, g: GroupId) -> GroupPart:
        """The part of that group; a new one if there is none."""
        part = self.parts.get(g)
        if part is None:
            part = self.parts[g] = self.kind(self.me, self.options, self)
        return part

    def receive(self, packet: Receive) -> None:
        part = self.parts.get(packet.group) or self.part(packet.group)
        part.receive(packet)

    def install(self, view: View) -> None:
        self.part(view.group).install(view)
        self.members_changed()

    def put_in_force_of(self, view: View, *, member: bool) -> None:
        """A part has a new view."""
        self.views[view.group] = view
        self.others[view.group] = tuple(p for p in view.members if p != self.me)
        if member:
            self.member_of.add(view.group)
        else:
            self.member_of.discard(view.group)
        if member or (self.me in view.guests and not self.wanted.get(view.group)):
            self.wanted.pop(view.group, None)
        self.members_changed()
        if view.group in self.blocked:  # a joiner begins in the middle, a leaver ends there
            self.progressed(view.group)

    def on_view(self, view: View) -> None:
        raise AssertionError("views belong to parts")

    def on_timer(self, g: GroupId, name: str) -> None:
        if g in self.parts:
            self.parts[g].on_timer(g, name)
        if self.to_try:
            self.progressed(g)

    def on_consumed(self, g: GroupId, frames: int) -> None:
        self.parts[g].on_consumed(g, frames)

    def on_change(self, change: Change) -> None:
        self.part(change.group).on_change(change)

    def forget_group(self, g: GroupId) -> None:
        # What was seen there stays in `seen`: others may still lack it.
        for table in (self.parts, self.views, self.others, self.holders):
            table.pop(g, None)
        self.member_of.discard(g)
        self.wanted.pop(g, None)
        self.unsent = deque(item for item in self.unsent if item[0] != g)
        self.sent = {item: None for item in self.sent if item[0] != g}
        self.members_changed()
        self.to_try.extend(sorted(self.blocked.pop(g, ())))  # looked at with the next timer

    def believe(self, g: GroupId, leader: ProcessId | None) -> None:
        self.part(g).admitted_by = leader

    def stay_ended(self, g: GroupId) -> tuple[int, int]:
        """Who only numbered the group may be let in by the very view that it knows it by."""
        era, start = super().stay_ended(g)
        return era, start if self.parts[g].was_in else 0

    def moved(self, g: GroupId) -> None:
        """Another numbers this group now."""
        self.members_changed()
        self.ask_again_after(g)

    def gone_for_good(self, p: ProcessId) -> None:
        for part in self.parts.values():
            part.gone_for_good(p)

    # -- a member ---------------------------------------------------------------------------------

    def must_wait(self, g: GroupId, context: Context) -> bool:
        """Does the next entry of g come after one that is not delivered here?"""
        for h, n in context:
            part = self.parts.get(h)
            if part is not None and self._is_member(h, part):
                n = min(n, self.reach_of.get(h, n))
                if n > part.R and h != g:
                    part.learn(h, min(n, part.R + self.options.max_held), 0)
                    self.blocked.setdefault(h, set()).add(g)
                    return True
            elif self._is_joining(h):  # the entry may be after the one that lets us in
                self.blocked.setdefault(h, set()).add(g)
                return True
        return False

    def _is_member(self, h: GroupId, part: GroupPart) -> bool:
        """One that numbers its own admission is in from there on; not if the era ends before."""
        return h in self.member_of if self.settling else part.delivers

    def _is_joining(self, h: GroupId) -> bool:
        wanted = self.wanted.get(h, False) or (h in self.left_in and h not in self.views)
        return wanted and not self.settling

    def awaited(self, g: GroupId, context: Context) -> Iterator[Awaited]:
        """The same, in words."""
        for h, n in context:
            part = self.parts.get(h)
            if part is not None and self._is_member(h, part) and n > part.R:
                yield Awaited("number", h, part.leader, n)
            elif self._is_joining(h):
                yield Awaited("view", h, NOBODY, 1)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self.send_released()

    def progressed(self, g: GroupId) -> None:
        """Entries of g were delivered: look at the groups whose next entry waited for them."""
        waiting = self.blocked.pop(g, None)
        if waiting:
            self.to_try.extend(sorted(waiting))
        if self.trying or self.paused:
            return
        self.trying = True
        while self.to_try:
            h = self.to_try.popleft()
            if h in self.parts:
                self.parts[h].try_next(h)
        self.trying = False
        self.send_released()

    # -- a sequencer ------------------------------------------------------------------------------

    def is_numbered(self, h: GroupId, p: ProcessId, n: int) -> bool:
        """Does p's frame n in h have a number? Only if it is numbered here, it is known."""
        part = self.parts.get(h)
        return part is not None and part.has_numbered(p, n)

    def has_numbered(self, p: ProcessId) -> None:
        """A frame of p got its number: its frames in other groups may have waited for it, and
        others for these. A loop, since they may be many."""
        self.just_numbered[p] = None
        if self.numbering:
            return
        self.numbering = True
        while self.just_numbered:
            q = next(iter(self.just_numbered))
            del self.just_numbered[q]
            for h, part in self.parts.items():
                if q in part.deferred:
                    part.number_deferred(h, q)
        self.numbering = False

    def members_changed(self) -> None:
        """Groups may share other members than before."""
        self.meets = None

    def context(
        self, part: SequencerPart, g: GroupId, entry: Numbered, deps: Context, after: Ids
    ) -> Context:
        """What the next entry of g comes after."""
        numbers: dict[GroupId, int] = {}
        if self.causal:
            numbers.update(deps if entry.view is None else part.behind)
            for h, n in after:
                N = self._number_of(h, entry.origin, n)
                if numbers.get(h, 0) < N:
                    numbers[h] = N
            numbers.pop(g, None)
            for h in [h for h, n in numbers.items() if self._is_stable_here(h, n)]:
                del numbers[h]
        if self.exact:
            for h in self._meeting(g):
                book = self.parts[h].book
                assert book is not None
                if max(book.stable, numbers.get(h, 0)) < book.N:
                    numbers[h] = book.N
        if self.causal:
            behind = part.behind
            for h, n in numbers.items():
                if n > behind.get(h, 0):
                    behind[h] = n
        return tuple(numbers.items())

    def _is_stable_here(self, h: GroupId, n: int) -> bool:
        """Is that group numbered here, and did all its members deliver this number?"""
        part = self.parts.get(h)
        return part is not None and part.book is not None and n <= part.book.stable

    def _number_of(self, h: GroupId, p: ProcessId, n: int) -> int:
        part = self.parts.get(h)
        return 0 if part is None or part.book is None else part.book.number_of.get((p, n), 0)

    def _meeting(self, g: GroupId) -> tuple[GroupId, ...]:
        """intersect(g): groups numbered here that share a member with g."""
        if self.meets is None:
            self.meets = {}
        found = self.meets.get(g)
        if found is None:
            mine = self.parts[g].counted_members()
            found = self.meets[g] = tuple(
                h
                for h, part in self.parts.items()
                if h != g and part.book is not None and mine & part.counted_members()
            )
        return found

    def hand_over(self, groups: Iterable[GroupId], to: ProcessId) -> dict[GroupId, HandedOver]:
        """Give the books of groups that must be together away: from now on none of them is numbered
        here. One that went on would not name the last numbers of the others."""
        books: dict[GroupId, HandedOver] = {g: self.parts[g].hand_over(g, to) for g in groups}
        self.tally.transfers_out += len(books)
        return books

    def succeed(self, books: Mapping[GroupId, HandedOver]) -> None:
        """This process numbers these groups from now on; the first number is given when all books
        are in place."""
        self.tally.transfers_in += len(books)
        self.taking_over = True
        for g, (state, entries) in books.items():
            self.part(g).take_book(g, state, entries)
        self.taking_over = False
        for g in books:
            self.parts[g].begin_to_number(g)

    def numbers(self, g: GroupId) -> bool:
        part = self.parts.get(g)
        return part is not None and part.book is not None

    def keeps_for_others(self, g: GroupId) -> bool:
        part = self.parts.get(g)
        return part is not None and part.keeps_for_others(g)

    def back_up(self, g: GroupId, source: ProcessId) -> bool:
        """Must the one that handed this group over keep copies for a while?"""
        return self.parts[g].back_up(g, source)

    # -- the cut ----------------------------------------------------------------------------------

    def cut(self, cut: Cut) -> None:
        """All groups end: deliver what is left of them, in order; then all begin again."""
        self.paused, self.settling = False, True
        groups = [flush.group for flush in cut.flushes]
        for flush in cut.flushes:
            part = self.part(flush.group)
            part.gather(flush.union)
            reach = part.R
            while reach + 1 in part.arrived:
                reach += 1
            self.reach_of[flush.group] = reach
        self.blocked.clear()
        while any(self.parts[g].R + 1 in self.parts[g].arrived for g in groups):
            self.to_try.extend(groups)
            before = [self.parts[g].R for g in groups]
            self.progressed(groups[0])
            assert before != [self.parts[g].R for g in groups], "contexts have no cycle"
        for g in groups:
            self.parts[g].arrived.clear()
        self.reach_of, self.settling = {}, False
        self.blocked.clear()
        self.seen.clear()
        self.holders.clear()
        for view in cut.views:
            self.part(view.group).put_in_force(view)
        self.unsent = deque(item for item in self.sent if item[0] in self.parts)
        for view in cut.views:
            self.parts[view.group].take_early((view.group,))
        self.send_released()

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        raise AssertionError("all groups of a service end together: they need a Cut")

    @staticmethod
    def reach(union: Sequence[Kept], lowest: int) -> Reach:
        return GroupPart.reach(union, lowest)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return self.parts[g].unstable(g) if g in self.parts else ()

    def numbers_delivered(self, g: GroupId) -> int:
        return self.parts[g].R if g in self.parts else 0

    def frames_delivered(self, g: GroupId) -> tuple[tuple[ProcessId, int], ...]:
        return self.parts[g].frames_delivered(g) if g in self.parts else ()

    # -- what waits, and why ----------------------------------------------------------------------

    def held_back(self) -> list[Waiting]:
        return [waiting for part in self.parts.values() for waiting in part.held_back()]

    def waiting_frames(self) -> list[WaitingFrame]:
        return [frame for part in self.parts.values() for frame in part.waiting_frames()]

    def holdings(self, g: GroupId) -> Holdings:
        return self.parts[g].holdings(g) if g in self.parts else Holdings(0, 0)

    def held_up(self) -> Iterator[Waiting]:
        return kept_by_sender(self)

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        apart = ("effects", "tally")
        return {name: value for name, value in super().state().items() if name not in apart}

    def copy(self) -> Self:
        twin = super().copy()
        twin.tally = Tally()
        for part in twin.parts.values():
            part.belong_to(twin)
        return twin

    def take_early(self, groups: Collection[GroupId]) -> None:
        for g in groups:
            if g in self.parts:
                self.parts[g].take_early((g,))
