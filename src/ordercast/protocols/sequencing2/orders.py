"""The four orders of the sequencing service (draft head)."""

from __future__ import annotations

from ordercast.core.declaration import Declaration, Order
from ordercast.protocols.sequencing2.service import SequencingService


def _declared(name: str, order: Order, source: str, *promises: str) -> Declaration:
    return Declaration(
        name=name,
        order=order,
        scope="domain",
        network="N0",
        header="5+3k",
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
    exact, causal, common, together = True, False, 2, "strong"


class SequencingHybrid(SequencingService):
    """Causal order across groups, total order in each: any sequencer for any group."""

    declaration = _declared(
        "sequencing_hybrid", "hybrid", "000, section 5",
        "fifo.global", "causal.global", "hybrid.kindberg",
    )  # fmt: skip
    exact, causal, common, together = False, True, 2, "none"
    copies_frames = True


class SequencingCausal(SequencingService):
    """Pairwise total order and causal order across groups."""

    declaration = _declared(
        "sequencing_causal", "causal-total", "000, section 5",
        "fifo.global", "causal.global", "total.pairwise",
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
