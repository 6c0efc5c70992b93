"""Causal order across overlapping groups by one number.

Source      004 (Macedo), 5.3 "The Slow Causal Order Protocol", figure 4.
Guarantees  causal order (so FIFO too) across all groups of a domain.
Needs       reliable first-in first-out links per pair and group (N2f); everybody speaks.
Costs       n - 1 packets with three integers; NULLs of silent members; the longest wait of all.

    send(m) to g             BC := BC + 1;  m.b := BC;  multicast m to the other members of g
    receive(m) from q in g   m is represented in the block matrix of g
    whenever a block of some group was completed
                             Bmin := min over own groups of CBV
                             deliver all sent and received m with m.b <= Bmin + 1, in the order
                             of their numbers;  before each: BC := max(BC, m.b)

A message waits until everything with a smaller number is here, in all groups: what it depends on is
among that. Most of the waiting is for messages it does not depend on.

Departures from the source
  D1  The paper assumes that each member will send again in each group. One that has nothing to say
      sends NULL.                                                                (test_slow_D1_...)
  D2  A block is complete without a word of this process itself. The paper counts its own column,
      so that its own silence would hold back what it received.                  (test_slow_D2_...)
  D3  Own messages wait as the paper says ("all sent and received"). Their number counts as known,
      or a group that never hears of it could hold them back for ever.           (test_slow_D3_...)
  D4  The paper assumes that nobody fails or joins. A cut delivers what is left by number, and is
      the NULL of everybody up to the highest number known.                      (test_slow_D4_...)
  D5  Of the frames of the dead that no survivor delivered, those are lost that may depend on a
      frame of another dead member that nobody heard of.                         (test_slow_D5_...)
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Waiting
from ordercast.machinery import vouching
from ordercast.machinery.block_order import BlockData, BlockOrder
from ordercast.machinery.domain import DomainProtocol
from ordercast.machinery.silence import CLOSED, Null


class Slow(DomainProtocol):
    """The Slow causal order protocol, on the loop of `BlockOrder`."""

    declaration = Declaration(
        name="slow",
        order="causal",
        scope="domain",
        network="N2f",
        header="3",
        packets="n-1, NULLs",
        control="(n-1)(n+1)",
        exact=False,
        silence="NULL of every silent member",
        source="004, 5.3",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
        ),
        crash="every message waits for the dead member, until the view changes",
        everyone_speaks=True,
        closed=CLOSED,
    )  # fmt: skip

    better = staticmethod(vouching.better)
    attested = staticmethod(vouching.attested)

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order = BlockOrder(ahead=1)  # m.b <= Bmin + 1

    def parts(self) -> tuple[BlockOrder]:
        return (self.order,)

    # send(m) to g
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.order.send(self, g, m)

    # receive(m) from q in g
    @on(BlockData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: BlockData, m: bytes) -> None:
        self.order.receive(self, q, g, data, m)

    @on(Null)
    def on_NULL(self, j: ProcessId, g: GroupId, null: Null, m: bytes) -> None:
        self.order.receive_null(self, j, g, null)  # D1

    def held_back(self) -> list[Waiting]:
        return self.order.held_back()

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return self.order.frames()

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return vouching.has_word(frame.stamp)

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        self.order.settle(self, unions, views)  # D4, D5
