"""What a way to join a group promises, in the judge's own words (docs/GUARANTEES.md).

Kept apart from the registry of protocols on purpose: a judge that asked the judged what it had
promised would not notice a promise that was taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULTS = {  # the protocol that an order gets if none is asked for
    "total": "sequencing",
    "hybrid": "sequencing_hybrid",
    "causal": "cbcast",
    "fifo": "global_fifo",
    "causal-total": "block_total",
    "global-total": "block_total",
}
UNORDERED = ("basic", "reliable", "uniform")
TOTAL = (
    "sequencing", "sequencing_hybrid", "sequencing_causal", "sequencing_global", "sequencer_pb",
    "sequencer_bb", "javagroups", "agreed", "block_total",
)  # fmt: skip
CAUSAL = (*TOTAL, "vector", "cbcast", "slow", "fast", "fast_p", "relative", "two_layered")
CAUSAL_ACROSS = (
    "cbcast", "slow", "fast", "fast_p", "relative", "block_total", "sequencing_hybrid",
    "sequencing_causal",
)  # fmt: skip
TOTAL_ACROSS = ("sequencing", "sequencing_causal", "sequencing_global", "block_total")


@dataclass(frozen=True)
class Promises:
    """Of one group."""

    protocol: str
    fifo: bool
    causal: bool
    total: bool
    uniform: bool  # with fewer than half of a view gone, nothing delivered is undone

    @property
    def causal_across(self) -> bool:
        """Also between groups of this protocol."""
        return self.protocol in CAUSAL_ACROSS

    @property
    def total_across(self) -> bool:
        """Also between groups of this protocol that share members."""
        return self.protocol in TOTAL_ACROSS


def promises_of(join: Mapping[str, Any]) -> Promises:
    """What a group that is joined so promises."""
    protocol = join.get("protocol") or DEFAULTS[join["order"]]
    return Promises(
        protocol,
        fifo=protocol not in UNORDERED,
        causal=protocol in CAUSAL,
        total=protocol in TOTAL,
        uniform=bool(join.get("uniform")) or protocol == "uniform",
    )
