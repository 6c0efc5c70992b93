"""What a protocol says of itself.

The tables in the docs and the command `ordercast protocols` are made from this.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Order = Literal["none", "fifo", "causal", "total", "hybrid", "causal-total", "global-total"]
Scope = Literal["group", "domain"]
Network = Literal["N0", "N1", "N2f", "N2"]

ORDERS: tuple[Order, ...] = (
    "none", "fifo", "causal", "total", "hybrid", "causal-total", "global-total",
)  # fmt: skip

NETWORKS: dict[Network, str] = {
    "N0": "lossy, duplicating, reordering",
    "N1": "reliable, reordering, may duplicate",
    "N2f": "reliable, first-in first-out for each pair of processes in each group",
    "N2": "reliable, first-in first-out for each pair of processes",
}

STRENGTH: dict[Network, int] = {network: rank for rank, network in enumerate(NETWORKS)}


class Declaration(msgspec.Struct, frozen=True):
    """One row of the protocol table."""

    name: str
    order: Order
    scope: Scope
    network: Network  # the weakest network it works on by itself
    header: str  # integers in each header, as a formula of n members
    packets: str  # packets per frame in a closed group of n
    exact: bool  # does a message wait only for a message it really depends on?
    silence: str  # what must be said when nobody has anything to say
    source: str  # document and section
    promises: tuple[str, ...]  # property names of the trace verifier, without crashes
    crash: str  # what a crash does, in one sentence
    sequenced: bool = False  # one process numbers the frames, and the views among them
