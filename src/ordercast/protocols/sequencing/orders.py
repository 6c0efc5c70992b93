"""The sequencing service: many overlapping groups, numbered by several sequencers.

Source      000 (Kindberg), sections 4.1 to 4.3 and 5.
Guarantees  total         two groups' messages come in the same order at all who are in both
            hybrid        causal order across all groups, total order within each
            causal-total  both
            global-total  one order of all messages that no delivery contradicts, in any group
Needs       nothing of the network: it may lose, double and reorder packets (N0). The agreed
            changes of `ordercast.views` say who is in a group, and who numbers it. They keep S2,
            or S1, and move all groups that a join fuses in one change (`ordercast.placement`).
            In a causal order the only member of a group does not number it: two nodes hold each
            frame.
Costs       one packet to the sequencer, n from it. Small ones: an ACK from each member, a STATUS
            to each when the sequencer falls idle; in a causal order, or with a resilience, one
            more ACK from each of those that make a frame safe; with k > 1 a COMMIT to each. One
            less of each if the sequencer is a member. An ACCEPT has five integers, and three for
            each group in its context: groups that meet this one and have numbers that not all
            have consumed (total orders), groups that the sender has seen something of (causal
            ones); and three for each of its needs.
            With `bodies_apart=True` a member's body leaves once, to all; the sequencer sends n
            small packets with numbers. A guest's body goes through the sequencer.

A *place* is (era, number) in one group. A context maps groups to places. C_p is what process p
has seen; D_p.G is the last place that p has delivered in G. A change ends eras and begins the next
ones; the numbers of a group go on rising. A frame is *safe* when no crash takes its number away:
max(k, 1) members other than the sequencer hold it (k: the resilience; with `uniform=True` more than
half of the members), and its needs and those of all numbers before it in the group are safe; or its
era is over. With `resilience=0` its number is enough; a guest's waits for one other holder.

    multicast(G, m) at p          n := n + 1 in G.  Causal orders: while own frames that are not
                                  safe are under way to another sequencer, wait
      DO-MULTICAST                REQUEST(G, n, first, C_p, after) to sequencer(G);
                                  first: the first own frame to G that is not safe;
                                  after: own frames in other groups that are not safe
    REQUEST at sequencer(G)       of an ended era, or while a change stops G: void; p repeats it.
                                  Wait until n = max(last[p], first - 1) + 1, each of `after` has
                                  a number, and all eras that C_p names have begun.  Then
                                  C.G := C.G + 1;  last[p] := n;
                                  context := C_p and the places of `after`       (causal orders)
                                             C | intersect(G), G's fences        (total orders)
                                  needs := those places of `after` that are not safe;
                                  ACCEPT(G, C.G, p, n, context, needs, m) to the members
    ACCEPT at p                   hold it until all numbers before it are here;  ACK(held, done);
                                  deliver it when, in G,
      T1, CT1                     its number is the next of its era,
      T2, CT2                     for each G' of its context that p is in: D_p.G' >= context.G',
      needs                       p holds all of `needs`, or the sequencer said COMMIT; with
                                  k > 1 only COMMIT counts. The sequencer itself: it is safe
                                  (not in a total order for which no resilience was asked).
                                  Then D_p.G := its place;  causal orders: C_p := merge of C_p,
                                  context and its place
    ACK at sequencer(G)           commit := the longest prefix whose needs are safe, k > 1: and
                                  which enough hold.  Held by enough, and commit: safe.
                                  Consumed by all: stable, and forgotten.
                                  MARKS(C.G, commit, stable): COMMIT to those who cannot see it
                                  themselves, STATUS to all when idle.
                                  ANSWER(n, number) to a guest whose frame is safe
    a number is missing at p      FETCH(first, last) to the sequencer; in a change, to the one
                                  that holds it
    a change of G                 see `ordercast.views.changes`. Its end is the last number that
                                  anybody holds (`settling.py`); all members fetch up to it; the
                                  next sequencer gets `last`.  p: own frames without a number, and
                                  in causal orders all that follow them, are repeated

    S1   sequencer(G) != sequencer(G')  =>  G and G' share no member          (global-total)
    S2   sequencer(G) != sequencer(G')  =>  G and G' share at most one        (total, causal-total)

Departures from the source
  D1  T2 asks for D_p.G' >= C_m.G', as CT2 does, and not for equality: that
      deadlocks.                                                           (test_sequencing_D1_...)
  D2  D_p has no entry of a group that p is not in. A joiner's begins with
      its first era.                                                       (test_sequencing_D2_...)
  D3  SEQ(id) in contexts is replaced by `after`: the sequencer numbers a frame after its author's
      earlier ones in its other groups. If another sequencer numbers those, the frame waits at its
      sender: two sequencers could contradict each other.                  (test_sequencing_D3_...)
  D4  Hybrid contexts name what the sender has seen, and not the other groups of the
      sequencer.                                                           (test_sequencing_D4_...)
  D5  A fence: after a change of G, groups that met it name the place where its new era begins,
      until all have delivered a frame that names it.                      (test_sequencing_D5_...)
  D6  A group moves when its members hold all numbers of the era; no history buffer is
      transferred, and no FETCH is forwarded.                              (test_sequencing_D6_...)
  D7  `needs`: a frame is delivered when its author's earlier frames in other groups are safe. A
      crash would take them away, and they would come again, later.        (test_sequencing_D7_...)
  D8  A sender outside the group gets ANSWER when its frame is safe, not when it has its
      number.                                                              (test_sequencing_D8_...)
  D9  Places carry the era. A number that died with its sequencer counts as delivered when all of
      its era is.                                                          (test_sequencing_D9_...)
  D10  A request to a former sequencer is not forwarded but void. The change has told its author who
      numbers now, and the author repeats it.                              (test_sequencing_D10_...)
  D11  C_p.G only rises: an ACCEPT that comes late does not set it back.   (test_sequencing_D11_...)
  D12  A sender's frames are numbered in the order of its counts, whatever order requests arrive
      in.                                                                  (test_sequencing_D12_...)
  D13  A new view waits until all groups that ended in this change, or in an earlier one, are
      delivered to their ends here.                                        (test_sequencing_D13_...)
"""

