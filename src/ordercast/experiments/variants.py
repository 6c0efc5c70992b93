"""Protocols as a source has them, or would have them, where ours do more: only to be compared.

Without a flush (003): a view change clears the queue. Nobody tells what it holds, and what was
under way is not asked for again: the source repeats no request, and a repeat would double a message
that some have. The words by which members agree on the view are the same.

Without hearsay (004, 5.2): a header tells of the groups that its sender is in. What the sender has
heard of the groups of others is not passed on. That is an option of the pages that pass it on.

Blocking (000, 5, rule 1): a request leaves when every earlier one of its sender has its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.experiments.coordinates import Coordinates
from ordercast.protocols.javagroups import JavaGroupsTotal
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.sender import Sender
from ordercast.protocols.sequencing.service import SequencingService

BEYOND_A_PREFIX = frozenset(
    ("validity", "agreement", "total.gapless", "fifo.group", "causal.group")
)
"""Promises that nobody can expect without a flush. One order of what is delivered is none of them.
A message under way is lost, and a later one of its sender is not: that is neither FIFO nor causal.
"""

BEYOND_OWN_GROUPS = frozenset(("causal.global",))
"""Promises that nobody can expect without hearsay."""


class TotalWithoutFlush(JavaGroupsTotal):
    """Of the messages of a view survivors deliver a prefix each, in one order."""

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return ()

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.queue.arrived.clear()

    def on_view(self, view: View) -> None:
        self.sent.pending.clear()
        super().on_view(view)


class BlockingSender(Sender):
    """A sender waits for each of its numbers, whoever gives them."""

    def _may_leave(self, view: View) -> bool:
        return self.outbox.target is None


class BlockingTotal(SequencingService):
    """Pairwise total order."""

    page = Sequencing
    declaration, together = page.declaration, page.together
    exact, causal, common = page.exact, page.causal, page.common
    sender_part = BlockingSender


class BlockingHybrid(SequencingService):
    """Causal order across groups, total order in each."""

    page = SequencingHybrid
    declaration, together, copies_frames = page.declaration, page.together, page.copies_frames
    exact, causal, common = page.exact, page.causal, page.common
    sender_part = BlockingSender


class BlockingCausal(SequencingService):
    """Both."""

    page = SequencingCausal
    declaration, together, copies_frames = page.declaration, page.together, page.copies_frames
    exact, causal, common = page.exact, page.causal, page.common
    sender_part = BlockingSender


BLOCKING = {
    "sequencing": BlockingTotal,
    "sequencing_hybrid": BlockingHybrid,
    "sequencing_causal": BlockingCausal,
}
WITHOUT_FLUSH = {"javagroups": TotalWithoutFlush}
WITHOUT_HEARSAY = {name: PROTOCOLS[name] for name in ("cbcast", "fast", "relative")}


def protocol_of(run: Coordinates) -> type[OrderingProtocol]:
    """What this run is a run of; `ConfigError` if there is no such variant."""
    if not run.flush:
        return _variant(run, "flush = false", WITHOUT_FLUSH)
    if not run.hearsay:
        return _variant(run, "hearsay = false", WITHOUT_HEARSAY)
    if dict(run.options).get("blocking"):
        return _variant(run, "options.blocking = true", BLOCKING)
    return PROTOCOLS[run.protocol]


def not_expected(run: Coordinates) -> frozenset[str]:
    """Promises of the protocol that its variant cannot keep."""
    without_flush = frozenset() if run.flush else BEYOND_A_PREFIX
    return without_flush if run.hearsay else without_flush | BEYOND_OWN_GROUPS


def _variant(
    run: Coordinates, key: str, variants: Mapping[str, type[OrderingProtocol]]
) -> type[OrderingProtocol]:
    if run.protocol not in variants:
        names = " and ".join(map(repr, variants))
        raise ConfigError(f"{key} and protocol = {run.protocol!r}: only {names} have both")
    return variants[run.protocol]
