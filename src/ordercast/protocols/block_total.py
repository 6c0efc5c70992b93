"""Total and causal order across overlapping groups by one number.

Source      004 (Macedo), section 4; its conclusion and footnote 7 name a total order protocol over
            Causal Blocks (Newtop, [EMS95]) without giving it. This is that idea.
Guarantees  one acyclic order of all messages of a domain, which respects causality.
Needs       reliable first-in first-out links per pair and group (N2f); everybody speaks.
Costs       n - 1 packets with three integers; NULLs of silent members; no sequencer.

    send(m) to g             BC := BC + 1;  m.b := BC;  multicast m to the other members of g
    receive(m) from q in g   m is represented in the block matrix of g
    whenever a block of some group was completed
                             while CBV[g] >= m.b in every own group, m being the waiting message
                             with the smallest key (m.b, sender):
                                 BC := max(BC, m.b);  deliver(m)

As block m.b is complete in all own groups, every message with that number or a smaller one is here.
Everybody delivers by the same key, so no cycle can arise, whatever groups overlap. A process sends
with a number above all that it delivered, so the key respects causality.

Departures from the source
  D1  One that has nothing to say sends NULL, since the paper assumes that all members send again
      in each group.                                                      (test_block_total_D1_...)
  D2  A block is complete without a word of this process itself.          (test_block_total_D2_...)
  D3  Slow delivers m once block m.b - 1 is complete. For a total order block m.b itself must be:
      another message with the same number and a smaller sender may be under way.
                                                                          (test_block_total_D3_...)
  D4  Own messages wait like all others, and their number counts as known.
                                                                          (test_block_total_D4_...)
  D5  The paper assumes that nobody fails or joins. A cut delivers what is left by key, and is the
      NULL of everybody up to the highest number known: a joiner that counted from 0 would send
      below what the others delivered.                                    (test_block_total_D5_...)
  D6  Of the frames of the dead that no survivor delivered, those are lost that may depend on a
      frame of another dead member that nobody heard of.                  (test_block_total_D6_...)
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


class BlockTotal(DomainProtocol):
    """Total order by completed blocks, on the loop of `BlockOrder`."""

    declaration = Declaration(
        name="block_total",
        order="global-total",
        scope="domain",
        network="N2f",
        header="3",
        packets="n-1, NULLs",
        control="(n-1)(n+1)",
        exact=False,
        silence="NULL of every silent member",
        source="004, 4 and footnote 7",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
            "total.group", "total.pairwise", "total.global", "total.gapless",
            "hybrid.total_causal",
        ),
        crash="every message waits for the dead member, until the view changes",
        also=("causal-total", "total"),
        everyone_speaks=True,
        closed=CLOSED,
    )  # fmt: skip

    better = staticmethod(vouching.better)
    attested = staticmethod(vouching.attested)

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.order = BlockOrder(ahead=0)  # D3: CBV[g] >= m.b

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
        self.order.settle(self, unions, views)  # D5, D6
