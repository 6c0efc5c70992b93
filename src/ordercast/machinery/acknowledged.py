"""Protocols of one group without a sequencer: they keep what is not stable (`Stability`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import Holdings
from ordercast.machinery.stability import Ack, Stability, Stable


class AcknowledgedProtocol(OrderingProtocol):
    """A protocol of one group whose senders count acknowledgements."""

    origins_answer = True

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.stability: dict[GroupId, Stability] = {}  # of the one group, in the view in force

    def on_view(self, view: View) -> None:
        g = view.group
        record = Stability(view, self.me, self.options.max_held)
        record.follow(self, self.stability.get(g))
        self.stability[g] = record
        if not record.sends:  # our last view: nothing after it is for us
            self.views[g] = View(g, view.number, (), self.me, view.era)

    def deliver(
        self, g: GroupId, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...] = ()
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""
        self.stability[g].deliver(self, q, n, m, stamp)

    def on_consumed(self, g: GroupId, frames: int) -> None:
        if g in self.stability:
            self.stability[g].on_consumed(self, frames)

    @on(Ack)
    def on_ACK(self, p: ProcessId, g: GroupId, ack: Ack, m: bytes) -> None:
        self.stability[g].on_ack(self, p, ack.n)

    @on(Stable)
    def on_STABLE(self, q: ProcessId, g: GroupId, stable: Stable, m: bytes) -> None:
        self.stability[g].learn_stable(q, stable.n)

    def on_timer(self, g: GroupId, name: str) -> None:
        if g in self.stability:
            self.stability[g].on_timer(self, name)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        for g, record in self.stability.items():
            record.invariants()
            for q, taken in record.taken.items() if record.sends else ():
                came = q == self.me or taken.mark <= self.mark(g, q)
                assert came, "only what has come was consumed"

    # -- the flush --------------------------------------------------------------------------------

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """What was delivered here and may be missing elsewhere. Pages with a queue add theirs."""
        return tuple(self.stability[g].unstable())

    def has_delivered(self, g: GroupId, q: ProcessId, n: int) -> bool:
        return g in self.stability and self.stability[g].has_delivered(q, n)

    def holdings(self, g: GroupId) -> Holdings:
        if g not in self.stability:
            return Holdings(0, 0)
        kept = self.stability[g].kept_frames()
        return Holdings(len(self.unstable(g)) - kept, kept)

    @abstractmethod
    def mark(self, g: GroupId, q: ProcessId) -> int:
        """All frames of q up to this one have come here."""

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        q, n = frame.origin, frame.n
        if q not in senders or n < 1 or not self.well_stamped(g, senders, frame):
            return False
        return self.me not in senders or self.stability[g].may_exist(q, n, self.mark(g, q))

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """Does the frame carry what this protocol's order needs?"""
        return not frame.stamp

    def fitting(self, g: GroupId, union: Sequence[Kept]) -> list[Kept]:
        """The union by sender and number, without what some member made up."""
        senders = self.views[g].senders
        return sorted(frame for frame in union if self.plausible(g, senders, frame))
