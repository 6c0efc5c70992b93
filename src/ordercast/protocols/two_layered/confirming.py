"""How far all members have come with every message: stages, and the words that tell of them.

A message passes *stages* at each member: it is accepted; it is known there that all have accepted
it; the application has taken it. Which of them are counted follows from the delivery level.

    level    stages counted              a message is delivered when it is
    causal   taken                       accepted
    preack   accepted, taken             pre-acknowledged: all have accepted it
    ack      accepted, known, taken      acknowledged: all know that all have accepted it

    something new here, soon             a member sends its gateway a Confirmation;  a gateway sends
                                         an Announcement to its subgroup, N to the gateways
    nothing moves, not at rest           the same again, slower and slower
    a Confirmation, at rest              the gateway answers with an Announcement;  GlobalStatus
                                         is answered with N
    taken by all                         forget it: all may

A process is *at rest* if, as far as it knows, all have taken all. Then it says nothing by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from operator import ge, gt, le

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.patience import Patience
from ordercast.core.protocol import DeliveryLevel, Options, OrderingProtocol, on
from ordercast.core.waiting import NOBODY
from ordercast.core.whereabouts import Subgroups, Whereabouts
from ordercast.errors import PeerError
from ordercast.machinery.subgroups import NOBODY_ANYWHERE, Layout, subgroups_of
from ordercast.protocols.two_layered.headers import (
    Announcement,
    Column,
    Confirmation,
    Global,
    GlobalConfirmation,
    GlobalStatus,
    Local,
    Vector,
)
from ordercast.protocols.two_layered.layer import Id, Layer
from ordercast.protocols.two_layered.tally import Tally

STAGES: dict[DeliveryLevel, tuple[str, ...]] = {
    "causal": ("taken",),
    "preack": ("accepted", "taken"),
    "ack": ("accepted", "known", "taken"),
}


class ConfirmingProtocol(OrderingProtocol):
    """The part of a two-layered group that knows who has what."""

    has_subgroups = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.stages = STAGES[self.options.delivery_level]
        self.whereabouts: Mapping[ProcessId, Whereabouts] = {}  # of the nodes that say it
        self.S = 0  # frames sent by this process in this era
        self.sent_before = 0  # ... and in the eras before; a flush delivered all of those
        self.handed: deque[Column] = deque()  # columns of frames delivered and not taken yet
        self.stand(NOBODY_ANYWHERE, 0, 0)

    def stand(self, layout: Layout, i: Column, u: Column) -> None:
        """This process is p_iu from now on, and all numbers begin again."""
        self.layout = layout
        self.i, self.u = i, u
        inside = layout.subgroups[i] if layout.subgroups else ()
        size, k, limit = len(inside), len(layout.gateways), self.options.max_held
        self.near = tuple(p for p in inside if p != self.me)  # the others of G_i
        self.far = tuple(p for p in layout.gateways if p != self.me)  # a gateway: the others
        self.local: Layer[Local] = self.new_layer(size, u, limit)
        self.main: Layer[Global] | None = None  # only a gateway is in the main subgroup
        self.tallies: list[Tally] = []  # at a gateway, one for each stage
        if inside[:1] == (self.me,):
            self.main = self.new_layer(k, i, limit)
            self.tallies = [Tally(i, size, k) for _ in self.stages]
        self.reached: list[Vector] = [(1,) * size for _ in self.stages]  # by all, as far as known
        self.taken = [1] * size  # by the application here, per column
        self.queue: deque[Id] = deque()  # accepted, in order; their level is not reached
        self.announced: list[Vector] = self.reached[:]  # by the last word to the subgroup
        self.confirmed: list[Vector] = [(1,) * k for _ in self.tallies]  # ... to the gateways
        self.untold = 0  # steps forward since the last word
        self.statuses = Patience(self.options.status_ms, self.options.retry_ms)
        self.seen: tuple[object, ...] = ()  # what was known when the status timer was started
        self.running: set[str] = set()  # timers

    @staticmethod
    def new_layer(size: int, me: Column, limit: int) -> Layer:  # type: ignore[type-arg]
        """How a layer accepts messages."""
        return Layer(size, me, limit)

    def locate(self, whereabouts: Mapping[ProcessId, Whereabouts]) -> None:
        self.whereabouts = whereabouts

    def subgroups(self, members: tuple[ProcessId, ...]) -> Subgroups:
        return subgroups_of(members, self.whereabouts)

    @classmethod
    def subgroups_of(
        cls, members: tuple[ProcessId, ...], whereabouts: Mapping[ProcessId, Whereabouts]
    ) -> Subgroups:
        return subgroups_of(members, whereabouts)

    # -- delivering -------------------------------------------------------------------------------

    def release(self, g: GroupId) -> None:
        """Deliver what has reached its level. Order is the order of acceptance."""
        while self.queue and self.has_level(*self.queue[0]):
            u, seq = self.queue.popleft()
            _, message, payload = self.local.store[u][seq]
            self.out.deliveries.append((g, message.sp, message.n, 0, payload))
            if self.options.driver_consumes:
                self.handed.append(u)
            else:
                self.take(u)

    def has_level(self, u: Column, seq: int) -> bool:
        """Accepted is enough for causal; else all must have passed the stage before `taken`."""
        return len(self.stages) == 1 or self.reached[-2][u] > seq

    def take(self, u: Column) -> None:
        """The application has taken the next message of column u."""
        self.taken[u] += 1
        self.untold += 1

    def on_consumed(self, g: GroupId, frames: int) -> None:
        for _ in range(frames):
            u = self.handed.popleft()
            if u != NOBODY:
                self.take(u)
        if self.layout.subgroups:
            self.advance(g)

    # -- stages -----------------------------------------------------------------------------------

    def mark(self, stage: str) -> Vector:
        """How far this process is."""
        if stage == "taken":
            return tuple(self.taken)
        return tuple(self.local.rsq) if stage == "accepted" else self.reached[0]

    def advance(self, g: GroupId) -> None:
        """What follows from what has come: deliveries, words, timers."""
        if self.main is None:
            self.release(g)
        else:
            for s, stage in enumerate(self.stages):
                self.release(g)  # what the stages before allow
                self.untold += self.tallies[s].tell(0, self.mark(stage))
                self.reached[s] = tuple(self.tallies[s].reached)
            self.main.forget(tuple(self.tallies[-1].everywhere))
        self.forget(g)
        self.tell_soon(g)
        self.watch(g)

    def forget(self, g: GroupId) -> None:
        """What all have taken."""
        low, end = self.local.low[self.u], self.reached[-1][self.u]
        if low < end:
            stored = self.local.store[self.u]
            messages = (stored[seq][1] for seq in range(low, end))
            own = [message.n for message in messages if message.sp == self.me]
            self.out.stable += [(g, self.sent_before + n) for n in own[-1:]]
        self.local.forget(self.reached[-1])

    def at_rest(self) -> bool:
        """As far as is known here, all have taken all."""
        if self.main and not all(map(ge, self.tallies[-1].everywhere, self.main.top)):
            return False
        return all(map(ge, self.reached[-1], self.local.top))

    # -- words ------------------------------------------------------------------------------------

    def tell_soon(self, g: GroupId) -> None:
        """Who has come forward says so, after a few steps or soon."""
        if self.untold >= self.options.ack_every:
            self.tell(g)
        elif self.untold:
            self.start_timer(g, "ack", self.options.ack_delay_ms)

    def tell(self, g: GroupId) -> None:
        """Confirmations without a message."""
        self.untold = 0
        if self.main is None:
            self.to(self.layout.gateways[self.i : self.i + 1], g, self.confirmation())
            return
        if self.reached != self.announced:  # its own steps alone are no news to others
            self.announced = self.reached[:]
            self.to(self.near, g, self.announcement())
        mine = [tuple(tally.mine) for tally in self.tallies]
        if mine != self.confirmed:
            self.confirmed = mine
            self.to(self.far, g, self.global_confirmation())

    def confirmation(self) -> Confirmation:
        """Of a local process."""
        rsq = tuple(self.local.rsq)
        marks = (self.mark(stage) for stage in self.stages)
        return Confirmation(rsq, tuple(() if mark == rsq else mark for mark in marks))

    def announcement(self) -> Announcement:
        """Of a gateway, to its subgroup."""
        return Announcement(tuple(self.local.rsq), tuple(self.reached))

    def global_confirmation(self) -> GlobalConfirmation:
        """Of a gateway, to the others."""
        assert self.main is not None
        RSQ = tuple(self.main.rsq)
        marks = (tuple(tally.mine) for tally in self.tallies)
        return GlobalConfirmation(RSQ, tuple(() if mark == RSQ else mark for mark in marks))

    @on(Confirmation)
    def on_CONFIRMATION(self, p: ProcessId, g: GroupId, word: Confirmation, m: bytes) -> None:
        if self.main is None:
            raise PeerError("a confirmation to a process that is no gateway")
        u = self.column_of(p)
        marks = self.checked(word.rsq, word.marks)
        self.local.learn(u, word.rsq)
        for tally, mark in zip(self.tallies, marks, strict=True):
            self.untold += tally.tell(u, mark)
        self.advance(g)
        if self.at_rest():
            self.to((p,), g, self.announcement())

    @on(Announcement)
    def on_ANNOUNCEMENT(self, p: ProcessId, g: GroupId, word: Announcement, m: bytes) -> None:
        u = self.column_of(p)
        if u != 0:
            raise PeerError("an announcement of a process that is not our gateway")
        if len(word.reached) != len(self.stages):
            raise PeerError(f"{len(word.reached)} stages instead of {len(self.stages)}")
        for stage, marks in zip(self.stages, word.reached, strict=True):
            here = self.mark(stage)
            if len(marks) != len(here) or any(map(gt, marks, here)):
                raise PeerError(f"all are called {stage}, but it is not so here")
        self.local.learn(u, word.rsq)
        for s, marks in enumerate(word.reached):
            if not all(map(ge, self.reached[s], marks)):
                self.reached[s] = tuple(map(max, self.reached[s], marks))
                self.untold += self.stages[s + 1 : s + 2] == ("known",)
        self.advance(g)

    @on(GlobalConfirmation)
    def on_GLOBAL_CONFIRMATION(
        self, p: ProcessId, g: GroupId, word: GlobalConfirmation, m: bytes
    ) -> None:
        self.learn_global(p, g, word.RSQ, word.marks)

    @on(GlobalStatus)
    def on_GLOBAL_STATUS(self, p: ProcessId, g: GroupId, word: GlobalStatus, m: bytes) -> None:
        self.learn_global(p, g, word.RSQ, word.marks)
        if self.at_rest():
            self.to((p,), g, self.global_confirmation())

    def learn_global(
        self, p: ProcessId, g: GroupId, RSQ: Vector, marks: tuple[Vector, ...]
    ) -> None:
        """A gateway says how far its subgroup is."""
        i, main = self.subgroup_of(p)
        told = self.checked(RSQ, marks)
        main.learn(i, RSQ)
        for tally, mark in zip(self.tallies, told, strict=True):
            self.untold += tally.hear(i, mark)
        self.advance(g)

    def checked(self, accepted: Vector, marks: tuple[Vector, ...]) -> list[Vector]:
        """The marks in full. No stage can be ahead of what is accepted."""
        if len(marks) != len(self.stages):
            raise PeerError(f"{len(marks)} stages instead of {len(self.stages)}")
        full = [mark or accepted for mark in marks]
        if any(len(mark) != len(accepted) or any(map(gt, mark, accepted)) for mark in full):
            raise PeerError("a stage is said to be ahead of what is accepted")
        return full

    def column_of(self, p: ProcessId) -> Column:
        """u of a process of our subgroup."""
        if self.layout.site.get(p) != self.i:
            raise PeerError(f"process {p} is in another subgroup")
        return self.layout.column[p]

    def subgroup_of(self, p: ProcessId) -> tuple[Column, Layer[Global]]:
        """i of a gateway, at a gateway; and the layer of both."""
        if self.main is None or p not in self.layout.gateways:
            raise PeerError(f"processes {p} and {self.me} are not both gateways")
        return self.layout.site[p], self.main

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        self.local.invariants()
        if self.main is not None:
            self.main.invariants()
        for tally in self.tallies:
            tally.invariants()
        assert all(map(le, self.taken, self.local.rsq)), "only what was accepted is consumed"
        for s, stage in enumerate(self.stages):
            here = self.mark(stage)
            assert all(map(le, self.reached[s], here)), "all are only as far as this process"
        stages = zip(self.reached[1:], self.reached, strict=False)
        assert all(all(map(le, later, earlier)) for later, earlier in stages), "stages follow"
        assert self.local.low == self.reached[-1], "what all have taken is forgotten"
        accepted = all(seq in self.local.store[u] for u, seq in self.queue)
        assert accepted, "what waits for its level is kept"
        assert not self.queue or not self.has_level(*self.queue[0]), (
            "what has its level is delivered"
        )

    # -- timers -----------------------------------------------------------------------------------

    def watch(self, g: GroupId) -> None:
        """See to it that something is said if nothing moves any more."""
        if "status" not in self.running and not self.at_rest():
            self.seen = self.standing()
            self.start_timer(g, "status", self.statuses.wait)

    def standing(self) -> tuple[object, ...]:
        """What changes when something moves."""
        everywhere = [tuple(tally.everywhere) for tally in self.tallies]
        return (tuple(self.local.top), *self.reached, *everywhere)

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        if not self.layout.subgroups:
            return
        if name == "ack":
            if self.untold:
                self.tell(g)
        elif name == "status":
            if self.at_rest():
                self.statuses.answered()
            else:
                self.speak_up(g)
                self.start_timer(g, "status", self.statuses.wait)

    def speak_up(self, g: GroupId) -> None:
        """A word, if nothing has moved since the last look."""
        standing = self.standing()
        if standing != self.seen:
            self.seen = standing
            self.statuses.answered()
            return
        self.statuses.said_again()
        if self.main is None:
            self.tell(g)
        else:
            word = self.global_confirmation()
            self.to(self.near, g, self.announcement())
            self.to(self.far, g, GlobalStatus(word.RSQ, word.marks))

    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Start a timer unless it runs already."""
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)

    def to(
        self, those: tuple[ProcessId, ...], g: GroupId, header: msgspec.Struct, m: bytes = b""
    ) -> None:
        """One packet to these."""
        if those:
            self.out.transmits.append((those, g, self.views[g].era, header, m))
