"""The groups of one process that share an order of the sequencing service: one machine.

    sender       own frames: to one sequencer at a time where the order is causal    sender, outbox
    sequencer    groups that this process numbers; what a number comes after         sequencer,
                                                                                     contexts, book
    member       groups that this process is in: holding, fetching, acknowledging    member, seat
    delivery     T1, T2, CT1, CT2: when a frame, or a view, is delivered             delivery
    changes      how eras of groups end, and the next ones begin                     changes

Here is what a node sees of it: one event goes to the part that it concerns, by the table of packets
(`table`), and then everything is delivered that may be. The rules stand at the head of `orders`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from ordercast.core.changing import End, Ending, Held, NextEra, NumbersEnd
from ordercast.core.durability import Durability
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol, Tally
from ordercast.core.waiting import NOBODY, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.protocols.sequencing import explained
from ordercast.protocols.sequencing.changes import EraChanges
from ordercast.protocols.sequencing.contexts import Contexts
from ordercast.protocols.sequencing.delivery import Delivery
from ordercast.protocols.sequencing.headers import (
    Accept,
    Ack,
    Answer,
    Fetch,
    Marks,
    Number,
    Request,
    Spread,
)
from ordercast.protocols.sequencing.member import Member
from ordercast.protocols.sequencing.part import Environment
from ordercast.protocols.sequencing.resilience import Resilience
from ordercast.protocols.sequencing.sender import Sender
from ordercast.protocols.sequencing.sequencer import Sequencer
from ordercast.protocols.sequencing.settling import needed, settle
from ordercast.protocols.sequencing.table import TABLE, Rule, Says, check
from ordercast.protocols.sequencing.timers import Timers
from ordercast.protocols.sequencing.weights import weight_of_packet

Handler = Callable[[ProcessId, Receive], None]


class SequencingService(OrderingProtocol):
    """All groups of one order at one process: as a sender, as a member, as their sequencer."""

    causal: ClassVar[bool]  # contexts name what the sender had seen
    exact: ClassVar[bool]  # contexts name the last numbers of groups that meet
    common: ClassVar[int]  # groups that share so many members meet
    header_version = 7
    linked_headers = (Answer,)  # a guest hears of a frame that is safe, and does not ask again

    # What the parts are; a variant of the service replaces one of them.
    sender_part: ClassVar[type[Sender]] = Sender
    sequencer_part: ClassVar[type[Sequencer]] = Sequencer
    contexts_part: ClassVar[type[Contexts]] = Contexts
    member_part: ClassVar[type[Member]] = Member
    delivery_part: ClassVar[type[Delivery]] = Delivery
    changes_part: ClassVar[type[EraChanges]] = EraChanges

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.headers = tuple(sorted(TABLE, key=lambda header: header.__name__))

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        options = options or Options()
        self.timers = Timers(options)
        self.resilience = Resilience(me, causal=self.causal)
        self.sender = self.sender_part()
        self.sequencer = self.sequencer_part(self.contexts_part())
        self.member = self.member_part()
        self.delivery = self.delivery_part()
        self.changes = self.changes_part()
        self.early_of: dict[ProcessId, int] = {}  # packets of each peer that came too early
        self.early_bytes: dict[ProcessId, int] = {}  # ... and what they cost
        super().__init__(me, options)  # at last: it sets `out`, which connects the parts

    # -- the parts --------------------------------------------------------------------------------

    @property
    def out(self) -> Output:
        """The effects of this step. A node lends one to all its machines."""
        return self._out

    @out.setter
    def out(self, out: Output) -> None:
        self._out = out
        self._connect()

    def _connect(self) -> None:
        """Lend each part what it uses of the others: at the beginning, and after a copy."""
        env = Environment(
            self.me, self.options, self.views, self._out, self.timers, self.resilience,
            self.causal, self.exact, self.common,
        )  # fmt: skip
        sender, sequencer, member, delivery = (
            self.sender, self.sequencer, self.member, self.delivery,
        )  # fmt: skip
        self.timers.connect(self._out)
        sender.connect(env, sequencer, member)
        sequencer.connect(env, member, sender)
        member.connect(env, self.member_of, sequencer, sender, delivery)
        delivery.connect(env, member.seats, member, sender, sequencer)
        self.changes.connect(env, sender, member, delivery, sequencer)
        self.takes: dict[type[msgspec.Struct], Handler] = {  # which part takes which packet
            Request: sequencer.on_REQUEST,
            Spread: sequencer.on_SPREAD,
            Ack: sequencer.on_ACK,
            Fetch: sequencer.on_FETCH,
            Accept: member.on_ACCEPT,
            Number: member.on_NUMBER,
            Marks: member.on_MARKS,
            Answer: sender.on_ANSWER,
        }

    def state(self) -> dict[str, Any]:
        """All but the effects of the last step, and how the parts are connected."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_out", "takes")}

    # -- one event --------------------------------------------------------------------------------

    def receive(self, packet: Receive) -> None:
        try:
            self._take(packet)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))
        self.delivery.go_on()

    def _take(self, packet: Receive) -> None:
        kind = type(packet.header)
        rule, view = TABLE.get(kind), self.views.get(packet.group)
        if rule is None:
            raise PeerError(f"{kind.__name__} is no header of this protocol")
        check(packet.header, self.options.max_held)
        if view is not None and packet.era == view.era:
            if not self._may_say(rule.says, packet.src, view):
                raise PeerError(f"{kind.__name__} comes from {rule.says.value} only")
        elif view is not None and packet.era < view.era:
            self.note("drop", packet.group, packet.src, 0, "older era")
            return
        elif not self._may_wait(rule, packet.src, view):
            self._keep_early(packet)
            return
        self.takes[kind](packet.src, packet)

    def _may_wait(self, rule: Rule, p: ProcessId, view: View | None) -> bool:
        """May the part that takes such packets have this one, of an era to come, at once? Not if
        its sender may not say it yet: q is in no view of the group that is known here, and spreads
        a frame. A body that is kept for it would never be asked for, and takes the room of others.
        """
        may_say = rule.says is Says.NODE or (view is not None and self._may_say(rule.says, p, view))
        return rule.waits and may_say

    def _may_say(self, says: Says, p: ProcessId, view: View) -> bool:
        if says is Says.NODE:
            return True
        if says is Says.MEMBER:
            return p in view.members
        if p == view.leader:
            return True
        seat = self.member.seats.get(view.group)
        return says is Says.HOLDER and seat is not None and p == seat.source

    def _keep_early(self, packet: Receive) -> None:
        """It overtook the change that begins its era. What one peer sends takes nobody's room."""
        count = self.early_of.get(packet.src, 0)
        if count >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} packets of eras not begun here")
        size = self.early_bytes.get(packet.src, 0) + weight_of_packet(packet)
        if size > self.options.max_held_bytes:
            most = self.options.max_held_bytes
            raise PeerError(f"more than {most} bytes of packets of eras not begun here")
        self.early_of[packet.src] = count + 1
        self.early_bytes[packet.src] = size
        self.early.append(packet)

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.sender.multicast(g, m)
        self.delivery.go_on()

    def _multicast(self, multicast: Any) -> None:
        if multicast.group in self.views:
            self.on_multicast(multicast.group, multicast.payload)
        else:
            self.note("drop", multicast.group, self.me, 0, "the group is not known here")

    def on_timer(self, g: GroupId, name: str) -> None:
        self.timers.rang(g, name)
        if name == "retry":
            self.sender.repeat_requests(g)
        elif name in ("status", "behind"):
            self.sequencer.on_timer(g, name)
        else:
            self.member.on_timer(g, name)
        self.delivery.go_on()

    def on_consumed(self, g: GroupId, frames: int) -> None:
        self.member.consumed(g, frames)
        self.delivery.go_on()

    def count_holders(self, g: GroupId, durability: Durability) -> None:
        self.resilience.asked[g] = durability

    # -- changes ----------------------------------------------------------------------------------

    def install(self, view: View) -> None:
        """The first view of a group, where groups are given and not joined."""
        self.change(0, (NextEra(view, NumbersEnd(view.start, self.me)),))

    def stop(self, groups: Iterable[GroupId]) -> None:
        self.sequencer.stop(groups)

    def stopped(self) -> Iterator[GroupId]:
        return self.changes.stopped()

    def report(self, g: GroupId) -> Held | None:
        return self.changes.report(g)

    @classmethod
    def hangs_on(cls, groups: Mapping[GroupId, Ending]) -> set[GroupId]:
        return needed(groups)

    @classmethod
    def decide(cls, groups: Mapping[GroupId, Ending]) -> dict[GroupId, End]:
        return dict(settle(groups))

    @classmethod
    def nothing_held(cls) -> End:
        return NumbersEnd(0, NOBODY)

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        self.changes.check_ends(nexts)

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        self.changes.prepare(nexts)

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        self.changes.unprepare(begun)

    def is_ready(self, g: GroupId, end: End) -> bool:
        assert isinstance(end, NumbersEnd)
        return self.changes.is_ready(g, end)

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras of groups end, and the next ones begin; then packets count that came too early."""
        self.changes.change(number, nexts)
        for view in (next_era.view for next_era in nexts):
            self.others[view.group] = tuple(p for p in view.members if p != self.me)
        early, self.early, self.early_of, self.early_bytes = self.early, [], {}, {}
        for packet in early:
            self.receive(packet)
        self.changes.go_on()

    def forget_group(self, g: GroupId) -> None:
        """This process has nothing to do with g any more."""
        self.sender.outbox.forget(g)
        self.sequencer.replace(g, None)
        self.delivery.forget_group(g)
        self.timers.forget(g)
        for table in (self.views, self.others, self.member.seats, self.resilience.asked):
            table.pop(g, None)
        self.member_of.discard(g)
        self.early = [packet for packet in self.early if packet.group != g]
        self.early_of = dict(Counter(packet.src for packet in self.early))
        self.early_bytes = self._weighed_early()
        self.sender.pump()
        self.delivery.go_on()

    def drop_early(self, gone: Collection[ProcessId]) -> None:
        super().drop_early(gone)
        for p in gone:
            self.early_of.pop(p, None)
            self.early_bytes.pop(p, None)
            self.sequencer.forget_waiting(p)

    def _weighed_early(self) -> dict[ProcessId, int]:
        weighed: Counter[ProcessId] = Counter()
        for packet in self.early:
            weighed[packet.src] += weight_of_packet(packet)
        return dict(weighed)

    def begin_visit(self, g: GroupId) -> None:
        """This process sends to g as a guest from now on."""
        self.sender.outbox.begin(g)

    # -- facts ------------------------------------------------------------------------------------

    def numbers(self, g: GroupId) -> bool:
        return g in self.sequencer.books

    def tally(self) -> Tally:
        changes = self.changes
        return Tally(self.sequencer.numbered, changes.taken_over, changes.handed_on)

    def take_load(self) -> Iterator[tuple[GroupId, ProcessId, int]]:
        return self.sequencer.take_load()

    def held_back(self) -> list[Waiting]:
        return list(explained.held_back(self))

    def waiting_frames(self) -> list[WaitingFrame]:
        return list(explained.waiting_frames(self))

    def held_up(self) -> Iterator[Waiting]:
        return explained.held_up(self)

    def holdings(self, g: GroupId) -> Holdings:
        return explained.holdings(self, g)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        self.sender.check()
        self.sequencer.check()
        self.member.check()
        self.delivery.check()
        for g, book in self.sequencer.books.items():
            seat = self.member.seat_in(g)
            assert seat is None or seat.got == book.N, "who numbers a group and is in it has it all"
        waiting = Counter(packet.src for packet in self.early)
        assert waiting == self.early_of, "every packet that came too early is counted"
        assert self._weighed_early() == self.early_bytes, "... and weighed"

    # -- not used: every view of this service begins by a change -----------------------------------

    def on_view(self, view: View) -> None:
        raise AssertionError("views begin by `change`")

    def unstable(self, g: GroupId) -> tuple[Any, ...]:
        raise AssertionError("what is held is reported by `held`")

    def on_flush(self, g: GroupId, union: Sequence[Any]) -> None:
        raise AssertionError("eras end by `change`")
