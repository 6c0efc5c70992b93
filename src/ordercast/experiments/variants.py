"""Protocols as a source has them, or would have them, where ours do more: only to be compared.

Without a flush (003): a view change clears the queue. Nobody tells what it holds, and what was
under way is not asked for again: the source repeats no request, and a repeat would double a message
that some have. The words by which members agree on the view are the same.

Without hearsay (004, 5.2): a header tells of the groups that its sender is in. What the sender has
heard of the groups of others is not passed on. That is an option of the pages that pass it on.

Constant limits (003): what is missing is asked for in every period, asked for before or not.

Blocking (000, 5, rule 1): a request leaves when every earlier one of its sender has its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId
from ordercast.core.protocol import OrderingProtocol
from ordercast.errors import ConfigError
from ordercast.experiments.coordinates import Coordinates
from ordercast.machinery.resend_window import ResendWindow
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


class ConstantRequests(ResendWindow):
    """In every period the first `size` that are missing."""

    def period_over(self, missing: Iterable[int], top: int) -> list[int]:
        return list(islice(missing, self.size))

    def came(self, N: int, missing: Iterable[int]) -> list[int]:  # noqa: N803
        return []


class TotalWithConstantLimits(JavaGroupsTotal):
    """Asks for what is missing as the source does."""

    window_type = ConstantRequests


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
CONSTANT_RESENDS = {"javagroups": TotalWithConstantLimits}


def protocol_of(run: Coordinates) -> type[OrderingProtocol]:
    """What this run is a run of; `ConfigError` if there is no such variant."""
    options = dict(run.options)
    switches = (
        (not run.flush, "flush = false", WITHOUT_FLUSH),
        (not run.hearsay, "hearsay = false", WITHOUT_HEARSAY),
        (options.get("blocking"), "options.blocking = true", BLOCKING),
        (options.get("constant_resends"), "options.constant_resends = true", CONSTANT_RESENDS),
    )
    asked = [(key, variants) for is_asked, key, variants in switches if is_asked]
    found = [_variant(run, key, variants) for key, variants in asked]
    if len(found) > 1:
        raise ConfigError(f"{' and '.join(key for key, _ in asked)}: write only one of them")
    return found[0] if found else PROTOCOLS[run.protocol]


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
