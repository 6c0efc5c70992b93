"""The four orders of the sequencing service.

Source      000 (Kindberg), sections 4.1, 4.2 and 5.
Guarantees  total         two groups' messages come in the same order at all who are in both
            hybrid        causal order across all groups, total order within each
            causal-total  both
            global-total  one order of all messages that no delivery contradicts, in any group
Needs       nothing: it works on a lossy, duplicating, reordering network (N0).
Costs       one packet to the sequencer, n from it. A header has four integers, and two more for
            each group in its context: groups that share a member and have unstable numbers (total
            orders), groups that the sender has seen something of (causal ones).
            With `bodies_apart=True` a member's body leaves once, to all; the sequencer sends n
            small packets with numbers. A guest's body goes through the sequencer.

Departures from the source
  D1  A receiver waits for D' >= n', not D' = n': equality deadlocks.      (test_sequencing_D1_...)
  D2  A member of several groups merges nothing of foreign groups into
      its delivery context.                                               (test_sequencing_D2_...)
  D3  SEQ(id) in contexts is replaced by waiting for the number: at the sender; with resilience 0
      at the sequencer, if it numbers both groups.                        (test_sequencing_D3_...)
  D4  Hybrid contexts name what the sender has seen, and not the other groups of the
      sequencer.                                                          (test_sequencing_D4_...)
  D5  A leaver's group keeps its place in the contexts of groups that it met until all have
      delivered the view without it.                                      (test_sequencing_D5_...)
  D6  Unstable bodies travel with a group to its next sequencer, unless `bodies_stay`
      is asked for.                                                       (test_sequencing_D6_...)
  D7  Before a sender speaks in another group, it must have its last frame back, with its number;
      if it numbers that frame itself, or is a guest, one other member must have it. A crash would
      leave a gap.                                                        (test_sequencing_D7_...)
  D8  Who came in late has nothing from before, whatever it says that it has. It speaks elsewhere of
      what came since when all have what was before.                      (test_sequencing_D8_...)
  D9  A former sequencer keeps copies of what its successor alone has delivered, until another
      member has it.                                                      (test_sequencing_D9_...)
  D10 LEAVE-GROUP is answered: who left keeps what it had until the sequencer has its last word, and
      another member has all of it. It asks to be in again only then.     (test_sequencing_D10_...)
"""

from __future__ import annotations

from ordercast.core.declaration import Declaration, Order
from ordercast.protocols.sequencing.service import SequencingService


def _declared(name: str, order: Order, source: str, *promises: str) -> Declaration:
    return Declaration(
        name=name,
        order=order,
        scope="domain",
        network="N0",
        header="4+2k",
        packets="1+n",
        exact=False,
        silence="STATUS of an idle sequencer",
        source=source,
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless", *promises,
        ),
        crash="the groups of a dead sequencer are taken over together by others",
        sequenced=True,
    )  # fmt: skip


class Sequencing(SequencingService):
    """Pairwise total order: strongly intersecting groups have one sequencer (S2)."""

    declaration = _declared("sequencing", "total", "000, sections 4.1 to 4.3", "total.pairwise")
    exact, causal, together = True, False, "strong"


class SequencingHybrid(SequencingService):
    """Causal order across groups, total order in each: any sequencer for any group."""

    declaration = _declared(
        "sequencing_hybrid",
        "hybrid",
        "000, section 5",
        "fifo.global",
        "causal.global",
        "hybrid.kindberg",
    )
    exact, causal, together = False, True, "none"


class SequencingCausal(SequencingService):
    """Pairwise total order and causal order across groups."""

    declaration = _declared(
        "sequencing_causal",
        "causal-total",
        "000, section 5",
        "fifo.global",
        "causal.global",
        "total.pairwise",
    )
    exact, causal, together = True, True, "strong"


class SequencingGlobal(SequencingService):
    """Acyclic total order: groups that share any member have one sequencer (S1)."""

    declaration = _declared(
        "sequencing_global", "global-total", "000, sections 4.1 and 4.2", "total.pairwise",
        "total.global",
    )  # fmt: skip
    exact, causal, together = True, False, "weak"