from __future__ import annotations

from ordercast.core.declaration import Declaration, Order
from ordercast.protocols.sequencing.service import SequencingService


def _declared(
    name: str, order: Order, source: str, *promises: str, causal: bool = False
) -> Declaration:
    return Declaration(
        name=name,
        order=order,
        scope="domain",
        network="N0",
        header="5+3k",
        packets="1+n",
        control="2n+1" if causal else "2n",
        exact=False,
        silence="STATUS of an idle sequencer",
        source=source,
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement",
            "fifo.group", "causal.group", "total.group", "total.gapless", *promises,
        ),
        crash="the groups that the dead node was in, or numbered, change together, and no others; "
        "those that it numbered get another sequencer",
        sequenced=True,
    )  # fmt: skip


class Sequencing(SequencingService):
    """Pairwise total order: strongly intersecting groups have one sequencer (S2)."""

    declaration = _declared("sequencing", "total", "000, sections 4.1 to 4.3", "total.pairwise")
    exact, causal, common, together = True, False, 2, "strong"


class SequencingHybrid(SequencingService):
    """Causal order across groups, total order in each: any sequencer for any group."""

    declaration = _declared(
        "sequencing_hybrid", "hybrid", "000, section 5",
        "fifo.global", "causal.global", "hybrid.kindberg", causal=True,
    )  # fmt: skip
    exact, causal, common, together = False, True, 2, "none"
    copies_frames = True


class SequencingCausal(SequencingService):
    """Pairwise total order and causal order across groups."""

    declaration = _declared(
        "sequencing_causal", "causal-total", "000, section 5",
        "fifo.global", "causal.global", "total.pairwise", causal=True,
    )  # fmt: skip
    exact, causal, common, together = True, True, 2, "strong"
    copies_frames = True


class SequencingGlobal(SequencingService):
    """Acyclic total order: groups that share any member have one sequencer (S1)."""

    declaration = _declared(
        "sequencing_global", "global-total", "000, sections 4.1 and 4.2", "total.pairwise",
        "total.global",
    )  # fmt: skip
    exact, causal, common, together = True, False, 1, "weak"
